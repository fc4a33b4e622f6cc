// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"github.com/flexsteer/flexsteer/sim/bus"
	"github.com/flexsteer/flexsteer/sim/queue"
)

// receiver is a guest with one receive queue, entries of two buffers, posted full.
func receiver(t testing.TB, log int, sizes ...uint32) (*guest, *receiveQueue) {
	g := newGuest(t)
	r := g.rq(0x10, log, 5, g.cq(0x400, log, g.eq(1, 6, queue.EventCQError)))
	for range 1 << log {
		r.post(g.buffers(sizes...)...)
	}
	r.tell()
	return g, r
}

func (g *guest) buffers(sizes ...uint32) (all []buffer) {
	for _, n := range sizes {
		a := g.page() + 4096 - 100 // most frames cross into the next page
		g.mem.Map(a, int(n))
		g.free += 8192 + uint64(n+8191)&^8191
		all = append(all, buffer{a, n})
	}
	return all
}

func TestFramesArriveWholeAndInOrderThroughSeveralRounds(t *testing.T) {
	g, r := receiver(t, 8, 700, 900) // 8192 bytes of entries, 16384 of completions
	sent, got := 0, 0
	for round := 0; got < 2000; round++ {
		if round > 2000 {
			t.Fatalf("%d sent, %d received", sent, got)
		}
		for {
			err := g.d.Receive(r.n, queue.Frame{Bytes: frameOf(sent, 60+sent*37%1500)})
			if errors.Is(err, queue.ErrNoBuffer) {
				break
			}
			g.ok(err)
			sent++
		}
		for cqe, ok := r.next(); ok; cqe, ok = r.next() {
			if f := r.frame(cqe); !bytes.Equal(f, frameOf(got, 60+got*37%1500)) {
				t.Fatalf("frame %d: %x", got, f)
			}
			if i := be.Uint16(cqe[60:]); i != uint16(got) {
				t.Fatalf("frame %d completes entry %d", got, i)
			}
			got++
			r.post(r.buffers[be.Uint16(cqe[60:])&0xff]...)
		}
		r.tell()
	}
	if got != sent {
		t.Errorf("%d sent, %d received", sent, got)
	}
	g.noViolations()
	bytes := uint64(0)
	for i := range got {
		bytes += uint64(60 + i*37%1500)
	}
	if q := g.d.Counters().RQ[r.n]; q != (queue.RQCounters{Frames: uint64(got), Bytes: bytes}) {
		t.Errorf("%+v", q)
	}
}

// The driver's counter has 16 bits, and the ring may be half of that.
func TestTheCounterOfAReceiveQueueWraps(t *testing.T) {
	g, r := receiver(t, 3, 64, 64)
	for i := range 70000 {
		g.ok(g.d.Receive(r.n, queue.Frame{Bytes: frameOf(i, 60)}))
		if cqe := r.mustNext(); be.Uint16(cqe[60:]) != uint16(i) {
			t.Fatalf("%d: %x", i, cqe)
		}
		r.post(r.buffers[uint16(i)&7]...)
		r.tell()
	}
	g.noViolations()
}

func TestNothingPosted(t *testing.T) {
	g := newGuest(t)
	r := g.rq(0x10, 3, 5, g.cq(0x400, 3, g.eq(1, 6)))
	f := queue.Frame{Bytes: frameOf(1, 60)}
	for range 3 {
		if err := g.d.Receive(r.n, f); err != queue.ErrNoBuffer {
			t.Error(err)
		}
	}
	if err := g.d.Posted(r.n); err != queue.ErrNoBuffer {
		t.Error(err)
	}
	if n := g.d.OutOfBuffer(5, false); n != 0 {
		t.Errorf("%d frames lost: nobody gave one up", n)
	}
	g.d.Lose(r.n)
	g.d.Lose(r.n)
	if q := g.d.Counters().RQ[r.n]; q.NoBuffer != 2 || q.Frames != 0 {
		t.Errorf("%+v", q)
	}
	r.post(g.buffers(64)...)
	r.tell()
	g.ok(g.d.Posted(r.n))
	g.ok(g.d.Receive(r.n, f))
	g.ok(g.d.DestroyRQ(r.n))
	if n := g.d.OutOfBuffer(5, true); n != 2 {
		t.Errorf("%d frames lost after the queue is gone, want 2", n)
	}
	if n := g.d.OutOfBuffer(5, false); n != 0 {
		t.Errorf("%d frames lost after clearing", n)
	}
	var e queue.Error
	if err := g.d.Receive(r.n, f); !errors.As(err, &e) || e.Kind != queue.NotFound {
		t.Error(err)
	}
	g.noViolations()
}

