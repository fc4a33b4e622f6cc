// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/flexsteer/flexsteer/sim/queue"
)

func kind(err error) queue.Kind {
	var e queue.Error
	errors.As(err, &e)
	return e.Kind
}

func TestObjectsThatCannotBe(t *testing.T) {
	g := newGuest(t)
	g.ok(g.d.CreateEQ(1, queue.EQ{Pages: g.pages(4096), LogSize: 6}))
	g.ok(g.d.CreateCQ(1, queue.CQ{Pages: g.pages(4096), LogSize: 6, EQ: 1}))
	g.ok(g.d.CreateRQ(1, queue.RQ{Pages: g.pages(4096), LogSize: 6, LogStride: 6, CQ: 1}))
	g.ok(g.d.CreateSQ(1, queue.SQ{Pages: g.pages(4096), LogSize: 6, CQ: 1}))
	one := queue.Pages{Addr: []uint64{4096}}
	at := func(offset int) queue.Pages { return queue.Pages{Addr: []uint64{4096, 8192}, Offset: offset} }
	for name, c := range map[string]struct {
		want queue.Kind
		err  error
	}{
		"event queue number taken":     {queue.BadState, g.d.CreateEQ(1, queue.EQ{Pages: one})},
		"event queue number of 9 bits": {queue.BadParam, g.d.CreateEQ(0x100, queue.EQ{Pages: one})},
		"event queue without pages":    {queue.BadParam, g.d.CreateEQ(2, queue.EQ{})},
		"event queue of negative size": {queue.BadParam, g.d.CreateEQ(2, queue.EQ{Pages: one, LogSize: -1})},
		"event queue too long":         {queue.BadParam, g.d.CreateEQ(2, queue.EQ{Pages: one, LogSize: 23})},
		"page too few":                 {queue.BadParam, g.d.CreateEQ(2, queue.EQ{Pages: one, LogSize: 7})},
		"page too many":                {queue.BadParam, g.d.CreateEQ(2, queue.EQ{Pages: at(0), LogSize: 6})},
		"page too few for the offset":  {queue.BadParam, g.d.CreateEQ(2, queue.EQ{Pages: queue.Pages{Addr: one.Addr, Offset: 64}, LogSize: 6})},
		"offset within an entry":       {queue.BadParam, g.d.CreateEQ(2, queue.EQ{Pages: at(32), LogSize: 6})},
		"negative offset":              {queue.BadParam, g.d.CreateEQ(2, queue.EQ{Pages: at(-64), LogSize: 6})},
		"offset behind the page":       {queue.BadParam, g.d.CreateEQ(2, queue.EQ{Pages: at(4096), LogSize: 6})},
		"page not aligned":             {queue.BadParam, g.d.CreateEQ(2, queue.EQ{Pages: queue.Pages{Addr: []uint64{4097}}, LogSize: 6})},
		"page size negative":           {queue.BadParam, g.d.CreateEQ(2, queue.EQ{Pages: queue.Pages{Addr: one.Addr, LogPageSize: -1}, LogSize: 6})},
		"page size too big":            {queue.BadParam, g.d.CreateEQ(2, queue.EQ{Pages: queue.Pages{Addr: one.Addr, LogPageSize: 60}, LogSize: 6})},
		"completion queue taken":       {queue.BadState, g.d.CreateCQ(1, queue.CQ{Pages: one, EQ: 1})},
		"completions without events":   {queue.NotFound, g.d.CreateCQ(2, queue.CQ{Pages: one, EQ: 9})},
		"completion record":            {queue.BadParam, g.d.CreateCQ(2, queue.CQ{Pages: one, EQ: 1, Record: 4})},
		"completion queue number":      {queue.BadParam, g.d.CreateCQ(1<<24, queue.CQ{Pages: one, EQ: 1})},
		"receive queue taken":          {queue.BadState, g.d.CreateRQ(1, queue.RQ{Pages: one, LogStride: 4, CQ: 1})},
		"receive without completions":  {queue.NotFound, g.d.CreateRQ(2, queue.RQ{Pages: one, LogStride: 4, CQ: 9})},
		"receive record":               {queue.BadParam, g.d.CreateRQ(2, queue.RQ{Pages: one, LogStride: 4, CQ: 1, Record: 1})},
		"receive entries too small":    {queue.BadParam, g.d.CreateRQ(2, queue.RQ{Pages: one, LogStride: 3, CQ: 1})},
		"receive entries too big":      {queue.BadParam, g.d.CreateRQ(2, queue.RQ{Pages: one, LogStride: 10, CQ: 1})},
		"receive queue too long":       {queue.BadParam, g.d.CreateRQ(2, queue.RQ{Pages: one, LogSize: 16, LogStride: 4, CQ: 1})},
		"receive queue number":         {queue.BadParam, g.d.CreateRQ(1<<24, queue.RQ{Pages: one, LogStride: 4, CQ: 1})},
		"send queue taken":             {queue.BadState, g.d.CreateSQ(1, queue.SQ{Pages: one, CQ: 1})},
		"send without completions":     {queue.NotFound, g.d.CreateSQ(2, queue.SQ{Pages: one, CQ: 9})},
		"event queue in use":           {queue.InUse, g.d.DestroyEQ(1)},
		"completion queue in use":      {queue.InUse, g.d.DestroyCQ(1)},
		"no such event queue":          {queue.NotFound, g.d.DestroyEQ(9)},
		"no such completion queue":     {queue.NotFound, g.d.DestroyCQ(9)},
		"no such receive queue":        {queue.NotFound, g.d.DestroyRQ(9)},
		"no such send queue":           {queue.NotFound, g.d.DestroySQ(9)},
		"modify no receive queue":      {queue.NotFound, g.d.ModifyRQ(9, queue.RQChange{})},
		"modify no send queue":         {queue.NotFound, g.d.ModifySQ(9, queue.SQChange{})},
	} {
		if got := kind(c.err); got != c.want {
			t.Errorf("%s: %v, want kind %d", name, c.err, c.want)
		}
	}
	_, err := g.d.RQState(9)
	_, err2 := g.d.SQState(9)
	if kind(err) != queue.NotFound || kind(err2) != queue.NotFound {
		t.Error(err, err2)
	}
	// None of that may have taken hold of anything.
	g.ok(g.d.DestroySQ(1))
	g.ok(g.d.DestroyRQ(1))
	g.ok(g.d.DestroyCQ(1))
	g.ok(g.d.DestroyEQ(1))
	g.noViolations()
}

