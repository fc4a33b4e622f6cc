// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"bytes"
	"testing"
)

// register runs ACCESS_REG with the fields in the register's own bits.
func (g *guest) register(write bool, id, size int, fields ...set) []byte {
	modifier := 1
	if write {
		modifier = 0
	}
	return append(cmd(0x805, modifier, 16, set{0x50, 16, uint64(id)}), cmd(0, 0, size, fields...)...)
}

var onPort = set{0x08, 8, 1}

func (g *guest) readRegister(id, size int, fields ...set) []byte {
	g.Helper()
	return g.must(g.register(false, id, size, append(fields, onPort)...), 16+size)[16:]
}

func TestTheLinkIsToldByAnEventAndByRegisters(t *testing.T) {
	g := newGuest(t, card()).initialize()
	n := g.up(1)
	ring := g.alloc(pageSize)
	in := list(cmd(0x301, 0, 272, set{0xe3, 5, 6}, set{0xe8, 24, n.uar}, set{0x134, 12, 9}, set{0x2c0, 64, 1 << 9}), ring)
	g.must(in, 16)
	states := func() [3]uint64 {
		paos, ptys := g.readRegister(0x5006, 16), g.readRegister(0x5004, 64, set{0x1d, 3, 4})
		vport := g.must(cmd(0x750, 0, 16), 16)
		return [3]uint64{get(vport, 0x7c, 4), get(paos, 0x1c, 4), get(ptys, 0x100, 32)}
	}
	if got := states(); got != [3]uint64{1, 1, 1 << 12} {
		t.Errorf("up: vport, PAOS, PTYS %v", got)
	}
	g.SetLink(false)
	g.SetLink(false)
	if got := states(); got != [3]uint64{0, 2, 0} {
		t.Errorf("down: vport, PAOS, PTYS %v", got)
	}
	g.SetLink(true)
	for i, want := range []byte{1, 4} { // down, active
		if e := g.read(ring+uint64(64*i), 64); e[1] != 9 || e[3] != want || e[32+8] != 1<<4 || e[63]&1 != 0 {
			t.Errorf("event %d: %x", i, e)
		}
	}
	if e := g.read(ring+128, 64); e[1] != 0 {
		t.Errorf("an event without a change: %x", e)
	}
	if down := get(g.readRegister(0x5008, 256, set{0x1a, 6, 0x12}), 8*0xc8, 32); down != 1 {
		t.Errorf("link_down_events %d", down)
	}
}

func TestTheDriverTakesTheLinkDown(t *testing.T) {
	g := newGuest(t, card()).initialize()
	admin := func(status uint64) []byte {
		return g.register(true, 0x5006, 16, onPort, set{0x14, 4, status}, set{0x20, 1, 1})
	}
	g.must(admin(2), 32)
	if up := get(g.must(cmd(0x750, 0, 16), 16), 0x78, 8); up != 0x20 {
		t.Errorf("admin and state %#x", up)
	}
	g.SetLink(false)
	g.must(admin(1), 32)
	if up := get(g.must(cmd(0x750, 0, 16), 16), 0x78, 8); up != 0x10 {
		t.Errorf("no cable: admin and state %#x", up)
	}
	g.refused(admin(7), 32, BadParam, BadValue)
	g.must(g.register(true, 0x5006, 16, onPort, set{0x14, 4, 2}), 32) // not meant: ase is 0
	if up := get(g.must(cmd(0x750, 0, 16), 16), 0x78, 4); up != 1 {
		t.Errorf("admin %d", up)
	}
}

