// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/flexsteer/flexsteer/sim/queue"
)

const (
	nop       = 0x00
	send      = 0x0a
	largeSend = 0x0e
	multiSend = 0x29
	checksums = 0xc0
)

func sender(t testing.TB, log int) (*guest, *sendQueue) {
	g := newGuest(t)
	return g, g.sq(0x20, log, g.cq(0x400, log, g.eq(1, 6)))
}

func TestFramesLeaveInOrderThroughSeveralRoundsAndPages(t *testing.T) {
	g, s := sender(t, 7) // 8192 bytes
	var want [][]byte
	for i := range 500 {
		f := frameOf(i, 60+i*7%1400)
		want = append(want, f)
		inline := f[:18+i%30]
		parts := [][]byte{eth(0, 0, inline)}
		for rest := f[len(inline):]; len(rest) > 0; {
			n := min(len(rest), 1+i*13%200) // up to 20 segments: several blocks, across the end of the ring
			if len(parts) == 20 {
				n = len(rest)
			}
			parts = append(parts, g.data(rest[:n]))
			rest = rest[n:]
		}
		pi := s.pi
		s.post(s.request(send, i%3 == 0, parts...))
		if i%4 != 0 && i%3 != 0 {
			continue
		}
		g.ok(s.ring())
		if cqe, ok := s.next(); ok != (i%3 == 0) || ok && be.Uint16(cqe[60:]) != pi {
			t.Fatalf("frame %d at %d: completion %x %v", i, pi, cqe, ok)
		}
	}
	g.ok(s.ring())
	for i := range want {
		if i >= len(g.sent) || !bytes.Equal(g.sent[i], want[i]) {
			t.Fatalf("frame %d of %d differs", i, len(g.sent))
		}
	}
	g.noViolations()
	bytes := uint64(0)
	for _, f := range want {
		bytes += uint64(len(f))
	}
	if q := g.d.Counters().SQ[s.n]; q != (queue.SQCounters{Requests: 500, Frames: 500, Bytes: bytes}) {
		t.Errorf("%+v", q)
	}
}

func TestACompletionOfARequest(t *testing.T) {
	g, s := sender(t, 4)
	s.post(s.request(nop, false))
	s.post(s.request(send, true, eth(0, 0, frameOf(0, 60)[:18]), g.data(frameOf(0, 60)[18:])))
	g.ok(s.ring())
	e := s.mustNext()
	if e[63]>>4 != 0 || be.Uint32(e[56:]) != send<<24|s.n || be.Uint16(e[60:]) != 1 || be.Uint64(e[48:]) != 0x0102030405060708 {
		t.Errorf("%x", e)
	}
	if _, ok := s.next(); ok {
		t.Error("the NOP did not ask for a completion")
	}
	g.noViolations()
}

func TestAShortFrameIsPadded(t *testing.T) {
	g, s := sender(t, 4)
	s.post(s.request(send, true, eth(0, 0, nil), g.data(frameOf(3, 14))))
	g.ok(s.ring())
	if want := append(frameOf(3, 14), make([]byte, 46)...); len(g.sent) != 1 || !bytes.Equal(g.sent[0], want) {
		t.Errorf("%x", g.sent)
	}
}

func TestInlineDataSegments(t *testing.T) {
	g, s := sender(t, 4)
	f := frameOf(3, 100)
	inline := func(b []byte) []byte { return append(u32(uint32(len(b))|1<<31), b...) }
	s.post(s.request(send, true, eth(0, 0, f[:14]), inline(f[14:55]), g.data(f[55:80]), inline(f[80:])))
	g.ok(s.ring())
	if len(g.sent) != 1 || !bytes.Equal(g.sent[0], f) {
		t.Errorf("%x", g.sent)
	}
}