func TestStatesOfAQueue(t *testing.T) {
	const rst, rdy, er = queue.RST, queue.RDY, queue.ERR
	possible := map[[2]queue.State]bool{
		{rst, rst}: true, {rst, rdy}: true, {rst, er}: true,
		{rdy, rst}: true, {rdy, rdy}: true, {rdy, er}: true,
		{er, rst}: true, {er, er}: true,
	}
	states := []queue.State{0, 1, 2, 3, 15}
	for _, from := range []queue.State{rst, rdy, er} {
		for _, claimed := range states {
			for _, to := range states {
				g := newGuest(t)
				c := g.cq(1, 4, g.eq(1, 4))
				g.ok(g.d.CreateRQ(1, queue.RQ{Pages: g.pages(4096), LogSize: 6, LogStride: 6, CQ: c.n, Record: c.record + 64}))
				g.ok(g.d.CreateSQ(1, queue.SQ{Pages: g.pages(4096), LogSize: 6, CQ: c.n, Record: c.record + 128}))
				g.ok(g.d.ModifyRQ(1, queue.RQChange{From: rst, To: from}))
				g.ok(g.d.ModifySQ(1, queue.SQChange{From: rst, To: from}))
				keep := true
				errs := []error{g.d.ModifyRQ(1, queue.RQChange{From: claimed, To: to, KeepVLAN: &keep}), g.d.ModifySQ(1, queue.SQChange{From: claimed, To: to})}
				want := from
				if claimed == from && possible[[2]queue.State{from, to}] {
					want = to
				}
				rq, _ := g.d.RQState(1)
				sq, _ := g.d.SQState(1)
				for i, got := range []queue.State{rq, sq} {
					if got != want || (errs[i] == nil) != (claimed == from && possible[[2]queue.State{from, to}]) {
						t.Errorf("in %v, from %v to %v: %v, now %v", from, claimed, to, errs[i], got)
					}
					if errs[i] != nil && kind(errs[i]) != queue.BadState {
						t.Errorf("in %v, from %v to %v: %v", from, claimed, to, errs[i])
					}
				}
				g.noViolations()
			}
		}
	}
}

