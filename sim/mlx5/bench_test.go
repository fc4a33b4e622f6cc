// SPDX-License-Identifier: Apache-2.0

package mlx5

import "testing"

// A small command and its end, by polling.
func BenchmarkCommand(b *testing.B) {
	g := newGuest(b, card()).initialize()
	entry := g.entry(cmd(0x10a, 0, 16), 112)
	for b.Loop() {
		g.give(0, entry)
	}
}

// A rule that comes and goes.
func BenchmarkRule(b *testing.B) {
	g := newGuest(b, card()).initialize()
	r := g.up(1).rules()
	g.must(cmd(0x302, 0, 16, set{0x58, 8, r.commandEQ}), 16)
	insert := g.entry(r.entry(0, 0, r.tir(0), set{matchProtocol, 8, 17}, set{matchUDPPort, 16, 5000}), 16)
	remove := g.entry(cmd(0x938, 0, 64, set{0xa8, 24, r.table}), 16)
	for b.Loop() {
		g.give(0, insert)
		g.give(0, remove)
	}
}

// A frame by a rule into a receive queue.
func BenchmarkReceive(b *testing.B) {
	g := newGuest(b, card()).initialize()
	r := g.up(1).rules()
	g.must(r.entry(0, 0, r.tir(0), set{matchProtocol, 8, 17}, set{matchUDPPort, 16, 5000}), 16)
	frame, posted := udp(5000), uint32(16)
	for b.Loop() {
		if _, err := g.Receive(frame); err != nil {
			posted += 16
			g.write(r.rqRecord[0], be.AppendUint32(nil, posted&0xffff))
		}
	}
}
