// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"errors"
	"testing"

	"github.com/flexsteer/flexsteer/sim/queue"
)

func TestEventsArriveInOrderThroughSeveralRoundsAndPages(t *testing.T) {
	g := newGuest(t)
	e := g.eq(7, 7, 9) // 128 events in two pages
	for i := range 1000 {
		g.ok(g.d.Announce(queue.Event{Type: 9, Subtype: byte(i), Data: [28]byte{byte(i >> 8), 27: byte(i)}}))
		if i%100 != 99 {
			continue
		}
		for range 100 {
			n := int(e.ci)
			b, ok := e.next()
			if !ok || b[1] != 9 || b[3] != byte(n) || b[32] != byte(n>>8) || b[59] != byte(n) {
				t.Fatalf("event %d: %x %v", n, b, ok)
			}
		}
		if _, ok := e.next(); ok {
			t.Fatal("an event that was not posted")
		}
		g.ok(e.tell(0x40))
	}
	g.noViolations()
}

func TestOneInterruptForEachArming(t *testing.T) {
	g := newGuest(t)
	e := g.eq(1, 4, 9)
	fired := func(want int) {
		t.Helper()
		if n := g.mem.Fired(vector); n != want {
			t.Fatalf("%d interrupts, want %d", n, want)
		}
	}
	fired(0)
	g.ok(g.d.Announce(queue.Event{Type: 9}))
	g.ok(g.d.Announce(queue.Event{Type: 9}))
	fired(1)
	e.next()
	g.ok(e.tell(0x48)) // without arming
	g.ok(g.d.Announce(queue.Event{Type: 9}))
	fired(1)
	g.ok(e.tell(0x40)) // two are unread: at once
	fired(2)
	g.ok(g.d.Announce(queue.Event{Type: 9}))
	fired(2)
	for range 3 {
		e.next()
	}
	g.ok(e.tell(0x40))
	fired(2)
	g.ok(g.d.Announce(queue.Event{Type: 9}))
	fired(3)
	g.noViolations()
}

func TestAnnouncementsGoToWhoWantsThem(t *testing.T) {
	g := newGuest(t)
	a, b := g.eq(1, 4, 9, 0xff), g.eq(2, 4, 10)
	g.ok(g.d.Announce(queue.Event{Type: 9}))
	g.ok(g.d.Announce(queue.Event{Type: 0xff}))
	g.ok(g.d.Announce(queue.Event{Type: 11}))
	for _, want := range []byte{9, 0xff} {
		if ev, ok := a.next(); !ok || ev[1] != want {
			t.Errorf("got %x %v, want type %#x", ev, ok, want)
		}
	}
	if ev, ok := b.next(); ok {
		t.Errorf("unwanted event %x", ev)
	}
}

func TestAnEventQueueThatIsFullLosesEventsAndSaysSo(t *testing.T) {
	g := newGuest(t)
	e := g.eq(1, 2, 9, 10, 11)
	for range 4 {
		g.ok(g.d.Announce(queue.Event{Type: 9}))
	}
	if err := g.d.Announce(queue.Event{Type: 10}); !errors.Is(err, queue.ErrViolation) {
		t.Errorf("overrun: %v", err)
	}
	for range 4 {
		if ev, ok := e.next(); !ok || ev[1] != 9 {
			t.Errorf("event %x %v: overwritten", ev, ok)
		}
	}
	if len(g.d.Violations()) != 1 {
		t.Errorf("violations: %v", g.d.Violations())
	}
	g.ok(e.tell(0x40))
	g.ok(g.d.Announce(queue.Event{Type: 11}))
	if ev, ok := e.next(); !ok || ev[1] != 11 {
		t.Errorf("after the driver caught up: %x %v", ev, ok)
	}
}

func TestACompletionQueueReportsOnceForEachArming(t *testing.T) {
	g := newGuest(t)
	e := g.eq(1, 6)
	s := g.sq(0x20, 6, g.cq(0x400, 6, e))
	nop := func() { s.post(s.request(0, true)); g.ok(s.ring()) }
	events := func(want int) {
		t.Helper()
		n := 0
		for ev, ok := e.next(); ok; ev, ok = e.next() {
			if n++; ev[1] != 0 || be.Uint32(ev[56:]) != 0x400 {
				t.Errorf("event %x", ev)
			}
		}
		if n != want {
			t.Fatalf("%d events, want %d", n, want)
		}
		g.ok(e.tell(0x40))
	}
	nop()
	events(0)
	g.ok(s.arm()) // one is unread: at once
	events(1)
	nop()
	events(0)
	s.mustNext()
	s.mustNext()
	g.ok(s.arm())
	g.ok(s.arm()) // twice is once
	events(0)
	nop()
	nop()
	events(1)
	g.noViolations()
}

func TestDoorbellsThatNoDriverRings(t *testing.T) {
	g := newGuest(t)
	e := g.eq(1, 4)
	c := g.cq(0x400, 4, e)
	s := g.sq(0x20, 4, c)
	two := func(a, b uint32) []byte { return append(u32(a), u32(b)...) }
	for name, ring := range map[string]func() error{
		"arm through another page":  func() error { return g.d.Doorbell(uar+1, 0x20, two(0, c.n)) },
		"arm a queue there is not":  func() error { return g.d.Doorbell(uar, 0x20, two(0, 0x999)) },
		"arm with half a word":      func() error { return g.d.Doorbell(uar, 0x20, u32(0)) },
		"arm for solicited only":    func() error { return g.d.Doorbell(uar, 0x20, two(1<<24, c.n)) },
		"consume what is not there": func() error { return g.d.Doorbell(uar, 0x20, two(1, c.n)) },
		"events not there":          func() error { return g.d.Doorbell(uar, 0x40, u32(1<<24|1)) },
		"event queue not there":     func() error { return g.d.Doorbell(uar, 0x40, u32(2<<24)) },
		"event queue elsewhere":     func() error { return g.d.Doorbell(uar+1, 0x40, u32(1<<24)) },
		"send queue not there":      func() error { return g.d.Doorbell(uar, 0x800, two(0, 0x99<<8)) },
		"send queue elsewhere":      func() error { return g.d.Doorbell(uar+1, 0x800, two(0, s.n<<8)) },
		"register there is not":     func() error { return g.d.Doorbell(uar, 0x30, u32(0)) },
		"blue flame":                func() error { return g.d.Doorbell(uar, 0x800, make([]byte, 64)) },
		"behind the page":           func() error { return g.d.Doorbell(uar, 0x1000, two(0, s.n<<8)) },
		"nothing":                   func() error { return g.d.Doorbell(uar, 0x800, nil) },
	} {
		before := len(g.d.Violations())
		if err := ring(); !errors.Is(err, queue.ErrViolation) {
			t.Errorf("%s: %v", name, err)
		}
		if len(g.d.Violations()) == before {
			t.Errorf("%s: not kept", name)
		}
	}
	for _, half := range []int{0x800, 0x900, 0xa00, 0xf00} {
		g.ok(g.d.Doorbell(uar, half, two(0, s.n<<8)))
	}
}

func TestAVectorThatTheMachineHasNotIsAViolation(t *testing.T) {
	g := newGuest(t)
	g.ok(g.d.CreateEQ(1, queue.EQ{Pages: g.pages(4096), LogSize: 6, UAR: uar, Vector: -1, Events: [4]uint64{1 << 9}}))
	g.ok(g.d.Doorbell(uar, 0x40, u32(1<<24)))
	if err := g.d.Announce(queue.Event{Type: 9}); !errors.Is(err, queue.ErrViolation) {
		t.Error(err)
	}
}