func TestManyFramesInOneRequest(t *testing.T) {
	g, s := sender(t, 6)
	var parts [][]byte
	parts = append(parts, eth(checksums, 0, nil))
	for i := range 40 {
		parts = append(parts, g.data(frameOf(i, 60+i)))
	}
	s.post(s.request(multiSend, true, parts...))
	g.ok(s.ring())
	for i := range 40 {
		if len(g.sent) != 40 || !bytes.Equal(g.sent[i], frameOf(i, 60+i)) {
			t.Fatalf("frame %d of %d", i, len(g.sent))
		}
	}
	if e := s.mustNext(); e[56] != multiSend || be.Uint16(e[60:]) != 0 {
		t.Errorf("%x", e)
	}
}

func TestVLANTagsAreInserted(t *testing.T) {
	for kind, tpid := range map[uint16]uint16{0x8000: 0x8100, 0x8001: 0x88a8} {
		g, s := sender(t, 4)
		f := frameOf(5, 80)
		e := eth(0, 0, nil)
		be.PutUint16(e[12:], kind)
		be.PutUint16(e[14:], 0x2345)
		s.post(s.request(send, true, e, g.data(f)))
		g.ok(s.ring())
		want := slices.Concat(f[:12], be.AppendUint16(nil, tpid), []byte{0x23, 0x45}, f[12:])
		if len(g.sent) != 1 || !bytes.Equal(g.sent[0], want) {
			t.Errorf("%x", g.sent)
		}
		g.noViolations()
	}
}

// packet is a TCP or UDP packet with everything right but checksums and lengths.
func packet(v6 bool, proto byte, payload int, extra ...byte) (header, data []byte) {
	header = append(header, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0xff)
	if v6 {
		header = append(header, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, proto, 64)
		for i := range 32 {
			header = append(header, byte(i*3))
		}
	} else {
		header = append(header, 8, 0, 0x45, 0, 0, 0, 0xff, 0xfe, 0x40, 0, 64, proto, 0xde, 0xad, 10, 0, 0, 2, 10, 0, 0, 1)
	}
	if proto == 6 {
		header = append(header, 0x10, 0x20, 0x30, 0x40, 0xff, 0xff, 0xff, 0, 0, 0, 0, 9, 0x80, 0x99, 1, 0, 0xbe, 0xef, 0, 0) // CWR, ACK, PSH, FIN
		header = append(header, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2)
	} else {
		header = append(header, 0x10, 0x20, 0x30, 0x40, 0, 0, 0xbe, 0xef)
	}
	data = frameOf(9, payload+14)[14:]
	return append(header, extra...), data
}

// checkPacket looks at lengths and checksums as an independent receiver would.
func checkPacket(t *testing.T, f []byte, v6 bool, proto byte, header int) {
	t.Helper()
	ip := f[14:]
	var pseudo, l4 []byte
	if v6 {
		l4 = ip[40:]
		if int(be.Uint16(ip[4:])) != len(l4) {
			t.Errorf("IPv6 payload length %d of %d", be.Uint16(ip[4:]), len(l4))
		}
		pseudo = ip[8:40]
	} else {
		l4 = ip[20:]
		if int(be.Uint16(ip[2:])) != len(ip) || naiveSum(ip[:20]) != 0xffff {
			t.Errorf("IPv4 header %x of %d bytes", ip[:20], len(ip))
		}
		pseudo = ip[12:20]
	}
	if naiveSum(pseudo, []byte{0, proto}, be.AppendUint16(nil, uint16(len(l4))), l4) != 0xffff {
		t.Errorf("checksum of %x", l4[:header-14])
	}
	if proto == 17 && int(be.Uint16(l4[4:])) != len(l4) {
		t.Errorf("UDP length %d of %d", be.Uint16(l4[4:]), len(l4))
	}
}

