// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"encoding/binary"
	"testing"

	"github.com/flexsteer/flexsteer/sim/bus"
	"github.com/flexsteer/flexsteer/sim/queue"
)

var be = binary.BigEndian

const (
	key    = 0x1200
	uar    = 0x11
	vector = 3
)

// guest is a driver small enough to read: what it does with rings and records is
// written from the driver's side and shares nothing with the package.
type guest struct {
	t    testing.TB
	mem  bus.Memory
	d    *queue.Datapath
	free uint64   // where unmapped memory begins
	sent [][]byte // what left

	events *eventQueue // the last one made
}

func newGuest(t testing.TB) *guest {
	g := &guest{t: t, free: 1 << 32}
	g.d = queue.New(&g.mem, func() uint64 { return 0x0102030405060708 }, func(f []byte) { g.sent = append(g.sent, append([]byte(nil), f...)) })
	g.d.AllowKey(key)
	return g
}

// page maps one page, with a hole behind it.
func (g *guest) page() uint64 {
	a := g.free
	g.mem.Map(a, 4096)
	g.free += 8192
	return a
}

func (g *guest) pages(bytes int) (p queue.Pages) {
	for ; bytes > 0; bytes -= 4096 {
		p.Addr = append(p.Addr, g.page())
	}
	return p
}

func (g *guest) write(addr uint64, b []byte) {
	g.t.Helper()
	if err := g.mem.Write(addr, b); err != nil {
		g.t.Fatal(err)
	}
}

func (g *guest) read(addr uint64, n int) []byte {
	g.t.Helper()
	b := make([]byte, n)
	if err := g.mem.Read(addr, b); err != nil {
		g.t.Fatal(err)
	}
	return b
}

