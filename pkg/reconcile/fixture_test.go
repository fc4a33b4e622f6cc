// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/flexsteer/flexsteer/internal/host/hosttest"
	"github.com/flexsteer/flexsteer/pkg/reconcile"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

var (
	_ reconcile.Kernel = (*hosttest.Kernel)(nil)
	_ reconcile.Policy = policy{}
)

// policy wants the same of every link it names.
type policy map[string]steer.Desired

func (p policy) Resolve(links []steer.Link) (all []steer.Desired) {
	for _, link := range links {
		if d, ok := p[link.Name]; ok {
			d.Link = link
			all = append(all, d)
		}
	}
	return all
}

// steering wants n rules for protocol: the value i of the low bits of l4data to
// queue i mod queues.
func steering(protocol uint8, n int, queues uint32) steer.Desired {
	d := steer.Desired{Own: steer.DefaultOwn, Policies: []string{"/etc/flexsteer/10-test.yaml"}}
	for i := range n {
		d.Entries = append(d.Entries, steer.Entry{
			Name: fmt.Sprintf("e%d", i), At: steer.Origin{File: "10-test.yaml", Line: i + 1, Column: 3},
			Families: []steer.Family{steer.IPv4}, Protocol: steer.Bits8{Value: protocol, Mask: 0xff},
			L4Data:   steer.Bits32{Value: uint32(i), Mask: 0xffff},
			Steering: steer.Steering{Kind: steer.SteerQueue, Queue: uint32(i) % queues},
		})
	}
	return d
}

// world is a loop over a fake kernel, with a clock that the test turns.
type world struct {
	*hosttest.Kernel
	loop    *reconcile.Loop
	now     time.Time
	log     bytes.Buffer
	reports []reconcile.Status
	beats   int
}

func newWorld() *world {
	w := &world{Kernel: new(hosttest.Kernel), now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	w.restart()
	return w
}

// restart is the end of the daemon and the start of another on the same machine.
func (w *world) restart() {
	quiet := func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	w.loop = reconcile.New(w.Kernel, reconcile.Options{
		Log:    slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{ReplaceAttr: quiet})),
		Report: func(s reconcile.Status) { w.reports = append(w.reports, s) },
		Alive:  func() { w.beats++ },
		Now:    func() time.Time { return w.now },
		Rand:   func() float64 { return 0.5 },
	})
}

// load gives the loop a configuration.
func (w *world) load(p reconcile.Policy) { w.loop.Load(reconcile.Loaded{Policy: p}) }

// passes lets the loop do all that is due now; each pass is one line of kinds of calls.
func (w *world) passes(t testing.TB) (passes []string) {
	t.Helper()
	for range 20 {
		next := w.loop.Pass(context.Background())
		calls := w.Calls()
		if len(calls) > 0 {
			passes = append(passes, summary(calls))
		}
		if next.After(w.now) {
			return passes
		}
	}
	t.Fatalf("the loop spins: 20 passes at one time\n%s", passes)
	return nil
}

// reported is what the loop reports while it does all that is due now.
func (w *world) reported(t testing.TB) []reconcile.Status {
	t.Helper()
	w.reports = nil
	w.passes(t)
	return w.reports
}

// summary counts calls by kind, in the order of first use: "links observe 64xinsert".
func summary(calls []hosttest.Call) (s string) {
	for i := 0; i < len(calls); {
		n := i
		for n < len(calls) && calls[n].Kind == calls[i].Kind {
			n++
		}
		if i > 0 {
			s += " "
		}
		if n-i > 1 {
			s += fmt.Sprintf("%dx", n-i)
		}
		s += calls[i].Kind
		i = n
	}
	return s
}

// event is one netlink message, and the time it takes until the loop acts on it.
func (w *world) event() {
	w.loop.Event()
	w.now = w.now.Add(time.Second)
}

func (w *world) link(t testing.TB, name string) reconcile.LinkStatus {
	t.Helper()
	for _, l := range w.loop.Status().Links {
		if l.Link.Name == name {
			return l
		}
	}
	t.Fatalf("no link %s in the status", name)
	return reconcile.LinkStatus{}
}

// mustConverge fails the test unless link has exactly the rules wanted of it
// inside its locations.
func (w *world) mustConverge(t testing.TB, name string, d steer.Desired) {
	t.Helper()
	if lacking := w.lacking(name, d); lacking != "" {
		t.Fatalf("%s\n%v\n%v", lacking, w.link(t, name), w.Kernel)
	}
}

// lacking says how the rules of a link differ from what d wants, "" if they do not.
func (w *world) lacking(name string, d steer.Desired) string {
	port := w.Port(name)
	ours := map[steer.Rule]int{}
	for loc, r := range port.Rules {
		if d.Own.Contains(loc) {
			ours[r]++
		}
	}
	for _, e := range d.Entries {
		r := steer.Rule{Match: steer.Match{Flow: steer.IP4, Protocol: e.Protocol, L4Data: e.L4Data}, Action: steer.ToQueue(e.Steering.Queue)}
		if ours[r]--; ours[r] != 0 {
			return fmt.Sprintf("%s is there %d times, not once", r, ours[r]+1)
		}
		delete(ours, r)
	}
	if len(ours) > 0 {
		return fmt.Sprintf("%d rules too many", len(ours))
	}
	return ""
}