func TestClearTakesAllRingsAndKeysButNoCounts(t *testing.T) {
	g, r := receiver(t, 2, 100)
	g.ok(g.d.Receive(r.n, queue.Frame{Bytes: frameOf(1, 60)}))
	g.d.Lose(r.n)
	g.d.Clear()
	if err := g.d.Receive(r.n, queue.Frame{Bytes: frameOf(1, 60)}); kind(err) != queue.NotFound {
		t.Error(err)
	}
	c := g.d.Counters()
	if len(c.RQ)+len(c.SQ) != 0 || g.d.OutOfBuffer(5, false) != 1 {
		t.Errorf("%+v", c)
	}
	again := g.rq(0x10, 2, 5, g.cq(0x400, 2, g.eq(1, 6)))
	again.post(g.buffers(100)...)
	again.tell()
	if err := g.d.Receive(r.n, queue.Frame{Bytes: frameOf(1, 60)}); !errors.Is(err, queue.ErrViolation) {
		t.Errorf("the key is still good: %v", err)
	}
}

func TestARingMayStartWithinItsFirstPageAndHaveLongPages(t *testing.T) {
	g := newGuest(t)
	g.mem.Map(1<<20, 3<<14)
	p := queue.Pages{Addr: []uint64{1 << 20, 1<<20 + 1<<15}, LogPageSize: 2, Offset: 128}
	g.ok(g.d.CreateEQ(1, queue.EQ{Pages: p, LogSize: 8, UAR: uar, Events: [4]uint64{1 << 1}})) // 16384 bytes, of which 128 in the second page
	for i := range 256 {
		g.ok(g.d.Announce(queue.Event{Type: 1, Subtype: byte(i)}))
	}
	for i, at := range map[int]uint64{0: 1<<20 + 128, 253: 1<<20 + 16384 - 64, 254: 1<<20 + 1<<15, 255: 1<<20 + 1<<15 + 64} {
		if b := g.read(at, 4); b[1] != 1 || b[3] != byte(i) {
			t.Errorf("event %d: %x", i, b)
		}
	}
}

// One page, named again and again, is all that a guest needs to make lists of pages.
func TestRingsOfManyPagesAreBounded(t *testing.T) {
	g := newGuest(t)
	p := queue.Pages{Addr: slices.Repeat([]uint64{1 << 20}, 1<<16)}
	makers := []func(n uint32) error{
		func(n uint32) error { return g.d.CreateEQ(n, queue.EQ{Pages: p, LogSize: 22}) },
		func(n uint32) error { return g.d.CreateCQ(n, queue.CQ{Pages: p, LogSize: 22, EQ: 0}) },
		func(n uint32) error {
			return g.d.CreateRQ(n, queue.RQ{Pages: queue.Pages{Addr: p.Addr[:1<<12]}, LogSize: 15, LogStride: 9, CQ: 0})
		},
		func(n uint32) error {
			return g.d.CreateSQ(n, queue.SQ{Pages: queue.Pages{Addr: p.Addr[:1<<9]}, LogSize: 15, CQ: 0})
		},
	}
	for i := range uint32(3) {
		for _, f := range makers {
			g.ok(f(i))
		}
	}
	made := uint32(3)
	for ; made < 100 && makers[1](made) == nil; made++ {
	}
	if made == 100 {
		t.Fatal("100 completion queues of 2^22 entries")
	}
	for _, f := range makers[:2] {
		if err := f(made); kind(err) != queue.NoResources {
			t.Error(err)
		}
	}
	g.ok(g.d.DestroyCQ(1))
	g.ok(makers[1](made))
	g.d.Clear()
	g.ok(makers[0](0))
	g.noViolations()
}

func TestViolationsAreCountedByTextAndBounded(t *testing.T) {
	g := newGuest(t)
	for range 3 {
		for i := range 300 {
			g.d.Doorbell(uint32(i), 0x30, u32(0))
		}
	}
	v := g.d.Violations()
	if len(v) != 101 {
		t.Fatalf("%d texts", len(v))
	}
	for i, want := 0, 3; i < 101; i++ {
		if i == 100 {
			want = 3 * 200
		}
		if v[i].Count != want {
			t.Errorf("%d: %+v, want %d", i, v[i], want)
		}
	}
}