func TestAFrameLongerThanItsBuffersCompletesWithALengthErrorAndTheQueueGoesOn(t *testing.T) {
	g, r := receiver(t, 2, 100, 200)
	for range 3 {
		if err := g.d.Receive(r.n, queue.Frame{Bytes: frameOf(1, 301)}); err != queue.ErrTooLong {
			t.Fatal(err)
		}
		if cqe := r.mustNext(); cqe[63]>>4 != 14 || cqe[55] != 1 || be.Uint32(cqe[56:])&0xffffff != r.n {
			t.Fatalf("%x", cqe)
		}
	}
	g.ok(g.d.Receive(r.n, queue.Frame{Bytes: frameOf(2, 300)}))
	if cqe := r.mustNext(); cqe[63]>>4 != 2 || !bytes.Equal(r.frame(cqe), frameOf(2, 300)) {
		t.Fatalf("%x", cqe)
	}
	if q := g.d.Counters().RQ[r.n]; q.TooLong != 3 || q.Frames != 1 {
		t.Errorf("%+v", q)
	}
	g.noViolations()
}

func TestMemoryThatIsNotThereStopsTheQueueUntilTheDriverRecovers(t *testing.T) {
	for name, spoil := range map[string]func(*guest, *receiveQueue){
		"buffer": func(g *guest, r *receiveQueue) { g.mem.Unmap(r.buffers[0][1].addr, 1) },
		"entry":  func(g *guest, r *receiveQueue) { g.mem.Unmap(r.p.Addr[0], 1) },
		"key":    func(g *guest, r *receiveQueue) { g.d.RevokeKey(key) },
	} {
		t.Run(name, func(t *testing.T) {
			g, r := receiver(t, 3, 100, 200)
			spoil(g, r)
			if err := g.d.Receive(r.n, queue.Frame{Bytes: frameOf(1, 300)}); !errors.Is(err, queue.ErrViolation) {
				t.Fatal(err)
			}
			if cqe := r.mustNext(); cqe[63]>>4 != 14 || cqe[55] != 4 {
				t.Fatalf("%x", cqe)
			}
			if state, err := g.d.RQState(r.n); state != queue.ERR || err != nil {
				t.Fatal(state, err)
			}
			if err := g.d.Receive(r.n, queue.Frame{Bytes: frameOf(1, 60)}); err != queue.ErrNotReady {
				t.Error(err)
			}
			g.mem.Map(r.p.Addr[0], 4096)
			g.d.AllowKey(key)
			g.ok(g.d.ModifyRQ(r.n, queue.RQChange{From: queue.ERR, To: queue.RST}))
			r.pi = 0
			r.tell()
			g.ok(g.d.ModifyRQ(r.n, queue.RQChange{From: queue.RST, To: queue.RDY}))
			r.post(g.buffers(100)...)
			r.tell()
			g.ok(g.d.Receive(r.n, queue.Frame{Bytes: frameOf(7, 70)}))
			if cqe := r.mustNext(); be.Uint16(cqe[60:]) != 0 || !bytes.Equal(r.frame(cqe), frameOf(7, 70)) {
				t.Errorf("%x", cqe)
			}
			if q := g.d.Counters().RQ[r.n]; q.Errors != 1 || q.Frames != 1 {
				t.Errorf("%+v", q)
			}
		})
	}
}

func TestRecordsThatCannotBe(t *testing.T) {
	g, r := receiver(t, 2, 100)
	for range 4 {
		g.ok(g.d.Receive(r.n, queue.Frame{Bytes: frameOf(1, 60)}))
	}
	g.write(r.record, u32(4+5))
	if err := g.d.Receive(r.n, queue.Frame{Bytes: frameOf(1, 60)}); !errors.Is(err, queue.ErrViolation) {
		t.Errorf("more posted than there is room: %v", err)
	}
	g.mem.Unmap(r.record, 4)
	if err := g.d.Receive(r.n, queue.Frame{Bytes: frameOf(1, 60)}); !errors.Is(err, queue.ErrViolation) {
		t.Errorf("no record: %v", err)
	}
}

