// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/flexsteer/flexsteer/sim/queue"
)

// world is a driver with a few channels, which does at any time anything that a
// driver may do, and what must come of it.
type world struct {
	*guest
	rand *rand.Rand
	eq   *eventQueue
	rqs  []*channel
	sq   *sendQueue
	id   int
	want [][]byte // frames to leave, in order
}

type channel struct {
	*receiveQueue
	free    [][]buffer // posted by nobody
	want    [][]byte   // frames delivered and not yet seen by the driver
	asked   bool       // armed, and no event seen since
	arrived bool       // a completion since the arming, or unread at it
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{guest: newGuest(t), rand: rand.New(rand.NewPCG(seed, 1))}
	w.eq = w.guest.eq(1, 3+w.rand.IntN(5))
	for i := range uint32(1 + w.rand.IntN(4)) {
		log := w.rand.IntN(9)
		c := &channel{receiveQueue: w.rq(0x10+i, log, 4+w.rand.IntN(3), w.cq(0x400+i, log, w.eq))}
		for range 1 << log {
			var b []buffer
			for range min(2, 1<<(c.logStride-4)) {
				b = append(b, w.buffers(uint32(64+w.rand.IntN(200)))...)
			}
			c.free = append(c.free, b)
		}
		w.rqs = append(w.rqs, c)
	}
	w.sq = w.guest.sq(0x20, 6, w.guest.cq(0x500, 6, w.eq))
	return w
}

func (w *world) deliver() {
	c := w.rqs[w.rand.IntN(len(w.rqs))]
	w.id++
	f := frameOf(w.id, 60)
	copy(f[14:], fmt.Sprintf("frame %d", w.id))
	posted := 1<<c.log - len(c.free) - len(c.want) // by the driver, and not used
	switch err := w.d.Receive(c.receiveQueue.n, queue.Frame{Bytes: f}); {
	case err == nil && posted > 0:
		c.want = append(c.want, f)
		c.arrived = true
	case errors.Is(err, queue.ErrNoBuffer) && posted == 0:
	default:
		w.t.Fatalf("%d posted: %v", posted, err)
	}
}

func (w *world) post() {
	c := w.rqs[w.rand.IntN(len(w.rqs))]
	for range w.rand.IntN(1 + len(c.free)) {
		c.receiveQueue.post(c.free[0]...)
		c.free = c.free[1:]
	}
	c.tell()
}

func (w *world) poll() {
	c := w.rqs[w.rand.IntN(len(w.rqs))]
	for range w.rand.IntN(20) {
		cqe, ok := c.next()
		if ok != (len(c.want) > 0) {
			w.t.Fatalf("a completion: %v; frames due: %d", ok, len(c.want))
		}
		if !ok {
			return
		}
		if got := c.frame(cqe); !bytes.Equal(got, c.want[0]) {
			w.t.Fatalf("got %q, want %q", got, c.want[0])
		}
		c.want = c.want[1:]
		c.free = append(c.free, c.buffers[be.Uint16(cqe[60:])&(1<<c.log-1)])
	}
}

func (w *world) arm() {
	c := w.rqs[w.rand.IntN(len(w.rqs))]
	if c.asked {
		return // until the event came, as NAPI does
	}
	w.ok(c.arm())
	c.asked, c.arrived = true, len(c.want) > 0
}

// handle is the interrupt handler: every armed queue with completions must be in it, others must not.
func (w *world) handle() {
	seen := map[uint32]bool{}
	for ev, ok := w.eq.next(); ok; ev, ok = w.eq.next() {
		n := be.Uint32(ev[56:])
		if seen[n] {
			w.t.Fatalf("two events of queue %#x", n)
		}
		seen[n] = true
	}
	w.ok(w.eq.tell(0x40))
	for _, c := range w.rqs {
		if due := c.asked && c.arrived; seen[c.completionQueue.n] != due {
			w.t.Fatalf("queue %#x: event %v, due %v", c.completionQueue.n, !due, due)
		}
		if seen[c.completionQueue.n] {
			c.asked = false
		}
	}
}

func (w *world) interrupts(do func()) {
	before := w.mem.Fired(vector)
	do()
	if n := w.mem.Fired(vector) - before; n > 1 {
		w.t.Fatalf("%d interrupts", n)
	}
}

