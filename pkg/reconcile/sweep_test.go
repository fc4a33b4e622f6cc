// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flexsteer/flexsteer/internal/host/hosttest"
	"github.com/flexsteer/flexsteer/pkg/reconcile"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

func fault(kind string, nth int, errno syscall.Errno, after bool) hosttest.Fault {
	return hosttest.Fault{Kind: kind, Nth: nth, Errno: errno, After: after}
}

func held(kind string, errno syscall.Errno) hosttest.Fault {
	return hosttest.Fault{Kind: kind, Nth: 1, Errno: errno, Holds: true}
}

var errnos = map[string]syscall.Errno{
	"EINVAL": syscall.EINVAL, "EOPNOTSUPP": syscall.EOPNOTSUPP, "EBUSY": syscall.EBUSY, "ENOSPC": syscall.ENOSPC,
	"ENODEV": syscall.ENODEV, "EPERM": syscall.EPERM, "EINTR": syscall.EINTR,
}

// start is a NIC as a run of 64 rules may find it.
type start struct {
	name    string
	desired steer.Desired
	prepare func(*hosttest.Port)
}

// starts are: the empty table, where every step is an insertion; and one with
// every kind of step: channels to set, 16 rules too many, 16 on the wrong
// queue, 16 right.
func starts() []start {
	mixed := steering(253, 64, 16)
	mixed.Channels = 16
	return []start{
		{"empty table", steering(253, 64, 16), func(*hosttest.Port) {}},
		{"mixed table", mixed, func(p *hosttest.Port) {
			p.Channels = steer.Channels{Combined: 8, Max: 16}
			for i := range steer.Loc(48) {
				p.Rules[i] = raw(253, uint32(i)+uint32(i/32)*100, uint32(i)%8)
			}
		}},
	}
}

func raw(protocol uint8, value, queue uint32) steer.Rule {
	return steer.Rule{
		Match:  steer.Match{Flow: steer.IP4, Protocol: steer.Bits8{Value: protocol, Mask: 0xff}, L4Data: steer.Bits32{Value: value, Mask: 0xffff}},
		Action: steer.ToQueue(queue),
	}
}

// foreign are rules of other people, outside our locations.
var foreign = steer.Table{
	896:  {Match: steer.Match{Flow: steer.UDP4, DestinationPort: steer.Bits16{Value: 53, Mask: 0xffff}}, Action: steer.ToQueue(2)},
	1023: {Match: steer.Match{Flow: steer.Other, Opaque: "esp"}, Action: steer.Drop},
}

// begin is a machine in that state, with a daemon about to start on it.
func (s start) begin() *world {
	w := newWorld()
	port := w.AddMLX5("eth0", 16)
	s.prepare(port)
	maps.Copy(port.Rules, foreign)
	w.load(policy{"eth0": s.desired})
	return w
}

// calls is how many calls an undisturbed run makes.
func (s start) calls(t *testing.T) (n int) {
	w := s.begin()
	for {
		next := w.loop.Pass(context.Background())
		n += len(w.Calls())
		if next.After(w.now) {
			w.mustConverge(t, "eth0", s.desired)
			return n
		}
	}
}

func (w *world) foreignUntouched() error {
	for loc, want := range foreign {
		if got := w.Port("eth0").Rules[loc]; got != want {
			return fmt.Errorf("foreign rule at location %d is now %v", loc, got)
		}
	}
	return nil
}

// causeNamed checks the moment after the fault: either all is well again, or
// the status is in the state of that errno and its text names it.
func causeNamed(w *world, s start, errno syscall.Errno) error {
	if w.lacking("eth0", s.desired) == "" && w.Port("eth0").Channels.Combined == 16 {
		return nil
	}
	status := w.loop.Status()
	problems := status.Problems
	state := reconcile.Failed
	for _, l := range status.Links {
		problems = append(problems, l.Problems...)
		state = l.State
	}
	for _, p := range problems {
		if strings.Contains(p.Text, errno.Error()) {
			if errno == syscall.ENODEV && len(status.Problems) == 0 && state != reconcile.Pending {
				return fmt.Errorf("ENODEV, but the link is %s", state)
			}
			if state == reconcile.Configured || state == reconcile.Configuring {
				return fmt.Errorf("%s: %v, but the link is %s", p.Text, errno, state)
			}
			return nil
		}
	}
	return fmt.Errorf("not at the goal, state %s, and no problem names %q: %v", state, errno, problems)
}

// recovers lets time pass, with resyncs, until the goal is reached.
func recovers(t *testing.T, w *world, s start) error {
	for range 3 {
		w.now = w.now.Add(time.Minute)
		w.passes(t)
	}
	if lacking := w.lacking("eth0", s.desired); lacking != "" {
		return errors.New(lacking)
	}
	if l := w.link(t, "eth0"); l.State != reconcile.Configured || l.InPlace != 64 || l.Foreign != len(foreign) {
		return fmt.Errorf("state %s, %d of %d rules in place, %d foreign", l.State, l.InPlace, l.Wanted, l.Foreign)
	}
	return w.foreignUntouched()
}