func TestACompletionQueueThatIsFullBreaks(t *testing.T) {
	g := newGuest(t)
	e := g.eq(1, 4, queue.EventCQError)
	r := g.rq(0x10, 4, 5, g.cq(0x400, 2, e))
	for range 16 {
		r.post(g.buffers(100)...)
	}
	r.tell()
	for i := range 4 {
		g.ok(g.d.Receive(r.n, queue.Frame{Bytes: frameOf(i, 60)}))
	}
	if err := g.d.Receive(r.n, queue.Frame{Bytes: frameOf(9, 60)}); !errors.Is(err, queue.ErrViolation) {
		t.Fatal(err)
	}
	ev, ok := e.next()
	if !ok || ev[1] != 4 || be.Uint32(ev[32:]) != 0x400 || ev[43] != 1 {
		t.Errorf("event %x %v", ev, ok)
	}
	for i := range 4 { // those that were there are whole
		if f := r.frame(r.mustNext()); !bytes.Equal(f, frameOf(i, 60)) {
			t.Errorf("frame %d: %x", i, f)
		}
	}
	if err := g.d.Receive(r.n, queue.Frame{Bytes: frameOf(9, 60)}); err != queue.ErrNotReady {
		t.Errorf("after the overrun: %v", err)
	}
}

// Frames as hex, for the table below.
const (
	macsHex = "0200000000010200000000ff"
	tcp4    = macsHex + "0800" + "4500002800004000400626ce0a0000020a000001" + "04d20050000000010000000250100200" + "94ad" + "0000"
	udp6    = macsHex + "86dd" + "6000000000101140fd000000000000000000000000000002fd000000000000000000000000000001" + "04d200500010" + "6f12" + "6162636465666768"
	arp     = macsHex + "0806" + "0001080006040001" + "0200000000ff0a000002" + "0000000000000a000001"
)

