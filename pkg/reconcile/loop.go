// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// Options are what a Loop reports to and lives by. Every zero field has a default.
type Options struct {
	Version string           // for Status
	Log     *slog.Logger     // one line for each change, new state and new problem; default: none
	Report  func(Status)     // called when the status has changed, from the loop's goroutine
	Alive   func()           // called at every turn of the loop and around every step
	Rest    func()           // called before a sleep of a second or more
	Beat    time.Duration    // the longest sleep, so that Alive is called at least that often; 0: no limit
	Now     func() time.Time // default time.Now
	Rand    func() float64   // uniform in [0, 1), for jitter
}

// Loaded is the outcome of one attempt to load the configuration.
type Loaded struct {
	Policy Policy        // nil: the attempt failed, and the configuration in use stays
	Resync time.Duration // 0: DefaultResync
	Errors []string      // why it failed
}

// Loop keeps the links of one Kernel as the Policy wants them.
type Loop struct {
	kernel Kernel
	o      Options
	events chan struct{} // of size 1: events only wake
	loads  chan struct{} // of size 1: there is something in the inbox

	mu    sync.Mutex
	inbox []delivery // under mu

	// The rest belongs to the goroutine that calls Pass.
	policy   Policy
	resync   time.Duration
	status   Status
	reported Status
	links    map[int]*track // by ifindex
	eventAt  time.Time      // of the first event that no pass has followed yet; zero: none
	resyncAt time.Time
	lastPass time.Time
	failures int // of Links, in a row
}

type delivery struct {
	Loaded
	taken chan struct{}
}

