// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flexsteer/flexsteer/pkg/reconcile"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

func TestNRulesCostNCallsAndAConstant(t *testing.T) {
	for _, n := range []int{1, 64, 256} {
		w := newWorld()
		w.AddMLX5("eth0", 16)
		w.load(policy{"eth0": steering(253, n, 16)})
		first := "links observe insert"
		if n > 1 {
			first = fmt.Sprintf("links observe %dxinsert", n)
		}
		if got, want := w.passes(t), []string{first, "links observe"}; !slices.Equal(got, want) {
			t.Errorf("%d rules on an empty table: passes %q, want %q", n, got, want)
		}
		w.now = w.now.Add(time.Minute)
		if got, want := w.passes(t), []string{"links observe"}; !slices.Equal(got, want) {
			t.Errorf("nothing to do: passes %q, want %q", got, want)
		}
	}
}

// A reload is reported before any link was visited: what is told of a link then
// is about the configuration before it, and says so.
func TestALinkTellsWhichConfigurationItsStatusIsAbout(t *testing.T) {
	w := newWorld()
	w.AddMLX5("eth0", 16)
	w.AddVeth("veth0")
	for generation, rules := range []int{4, 8} {
		w.load(policy{"eth0": steering(253, rules, 16)})
		for _, s := range w.reported(t) {
			for _, l := range s.Links {
				if l.Generation == uint64(generation)+1 && l.Link.Name == "eth0" && l.Wanted != rules {
					t.Errorf("of configuration %d, which wants %d rules, a report says %+v", generation+1, rules, l)
				}
			}
		}
		for _, l := range w.loop.Status().Links {
			if l.Generation != uint64(generation)+1 {
				t.Errorf("after all passes %s is of configuration %d, want %d", l.Link.Name, l.Generation, generation+1)
			}
		}
	}
}

func TestAQuietPassIsSilent(t *testing.T) {
	w := newWorld()
	w.AddMLX5("eth0", 16)
	w.AddVeth("veth0")
	w.load(policy{"eth0": steering(253, 4, 16), "veth0": steering(253, 1, 1)})
	w.passes(t)
	w.log.Reset()
	w.reports = nil
	for range 10 {
		w.event()
		w.passes(t)
		w.now = w.now.Add(time.Minute)
		w.passes(t)
	}
	if w.log.Len() > 0 || len(w.reports) > 0 {
		t.Errorf("%d reports and a log of\n%s", len(w.reports), w.log.String())
	}
}

func TestEveryChangeIsOneLogLineWithFields(t *testing.T) {
	w := newWorld()
	w.AddMLX5("eth0", 16)
	w.load(policy{"eth0": steering(253, 2, 16)})
	w.passes(t)
	rule := w.Port("eth0").Rules[1].String()
	want := []string{"event=rule", "link=eth0", "location=1", fmt.Sprintf("rule=%q", rule), "entry=e1", "file=10-test.yaml:2:3"}
	if n := strings.Count(w.log.String(), "event=rule"); n != 2 {
		t.Errorf("%d lines for 2 changes:\n%s", n, w.log.String())
	}
	for _, field := range want {
		if !strings.Contains(w.log.String(), field) {
			t.Errorf("no %s in\n%s", field, w.log.String())
		}
	}
}

func TestAProblemIsLoggedOnceHoweverOftenItIsTried(t *testing.T) {
	for name, break_ := range map[string]func(*world){
		"refused by the firmware": func(w *world) { w.Port("eth0").Firmware = func(steer.Rule) bool { return true } },
		"kept otherwise": func(w *world) {
			w.Port("eth0").Keeps = func(r steer.Rule) steer.Rule { r.Action.Queue = 15; return r }
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddMLX5("eth0", 16)
			break_(w)
			w.load(policy{"eth0": steering(253, 1, 16)})
			for range 5 {
				w.passes(t)
				w.now = w.now.Add(time.Minute)
			}
			if n := strings.Count(w.log.String(), "event=problem"); n != 1 {
				t.Errorf("logged %d times:\n%s", n, w.log.String())
			}
			if got := w.link(t, "eth0").State; got != reconcile.Failed {
				t.Errorf("state %s, want failed", got)
			}
		})
	}
}

func TestOneFailingLinkDoesNotStopTheOthers(t *testing.T) {
	w := newWorld()
	w.AddMLX5("eth0", 16).Firmware = func(steer.Rule) bool { return true }
	w.AddMLX5("eth1", 16)
	d := steering(253, 8, 16)
	w.load(policy{"eth0": d, "eth1": d})
	w.passes(t)
	w.mustConverge(t, "eth1", d)
	if got := w.link(t, "eth0").State; got != reconcile.Failed {
		t.Errorf("eth0 is %s, want failed", got)
	}
}

