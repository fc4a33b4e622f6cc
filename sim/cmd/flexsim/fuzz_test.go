// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/flexsteer/flexsteer/sim/pci"
	"github.com/flexsteer/flexsteer/sim/personalities"
)

// FuzzSlot: whatever a machine does to configuration space and BAR 0, and whatever
// becomes of the card meanwhile, it goes on, and a reset makes it a card as it was.
// Each thing to do has 16 bytes: what, bytes of an access, where, data.
func FuzzSlot(f *testing.F) {
	write := func(what, length byte, at uint32, data ...byte) []byte {
		b := append([]byte{what, length, 0, 0}, binary.BigEndian.AppendUint32(nil, at)...)
		return append(append(b, data...), make([]byte, 8-len(data))...)
	}
	enable := write(0, 1, 4, 6)
	f.Add(append(enable, write(2, 2, 0x18, 0, 0, 0, 1)...))
	f.Add(append(write(0, 1, 0x68, 0, 0x80), write(6, 0, 0)...))
	f.Add(append(append(enable, write(2, 2, 0x14, 0, 0, 7, 0)...), write(3, 3, 0x10)...))
	f.Add(append(append(write(0, 2, 0xcc, 1), write(0, 2, 0xc4, 3)...), write(0, 2, 0xd0, 0, 0, 0, 0x80)...))
	p, err := personalities.Load("bluefield-3")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		c, err := newCard(p, nil, t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		s := slot{c.function, c}
		for ; len(script) >= 16; script = script[16:] {
			at, data := binary.BigEndian.Uint32(script[4:]), script[8:][:1<<(script[1]%4)]
			inConfig, inBAR := int(at)%(pci.ConfigSize-len(data)+1), uint64(at)%uint64(pci.BAR0-len(data)+1)
			switch script[0] % 8 {
			case 0:
				s.ConfigWrite(inConfig, data)
			case 1:
				s.ConfigRead(inConfig, make([]byte, len(data)))
			case 2:
				s.BARWrite(inBAR, data)
			case 3:
				s.BARRead(inBAR, make([]byte, len(data)))
			case 4:
				s.Reset()
			case 5:
				c.restart()
			case 6:
				c.vanish()
			case 7:
				c.powerCycle()
			}
		}
		s.Reset()
		id := make([]byte, 4)
		if s.ConfigRead(0, id); le.Uint32(id) != 0xa2dc15b3 {
			t.Errorf("vendor and device are %x", id)
		}
		if _, err := json.Marshal(c.report()); err != nil {
			t.Error(err)
		}
	})
}
