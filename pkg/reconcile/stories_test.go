// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flexsteer/flexsteer/internal/host/hosttest"
	"github.com/flexsteer/flexsteer/pkg/reconcile"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// story is a random life of one NIC: what others do to it, faults, reloads, and
// daemons that are killed and started again.
type story struct {
	*world
	rand    *rand.Rand
	desired steer.Desired
	told    []string
}

func (s *story) tell(format string, args ...any) {
	s.told = append(s.told, fmt.Sprintf(format, args...))
}

// happen is one random event.
func (s *story) happen() {
	port := s.Port("eth0")
	switch s.rand.IntN(12) {
	case 0:
		s.tell("event")
		s.event()
	case 1:
		d := time.Duration(s.rand.IntN(50_000)) * time.Millisecond
		s.tell("later %v", d)
		s.now = s.now.Add(d)
	case 2:
		s.tell("devlink reload")
		s.Reload("eth0")
		maps.Copy(port.Rules, foreign)
	case 3:
		loc := steer.Loc(s.rand.IntN(24))
		s.tell("somebody removes %d", loc)
		delete(port.Rules, loc)
	case 4:
		own := s.desired.Own
		loc, value := own.First+steer.Loc(s.rand.IntN(own.Size())), uint32(s.rand.IntN(20))
		s.tell("somebody puts %d at %d", value, loc)
		port.Rules[loc] = raw(s.desired.Entries[0].Protocol.Value, value, value%4)
	case 5:
		s.tell("gone")
		port.Gone = !port.Gone
	case 6:
		port.Link.Ready = !port.Link.Ready
		s.tell("ready %v", port.Link.Ready)
	case 7:
		s.configure()
	case 8:
		s.tell("a reload that fails")
		s.loop.Load(reconcile.Loaded{Errors: []string{"bad"}})
	case 9:
		f := fault("", 1+s.rand.IntN(20), sweepErrnos[s.rand.IntN(len(sweepErrnos))], s.rand.IntN(2) == 0)
		s.tell("fault %v", f)
		s.Fail(f)
	case 10:
		n := 1 + s.rand.IntN(20)
		s.tell("killed after %d calls, if it comes to that", n)
		s.KillAfter(n)
	case 11:
		s.tell("restart")
		s.restart()
		s.load(policy{"eth0": s.desired})
	}
}

var sweepErrnos = []syscall.Errno{syscall.EINVAL, syscall.EOPNOTSUPP, syscall.EBUSY, syscall.ENOSPC, syscall.ENODEV, syscall.EPERM, syscall.EINTR}

// configure reloads another configuration, with other locations, protocol,
// channels and number of rules.
func (s *story) configure() {
	s.desired = steering([]uint8{146, 253}[s.rand.IntN(2)], 1+s.rand.IntN(20), 4)
	s.desired.Own = []steer.Range{{First: 0, Last: 895}, {First: 0, Last: 63}, {First: 32, Last: 895}, {First: 500, Last: 600}}[s.rand.IntN(4)]
	s.desired.Channels = []uint32{0, 8, 16}[s.rand.IntN(3)]
	s.tell("reload: %d rules of protocol %d in %v, channels %d", len(s.desired.Entries), s.desired.Entries[0].Protocol.Value, s.desired.Own, s.desired.Channels)
	s.load(policy{"eth0": s.desired})
}

// live lets the daemon do what is due; it may be killed.
func (s *story) live(t *testing.T) {
	defer func() {
		switch r := recover(); r {
		case nil:
		case hosttest.Killed{}:
			s.tell("killed")
			s.restart()
			s.load(policy{"eth0": s.desired})
		default:
			panic(r)
		}
	}()
	s.passes(t)
}

// end heals everything and lets time pass.
func (s *story) end(t *testing.T) {
	s.Heal()
	port := s.Port("eth0")
	port.Gone, port.Link.Ready = false, true
	for range 3 {
		s.now = s.now.Add(time.Minute)
		s.passes(t)
	}
}

func TestWhateverHappenedTheGoalIsReached(t *testing.T) {
	stories, reached := 1000, 0
	if testing.Short() {
		stories = 100
	}
	for seed := range stories {
		s := &story{world: newWorld(), rand: rand.New(rand.NewPCG(uint64(seed), 1))}
		maps.Copy(s.AddMLX5("eth0", 16).Rules, foreign)
		s.configure()
		for range 30 {
			s.happen()
			s.live(t)
		}
		s.end(t)
		lacking := s.lacking("eth0", s.desired)
		if lacking == "" && s.link(t, "eth0").State == reconcile.Configured {
			reached++
		} else if s.stranded(t) {
			lacking = ""
		}
		if err := s.foreignUntouched(); err != nil || lacking != "" {
			t.Fatalf("story %d: %s, %v\n%s\n%+v\n%v", seed, lacking, err, s.told, s.link(t, "eth0"), s.Kernel)
		}
	}
	if reached < stories*8/10 {
		t.Errorf("only %d of %d stories end at the goal: the others prove little", reached, stories)
	}
	t.Logf("faults: %d random stories of 30 events, %d end at the goal, the others name the rule in the way", stories, reached)
}

// stranded reports whether the link is blocked by rules that the daemon cannot
// know as its own: `locations:` had changed, and the daemon that had managed
// the former range was killed before it could empty it.
func (s *story) stranded(t *testing.T) bool {
	l := s.link(t, "eth0")
	if l.State != reconcile.Blocked || l.Foreign <= len(foreign) {
		return false
	}
	for _, p := range l.Problems {
		names := func(part string) bool { return strings.Contains(p.Text, part) }
		if !names("not ours") && !names("looks behind the IP header") && !names("parser is held by protocol") {
			return false
		}
	}
	return true
}

// Without any policy nothing is ever changed, not even by a reload to none.
func TestWithoutAPolicyNothingIsEverChanged(t *testing.T) {
	w := newWorld()
	w.AddMLX5("eth0", 16)
	maps.Copy(w.Port("eth0").Rules, steer.Table{0: raw(253, 0, 0), 5: raw(253, 1, 1)})
	before := w.String()
	for range 3 {
		w.loop.Pass(context.Background())
		w.event()
		w.loop.Load(reconcile.Loaded{Errors: []string{"bad"}})
	}
	w.load(policy{})
	w.passes(t)
	if w.String() != before {
		t.Errorf("was\n%s\nand is\n%s", before, w.String())
	}
}