func TestRegistersOfThePort(t *testing.T) {
	g := newGuest(t, card()).initialize()
	if r := g.readRegister(0x5003, 16); get(r, 0x20, 16) != maxMTU || get(r, 0x40, 16) != defaultMTU || get(r, 0x60, 16) != defaultMTU {
		t.Errorf("PMTU %x", r)
	}
	g.must(g.register(true, 0x5003, 16, onPort, set{0x40, 16, 9000}), 32)
	if r := g.readRegister(0x5003, 16); get(r, 0x60, 16) != 9000 {
		t.Errorf("PMTU %x", r)
	}
	if r := g.readRegister(0x5002, 64); get(r, 0x18, 8) != 4 || get(r, 0x88, 8) != 3 {
		t.Errorf("PMLP %x", r)
	}
	if r := g.readRegister(0x5007, 32); get(r, 0x40, 1) != 1 || get(r, 0x60, 1) != 1 {
		t.Errorf("PFCC %x", r)
	}
	g.must(g.register(true, 0x5007, 32, onPort, set{0x60, 1, 1}), 48)
	if r := g.readRegister(0x5007, 32); get(r, 0x40, 1) != 0 || get(r, 0x60, 1) != 1 {
		t.Errorf("PFCC %x", r)
	}
	if r := g.must(g.register(false, 0x9014, 144, set{0x50, 16, 1}), 160)[16:]; get(r, 0x18, 8) != 1 {
		t.Errorf("MCIA %x", r)
	}
	pcam := g.must(g.register(false, 0x507f, 80), 96)[16:]
	if get(pcam, 0xb7, 1) != 1 || get(pcam, 0xb8, 8) != 0b11011100 || get(pcam, 0x40, 1) != 1 || get(pcam, 0x1b2, 1) != 1 {
		t.Errorf("PCAM %x", pcam)
	}
}

func TestRegistersThatAreRefused(t *testing.T) {
	g := newGuest(t, card()).initialize()
	g.refused(g.register(false, 0x5555, 16), 32, BadParam, BadValue)
	g.refused(g.register(false, 0x5003, 16), 32, BadParam, BadValue) // port 0
	g.refused(g.register(false, 0x5003, 12, onPort), 32, BadInputLength, WrongLength)
	g.refused(g.register(false, 0x5003, 16, onPort), 28, BadOutputLength, WrongLength)
	g.refused(g.register(false, 0x5003, 16, onPort, set{0x40, 16, 1500}), 32, BadParam, UnknownBits) // a read that says something
	g.refused(g.register(true, 0x5003, 16, onPort, set{0x40, 16, 20000}), 32, BadParam, BadValue)
	g.refused(g.register(true, 0x5004, 64, onPort, set{0xa0, 32, 1}), 80, BadParam, BadValue)      // not for writing
	g.refused(g.register(false, 0x7004, 16), 32, BadParam, BadValue)                               // not for reading
	g.refused(g.register(false, 0x5004, 64, onPort, set{0x1d, 3, 1}), 80, BadParam, BadValue)      // InfiniBand
	g.refused(g.register(false, 0x5008, 256, onPort, set{0x1a, 6, 0x20}), 272, BadParam, BadValue) // group
	g.refused(g.register(false, 0x507f, 80, set{0x08, 8, 1}), 96, BadParam, BadValue)              // group
	g.refused(g.register(true, 0x7004, 16, set{0, 8, 3}), 32, BadParam, BadValue)
	g.refused(append(g.register(false, 0x5003, 16, onPort), 0), 32, BadInputLength, WrongLength)
}

func TestTheVportKeepsWhatTheDriverSays(t *testing.T) {
	g := newGuest(t, card()).initialize()
	out := g.must(cmd(0x754, 0, 16), 272)
	if !bytes.Equal(out[16+0xf6:16+0xfc], []byte{2, 0, 0, 0, 0, 1}) || get(out, 0x1b0, 16) != 1500 {
		t.Errorf("MAC %x, MTU %d", out[16+0xf6:16+0xfc], get(out, 0x1b0, 16))
	}
	list := list(cmd(0x755, 0, 512, set{0x60, 32, 1<<2 | 1<<4 | 1<<6 | 1<<10}, set{0x930, 16, 9000}, set{0x81d, 1, 1},
		set{0xf80, 3, 0b101}, set{0xf85, 3, 1}, set{0xf94, 12, 2}), 0x333300000001, 0x333300000002)
	g.must(list, 16)
	g.refused(list[:len(list)-8], 16, BadInputLength, WrongLength)
	g.refused(append(list, make([]byte, 8)...), 16, BadInputLength, WrongLength)
	g.refused(append(cmd(0x755, 0, 512, set{0x60, 32, 1 << 6}), make([]byte, 8)...), 16, BadInputLength, WrongLength)
	out = g.must(cmd(0x754, 0, 16, set{0x65, 3, 1}), 272+16)
	if get(out, 0x1b0, 16) != 9000 || get(out, 0x9d, 1) != 1 || get(out, 0x9e, 1) != 0 || get(out, 0x800, 3) != 0b101 ||
		get(out, 0x814, 12) != 2 || be.Uint64(out[280:]) != 0x333300000002 {
		t.Errorf("%x", out)
	}
}