func TestChecksumsAreFilled(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, proto := range []byte{6, 17} {
			for _, n := range []int{100, 101} {
				g, s := sender(t, 4)
				header, data := packet(v6, proto, n)
				setLengths(header, len(data), v6, proto)
				s.post(s.request(send, true, eth(checksums, 0, header[:18]), g.data(header[18:]), g.data(data)))
				g.ok(s.ring())
				if len(g.sent) != 1 {
					t.Fatal(g.d.Violations())
				}
				checkPacket(t, g.sent[0], v6, proto, len(header))
				if !bytes.Equal(g.sent[0][len(header):], data) {
					t.Error("payload differs")
				}
			}
		}
	}
}

func setLengths(header []byte, payload int, v6 bool, proto byte) {
	if v6 {
		be.PutUint16(header[18:], uint16(len(header)-54+payload))
	} else {
		be.PutUint16(header[16:], uint16(len(header)-14+payload))
	}
	if proto == 17 {
		be.PutUint16(header[len(header)-4:], uint16(8+payload))
	}
}

func TestAUDPChecksumOfZeroIsSentAsAllOnes(t *testing.T) {
	g, s := sender(t, 4)
	header, _ := packet(false, 17, 2)
	setLengths(header, 2, false, 17)
	be.PutUint16(header[40:], 0)
	data := make([]byte, 2)
	sum := naiveSum(header[26:34], []byte{0, 17, 0, 10}, header[34:])
	be.PutUint16(data, ^sum) // now all together is 0xffff, and the checksum 0
	s.post(s.request(send, true, eth(checksums, 0, header[:18]), g.data(append(header[18:], data...))))
	g.ok(s.ring())
	if c := be.Uint16(g.sent[0][40:]); c != 0xffff {
		t.Errorf("checksum %#x", c)
	}
}

func TestWhatNobodyAskedForIsLeftAlone(t *testing.T) {
	header, data := packet(false, 6, 50)
	setLengths(header, 50, false, 6)
	fragment := slices.Clone(header)
	fragment[20] = 0x20
	other := slices.Clone(header)
	other[23] = 253
	for name, c := range map[string]struct {
		flags  byte
		header []byte
		from   int // bytes that must be as they were
	}{
		"no flags":       {0, header, 0},
		"only IP":        {0x40, header, 26},
		"fragment":       {0x80, fragment, 0},
		"other protocol": {0x80, other, 0},
	} {
		g, s := sender(t, 4)
		s.post(s.request(send, true, eth(c.flags, 0, c.header[:18]), g.data(append(c.header[18:len(c.header):len(c.header)], data...))))
		g.ok(s.ring())
		if !bytes.Equal(g.sent[0][c.from:], slices.Concat(c.header, data)[c.from:]) {
			t.Errorf("%s: %x", name, g.sent[0])
		}
	}
}

