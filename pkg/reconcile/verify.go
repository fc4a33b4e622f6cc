// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// verify compares what the NIC holds with the steps just taken, which all
// succeeded by the kernel's word. A driver may keep something else than what it
// was given, and a reset loses rules silently.
func verify(link steer.Link, applied []steer.Step, have steer.Observed) []steer.Problem {
	last := map[steer.Loc]steer.Step{}
	var problems []steer.Problem
	for _, s := range applied {
		if s.Kind != steer.SetChannels {
			last[s.Loc] = s
		} else if have.Channels.Combined != s.Channels {
			problems = append(problems, mistaken(link, "set %d combined channels: the driver has %d", s.Channels, have.Channels.Combined))
		}
	}
	for _, s := range applied {
		if s.Kind == steer.SetChannels || last[s.Loc] != s {
			continue
		}
		if p, ok := verifyRule(link, s, have.Rules); !ok {
			problems = append(problems, p)
		}
	}
	return abridged(problems, link)
}

func verifyRule(link steer.Link, s steer.Step, rules steer.Table) (p steer.Problem, ok bool) {
	now, present := rules[s.Loc]
	switch {
	case s.Kind == steer.Remove && present && now == s.Rule:
		return mistaken(link, "location %d: %s was removed but is still there", s.Loc, s.Rule), false
	case s.Kind == steer.Remove:
		return p, true
	case !present:
		p = mistaken(link, "location %d: %s was inserted but is gone", s.Loc, s.Rule)
		p.Fix = "the device may have been reset; if this repeats, see `dmesg` and look for another program that changes rules"
		return p, false
	case now != s.Rule:
		return mistaken(link, "location %d: %s was inserted but the driver keeps %s", s.Loc, s.Rule, now), false
	}
	return p, true
}

// abridged keeps a report readable when a reset lost a thousand rules.
func abridged(problems []steer.Problem, link steer.Link) []steer.Problem {
	const shown = 3
	if len(problems) <= shown+1 {
		return problems
	}
	more := mistaken(link, "%d more rules are not as inserted", len(problems)-shown)
	return append(problems[:shown:shown], more)
}

// unsettled is the problem of a link on which the next step is needed again and
// again, such as when two programs fight over one location.
func unsettled(link steer.Link, next steer.Step) steer.Problem {
	p := mistaken(link, "%s is still needed after %d passes at once", describe(next), restless)
	p.Fix = "look for another program that changes rules or channels of this link"
	return p
}

func mistaken(link steer.Link, format string, args ...any) steer.Problem {
	return steer.Problem{Severity: steer.Failed, Text: link.Name + ": " + fmt.Sprintf(format, args...)}
}
