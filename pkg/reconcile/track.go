// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// track is what the loop remembers of one link, by ifindex, as long as it
// exists: when to look at it and what to say of it. Rules are remembered from
// one pass to its verification only.
type track struct {
	desired  steer.Desired // the link as listed by this pass, and what is wanted of it
	managed  bool          // some policy matches
	reloaded bool          // a new configuration has been taken since the last want

	due      time.Time // when to visit it next
	tried    time.Time // the last visit
	failures int       // visits in a row that failed
	changes  int       // visits in a row that changed something
	atOnce   int       // visits in a row that were interrupted and tried again at once

	applied []steer.Step  // by the last visit, to be verified by the next
	own     []steer.Range // what this process has managed on the link: none, or the last range
	former  []steer.Range // what it managed before a new configuration or policy said otherwise

	status LinkStatus
	logged State           // the last state that was logged
	told   []steer.Problem // the problems that were there when the link last came to rest
}

// want notes what the configuration wants of link in this pass. Locations that
// this process has managed and does not any more are to be emptied; after a
// start there are none, whatever the NIC holds. A link is not released before
// udev has finished with it: until then it lacks what policies match.
func (t *track) want(link steer.Link, d steer.Desired, managed bool, now time.Time) {
	released := !managed && t.reloaded && link.Ready
	moved := managed && len(t.own) > 0 && t.own[0] != d.Own
	if released || moved {
		t.former = append(t.former, t.own...)
		t.own = nil
	}
	if changed := managed != t.managed || moved || link.Name != t.desired.Link.Name || link.Ready != t.desired.Link.Ready; changed {
		t.due = now
	}
	if managed {
		t.own = []steer.Range{d.Own}
	} else {
		d = steer.Desired{}
	}
	d.Link = link
	t.desired, t.managed = d, managed
	t.reloaded = t.reloaded && !managed && !link.Ready
}

// event makes the link due: at once when all was well, and otherwise not before
// firstRetry has gone by, since most events are about other links.
func (t *track) event(now time.Time) {
	if t.failures == 0 {
		t.due = now
		return
	}
	t.due = earlier(t.due, later(now, t.tried.Add(firstRetry)))
	t.failures = 1
}

// visit observes one link and takes the steps that it needs.
func (l *Loop) visit(ctx context.Context, t *track) {
	now := l.o.Now()
	t.tried, t.due = now, now.Add(never)
	switch {
	case t.managed && !t.desired.Link.Ready:
		l.settle(t, Pending, []steer.Problem{{Severity: steer.Notice, Text: "udev has not finished with this link yet"}})
	case t.managed || len(t.former) > 0 && t.desired.Link.Ready:
		l.converge(ctx, t)
	default:
		t.applied = nil
		l.settle(t, Unmanaged, nil)
	}
}

// never is a wait beyond any resync.
const never = 365 * 24 * time.Hour

func (l *Loop) converge(ctx context.Context, t *track) {
	found, err := l.kernel.Observe(t.desired.Link)
	if err != nil {
		l.fail(t, err, false, []steer.Problem{unreadable(t.desired.Link, err)})
		return
	}
	plan, have := t.leftovers(found)
	goal, problems := t.goal(have)
	if t.managed {
		plan = append(plan, steer.Diff(goal, have, t.desired.Own).Steps...)
	}
	t.status.count(t.desired, goal, problems, have)
	mistaken := verify(t.desired.Link, t.applied, found)
	t.applied = nil
	switch {
	case len(plan) == 0:
		t.former = nil
		t.failures, t.changes, t.atOnce = 0, 0, 0
		l.settle(t, t.finished(problems), problems)
	case len(mistaken) > 0:
		l.backOff(t, retryBackOff, Failed, append(problems, mistaken...))
	case t.changes >= restless:
		l.backOff(t, retryBackOff, Failed, append(problems, unsettled(t.desired.Link, plan[0])))
	default:
		l.apply(ctx, t, plan, found, problems)
	}
}

// finished is the state of a link for which no step remains.
func (t *track) finished(problems []steer.Problem) State {
	if !t.managed {
		return Unmanaged
	}
	return stateOf(problems)
}

// goal is what the link can and should have; nothing on a link that has been released.
func (t *track) goal(have steer.Observed) (steer.Goal, []steer.Problem) {
	if !t.managed {
		return steer.Goal{}, nil
	}
	return steer.Check(t.desired, have)
}