// New makes a Loop that manages nothing until Load gives it a configuration.
func New(kernel Kernel, o Options) *Loop {
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1}))
	}
	if o.Report == nil {
		o.Report = func(Status) {}
	}
	if o.Alive == nil {
		o.Alive = func() {}
	}
	if o.Rest == nil {
		o.Rest = func() {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	return &Loop{
		kernel: kernel, o: o, events: make(chan struct{}, 1), loads: make(chan struct{}, 1), links: map[int]*track{}, resync: DefaultResync,
		status: Status{Version: o.Version, PID: os.Getpid()},
	}
}

// Wake says that something may have changed. It never blocks and may be called
// from any goroutine; many calls lead to few passes.
func (l *Loop) Wake() { ring(l.events) }

func ring(bell chan<- struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// Load hands over the outcome of an attempt to load the configuration, from any
// goroutine. The channel closes when the loop has taken and reported it, which
// interrupts a pass between two steps.
func (l *Loop) Load(c Loaded) <-chan struct{} {
	taken := make(chan struct{})
	l.mu.Lock()
	l.inbox = append(l.inbox, delivery{c, taken})
	l.mu.Unlock()
	ring(l.loads)
	return taken
}

// Run makes passes until ctx ends. It leaves the rules as they are.
func (l *Loop) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var rested time.Time
	for ctx.Err() == nil {
		l.o.Alive()
		sleep := max(0, l.Pass(ctx).Sub(l.o.Now()))
		if sleep >= time.Second && rested != l.lastPass {
			rested = l.lastPass
			l.o.Rest()
		}
		if l.o.Beat > 0 {
			sleep = min(sleep, l.o.Beat)
		}
		timer.Reset(sleep)
		l.await(ctx, timer.C)
	}
}

// await sleeps. While an event waits for its pass, more of them do not wake: a
// storm costs what one event does.
func (l *Loop) await(ctx context.Context, timer <-chan time.Time) {
	events := l.events
	if !l.eventAt.IsZero() {
		events = nil
	}
	select {
	case <-ctx.Done():
	case <-l.loads:
	case <-events:
		l.Event()
	case <-timer:
	}
}

// Settle makes passes, without Run, until nothing more is to be done at once.
// What waits for an event or for time is left.
func (l *Loop) Settle(ctx context.Context) {
	for ctx.Err() == nil && !l.Pass(ctx).After(l.o.Now()) {
	}
}

// Event notes an event for Pass; Run does so for each Wake.
func (l *Loop) Event() {
	if l.eventAt.IsZero() {
		l.eventAt = l.o.Now()
	}
}

// Pass does all that is due now and returns when to call it next. It does
// nothing when nothing is due. Run calls it; a caller without Run may instead,
// from one goroutine.
func (l *Loop) Pass(ctx context.Context) time.Time {
	l.takeLoaded()
	now := l.o.Now()
	if now.Before(l.next()) {
		return l.next()
	}
	l.markDue(now)
	links, err := l.kernel.Links()
	if err != nil {
		l.linksFailed(err)
	} else {
		l.failures, l.status.Problems = 0, nil
		l.visitAll(ctx, links)
	}
	l.lastPass = l.o.Now()
	l.report()
	return l.next()
}

// Status is what the last pass left.
func (l *Loop) Status() Status { return l.status }

// next is when the next pass is due.
func (l *Loop) next() time.Time {
	next := l.resyncAt
	if !l.eventAt.IsZero() {
		next = earlier(next, eventPass(l.eventAt, l.lastPass))
	}
	for _, t := range l.links {
		next = earlier(next, t.due)
	}
	return next
}

// markDue makes every link due on an event and at the resync. The first pass is
// a resync, since resyncAt starts as the zero time.
func (l *Loop) markDue(now time.Time) {
	event := !l.eventAt.IsZero() && !now.Before(eventPass(l.eventAt, l.lastPass))
	resync := !now.Before(l.resyncAt)
	if event {
		l.eventAt = time.Time{}
	}
	if event || resync {
		l.resyncAt = now.Add(resyncIn(l.resync, l.o.Rand()))
	}
	for _, t := range l.links {
		switch {
		case resync:
			t.due = now
		case event:
			t.event(now)
		}
	}
}

// takeLoaded takes what Load has delivered, in order.
func (l *Loop) takeLoaded() {
	l.mu.Lock()
	inbox := l.inbox
	l.inbox = nil
	l.mu.Unlock()
	for _, d := range inbox {
		l.status.Reloads++
		if l.status.ConfigErrors = d.Errors; d.Policy != nil {
			l.use(d.Loaded)
		}
		l.report()
		close(d.taken)
	}
}

func (l *Loop) use(c Loaded) {
	l.policy, l.status.ConfigErrors = c.Policy, nil
	if l.resync = c.Resync; l.resync <= 0 {
		l.resync = DefaultResync
	}
	l.status.Generation++
	l.status.LoadedAt = l.o.Now()
	l.resyncAt = time.Time{}
	for _, t := range l.links {
		t.failures, t.reloaded = 0, true
	}
}

// interrupted reports whether the pass should end early: everything may be left
// at any step, and the next pass goes on from what it finds.
func (l *Loop) interrupted(ctx context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return ctx.Err() != nil || len(l.inbox) > 0
}

func (l *Loop) linksFailed(err error) {
	l.failures++
	l.resyncAt = l.o.Now().Add(backOff(l.failures, l.resync, l.o.Rand()))
	p := steer.Problem{Severity: steer.Failed, Text: "list links: " + strings.TrimPrefix(err.Error(), "list links: ")}
	l.logNew("", l.status.Problems, []steer.Problem{p})
	l.status.Problems = []steer.Problem{p}
}

// visitAll brings every link that is due nearer to its goal; those whose last
// attempt failed come last.
func (l *Loop) visitAll(ctx context.Context, links []steer.Link) {
	l.track(links)
	for _, t := range l.inOrder() {
		if l.interrupted(ctx) {
			break
		}
		if now := l.o.Now(); !now.Before(t.due) {
			l.visit(ctx, t)
			l.o.Alive()
		}
	}
	l.status.Links = l.linkStatuses()
}

// track joins the links there are with what the policy wants of them, and
// forgets the links that are gone.
func (l *Loop) track(links []steer.Link) {
	wanted := map[int]steer.Desired{}
	if l.policy != nil {
		for _, d := range l.policy.Resolve(links) {
			wanted[d.Link.Index] = d
		}
	}
	seen := map[int]bool{}
	for _, link := range links {
		seen[link.Index] = true
		t := l.links[link.Index]
		if t == nil {
			t = &track{due: l.o.Now()}
			l.links[link.Index] = t
		}
		d, ok := wanted[link.Index]
		t.want(link, d, ok, l.o.Now())
	}
	for index := range l.links {
		if !seen[index] {
			delete(l.links, index)
		}
	}
}

func (l *Loop) inOrder() []*track {
	tracks := make([]*track, 0, len(l.links))
	for _, t := range l.links {
		tracks = append(tracks, t)
	}
	slices.SortFunc(tracks, func(a, b *track) int {
		return cmp.Or(cmp.Compare(a.failures, b.failures), cmp.Compare(a.desired.Link.Index, b.desired.Link.Index))
	})
	return tracks
}

func (l *Loop) linkStatuses() []LinkStatus {
	statuses := make([]LinkStatus, 0, len(l.links))
	for _, t := range l.links {
		s := t.status
		if s.State == "" { // the pass was interrupted before its first visit
			s.Link, s.State, s.Policies = t.desired.Link, Pending, t.desired.Policies
		}
		statuses = append(statuses, s)
	}
	slices.SortFunc(statuses, func(a, b LinkStatus) int {
		return cmp.Or(strings.Compare(a.Link.Name, b.Link.Name), cmp.Compare(a.Link.Index, b.Link.Index))
	})
	return statuses
}

// report passes the status on when it has changed.
func (l *Loop) report() {
	if reflect.DeepEqual(l.status, l.reported) {
		return
	}
	l.reported = l.status
	l.o.Report(l.status)
}
