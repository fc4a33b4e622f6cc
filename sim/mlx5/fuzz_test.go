// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"maps"
	"slices"
	"testing"
)

// invariants are what must hold of the registry after anything.
func (g *guest) invariants() {
	g.Helper()
	r := g.function.objects
	users, count := map[ref]int{}, [kinds]uint32{}
	for o, x := range r.objects {
		count[o.kind]++
		for _, used := range x.uses {
			users[used]++
			if r.objects[used] == nil {
				g.Fatalf("%v uses %v, which is not there", o, used)
			}
		}
	}
	for o, x := range r.objects {
		if x.users != users[o] {
			g.Fatalf("%v has %d users, counted as %d", o, users[o], x.users)
		}
	}
	if count != r.count {
		g.Fatalf("objects by kind %v, counted as %v", count, r.count)
	}
	samples := 0
	for _, n := range g.function.samples {
		samples += n
	}
	if left := g.parser.left(); left != g.personality.samples()-samples {
		g.Fatalf("%d samples are free and %d in use, of %d", left, samples, g.personality.samples())
	}
}

// destroyers are the commands that take the objects of each kind away.
var destroyers = map[kind]func(o ref) []byte{
	uar: plainly(0x803), pd: plainly(0x801), transportDomain: plainly(0x817), mkey: plainly(0x202), cq: plainly(0x401),
	rq: plainly(0x90a), sq: plainly(0x906), tis: plainly(0x914), tir: plainly(0x902), rqt: plainly(0x918),
	qCounter:    func(o ref) []byte { return cmd(0x772, 0, 16, set{0x58, 8, o.id}) },
	eq:          func(o ref) []byte { return cmd(0x302, 0, 16, set{0x58, 8, o.id}) },
	flowTable:   func(o ref) []byte { return cmd(0x931, 0, 64, set{0xa8, 24, o.id}) },
	flowEntry:   func(o ref) []byte { return cmd(0x938, 0, 64, set{0xa8, 24, o.id >> 32}, set{0x100, 32, o.id}) },
	flowCounter: func(o ref) []byte { return cmd(0x93a, 0, 16, set{0x40, 32, o.id}) },
	parseNode:   func(o ref) []byte { return cmd(0xa03, 0x22, 16, set{0x40, 32, o.id}) },
}

func plainly(opcode int) func(ref) []byte {
	return func(o ref) []byte { return cmd(opcode, 0, 16, set{0x48, 24, o.id}) }
}

// emptied destroys all objects in an order in which it is allowed: whatever came before, that must work.
func (g *guest) emptied() {
	g.Helper()
	r := g.function.objects
	for len(r.objects) > 0 {
		before := len(r.objects)
		for _, o := range slices.Collect(maps.Keys(r.objects)) {
			if r.free(o) == nil {
				g.run(g.destroyer(o))
			}
		}
		if len(r.objects) == before {
			g.Fatalf("nobody can take away what is left: %v; %s", r.alive(), g.last())
		}
	}
}

func (g *guest) destroyer(o ref) []byte {
	if o.kind == flowGroup {
		table := g.function.objects.objects[o].uses[0]
		return cmd(0x934, 0, 64, set{0xa8, 24, table.id}, set{0xc0, 32, o.id})
	}
	return destroyers[o.kind](o)
}

// run executes a command without the command queue.
func (g *guest) run(in []byte) {
	m := &message{in: in, out: make([]byte, 16+4096)}
	g.execute(m, nil)
}

// FuzzCommands: the input is a list of commands, each of an index into the
// allow-list, a length of 2 bytes, and bytes to lay over a command that would do
// something to a function with a network, a table and rules.
func FuzzCommands(f *testing.F) {
	opcodes := slices.Sorted(maps.Keys(commands))
	for i := range opcodes {
		f.Add([]byte{byte(i), 0, 0, byte(i), 0, 24, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0})
	}
	f.Add([]byte{byte(slices.Index(opcodes, 0x103)), 0, 0, byte(slices.Index(opcodes, 0x105)), 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		g := newGuest(t, card()).initialize()
		n := g.up(2)
		n.everything()
		r := n.rules()
		g.must(r.entry(2, 8, r.tir(1)), 16)
		g.must(cmd(0x939, 0, 16), 16)
		page := g.alloc(pageSize)
		for len(b) >= 3 {
			opcode := opcodes[int(b[0])%len(opcodes)]
			length := min(int(be.Uint16(b[1:])), len(b)-3)
			g.run(g.overlay(commands[opcode], b[3:3+length], page))
			b = b[3+length:]
			g.invariants()
			g.Receive(udp(5000))
		}
		g.Tables()
		if g.function.state == running {
			g.emptied()
			g.invariants()
		}
	})
}

// overlay is a command with a page behind it if it may have a tail, and bytes laid over its start and behind.
func (g *guest) overlay(c *command, over []byte, page uint64) []byte {
	modifier := 0
	if c.modifiers != nil {
		modifier = int(c.modifiers[len(over)%len(c.modifiers)])
	}
	in := cmd(int(c.opcode), modifier, c.in.size)
	if c.in.tail == 8 {
		in = list(in, page)
	}
	if len(over) > 0 {
		// Positions are pairs of offset and value: sparse commands are the ones that come through.
		for ; len(over) >= 3; over = over[3:] {
			if at := 8 + int(be.Uint16(over))%(len(in)-8+1); at < len(in) {
				in[at] = over[2]
			} else {
				in = append(in, over[2])
			}
		}
	}
	return in
}

// FuzzRawCommand: any bytes at all as one command, in each state of the function.
func FuzzRawCommand(f *testing.F) {
	for _, c := range commands {
		f.Add(cmd(int(c.opcode), 0, c.in.size), byte(2))
	}
	stages := []func(*guest) *guest{(*guest).attach, (*guest).enable, (*guest).initialize}
	f.Fuzz(func(t *testing.T, in []byte, stage byte) {
		if len(in) < replyHeader {
			return // the command queue lets no shorter ones through
		}
		g := stages[int(stage)%len(stages)](newGuest(t, card()))
		g.run(in)
		g.run(in)
		g.invariants()
	})
}

// FuzzBAR: writes to BAR 0 and to the memory of the command queue.
func FuzzBAR(f *testing.F) {
	f.Add([]byte{0, 0x18, 0, 0, 0, 1, 1, 0x14, 0, 0, 7, 0, 2, 0x40, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		g := newGuest(t, card()).initialize()
		n := g.up(1)
		g.must(n.rules().entry(2, 8, n.tir(0)), 16)
		entry := g.entry(cmd(0x755, 0, 512, set{0x60, 32, 1 << 6}), 600)
		g.write(g.queue, entry)
		for ; len(b) >= 6; b = b[6:] {
			switch at := uint64(b[1]); b[0] % 6 {
			case 0:
				g.BARWrite(at, b[2:6])
			case 1:
				g.BARWrite(at&^3, b[2:6])
			case 2:
				g.BARWrite(n.uar*pageSize+at*8, b[2:6])
			case 3:
				g.BARWrite(n.uar*pageSize+0x800+at<<8&0x700, append(b[2:6:6], b[2:6]...))
			case 4:
				g.write(g.queue+at%64, b[2:6])
			case 5:
				g.BARRead(at<<8|uint64(b[2]), make([]byte, b[3]))
			}
			g.invariants()
		}
		g.Receive(udp(1))
	})
}