func TestAFailingLinkGoesLast(t *testing.T) {
	w := newWorld()
	w.AddMLX5("eth0", 16)
	w.AddMLX5("eth1", 16)
	w.Fail(fault("insert", 1, syscall.EIO, false))
	d := steering(253, 1, 16)
	w.load(policy{"eth0": d, "eth1": d})
	w.passes(t)
	w.now = w.now.Add(time.Minute)
	w.loop.Pass(context.Background())
	var order []string
	for _, c := range w.Calls() {
		if c.Kind == "observe" {
			order = append(order, c.Link)
		}
	}
	if want := []string{"eth1", "eth0"}; !slices.Equal(order, want) {
		t.Errorf("visited %v, want %v", order, want)
	}
}

func TestBackOffDoublesUpToTheResync(t *testing.T) {
	w := newWorld()
	w.AddMLX5("eth0", 16)
	w.Fail(held("insert", syscall.EIO))
	w.load(policy{"eth0": steering(253, 1, 16)})
	var waits []time.Duration
	for range 5 {
		w.passes(t)
		wait := w.link(t, "eth0").RetryAt.Sub(w.now)
		waits = append(waits, wait.Round(time.Second/8))
		w.now = w.now.Add(wait)
	}
	// With r = 1/2 an eighth less than 1, 2, 4, 8 and 16 seconds.
	if got, want := fmt.Sprint(waits), "[875ms 1.75s 3.5s 7s 14s]"; got != want {
		t.Errorf("waits %s, want %s", got, want)
	}
	w.event()
	w.passes(t)
	if wait := w.link(t, "eth0").RetryAt.Sub(w.now); wait > 2*time.Second {
		t.Errorf("%v after an event: it did not reset the back-off", wait)
	}
}

func TestEINVALWaitsForAnEvent(t *testing.T) {
	w := newWorld()
	w.AddMLX5("eth0", 16)
	w.Fail(held("insert", syscall.EINVAL))
	w.load(policy{"eth0": steering(253, 1, 16)})
	w.passes(t)
	w.now = w.now.Add(20 * time.Second)
	if got := w.passes(t); len(got) > 0 {
		t.Errorf("tried again without any event: %q", got)
	}
	w.event()
	if got, want := w.passes(t), []string{"links observe insert observe"}; !slices.Equal(got, want) {
		t.Errorf("after an event: %q, want %q", got, want)
	}
}

// run runs the loop until the function it returns is called.
func run(t *testing.T, loop *reconcile.Loop) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	go loop.Run(ctx)
	return func() { cancel(); synctest.Wait() }
}

func TestAStormOfEventsLeadsToFewPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.AddMLX5("eth0", 16)
		var turns atomic.Int64
		loop := reconcile.New(w.Kernel, reconcile.Options{Alive: func() { turns.Add(1) }})
		loop.Load(reconcile.Loaded{Policy: policy{"eth0": steering(253, 4, 16)}})
		defer run(t, loop)()
		synctest.Wait()
		w.Calls()
		turns.Store(0)
		for range 10_000 { // for one second
			loop.Wake()
			time.Sleep(100 * time.Microsecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		passes := 0
		for _, c := range w.Calls() {
			if c.Kind == "links" {
				passes++
			}
		}
		if passes < 1 || passes > 6 {
			t.Errorf("%d passes for 10,000 events in a second, want 1 to 6", passes)
		}
		if n := turns.Load(); n > 30 {
			t.Errorf("alive %d times for them, want 30 at most", n)
		}
	})
}

func TestAnIdleLoopSleepsUntilItsResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.AddMLX5("eth0", 16)
		var turns atomic.Int64
		loop := reconcile.New(w.Kernel, reconcile.Options{Alive: func() { turns.Add(1) }})
		loop.Load(reconcile.Loaded{Policy: policy{"eth0": steering(253, 4, 16)}})
		defer run(t, loop)()
		time.Sleep(time.Second)
		synctest.Wait()
		turns.Store(0)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := turns.Load(); n < 2*18 || n > 2*23 {
			t.Errorf("alive %d times in ten minutes, want about 20 turns and 20 visits", n)
		}
	})
}

func TestBeatBoundsTheSleepWithoutMorePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var beats atomic.Int64
		loop := reconcile.New(w.Kernel, reconcile.Options{Alive: func() { beats.Add(1) }, Beat: 5 * time.Second})
		defer run(t, loop)()
		time.Sleep(time.Second)
		synctest.Wait()
		w.Calls()
		beats.Store(0)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n, calls := beats.Load(), len(w.Calls()); n < 12 || calls > 3 {
			t.Errorf("%d beats and %d calls in a minute, want 12 or more and 2 or 3", n, calls)
		}
	})
}

func TestANewConfigurationInterruptsALongPass(t *testing.T) {
	w := newWorld()
	w.AddMLX5("eth0", 16)
	old, changed := steering(253, 64, 16), steering(253, 2, 16)
	w.load(policy{"eth0": old})
	inserted := 0
	w.Port("eth0").Keeps = func(r steer.Rule) steer.Rule {
		if inserted++; inserted == 10 {
			w.load(policy{"eth0": changed})
		}
		return r
	}
	w.loop.Pass(context.Background())
	if inserted != 10 {
		t.Errorf("%d rules were inserted, want the 10 up to the reload", inserted)
	}
	w.passes(t)
	w.mustConverge(t, "eth0", changed)
}