func TestAnyOneFailedCallEndsAtTheGoal(t *testing.T) {
	cases := 0
	for _, s := range starts() {
		n := s.calls(t)
		for name, errno := range errnos {
			for call := 1; call <= n; call++ {
				for _, after := range []bool{false, true} {
					cases++
					w := s.begin()
					w.Fail(fault("", call, errno, after))
					w.passes(t)
					if err := errors.Join(causeNamed(w, s, errno), w.foreignUntouched(), recovers(t, w, s)); err != nil {
						t.Fatalf("%s, call %d fails with %s (effect all the same: %v): %v\n%s", s.name, call, name, after, err, w.Kernel)
					}
				}
			}
		}
	}
	t.Logf("faults: %d cases of one failed call", cases)
}

func TestALastingFailureNamesItsCause(t *testing.T) {
	cases := 0
	for _, s := range starts() {
		for name, errno := range errnos {
			for _, kind := range []string{"links", "observe", "channels", "remove", "replace", "insert"} {
				cases++
				w := s.begin()
				w.Fail(held(kind, errno))
				for range 5 {
					w.passes(t)
					w.now = w.now.Add(10 * time.Second)
				}
				if err := errors.Join(causeNamed(w, s, errno), w.foreignUntouched()); err != nil {
					t.Errorf("%s, every %s fails with %s: %v", s.name, kind, name, err)
				}
				w.Heal()
				if err := recovers(t, w, s); err != nil {
					t.Errorf("%s, every %s failed with %s, and then no more: %v", s.name, kind, name, err)
				}
			}
		}
	}
	t.Logf("faults: %d cases of a lasting failure", cases)
}

// tcp is an entry for one port.
func tcp(port int) steer.Entry {
	return steer.Entry{Name: fmt.Sprint("tcp", port), Families: []steer.Family{steer.IPv4}, Protocol: steer.Bits8{Value: 6, Mask: 0xff},
		DestinationPorts: []steer.Ports{{First: uint16(port), Last: uint16(port)}}, Steering: steer.Steering{Kind: steer.SteerQueue}}
}

// TestARefusedRuleHoldsBackNothingElse: each rule in turn is refused for good.
// Missing are then that one and those behind it that the driver would refuse for
// the same reason, and they are not even tried.
func TestARefusedRuleHoldsBackNothingElse(t *testing.T) {
	d := steering(253, 8, 16)
	d.Entries = append(d.Entries, steering(254, 8, 16).Entries...)
	for port := range 16 {
		d.Entries = append(d.Entries, tcp(80+port))
	}
	for i := range d.Entries {
		w := newWorld()
		port := w.AddMLX5("eth0", 16)
		port.RawProtocols = 2
		tried, bad := 0, steer.Loc(i)
		w.Fail(hosttest.Fault{Kind: "insert", Loc: &bad, Errno: syscall.EINVAL, Holds: true})
		w.load(policy{"eth0": d})
		w.loop.Pass(context.Background())
		for _, c := range w.Calls() {
			if c.Kind == "insert" {
				tried++
			}
		}
		missing := 1
		if i < 16 { // of two protocols with eight rules each
			missing = 8 - i%8
		}
		l := w.link(t, "eth0")
		if want := len(d.Entries) - missing; l.InPlace != want || tried != want+1 || len(port.Rules) != want {
			t.Errorf("rule %d is refused: %d in place after %d attempts, want %d after one more", i, l.InPlace, tried, want)
		}
		if l.State != reconcile.Failed || len(l.Problems) != 1 || !strings.Contains(l.Problems[0].Text, fmt.Sprintf("location %d: ", i)) {
			t.Errorf("rule %d is refused: %s, %v", i, l.State, l.Problems)
		}
		w.Heal()
		w.now = w.now.Add(time.Minute)
		w.passes(t)
		if l := w.link(t, "eth0"); l.State != reconcile.Configured || l.InPlace != len(d.Entries) {
			t.Errorf("rule %d was refused, and is no more: %s, %d in place", i, l.State, l.InPlace)
		}
	}
}

func TestADriverThatRefusesEverythingIsNotAskedForEverything(t *testing.T) {
	d := steering(253, 0, 16)
	for port := range 500 {
		d.Entries = append(d.Entries, tcp(80+port))
	}
	w := newWorld()
	w.AddMLX5("eth0", 16)
	w.Fail(held("insert", syscall.EINVAL))
	w.load(policy{"eth0": d})
	if got, want := w.passes(t), []string{"links observe 8xinsert observe"}; !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
}

func TestADaemonKilledAfterAnyCallIsTakenOverByTheNext(t *testing.T) {
	cases := 0
	for _, s := range starts() {
		for call := 1; call <= s.calls(t); call++ {
			cases++
			w := s.begin()
			w.KillAfter(call)
			untilKilled(t, w)
			w.Heal()
			w.restart()
			w.load(policy{"eth0": s.desired})
			w.passes(t)
			if err := recovers(t, w, s); err != nil {
				t.Fatalf("%s, killed after call %d: %v\n%s", s.name, call, err, w.Kernel)
			}
		}
	}
	t.Logf("faults: %d cases of a killed daemon", cases)
}

func untilKilled(t *testing.T, w *world) {
	defer func() {
		if r := recover(); r != (hosttest.Killed{}) {
			t.Fatalf("the daemon was to be killed, but: %v", r)
		}
	}()
	w.passes(t)
}