// naiveSum is the Internet checksum's sum, of 16-bit words.
func naiveSum(parts ...[]byte) uint16 {
	s := uint32(0)
	for i, b := range slices.Concat(parts...) {
		s += uint32(b) << (8 * (1 - i%2))
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

func TestWhatACompletionSaysOfAFrame(t *testing.T) {
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	with := func(s string, at int, v ...byte) []byte { b := unhex(s); copy(b[at:], v); return b }
	tagged := func(tpid uint16, tci uint16, s string) []byte {
		b := unhex(s)
		return slices.Concat(b[:12], be.AppendUint16(be.AppendUint16(nil, tpid), tci), b[12:])
	}
	extended := func(kind byte, header ...byte) []byte { // udp6 with an extension header
		b := slices.Insert(unhex(udp6), 54, header...)
		be.PutUint16(b[18:], be.Uint16(b[18:])+uint16(len(header)))
		b[20] = kind
		return b
	}
	const l2, l3, l4 = 1, 2, 4
	const isIPv6, isIPv4, isTCP, isUDP, isAck, isAckData = 1 << 2, 2 << 2, 1 << 4, 2 << 4, 3 << 4, 4 << 4
	for _, c := range []struct {
		name  string
		frame []byte
		keep  bool
		ok    byte   // byte 28
		types byte   // byte 29
		tci   uint16 // bytes 30, 31
		from  int    // the sum covers bytes from..to of the frame as delivered
		to    int
	}{
		{"TCP over IPv4", unhex(tcp4), false, l2 | l3 | l4, isIPv4 | isAck, 0, 14, 54},
		{"padding is not summed", append(unhex(tcp4), 1, 2, 3, 4, 5, 6), false, l2 | l3 | l4, isIPv4 | isAck, 0, 14, 54},
		{"no ACK", with(tcp4, 47, 2), false, l2 | l3, isIPv4 | isTCP, 0, 14, 54},
		{"UDP over IPv6", unhex(udp6), false, l2 | l3 | l4, isIPv6 | isUDP, 0, 14, 70},
		{"bad IPv4 checksum", with(tcp4, 24, 0, 0), false, l2 | l4, isIPv4 | isAck, 0, 14, 54},
		{"bad UDP checksum", with(udp6, 60, 0x6f, 0x13), false, l2 | l3, isIPv6 | isUDP, 0, 14, 70},
		{"no UDP checksum over IPv6", with(udp6, 60, 0, 0), false, l2 | l3, isIPv6 | isUDP, 0, 14, 70},
		{"hop-by-hop options", extended(0, 17, 0, 1, 4, 0, 0, 0, 0), false, l2 | l3 | l4, isIPv6 | isUDP, 0, 14, 78},
		{"authentication header", extended(51, 17, 2, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 1, 2, 3, 4), false, l2 | l3 | l4, isIPv6 | isUDP, 0, 14, 86},
		{"fragment of IPv6", extended(44, 17, 0, 0, 1, 0, 0, 0, 7), false, l2 | l3, isIPv6, 0, 14, 78},
		{"options longer than the packet", extended(60, 17, 9, 1, 4, 0, 0, 0, 0), false, l2 | l3, isIPv6, 0, 14, 78},
		{"first fragment", with(tcp4, 20, 0x20), false, l2, isIPv4, 0, 14, 54},
		{"cut short", unhex(tcp4)[:50], false, l2 | l3, isIPv4, 0, 14, 50},
		{"not IP", unhex(arp), false, l2, 0, 0, 0, 0},
		{"VLAN tag", tagged(0x8100, 0x6007, tcp4), false, l2 | l3 | l4, isIPv4 | isAck | 1, 0x6007, 14, 54},
		{"VLAN tag that stays", tagged(0x8100, 0x6007, tcp4), true, l2 | l3 | l4, isIPv4 | isAck, 0, 18, 58},
		{"service tag stays", tagged(0x88a8, 7, tcp4), false, l2 | l3 | l4, isIPv4 | isAck, 0, 18, 58},
		{"runt", unhex(macsHex), false, l2, 0, 0, 0, 0},
		{"nothing", nil, false, l2, 0, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, r := receiver(t, 1, 64, 100)
			g.ok(g.d.ModifyRQ(r.n, queue.RQChange{From: queue.RDY, To: queue.RDY, KeepVLAN: &c.keep}))
			g.ok(g.d.Receive(r.n, queue.Frame{Bytes: c.frame, Hash: 0xa1b2c3d4, HashType: 0x48, Tag: 0x123456}))
			e := r.mustNext()
			want := c.frame
			if c.types&1 != 0 {
				want = slices.Delete(slices.Clone(c.frame), 12, 16)
			}
			if got := r.frame(e); !bytes.Equal(got, want) {
				t.Errorf("frame %x, want %x", got, want)
			}
			if e[28] != c.ok || e[29] != c.types || be.Uint16(e[30:]) != c.tci {
				t.Errorf("ok %#x, types %#x, tag %#x; want %#x, %#x, %#x", e[28], e[29], be.Uint16(e[30:]), c.ok, c.types, c.tci)
			}
			if got, want := be.Uint16(e[20:]), naiveSum(want[c.from:c.to]); got != want {
				t.Errorf("sum %#x, want %#x", got, want)
			}
			if be.Uint32(e[12:]) != 0xa1b2c3d4 || e[16] != 0x48 || be.Uint32(e[56:]) != 0x123456 || be.Uint32(e[24:]) != r.n {
				t.Errorf("hash, tag, queue: %x", e)
			}
			if be.Uint64(e[48:]) != 0x0102030405060708 || e[63]>>4 != 2 || be.Uint32(e[32:]) != 0 {
				t.Errorf("time, opcode, large receive: %x", e)
			}
			g.noViolations()
		})
	}
}

// order is a bus on which the last word of an entry may only be published when
// the rest is written, and an interrupt raised when the event is.
type order struct {
	*bus.Memory
	t       *testing.T
	written uint64 // where the last write ended
	unseen  int    // entries published since the last interrupt
}

func (o *order) Write(addr uint64, b []byte) error {
	o.written = addr + uint64(len(b))
	return o.Memory.Write(addr, b)
}

func (o *order) Publish(addr uint64, w [4]byte) error {
	if o.written != addr {
		o.t.Errorf("last word at %#x published, but %#x written last", addr, o.written)
	}
	o.unseen++
	return o.Memory.Publish(addr, w)
}

func (o *order) Interrupt(vector int) bool {
	if o.unseen != 2 { // the completion and its event
		o.t.Errorf("interrupt after %d entries", o.unseen)
	}
	o.unseen = 0
	return o.Memory.Interrupt(vector)
}

func TestTheLastWordIsPublishedLast(t *testing.T) {
	g := newGuest(t)
	o := &order{Memory: &g.mem, t: t}
	g.d = queue.New(o, nil, nil)
	g.d.AllowKey(key)
	r := g.rq(0x10, 3, 5, g.cq(0x400, 3, g.eq(1, 6)))
	r.post(g.buffers(100)...)
	r.tell()
	g.ok(r.arm())
	g.ok(g.d.Receive(r.n, queue.Frame{Bytes: frameOf(1, 60)}))
	if g.mem.Fired(vector) != 1 {
		t.Error("no interrupt")
	}
}
