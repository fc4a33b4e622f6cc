// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"strings"
	"testing"
)

func TestAnUnknownOpcodeIsBadOpAndCounted(t *testing.T) {
	g := newGuest(t, card()).initialize()
	for range 2 {
		out := g.exec(cmd(0x7777, 3, 64), 16)
		if Status(out[0]) != BadOp || Syndrome(be.Uint32(out[4:])) != UnknownOpcode {
			t.Errorf("%x", out)
		}
	}
	r := g.Report()
	if r.Unknown["0x7777"] != 2 || r.Total != 0 || r.Commands["0x7777"]["BAD_OP"] != 2 {
		t.Errorf("%+v", r)
	}
	if err := r.Clean(); err == nil || !strings.Contains(err.Error(), "0x7777, 2 times") {
		t.Error(err)
	}
}

func TestAnUnknownModifierIsRefused(t *testing.T) {
	g := newGuest(t, card()).initialize()
	for _, c := range commands {
		g.refused(cmd(int(c.opcode), 0x1234, c.in.size), c.reply, BadParam, UnknownModifier)
	}
}

// Each bit of each command is either modelled or refused, and what is refused changes nothing.
func TestEachBitThatIsNotModelledIsRefused(t *testing.T) {
	g := newGuest(t, card()).initialize()
	g.up(1)
	before := g.Report()
	for _, c := range commands {
		if c.when&running == 0 {
			continue
		}
		modifier := uint16(0)
		if c.modifiers != nil {
			modifier = c.modifiers[0]
		}
		in := make([]byte, c.in.size, c.in.size+c.in.tail)
		opcodeField.Set(in, uint64(c.opcode))
		modifierField.Set(in, uint64(modifier))
		in = append(in, make([]byte, c.in.tail)...)
		for bit := range 8 * c.in.size {
			if c.mask[bit/8]>>(7-bit%8)&1 != 0 {
				continue
			}
			at(bit, 1).Set(in, 1)
			call := &call{in: in, out: make([]byte, c.reply), modifier: modifier}
			err := c.check(g.function.state, call)
			if err == nil || err.status != BadParam || err.syndrome != UnknownBits || err.legal() {
				t.Fatalf("%s with bit %#x: %v", c.name, bit, err)
			}
			at(bit, 1).Set(in, 0)
		}
		if err := c.check(g.function.state, &call{in: in, out: make([]byte, c.reply), modifier: modifier}); err != nil {
			t.Errorf("%s without any bit: %v", c.name, err)
		}
	}
	if after := g.Report(); after.State != before.State || len(after.Alive) != len(before.Alive) {
		t.Errorf("%+v", after)
	}
}

func TestInputAndOutputHaveALeastLength(t *testing.T) {
	g := newGuest(t, card()).initialize()
	for _, c := range commands {
		if c.when&running == 0 {
			continue
		}
		modifier := 0
		if c.modifiers != nil {
			modifier = int(c.modifiers[0])
		}
		g.refused(cmd(int(c.opcode), modifier, c.in.size-1), c.reply, BadInputLength, WrongLength)
		if c.reply > replyHeader {
			g.refused(cmd(int(c.opcode), modifier, c.in.size), c.reply-1, BadOutputLength, WrongLength)
		}
	}
}