func (w *world) sendSome() {
	for range w.rand.IntN(5) {
		w.id++
		f := frameOf(w.id, 60+w.rand.IntN(100))
		w.want = append(w.want, f)
		cut := 18 + w.rand.IntN(20)
		w.sq.post(w.sq.request(send, false, eth(0, 0, f[:cut]), w.data(f[cut:])))
	}
	pi := w.sq.pi
	w.sq.post(w.sq.request(nop, true))
	w.ok(w.sq.ring())
	if cqe := w.sq.mustNext(); be.Uint16(cqe[60:]) != pi {
		w.t.Fatalf("completion %x, want one of %d", cqe, pi)
	}
	if len(w.sent) != len(w.want) {
		w.t.Fatalf("%d frames left of %d", len(w.sent), len(w.want))
	}
	for i := range w.sent {
		if !bytes.Equal(w.sent[i], w.want[i]) {
			w.t.Fatalf("frame %d is another", i)
		}
	}
	w.sent, w.want = nil, nil
}

// reset is a queue that the driver closes for a moment: what was posted is lost, what was delivered is not.
func (w *world) reset() {
	c := w.rqs[w.rand.IntN(len(w.rqs))]
	n := c.receiveQueue.n
	w.ok(w.d.ModifyRQ(n, queue.RQChange{From: queue.RDY, To: queue.RST}))
	if err := w.d.Posted(n); !errors.Is(err, queue.ErrNotReady) {
		w.t.Fatal(err)
	}
	for len(c.want) > 0 { // the driver forgets what came
		c.next()
		c.want = c.want[1:]
	}
	if _, ok := c.next(); ok {
		w.t.Fatal("a completion too many")
	}
	c.free = nil
	for i := range uint16(1 << c.log) {
		if b, ok := c.buffers[i]; ok {
			c.free = append(c.free, b)
		} else {
			c.free = append(c.free, w.buffers(128))
		}
	}
	c.buffers = map[uint16][]buffer{}
	c.pi = 0
	c.tell()
	w.ok(w.d.ModifyRQ(n, queue.RQChange{From: queue.RST, To: queue.RDY}))
}

func TestWhateverADriverDoesFramesComeOnceAndInOrder(t *testing.T) {
	rounds := uint64(150)
	if testing.Short() {
		rounds = 20
	}
	for seed := range rounds {
		w := newWorld(t, seed)
		ops := []func(){w.deliver, w.deliver, w.deliver, w.deliver, w.deliver, w.post, w.post, w.poll, w.poll, w.arm, w.handle, w.sendSome}
		for i := range 1500 {
			if i%100 == 99 {
				w.reset()
			}
			w.interrupts(ops[w.rand.IntN(len(ops))])
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, i)
			}
		}
		w.noViolations()
	}
}

// Each of these is alone with its rings, as a CPU is; the card is one.
func TestSeveralCPUsAtOnce(t *testing.T) {
	g := newGuest(t)
	sent := make(chan []byte, 10000)
	g.d = queue.New(&g.mem, nil, func(f []byte) { sent <- bytes.Clone(f) })
	g.d.AllowKey(key)
	var cpus sync.WaitGroup
	for i := range uint32(4) {
		e := g.eq(1+i, 6)
		r := g.rq(0x10+i, 4, 5, g.cq(0x400+2*i, 4, e))
		s := g.sq(0x20+i, 4, g.cq(0x401+2*i, 4, e))
		for range 16 {
			r.post(g.buffers(100)...)
		}
		r.tell()
		own := frameOf(int(i), 80)
		request := [][]byte{eth(0, 0, own[:18]), g.data(own[18:])}
		cpus.Go(func() { // its half of the wire
			for got := 0; got < 500 && !t.Failed(); {
				if err := g.d.Receive(r.n, queue.Frame{Bytes: own}); err == nil {
					got++
				} else if !errors.Is(err, queue.ErrNoBuffer) {
					t.Error(err)
					return
				}
			}
		})
		cpus.Go(func() { // the CPU
			for got := 0; got < 500 && !t.Failed(); {
				for cqe, ok := r.next(); ok; cqe, ok = r.next() {
					if got++; !bytes.Equal(r.frame(cqe), own) {
						t.Error("another frame")
					}
					r.post(r.buffers[be.Uint16(cqe[60:])&15]...)
				}
				r.tell()
				s.post(s.request(send, true, request...))
				if err := errors.Join(s.ring(), r.arm(), e.tell(0x40)); err != nil {
					t.Error(err)
				}
				if _, ok := s.next(); !ok {
					t.Error("no completion")
				}
				for _, ok := e.next(); ok; _, ok = e.next() {
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { cpus.Wait(); close(sent); close(done) }()
	for f := range sent {
		g.d.Counters()
		if len(f) != 80 {
			t.Errorf("%x", f)
		}
	}
	<-done
	g.noViolations()
}
