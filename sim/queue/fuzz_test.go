// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/flexsteer/flexsteer/sim/queue"
)

// Any bytes in the ring of a send queue: each request is done or the queue
// stops with an error completion and drains, and what leaves is a frame.
func FuzzRequests(f *testing.F) {
	g, s := sender(f, 6)
	header, data := packet(true, 6, 3000)
	for _, w := range [][]byte{
		s.request(nop, true),
		s.request(send, true, eth(checksums, 0, header[:18]), g.data(data)),
		s.request(send, true, eth(0, 0, nil), append(u32(1<<31|60), make([]byte, 60)...)),
		s.request(largeSend, true, eth(checksums, 1000, header), g.data(data)),
		s.request(multiSend, true, eth(checksums, 0, nil), g.data(data), g.data(data)),
	} {
		f.Add(w, true)
	}
	f.Fuzz(func(t *testing.T, ring []byte, fix bool) {
		g, s := sender(t, 6)
		g.mem.Map(1<<32, 1<<16) // where the seeds' data segments are
		for pi := uint32(0); len(ring) > 0 && pi < 64; pi++ {
			b := make([]byte, 64)
			ring = ring[copy(b, ring):]
			if fix && b[3] != 0 { // so that more than the first check is reached
				be.PutUint32(b, pi<<8|uint32(b[3]))
				be.PutUint32(b[4:], s.n<<8|uint32(b[7]))
			}
			g.write(entry(s.p, pi, s.log, 64), b)
			s.pi++
		}
		err := s.ring()
		failed := 0
		for e, ok := s.next(); ok; e, ok = s.next() {
			if op := e[63] >> 4; op == 13 {
				failed++
			} else if op != 0 || failed > 0 {
				t.Fatalf("completion %x after %d failures", e, failed)
			}
		}
		state, _ := g.d.SQState(s.n)
		if (err != nil) != (failed > 0) || (state == queue.ERR) != (failed > 0) {
			t.Fatalf("%d failures, state %v, error %v", failed, state, err)
		}
		for _, f := range g.sent {
			if len(f) < 60 || len(f) > 16<<10+4 {
				t.Fatalf("a frame of %d bytes", len(f))
			}
		}
	})
}

// Any writes to a UAR page, and any records.
func FuzzDoorbells(f *testing.F) {
	f.Add([]byte{0x20, 8, 0, 0, 0, 0, 0, 0, 4, 0}, uint32(0), uint32(0))
	f.Add([]byte{0x40, 4, 1, 0, 0, 0, 0x48, 4, 1, 0, 0, 0}, uint32(3), uint32(9))
	f.Add([]byte{0x80, 8, 0, 0, 0, 0, 0, 0, 0x20, 0}, uint32(2), uint32(1))
	f.Fuzz(func(t *testing.T, writes []byte, sends, receives uint32) {
		g := newGuest(t)
		e := g.eq(1, 2, queue.EventCQError)
		r := g.rq(0x10, 2, 5, g.cq(0x400, 2, e))
		s := g.sq(0x20, 4, g.cq(0x401, 4, e))
		g.write(s.record+4, u32(sends))
		g.write(r.record, u32(receives))
		for len(writes) >= 2 {
			off, n := int(writes[0]), int(writes[1]&15)
			if off >= 0x80 {
				off = 0x800 + off<<1&0x7ff
			}
			writes = writes[2:]
			n = min(n, len(writes))
			before := len(g.d.Violations())
			err := g.d.Doorbell(uar, off, writes[:n])
			if err != nil && (!errors.Is(err, queue.ErrViolation) || len(g.d.Violations()) == 0) || err == nil && len(g.d.Violations()) > before {
				t.Fatalf("error %v, violations %v", err, g.d.Violations())
			}
			g.d.Receive(r.n, queue.Frame{Bytes: frameOf(1, 60)})
			writes = writes[n:]
		}
	})
}

// Any bytes as a scatter list and any as a frame: it arrives as it is, or an
// error says why not.
func FuzzFrames(f *testing.F) {
	header, data := packet(false, 17, 100)
	f.Add([]byte{0, 0, 1, 0, 0, 0, 0x12, 0, 0, 0, 0, 1, 0, 0, 0, 0}, append(header, data...), false)
	header, data = packet(true, 6, 30)
	f.Add([]byte{0, 0, 1, 0, 0, 0, 0x12, 0, 0, 0, 0, 1, 0, 0, 0, 0}, append(header, data...), true)
	f.Add([]byte{}, []byte{}, false)
	f.Fuzz(func(t *testing.T, list, frame []byte, keep bool) {
		g := newGuest(t)
		r := g.rq(0x10, 0, 6, g.cq(0x400, 0, g.eq(1, 2)))
		g.ok(g.d.ModifyRQ(r.n, queue.RQChange{From: queue.RDY, To: queue.RDY, KeepVLAN: &keep}))
		g.write(r.p.Addr[0], list[:min(64, len(list))])
		r.pi = 1
		r.tell()
		err := g.d.Receive(r.n, queue.Frame{Bytes: frame})
		e := r.mustNext()
		switch op := e[63] >> 4; {
		case op == 2 && err == nil:
			if n := int(be.Uint32(e[44:])); n != len(frame) && (keep || n != len(frame)-4 || e[29]&1 == 0) {
				t.Fatalf("%d bytes of %d", n, len(frame))
			}
		case op == 14 && (err == queue.ErrTooLong || errors.Is(err, queue.ErrViolation)):
		default:
			t.Fatalf("opcode %d, error %v", op, err)
		}
	})
}

// Checksums that are filled are those that a receiver finds right.
func FuzzChecksums(f *testing.F) {
	for _, v6 := range []bool{false, true} {
		for _, proto := range []byte{6, 17} {
			header, data := packet(v6, proto, 50)
			setLengths(header, 50, v6, proto)
			f.Add(append(header, data...))
		}
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) < 60 || len(frame) > 2000 {
			return // padding, which comes last, may complete a header
		}
		g, s := sender(t, 6)
		s.post(s.request(send, true, eth(checksums, 0, nil), g.data(frame)))
		g.ok(s.ring())
		sent := g.sent[0]
		r := g.rq(0x10, 0, 5, g.cq(0x402, 0, g.eq(2, 4)))
		keep := true
		g.ok(g.d.ModifyRQ(r.n, queue.RQChange{From: queue.RDY, To: queue.RDY, KeepVLAN: &keep}))
		r.post(g.buffers(2000)...)
		r.tell()
		g.ok(g.d.Receive(r.n, queue.Frame{Bytes: sent}))
		e := r.mustNext()
		if !bytes.Equal(r.frame(e), sent) {
			t.Fatal("another frame")
		}
		if e[29]>>2&3 != 0 && e[28]&2 == 0 || e[29]>>4&7 != 0 && e[28]&4 == 0 {
			t.Fatalf("types %#x, right %#x: %x", e[29], e[28], sent)
		}
	})
}