func TestTheEndOfTheContextInterruptsAPassAndLeavesTheRules(t *testing.T) {
	w := newWorld()
	w.AddMLX5("eth0", 16)
	w.load(policy{"eth0": steering(253, 64, 16)})
	ctx, cancel := context.WithCancel(t.Context())
	w.Port("eth0").Keeps = func(r steer.Rule) steer.Rule { cancel(); return r }
	w.loop.Pass(ctx)
	if n := len(w.Port("eth0").Rules); n != 1 {
		t.Errorf("%d rules, want 1", n)
	}
}

func TestAFailedLoadKeepsTheConfigurationInUse(t *testing.T) {
	w := newWorld()
	w.AddMLX5("eth0", 16)
	d := steering(253, 4, 16)
	w.load(policy{"eth0": d})
	w.passes(t)
	w.loop.Load(reconcile.Loaded{Errors: []string{"10-test.yaml:3:1: unknown key"}})
	w.passes(t)
	s := w.loop.Status()
	if s.Generation != 1 || s.Reloads != 2 || len(s.ConfigErrors) != 1 {
		t.Errorf("generation %d, reloads %d, errors %q; want 1, 2 and the one error", s.Generation, s.Reloads, s.ConfigErrors)
	}
	w.mustConverge(t, "eth0", d)
	w.load(policy{"eth0": d})
	w.passes(t)
	if s := w.loop.Status(); s.Generation != 2 || s.Reloads != 3 || len(s.ConfigErrors) != 0 {
		t.Errorf("generation %d, reloads %d, errors %q; want 2, 3 and none", s.Generation, s.Reloads, s.ConfigErrors)
	}
}

func TestLoadIsReportedBeforeItsChannelCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last atomic.Pointer[reconcile.Status]
		loop := reconcile.New(newWorld().Kernel, reconcile.Options{Report: func(s reconcile.Status) { last.Store(&s) }})
		defer run(t, loop)()
		<-loop.Load(reconcile.Loaded{Errors: []string{"bad"}})
		if s := last.Load(); s == nil || s.Reloads != 1 || len(s.ConfigErrors) != 1 {
			t.Errorf("reported %+v, want 1 reload and one error", s)
		}
	})
}

func TestLinksThatCannotBeListedAreAskedForAgain(t *testing.T) {
	w := newWorld()
	w.AddMLX5("eth0", 16)
	w.Fail(fault("links", 1, syscall.EMFILE, false))
	d := steering(253, 1, 16)
	w.load(policy{"eth0": d})
	w.passes(t)
	if got := w.loop.Status().Problems; len(got) != 1 || got[0].Text != "list links: too many open files" {
		t.Errorf("problems %v, want the one", got)
	}
	w.now = w.now.Add(time.Second)
	w.passes(t)
	w.mustConverge(t, "eth0", d)
	if got := w.loop.Status().Problems; len(got) != 0 {
		t.Errorf("problems %v remain", got)
	}
}

func TestRestComesOnceAfterEachPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var rests atomic.Int64
		loop := reconcile.New(w.Kernel, reconcile.Options{Rest: func() { rests.Add(1) }, Beat: 2 * time.Second})
		defer run(t, loop)()
		time.Sleep(time.Second)
		synctest.Wait()
		if n := rests.Load(); n != 1 {
			t.Errorf("%d rests after the first pass, want 1", n)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := rests.Load(); n < 18 || n > 23 {
			t.Errorf("%d rests in ten minutes, want about one for each of 20 passes", n)
		}
	})
}

func TestAReloadMayInterruptAgainAndAgain(t *testing.T) {
	w := newWorld()
	w.AddMLX5("eth0", 16)
	d := steering(253, 4, 16)
	w.load(policy{"eth0": d})
	left := 10
	w.Port("eth0").Keeps = func(r steer.Rule) steer.Rule {
		if left--; left > 0 {
			w.load(policy{"eth0": d})
		}
		return r
	}
	w.passes(t)
	w.mustConverge(t, "eth0", d)
}

func TestEveryLinkHasAStateHoweverEarlyAPassEnds(t *testing.T) {
	w := newWorld()
	w.AddMLX5("eth0", 16)
	w.AddMLX5("eth1", 16)
	d := steering(253, 4, 16)
	p := policy{"eth0": d, "eth1": d}
	w.load(p)
	once := sync.OnceFunc(func() { w.load(p) })
	w.Port("eth0").Keeps = func(r steer.Rule) steer.Rule { once(); return r }
	w.loop.Pass(context.Background())
	if got := w.link(t, "eth1").State; got != reconcile.Pending {
		t.Errorf("state %q, want pending", got)
	}
}