func TestLargeSendsAreCut(t *testing.T) {
	for _, c := range []struct {
		v6      bool
		proto   byte
		payload int
		mss     int
	}{{false, 6, 64000, 1448}, {true, 6, 64000, 1428}, {false, 6, 1448, 1448}, {false, 6, 1449, 1448}, {true, 17, 10000, 1000}, {false, 17, 9999, 1472}, {true, 6, 200000, 1428}} {
		g, s := sender(t, 7)
		header, data := packet(c.v6, c.proto, c.payload)
		parts := [][]byte{eth(checksums, c.mss, header)}
		for rest := data; len(rest) > 0; {
			n := min(len(rest), 32768)
			parts = append(parts, g.data(rest[:n]))
			rest = rest[n:]
		}
		s.post(s.request(largeSend, true, parts...))
		g.ok(s.ring())
		var got []byte
		for i, f := range g.sent {
			checkPacket(t, f, c.v6, c.proto, len(header))
			payload := f[len(header):]
			last := i == len(g.sent)-1
			if len(payload) != c.mss && !last {
				t.Errorf("%+v: segment %d has %d bytes", c, i, len(payload))
			}
			if c.proto == 6 {
				l4 := f[len(header)-32:]
				flags := byte(0x10)
				if i == 0 {
					flags |= 0x80
				}
				if last {
					flags |= 0x09
				}
				if l4[13] != flags || be.Uint32(l4[4:]) != uint32(0xffffff00+uint64(len(got))) {
					t.Errorf("%+v: segment %d: flags %#x, want %#x; sequence %#x", c, i, l4[13], flags, be.Uint32(l4[4:]))
				}
			}
			if !c.v6 && be.Uint16(f[18:]) != uint16(0xfffe+i) {
				t.Errorf("%+v: segment %d: identification %#x", c, i, be.Uint16(f[18:]))
			}
			got = append(got, payload...)
		}
		if !bytes.Equal(got, data) {
			t.Errorf("%+v: %d bytes came out", c, len(got))
		}
		if q := g.d.Counters().SQ[s.n]; q.Frames != uint64((c.payload+c.mss-1)/c.mss) {
			t.Errorf("%+v: %+v", c, q)
		}
		g.noViolations()
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	const length, operation, protection = 1, 2, 4
	f := frameOf(1, 60)
	header, data := packet(false, 6, 100)
	for _, c := range []struct {
		name     string
		syndrome byte
		make     func(g *guest, s *sendQueue) []byte
	}{
		{"unknown opcode", operation, func(g *guest, s *sendQueue) []byte { return s.request(0x25, true, eth(0, 0, nil)) }},
		{"no segments", operation, func(g *guest, s *sendQueue) []byte { w := s.request(nop, true); w[7] = 0; return w }},
		{"longer than posted", operation, func(g *guest, s *sendQueue) []byte { w := s.request(nop, true); w[7] = 5; return w }},
		{"index", operation, func(g *guest, s *sendQueue) []byte { w := s.request(nop, true); w[2]++; return w }},
		{"queue", operation, func(g *guest, s *sendQueue) []byte { w := s.request(nop, true); w[6]++; return w }},
		{"modifier", operation, func(g *guest, s *sendQueue) []byte { w := s.request(nop, true); w[0]++; return w }},
		{"completion and event", operation, func(g *guest, s *sendQueue) []byte { w := s.request(nop, true); w[11] |= 4; return w }},
		{"no Ethernet segment", operation, func(g *guest, s *sendQueue) []byte { return s.request(send, true) }},
		{"nothing to send", length, func(g *guest, s *sendQueue) []byte { return s.request(send, true, eth(0, 0, nil)) }},
		{"software parser", operation, func(g *guest, s *sendQueue) []byte {
			e := eth(0, 0, nil)
			e[0] = 7
			return s.request(send, true, e, g.data(f))
		}},
		{"inner checksums", operation, func(g *guest, s *sendQueue) []byte { return s.request(send, true, eth(0x10, 0, nil), g.data(f)) }},
		{"trailer", operation, func(g *guest, s *sendQueue) []byte {
			e := eth(0, 0, nil)
			e[12] = 0x40
			return s.request(send, true, e, g.data(f))
		}},
		{"inline beyond the end", operation, func(g *guest, s *sendQueue) []byte {
			e := eth(0, 0, f)
			be.PutUint16(e[12:], 1000)
			return s.request(send, true, e)
		}},
		{"inline data beyond the end", operation, func(g *guest, s *sendQueue) []byte {
			return s.request(send, true, eth(0, 0, nil), u32(1<<31|200))
		}},
		{"too long", length, func(g *guest, s *sendQueue) []byte {
			return s.request(send, true, eth(0, 0, nil), g.data(make([]byte, 20000)))
		}},
		{"two gigabytes", length, func(g *guest, s *sendQueue) []byte {
			return s.request(send, true, eth(0, 0, nil), make([]byte, 16))
		}},
		{"memory", protection, func(g *guest, s *sendQueue) []byte {
			return s.request(send, true, eth(0, 0, nil), be.AppendUint64(append(u32(60), u32(key)...), 0xdead0000))
		}},
		{"key", protection, func(g *guest, s *sendQueue) []byte {
			d := g.data(f)
			d[7]++
			return s.request(send, true, eth(0, 0, nil), d)
		}},
		{"large send without MSS", operation, func(g *guest, s *sendQueue) []byte {
			return s.request(largeSend, true, eth(0, 0, header), g.data(data))
		}},
		{"large send of too long segments", length, func(g *guest, s *sendQueue) []byte {
			return s.request(largeSend, true, eth(0, 60000, header), g.data(data))
		}},
		{"large send of too many segments", length, func(g *guest, s *sendQueue) []byte {
			return s.request(largeSend, true, eth(0, 1, header), g.data(make([]byte, 20000)))
		}},
		{"large send without data", operation, func(g *guest, s *sendQueue) []byte {
			return s.request(largeSend, true, eth(0, 100, header))
		}},
		{"large send with half a header", operation, func(g *guest, s *sendQueue) []byte {
			return s.request(largeSend, true, eth(0, 60, header[:40]), g.data(data))
		}},
		{"large send of what is not TCP", operation, func(g *guest, s *sendQueue) []byte {
			return s.request(largeSend, true, eth(0, 60, f), g.data(data))
		}},
		{"many with an inline header", operation, func(g *guest, s *sendQueue) []byte {
			return s.request(multiSend, true, eth(0, 0, f), g.data(data))
		}},
		{"many of which one has no memory", protection, func(g *guest, s *sendQueue) []byte {
			return s.request(multiSend, true, eth(0, 0, nil), g.data(f), be.AppendUint64(append(u32(60), u32(key)...), 0xdead0000))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, s := sender(t, 6)
			s.post(s.request(nop, false))
			s.post(c.make(g, s))
			bad := s.pi
			flushed := s.request(send, false, eth(0, 0, nil), g.data(f), g.data(f), g.data(f))
			if c.name != "longer than posted" { // which it must be the last for
				s.post(flushed)
			}
			if err := s.ring(); !errors.Is(err, queue.ErrViolation) {
				t.Errorf("doorbell: %v", err)
			}
			if e := s.mustNext(); e[63]>>4 != 13 || e[55] != c.syndrome || be.Uint16(e[60:]) != 1 || be.Uint32(e[56:])&0xffffff != s.n {
				t.Fatalf("%x", e)
			}
			if state, _ := g.d.SQState(s.n); state != queue.ERR {
				t.Errorf("state %v", state)
			}
			for e, ok := s.next(); ok; e, ok = s.next() { // a driver that waits for the queue to drain
				if e[63]>>4 != 13 || e[55] != 5 {
					t.Fatalf("%x", e)
				}
				bad = be.Uint16(e[60:]) + 2
			}
			if c.name != "longer than posted" && bad != s.pi {
				t.Errorf("flushed up to %d of %d", bad, s.pi)
			}
			if len(g.sent) != 0 || len(g.d.Violations()) != 1 || g.d.Counters().SQ[s.n].Errors != 1 {
				t.Errorf("%d sent, violations %v", len(g.sent), g.d.Violations())
			}
			s.recover()
			s.post(s.request(send, true, eth(0, 0, nil), g.data(f)))
			g.ok(s.ring())
			if len(g.sent) != 1 || s.mustNext()[63]>>4 != 0 {
				t.Errorf("after recovery: %d sent", len(g.sent))
			}
		})
	}
}

// recover is what the driver does when a queue in ERR has drained.
func (s *sendQueue) recover() {
	s.g.t.Helper()
	s.g.ok(s.g.d.ModifySQ(s.n, queue.SQChange{From: queue.ERR, To: queue.RST}))
	s.g.ok(s.g.d.ModifySQ(s.n, queue.SQChange{From: queue.RST, To: queue.RDY}))
	s.pi = 0
}

func TestARingThatIsNotThere(t *testing.T) {
	g, s := sender(t, 7)
	for range 65 {
		s.post(s.request(nop, false))
	}
	g.mem.Unmap(s.p.Addr[1], 1)
	if err := s.ring(); !errors.Is(err, queue.ErrViolation) {
		t.Error(err)
	}
	if e := s.mustNext(); e[55] != 4 || be.Uint16(e[60:]) != 64 {
		t.Errorf("%x", e)
	}
	g.mem.Unmap(s.record, 1)
	if err := g.d.Doorbell(uar, 0x800, append(u32(0), u32(s.n<<8)...)); !errors.Is(err, queue.ErrViolation) {
		t.Error(err)
	}
}

func TestADoorbellInRSTOrWithACounterThatCannotBe(t *testing.T) {
	g, s := sender(t, 4)
	s.pi = 17
	if err := s.ring(); !errors.Is(err, queue.ErrViolation) {
		t.Errorf("17 posted in a ring of 16: %v", err)
	}
	g.ok(g.d.ModifySQ(s.n, queue.SQChange{From: queue.RDY, To: queue.RST}))
	s.pi = 1
	if err := s.ring(); !errors.Is(err, queue.ErrViolation) {
		t.Errorf("in RST: %v", err)
	}
}

func TestGoingToERRFlushesWhatIsPosted(t *testing.T) {
	g, s := sender(t, 4)
	for range 3 {
		s.post(s.request(nop, false))
	}
	g.write(s.record+4, u32(uint32(s.pi))) // no doorbell yet
	g.ok(g.d.ModifySQ(s.n, queue.SQChange{From: queue.RDY, To: queue.ERR}))
	for i := range 3 {
		if e := s.mustNext(); e[63]>>4 != 13 || e[55] != 5 || int(be.Uint16(e[60:])) != i {
			t.Errorf("%x", e)
		}
	}
	s.post(s.request(nop, true)) // a doorbell that crossed the error
	g.ok(s.ring())
	if e := s.mustNext(); e[55] != 5 {
		t.Errorf("%x", e)
	}
	g.noViolations()
}

// A guest that posts as fast as the card sends, with other CPUs or through what comes
// back from the wire, must not keep the card in one doorbell.
func TestADoorbellDoesWhatWasPostedWhenItRang(t *testing.T) {
	g := newGuest(t)
	var s *sendQueue
	post := func() {
		s.post(s.request(send, false, eth(0, 0, nil), g.data(frameOf(1, 100))))
		g.write(s.record+4, u32(uint32(s.pi)))
	}
	left := 0
	g.d = queue.New(&g.mem, nil, func([]byte) {
		if left++; left < 1000 {
			post()
		}
	})
	g.d.AllowKey(key)
	s = g.sq(0x20, 4, g.cq(0x401, 4, g.eq(1, 6)))
	for range 3 {
		post()
	}
	for i := range 3 {
		before := left
		g.ok(s.ring())
		if left-before != 3 {
			t.Errorf("doorbell %d: %d frames left, not 3", i, left-before)
		}
	}
	g.noViolations()
}

func TestWhoGetsAFrameMayAnswerAtOnce(t *testing.T) {
	g, r := receiver(t, 3, 2000)
	var d *queue.Datapath
	answered := 0
	d = queue.New(&g.mem, nil, func(f []byte) {
		answered++
		g.ok(d.Receive(r.n, queue.Frame{Bytes: f}))
		d.Counters()
	})
	g.d = d // the same guest, with another card
	d.AllowKey(key)
	e := g.eq(1, 6)
	c := g.cq(0x400, 6, e)
	r2 := g.rq(0x10, 3, 5, c)
	for range 8 {
		r2.post(g.buffers(2000)...)
	}
	r2.tell()
	s := g.sq(0x20, 4, g.cq(0x401, 4, e))
	s.post(s.request(send, true, eth(0, 0, nil), g.data(frameOf(1, 100))))
	s.post(s.request(send, true, eth(0, 0, nil), g.data(frameOf(2, 100))))
	g.ok(s.ring())
	for i := range 2 {
		if f := r2.frame(r2.mustNext()); !bytes.Equal(f, frameOf(1+i, 100)) {
			t.Errorf("%x", f)
		}
	}
	g.noViolations()
}