// leftovers is the removals that empty the locations managed formerly, and what
// the NIC holds without those rules: they are not foreign, and come first, so
// that no match is at two locations.
func (t *track) leftovers(have steer.Observed) ([]steer.Step, steer.Observed) {
	var steps []steer.Step
	rules := maps.Clone(have.Rules)
	for _, loc := range sortedLocations(have.Rules) {
		inIt := func(r steer.Range) bool { return r.Contains(loc) }
		if slices.ContainsFunc(t.former, inIt) && !slices.ContainsFunc(t.own, inIt) {
			steps = append(steps, steer.Step{Kind: steer.Remove, Loc: loc, Rule: have.Rules[loc]})
			delete(rules, loc)
		}
	}
	have.Rules = rules
	return steps, have
}

// apply takes the steps in order. Where the driver refuses a rule for what it
// asks, that rule and those like it are passed over; any other error ends the
// visit. A visit that changed something, with no refusal, is followed by another
// at once, which verifies it.
func (l *Loop) apply(ctx context.Context, t *track, plan []steer.Step, have steer.Observed, problems []steer.Problem) {
	var no refusals
	for _, s := range plan {
		if l.interrupted(ctx) {
			break
		}
		if no.cover(s) {
			continue
		}
		err := l.kernel.Apply(t.desired.Link, s)
		l.o.Alive()
		if err != nil {
			if no = append(no, refused{s, err}); no.end() {
				break
			}
			continue
		}
		t.applied = append(t.applied, s)
		l.logStep(t.desired, s)
	}
	if len(no) > 0 {
		l.refused(t, no, have, problems)
		return
	}
	if len(t.applied) == len(plan) { // else what remains is no sign of a change that did not last
		t.changes++
	}
	t.due = l.o.Now()
	l.settle(t, Configuring, problems)
}

// refused ends a visit with refusals. What the NIC holds now is read again, for
// the report and to verify the steps that were taken: nothing is assumed about
// the locations of the others.
func (l *Loop) refused(t *track, no refusals, have steer.Observed, problems []steer.Problem) {
	if now, unreadable := l.kernel.Observe(t.desired.Link); unreadable == nil {
		have = now
		problems = append(problems, verify(t.desired.Link, t.applied, now)...)
		_, ours := t.leftovers(now)
		goal, _ := t.goal(ours)
		t.status.count(t.desired, goal, problems, ours)
	}
	t.applied = nil
	for _, r := range no {
		problems = append(problems, refusal(t.desired, r.step, have, r.err))
	}
	d := no.decisive()
	l.fail(t, d.err, d.step.Kind == steer.Remove, problems)
}

// fail ends a visit after a call that returned err.
func (l *Loop) fail(t *track, err error, removing bool, problems []steer.Problem) {
	r := retryFor(err, removing)
	if r == retryAtOnce && t.atOnce < restless {
		t.atOnce++
		t.due = l.o.Now()
		l.settle(t, Configuring, problems[:len(problems)-1])
		return
	}
	if errors.Is(err, syscall.ENODEV) {
		l.backOff(t, r, Pending, problems)
		return
	}
	l.backOff(t, r, stateOf(problems), problems)
}

// backOff plans the next attempt after a failure.
func (l *Loop) backOff(t *track, r retry, state State, problems []steer.Problem) {
	t.failures++
	t.changes, t.atOnce = 0, 0
	l.settle(t, state, problems)
	if r != retryOnEvent {
		t.due = l.o.Now().Add(backOff(t.failures, l.resync, l.o.Rand()))
		t.status.RetryAt = t.due
	}
}

// settle notes what the visit found, and logs what is new in it.
func (l *Loop) settle(t *track, state State, problems []steer.Problem) {
	s := &t.status
	s.Link, s.Policies, s.RetryAt = t.desired.Link, t.desired.Policies, time.Time{}
	if state == Unmanaged {
		*s = LinkStatus{Link: t.desired.Link, State: s.State, Problems: s.Problems, ChangedAt: s.ChangedAt}
	}
	s.Problems, s.Generation = problems, l.status.Generation
	switch state {
	case Configuring: // it passes at once
	case Pending: // logState tells the reason
		t.told = problems
	default:
		l.logNew(t.desired.Link.Name, t.told, problems)
		t.told = problems
	}
	if s.State != state {
		s.State, s.ChangedAt = state, l.o.Now()
		l.logState(t)
	}
}
