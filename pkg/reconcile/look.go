// SPDX-License-Identifier: Apache-2.0

package reconcile

import "github.com/flexsteer/flexsteer/pkg/steer"

// Look is the status of a managed link with have observed, before anything is
// changed. A link on which steps remain is Configuring.
func Look(d steer.Desired, have steer.Observed) LinkStatus {
	goal, problems := steer.Check(d, have)
	s := LinkStatus{Link: d.Link, State: stateOf(problems), Policies: d.Policies, Problems: problems}
	s.count(d, goal, problems, have)
	switch {
	case !d.Link.Ready:
		s.State = Pending
	case s.State == Configured && len(steer.Diff(goal, have, d.Own).Steps) > 0:
		s.State = Configuring
	}
	return s
}

// stateOf is what problems mean for a link; without any it is configured.
func stateOf(problems []steer.Problem) State {
	worst := steer.Notice
	for _, p := range problems {
		worst = max(worst, p.Severity)
	}
	switch worst {
	case steer.Failed:
		return Failed
	case steer.Blocked:
		return Blocked
	}
	return Configured
}

// count notes how much of what is wanted is in place.
func (s *LinkStatus) count(d steer.Desired, goal steer.Goal, problems []steer.Problem, have steer.Observed) {
	s.Own, s.Channels, s.Queues = d.Own, have.Channels, have.NIC.Queues
	s.Wanted = Wanted(d, goal, problems, have.NIC)
	s.InPlace, s.Foreign = tally(goal, have.Rules, d.Own)
	s.Usage = nil
	for _, u := range goal.Usage {
		s.Usage = append(s.Usage, EntryUsage{Entry: d.Entries[u.Entry].Name, Rules: u.Rules, Imbalance: u.Imbalance})
	}
}

// Wanted counts the rules of all entries, also of those that the link cannot have
// now, which the goal of steer.Check leaves out and its problems tell of.
func Wanted(d steer.Desired, goal steer.Goal, problems []steer.Problem, nic steer.NIC) int {
	if len(problems) == 0 {
		return len(goal.Rules)
	}
	able := steer.Observed{NIC: steer.NIC{Precedence: nic.Precedence, RawProtocols: steer.AnyProtocols}}
	all, _ := steer.Check(d, able)
	return max(len(goal.Rules), len(all.Rules))
}

// tally counts the wanted rules that are somewhere in own, and the rules
// outside of it.
func tally(goal steer.Goal, rules steer.Table, own steer.Range) (inPlace, foreign int) {
	held := map[steer.Rule]int{}
	for loc, r := range rules {
		if own.Contains(loc) {
			held[r]++
		} else {
			foreign++
		}
	}
	for _, w := range goal.Rules {
		if held[w.Rule] > 0 {
			held[w.Rule]--
			inPlace++
		}
	}
	return inPlace, foreign
}
