// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"testing"

	"github.com/flexsteer/flexsteer/sim/queue"
)

// BenchmarkReceive is a frame through entry, buffer, completion and now and then
// an event. The guest only moves counters: its buffers stay where they are.
func BenchmarkReceive(b *testing.B) {
	for name, n := range map[string]int{"64 bytes": 64, "1500 bytes": 1500} {
		b.Run(name, func(b *testing.B) {
			g, r := receiver(b, 10, 1500)
			header, data := packet(false, 17, n-42)
			setLengths(header, len(data), false, 17)
			f := queue.Frame{Bytes: append(header, data...), Hash: 1, HashType: 0x84}
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for i := range b.N {
				g.ok(g.d.Receive(r.n, f))
				if i%64 == 63 {
					r.pi, r.ci = r.pi+64, r.ci+64
					r.tell()
					g.write(r.completionQueue.record, u32(r.ci&0xffffff))
					g.ok(r.arm())
				}
				if i%1024 == 1023 {
					for _, ok := g.events.next(); ok; _, ok = g.events.next() {
					}
					g.ok(g.events.tell(0x40))
				}
			}
		})
	}
}

func BenchmarkSend(b *testing.B) {
	g := newGuest(b)
	g.d = queue.New(&g.mem, nil, nil)
	g.d.AllowKey(key)
	s := g.sq(0x20, 10, g.cq(0x400, 10, g.eq(1, 6)))
	header, data := packet(false, 6, 1446)
	setLengths(header, len(data), false, 6)
	segment := g.data(append(header[18:], data...))
	b.SetBytes(int64(len(header) + len(data)))
	b.ReportAllocs()
	for i := range b.N {
		s.post(s.request(send, i%64 == 63, eth(checksums, 0, header[:18]), segment))
		if i%64 == 63 {
			g.ok(s.ring())
			s.mustNext()
		}
	}
}

// flat is a bus of one piece of memory that allocates nothing.
type flat []byte

func (f flat) Read(addr uint64, b []byte) error     { copy(b, f[addr:]); return nil }
func (f flat) Write(addr uint64, b []byte) error    { copy(f[addr:], b); return nil }
func (f flat) Publish(addr uint64, w [4]byte) error { copy(f[addr:], w[:]); return nil }
func (f flat) Interrupt(int) bool                   { return true }
func (f flat) word(addr uint64, v uint32)           { be.PutUint32(f[addr:], v) }
func (f flat) segment(addr uint64, n uint32, data uint64) {
	f.word(addr, n)
	f.word(addr+4, key)
	be.PutUint64(f[addr+8:], data)
}

func TestFramesCostNoAllocation(t *testing.T) {
	const ring, completions, record, buffer = 0x1000, 0x2000, 0x3000, 0x4000
	f := make(flat, 1<<20)
	page := func(a uint64) queue.Pages { return queue.Pages{Addr: []uint64{a}} }
	d := queue.New(f, nil, nil)
	d.AllowKey(key)
	for _, err := range []error{
		d.CreateEQ(1, queue.EQ{Pages: page(0), LogSize: 6}),
		d.CreateCQ(1, queue.CQ{Pages: page(completions), LogSize: 6, EQ: 1, IgnoreOverrun: true}),
		d.CreateRQ(1, queue.RQ{Pages: page(ring), LogSize: 6, LogStride: 5, CQ: 1, Record: record}),
		d.CreateSQ(1, queue.SQ{Pages: page(0x5000), LogSize: 6, CQ: 1, Record: record + 64}),
		d.ModifyRQ(1, queue.RQChange{To: queue.RDY}),
		d.ModifySQ(1, queue.SQChange{To: queue.RDY}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint64(64) {
		f.segment(ring+i*32, 1600, buffer)
	}
	header, data := packet(false, 6, 1000)
	tagged := append(append(append([]byte(nil), header[:12]...), 0x81, 0, 0, 5), append(header[12:], data...)...)
	posted := uint32(0)
	if n := testing.AllocsPerRun(1000, func() {
		posted++
		f.word(record, posted)
		if err := d.Receive(1, queue.Frame{Bytes: tagged}); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a frame received", n)
	}
	posted = 0
	doorbell := append(u32(0), u32(1<<8)...)
	if n := testing.AllocsPerRun(1000, func() {
		w := f[0x5000+posted%64*64:]
		be.PutUint32(w, posted<<8&0xffffff|send)
		be.PutUint32(w[4:], 1<<8|3)
		w[11] = 8
		w[20] = checksums
		f.segment(0x5000+uint64(posted%64*64)+32, uint32(len(tagged)), buffer)
		posted++
		f.word(record+68, posted)
		if err := d.Doorbell(0, 0x800, doorbell); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a frame sent", n)
	}
}