func (g *guest) ok(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func u32(v uint32) []byte { return be.AppendUint32(nil, v) }

// entry is the address of entry i of a ring in pages of 4096 bytes.
func entry(p queue.Pages, i uint32, log, stride int) uint64 {
	o := int(i&(1<<log-1)) * stride
	return p.Addr[o/4096] + uint64(o%4096)
}

type eventQueue struct {
	g   *guest
	n   uint32
	p   queue.Pages
	log int
	ci  uint32
}

func (g *guest) eq(n uint32, log int, events ...uint8) *eventQueue {
	g.t.Helper()
	e := &eventQueue{g: g, n: n, p: g.pages(64 << log), log: log}
	for i := range uint32(1 << log) {
		g.write(entry(e.p, i, log, 64)+63, []byte{1})
	}
	q := queue.EQ{Pages: e.p, LogSize: log, UAR: uar, Vector: vector}
	for _, typ := range events {
		q.Events[typ/64] |= 1 << (typ % 64)
	}
	g.ok(g.d.CreateEQ(n, q))
	g.ok(e.tell(0x40))
	g.events = e
	return e
}

// next is the event that the driver would see next.
func (e *eventQueue) next() (event []byte, ok bool) {
	event = e.g.read(entry(e.p, e.ci, e.log, 64), 64)
	if event[63]&1 != byte(e.ci>>e.log)&1 {
		return nil, false
	}
	e.ci++
	return event, true
}

func (e *eventQueue) tell(register int) error {
	return e.g.d.Doorbell(uar, register, u32(e.ci&0xffffff|e.n<<24))
}

type completionQueue struct {
	g      *guest
	n      uint32
	p      queue.Pages
	log    int
	ci     uint32
	record uint64
}

func (g *guest) cq(n uint32, log int, eq *eventQueue) *completionQueue {
	g.t.Helper()
	c := &completionQueue{g: g, n: n, p: g.pages(64 << log), log: log, record: g.page()}
	for i := range uint32(1 << log) {
		g.write(entry(c.p, i, log, 64)+63, []byte{0xf1})
	}
	g.ok(g.d.CreateCQ(n, queue.CQ{Pages: c.p, LogSize: log, UAR: uar, EQ: eq.n, Record: c.record}))
	return c
}

func (c *completionQueue) peek() (cqe []byte, ok bool) {
	cqe = c.g.read(entry(c.p, c.ci, c.log, 64), 64)
	return cqe, cqe[63]&1 == byte(c.ci>>c.log)&1
}

// next takes a completion and tells the device so.
func (c *completionQueue) next() ([]byte, bool) {
	cqe, ok := c.peek()
	if !ok {
		return nil, false
	}
	c.ci++
	c.g.write(c.record, u32(c.ci&0xffffff))
	return cqe, true
}

func (c *completionQueue) mustNext() []byte {
	c.g.t.Helper()
	cqe, ok := c.next()
	if !ok {
		c.g.t.Fatalf("completion queue %#x: none at %d; violations %v", c.n, c.ci, c.g.d.Violations())
	}
	return cqe
}

func (c *completionQueue) arm() error {
	return c.g.d.Doorbell(uar, 0x20, append(u32(c.ci&0xffffff), u32(c.n)...))
}

type receiveQueue struct {
	*completionQueue
	n         uint32
	p         queue.Pages
	log       int
	logStride int
	record    uint64
	pi        uint16
	buffers   map[uint16][]buffer // of posted entries, by index
}

type buffer struct {
	addr uint64
	n    uint32
}

func (g *guest) rq(n uint32, log, logStride int, cq *completionQueue) *receiveQueue {
	g.t.Helper()
	r := &receiveQueue{completionQueue: cq, n: n, p: g.pages(1 << (log + logStride)), log: log, logStride: logStride, record: g.page(), buffers: map[uint16][]buffer{}}
	g.ok(g.d.CreateRQ(n, queue.RQ{Pages: r.p, LogSize: log, LogStride: logStride, Record: r.record, CQ: cq.n, CounterSet: 5}))
	g.ok(g.d.ModifyRQ(n, queue.RQChange{From: queue.RST, To: queue.RDY}))
	return r
}

// post gives buffers for one frame to the device; see tell.
func (r *receiveQueue) post(buffers ...buffer) {
	r.g.t.Helper()
	at := entry(r.p, uint32(r.pi), r.log, 1<<r.logStride)
	for i := range 1 << r.logStride / 16 {
		e := append(u32(0), append(u32(0x100), make([]byte, 8)...)...) // the end of the list, as the driver writes it
		if i < len(buffers) {
			e = be.AppendUint64(append(u32(buffers[i].n|1<<31), u32(key)...), buffers[i].addr)
		}
		r.g.write(at+uint64(i)*16, e)
	}
	r.buffers[r.pi&(1<<r.log-1)] = buffers
	r.pi++
}

func (r *receiveQueue) tell() { r.g.write(r.record, u32(uint32(r.pi))) }

// frame is what a completion says is in the buffers.
func (r *receiveQueue) frame(cqe []byte) (f []byte) {
	left := int(be.Uint32(cqe[44:]))
	for _, b := range r.buffers[be.Uint16(cqe[60:])&(1<<r.log-1)] {
		n := min(left, int(b.n))
		f = append(f, r.g.read(b.addr, n)...)
		left -= n
	}
	return f
}

type sendQueue struct {
	*completionQueue
	n      uint32
	p      queue.Pages
	log    int
	record uint64
	pi     uint16
}

func (g *guest) sq(n uint32, log int, cq *completionQueue) *sendQueue {
	g.t.Helper()
	s := &sendQueue{completionQueue: cq, n: n, p: g.pages(64 << log), log: log, record: g.page()}
	g.ok(g.d.CreateSQ(n, queue.SQ{Pages: s.p, LogSize: log, UAR: uar, Record: s.record, CQ: cq.n, FlushInError: true}))
	g.ok(g.d.ModifySQ(n, queue.SQChange{From: queue.RST, To: queue.RDY}))
	return s
}

// request is a WQE without its control segment.
func (s *sendQueue) request(opcode byte, complete bool, segments ...[]byte) []byte {
	w := make([]byte, 16)
	for _, b := range segments {
		w = append(w, b...)
		w = append(w, make([]byte, -len(w)&15)...)
	}
	be.PutUint32(w, uint32(s.pi)<<8|uint32(opcode))
	be.PutUint32(w[4:], s.n<<8|uint32(len(w)/16))
	if complete {
		w[11] = 8
	}
	return w
}

// post puts a request into the ring, without telling the device.
func (s *sendQueue) post(w []byte) {
	s.g.t.Helper()
	for ; len(w) > 0; w = w[min(64, len(w)):] {
		s.g.write(entry(s.p, uint32(s.pi), s.log, 64), w[:min(64, len(w))])
		s.pi++
	}
}

func (s *sendQueue) ring() error {
	s.g.write(s.record+4, u32(uint32(s.pi)))
	return s.g.d.Doorbell(uar, 0x800, append(u32(uint32(s.pi)<<8), u32(s.n<<8)...))
}

// eth is an Ethernet segment with an inline header.
func eth(flags byte, mss int, inline []byte) []byte {
	e := make([]byte, 12, 32)
	e[4] = flags
	be.PutUint16(e[6:], uint16(mss))
	return append(be.AppendUint16(e, uint16(len(inline))), append(inline[:len(inline):len(inline)], make([]byte, max(0, 2-len(inline)))...)...)
}

func (g *guest) data(b []byte) []byte {
	a := g.free + 4096 - 8 // across a page
	g.mem.Map(a, len(b))
	g.free += 8192 + uint64(len(b)+8191)&^8191
	g.write(a, b)
	return be.AppendUint64(append(u32(uint32(len(b))), u32(key)...), a)
}

// noViolations is what a good driver leaves.
func (g *guest) noViolations() {
	g.t.Helper()
	if v := g.d.Violations(); len(v) > 0 {
		g.t.Errorf("violations: %v", v)
	}
}

// frameOf is n bytes that tell one frame from another.
func frameOf(seed, n int) []byte {
	f := make([]byte, n)
	for i := range f {
		f[i] = byte(seed*7 + i)
	}
	f[0] &^= 1
	f[12], f[13] = 0x88, 0xb5 // for local experiments
	return f
}