func TestCountersAreOneTruthSeenFromManySides(t *testing.T) {
	g := newGuest(t, card()).initialize()
	r := g.up(1).rules()
	r.must(r.entry(2, 8, r.tir(0)), 16)
	r.must(r.entry(0, 0, 0, set{matchProtocol, 8, 17}, set{matchUDPPort, 16, 6000}), 16)
	everyone, group := udp(1), udp(1)
	copy(everyone, []byte{255, 255, 255, 255, 255, 255})
	copy(group, []byte{1, 0, 0x5e, 0, 0, 1})
	for _, f := range [][]byte{udp(1), udp(1), udp(6000), everyone, group, group, group} {
		if _, err := g.Receive(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int{61, 200, 1500} {
		g.Receive(append(udp(6000), make([]byte, size-60)...))
	}
	g.transmit(udp(2))
	counters := func(group uint64) []byte { return g.readRegister(0x5008, 256, set{0x1a, 6, group})[8:] }
	read := func(b []byte, index int) uint64 { return be.Uint64(b[8*index:]) }
	ieee, rfc2863, rfc2819, priority := counters(0), counters(1), counters(2), counters(0x10)
	vport := g.must(cmd(0x770, 0, 32), 528)
	for _, c := range []struct {
		name      string
		got, want uint64
	}{
		{"802.3 transmitted", read(ieee, 0), 1}, {"802.3 received", read(ieee, 1), 10}, {"802.3 octets received", read(ieee, 5), 7*64 + 61 + 200 + 1500 + 3*4},
		{"802.3 multicast received", read(ieee, 8), 3}, {"802.3 broadcast received", read(ieee, 9), 1},
		{"2863 unicast received", read(rfc2863, 1), 6}, {"2863 octets sent", read(rfc2863, 5), 64},
		{"2819 frames", read(rfc2819, 2), 10}, {"2819 of 64 bytes", read(rfc2819, 11), 7}, {"2819 of 65 to 127 bytes", read(rfc2819, 12), 1},
		{"2819 of 128 to 255 bytes", read(rfc2819, 13), 1}, {"2819 of 1024 to 1518 bytes", read(rfc2819, 16), 1},
		{"priority 0 received", read(priority, 4), 10},
		{"vport unicast received", be.Uint64(vport[0x90:]), 6}, {"vport unicast octets", be.Uint64(vport[0x98:]), 3*60 + 61 + 200 + 1500},
		{"vport unicast sent", be.Uint64(vport[0xa0:]), 1},
		{"vport broadcast received", be.Uint64(vport[0x70:]), 1}, {"vport multicast received", be.Uint64(vport[0xb0:]), 3},
		{"steering discard", be.Uint64(g.must(cmd(0x76f, 0, 16), 528)[0x20:]), 4},
		{"queue", g.Counters().ReceiveQueues[uint32(r.rq[0])].Frames, 6},
		{"received", g.Counters().Received.Frames, 10}, {"sent", g.Counters().Sent.Frames, 1}, {"discarded", g.Counters().Discarded, 4},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.got, c.want)
		}
	}
	if len(g.sent) != 1 || !bytes.Equal(g.sent[0], udp(2)) {
		t.Errorf("sent %x", g.sent)
	}
	g.SetLink(false)
	if g.transmit(udp(2)); len(g.sent) != 1 {
		t.Error("a frame went out without a link")
	}
}
