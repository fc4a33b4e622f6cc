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
	users, count, uses := map[ref]int{}, [kinds]uint32{}, 0
	for o, x := range r.objects {
		count[o.kind]++
		uses += len(x.uses)
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
	if count != r.count || uses != r.uses {
		g.Fatalf("objects by kind %v with %d uses, counted as %v and %d", count, uses, r.count, r.uses)
	}
	samples := g.function.steering.FreeSamples()
	for o := range r.objects {
		if o.kind == parseNode {
			n, err := g.function.steering.Node(uint32(o.id))
			if samples += len(n.Samples); err != nil {
				g.Fatal(err)
			}
		}
	}
	if samples != g.personality.limits().Samples {
		g.Fatalf("%d samples, free or of nodes", samples)
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

// FuzzGuest: a guest that does anything, in any order, to a function with a network and
// rules. The input is a list of things to do, each of what, a length and bytes about it.
// Commands go through mailboxes that lie open to what is written to memory meanwhile.
func FuzzGuest(f *testing.F) {
	opcodes := slices.Sorted(maps.Keys(commands))
	command := func(opcode int, over ...byte) []byte {
		i := byte(slices.Index(opcodes, uint16(opcode)))
		return append([]byte{0, byte(1 + len(over)), i}, over...)
	}
	ring := []byte{1, 0}
	f.Add(slices.Concat(command(0x100), []byte{2, 7, 0, 0, 40, 1, 2, 3, 4}, ring, []byte{5, 0, 1, 0}, ring))
	f.Add(slices.Concat([]byte{3, 60}, udp(5000), []byte{4, 10, 0, 0x20, 0, 0, 0, 0, 0, 0, 4, 1}, []byte{3, 60}, udp(1)))
	f.Add(slices.Concat(command(0x103, 2), ring, []byte{6, 6, 0x14, 0, 0, 0, 1, 0}, []byte{7, 1, 0}, []byte{3, 60}, udp(5000)))
	f.Add(slices.Concat([]byte{4, 9, 1, 0, 0, 0, 0, 0, 4, 0, 1}, []byte{7, 1, 1}, []byte{3, 60}, udp(1), []byte{7, 1, 2}, []byte{7, 1, 3}))
	f.Fuzz(func(t *testing.T, b []byte) {
		g := newGuest(t, card()).initialize()
		n := g.up(2)
		r := n.rules()
		g.must(r.entry(2, 8, r.tir(1)), 16)
		n.transmits(udp(1))
		for len(b) >= 2 {
			what, about := b[0], b[2:]
			about = about[:min(int(b[1]), len(about))]
			b = b[2+len(about):]
			g.anything(n, opcodes, what, about)
			g.invariants()
		}
		g.Report()
		g.Tables()
	})
}

// anything is one thing that a guest, or the world around it, can do.
func (g *guest) anything(n *network, opcodes []uint16, what byte, about []byte) {
	word := func(i int) (v uint32) { // that is not there is 0
		for j := range 4 {
			v <<= 8
			if i+j < len(about) {
				v |= uint32(about[i+j])
			}
		}
		return v
	}
	rest := func(i int) []byte { return about[min(i, len(about)):] }
	switch what % 8 {
	case 0: // lay a command into its slot
		opcode := opcodes[int(word(0)>>24)%len(opcodes)]
		g.memory.Write(g.queue, g.entry(g.overlay(commands[opcode], rest(1), n.sqRing), 16+int(word(1)>>20)))
	case 1: // have it run
		g.write32(segDoorbell, 1|word(0))
	case 2: // write to what memory there is, the latest first
		g.memory.Write(g.free-1-uint64(word(0)>>8)%(g.free-0x100000), rest(3))
	case 3:
		g.Receive(about)
		g.Lose(about)
	case 4: // ring at a UAR page, or the next
		registers := []uint64{0x20, 0x40, 0x48, 0x800, 0x900}
		g.BARWrite((n.uar+uint64(word(0)>>24)%2)*pageSize+registers[int(word(1)>>24)%len(registers)], rest(2))
	case 5: // lose a page
		g.memory.Unmap(g.free-1-uint64(word(0)>>8)%(g.free-0x100000), 1)
	case 6: // write to the initialization segment
		g.write32(uint64(word(0)>>24)&^3, word(2))
	case 7:
		switch word(0) >> 24 % 4 {
		case 0:
			g.Reset()
		case 1:
			g.SetLink(word(1)>>24&1 != 0)
		case 2:
			g.Vanish()
		case 3:
			g.attach()
		}
	}
}
