// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"slices"
	"strings"
)

// Check says what the link can have of what is wanted, and why not the rest.
// Problems of one entry leave the other entries alone. Rules that only wait for
// a prerequisite stay in the goal where they are in place already: what works
// is not taken away.
func Check(want Desired, have Observed) (Goal, []Problem) {
	c := checker{want: want, have: have, problems: slices.Clone(want.Problems)}
	c.locations()
	c.channels()
	kept := c.entries()
	c.goal.Rules, c.goal.Usage = c.compile(kept)
	c.holdBack()
	c.foreign()
	c.recount()
	return c.goal, c.problems
}

type checker struct {
	want     Desired
	have     Observed
	own      Range
	queues   uint32 // that there will be after the plan; 0: unknown
	goal     Goal
	problems []Problem
}

func (c *checker) problem(p Problem) { c.problems = append(c.problems, p) }

// channels decides on the count of combined channels, and so of queues.
func (c *checker) channels() {
	c.queues = c.have.NIC.Queues
	n, ch := c.want.Channels, c.have.Channels
	loc, high, held := c.foreignQueue()
	switch {
	case n == 0 || n == ch.Combined:
	case ch.Max == 0:
		c.problem(Problem{Severity: Blocked, At: c.want.ChannelsAt,
			Text: fmt.Sprintf("channels %d: the driver of %s has no combined channels to set", n, c.want.Link.Name),
			Fix:  "remove `channels`"})
	case n > ch.Max:
		c.problem(Problem{Severity: Blocked, At: c.want.ChannelsAt,
			Text: fmt.Sprintf("channels %d: %s has at most %d combined channels", n, c.want.Link.Name, ch.Max),
			Fix:  fmt.Sprintf("write `channels: %d` or less", ch.Max)})
	case held && high >= n:
		// Linux refuses this count, or (6.1) accepts it and drops what the rule takes.
		c.problem(Problem{Severity: Blocked, At: c.want.ChannelsAt,
			Text: fmt.Sprintf("channels %d: %s: location %d: a rule that is not ours uses queue %d", n, c.want.Link.Name, loc, high),
			Fix:  fmt.Sprintf("ethtool -N %s delete %d, or write `channels: %d`", c.want.Link.Name, loc, high+1)})
	default:
		c.goal.Channels, c.queues = n, n
	}
}

// foreignQueue is the highest queue that rules which are not ours use, and the
// first location of one that does.
func (c *checker) foreignQueue() (loc Loc, high uint32, held bool) {
	for l, r := range c.have.Rules {
		a := r.Action
		if c.own.Contains(l) || a.Drop || a.VF != 0 || a.Context != NoContext {
			continue
		}
		if !held || a.Queue > high || a.Queue == high && l < loc {
			loc, high, held = l, a.Queue, true
		}
	}
	return loc, high, held
}

// locations is the part of our range that the table has.
func (c *checker) locations() {
	c.own = c.want.Own.within(c.have.NIC.Capacity)
	if c.own == c.want.Own || c.want.Own == DefaultOwn {
		return
	}
	first := c.own.First
	if first > c.own.Last {
		first = 0 // none of the range is there
	}
	c.problem(Problem{Severity: Notice, At: c.want.OwnAt,
		Text: fmt.Sprintf("locations %d-%d: the table of %s ends at %d", c.want.Own.First, c.want.Own.Last, c.want.Link.Name, c.own.Last),
		Fix:  fmt.Sprintf("write `locations: %d-%d`", first, c.own.Last)})
}

// entries is the numbers of the entries that the link can have.
func (c *checker) entries() (kept []int) {
	raw := c.foreignProtocols()
	for i := range c.want.Entries {
		e := &c.want.Entries[i]
		if q, tooHigh := c.beyond(e); tooHigh {
			c.problem(c.noQueue(e, q))
			continue
		}
		if e.UsesL4Data() && !slices.Contains(raw, e.Protocol.Value) {
			if c.full(raw) {
				c.problem(c.protocolHeld(e, raw))
				continue
			}
			raw = append(raw, e.Protocol.Value)
		}
		kept = append(kept, i)
	}
	return kept
}

// beyond is the highest queue of e, and whether the link has none such.
func (c *checker) beyond(e *Entry) (q uint32, tooHigh bool) {
	switch s := &e.Steering; s.Kind {
	case SteerQueue:
		q = s.Queue
	case SteerQueues:
		q = slices.Max(s.Queues)
	case SteerSpread:
		for _, w := range s.Spread.Over {
			q = max(q, w.Queue)
		}
	default:
		return 0, false
	}
	return q, c.queues > 0 && q >= c.queues
}

func (c *checker) noQueue(e *Entry, q uint32) Problem {
	name := c.want.Link.Name
	p := Problem{Severity: Blocked, Entry: e.Name, At: e.SteeringAt,
		Text: fmt.Sprintf("queue %d: %s has %s", q, name, counted(int(c.queues), "receive queue")),
		Fix:  "use queues 0-" + fmt.Sprint(c.queues-1)}
	if c.queues == 1 {
		p.Fix = "use queue 0"
	}
	if c.have.Channels.Max > q {
		p.Fix += fmt.Sprintf(", or write `channels: %d`", q+1)
	}
	return p
}

// foreignProtocols is the protocols that rules which are not ours match by L4Data.
func (c *checker) foreignProtocols() (raw []uint8) {
	for loc, r := range c.have.Rules {
		if p := r.Match.Protocol.Value; !c.own.Contains(loc) && r.Match.L4Data.Mask != 0 && !slices.Contains(raw, p) {
			raw = append(raw, p)
		}
	}
	slices.Sort(raw)
	return raw
}

// full reports whether the driver takes no further protocol. A driver that takes
// none at all says so by a prerequisite.
func (c *checker) full(raw []uint8) bool {
	n := c.have.NIC.RawProtocols
	return n > 0 && len(raw) >= n
}

func (c *checker) protocolHeld(e *Entry, raw []uint8) Problem {
	var held []string
	for _, p := range slices.Sorted(slices.Values(raw)) {
		held = append(held, fmt.Sprint(p))
	}
	n := c.have.NIC.RawProtocols
	return Problem{Severity: Blocked, Entry: e.Name, At: e.At,
		Text: fmt.Sprintf("protocol %d: the driver of %s looks behind the IP header of %s at a time, and protocol %s is applied",
			e.Protocol.Value, c.want.Link.Name, counted(n, "protocol"), strings.Join(held, ", ")),
		Fix: fmt.Sprintf("echo %d > /sys/module/mlx5_core/parameters/flex_l4_max_nodes (now %d; the same in /etc/modprobe.d for the next start), or steer one of the protocols by addresses only", n+1, n)}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// compile compiles the kept entries; entry numbers stay those of Desired.
func (c *checker) compile(kept []int) ([]Wanted, []Usage) {
	if len(kept) == 0 {
		return nil, nil
	}
	entries := make([]Entry, len(kept))
	for i, k := range kept {
		entries[i] = c.want.Entries[k]
	}
	rules, usage, problems := Compile(entries, c.have.NIC.Precedence, max(0, c.own.Size()))
	for i := range rules {
		rules[i].Entry = kept[rules[i].Entry]
	}
	for i := range usage {
		usage[i].Entry = kept[usage[i].Entry]
		c.uneven(usage[i])
	}
	c.problems = append(c.problems, problems...)
	return rules, usage
}

func (c *checker) uneven(u Usage) {
	e := &c.want.Entries[u.Entry]
	if u.Imbalance <= tolerance {
		return
	}
	c.problem(Problem{Severity: Notice, Entry: e.Name, At: e.SteeringAt,
		Text: fmt.Sprintf("spread of %q: the busiest queue gets %.0f %% more than its share", e.Name, u.Imbalance*100),
		Fix:  "choose more bits (`by`) or more `buckets`"})
}

// holdBack takes the rules out of the goal that miss a prerequisite, unless they
// are in place.
func (c *checker) holdBack() {
	if len(c.have.Prerequisites) == 0 {
		return
	}
	inPlace := map[Rule]bool{}
	for loc, r := range c.have.Rules {
		if c.own.Contains(loc) {
			inPlace[r] = true
		}
	}
	needs := func(missing Problem, r Rule) bool { return missing.Needs == NeedNothing || r.Match.L4Data.Mask != 0 }
	wanted := slices.Clone(c.goal.Rules)
	for _, missing := range c.have.Prerequisites {
		if missing.Severity == Notice {
			if slices.ContainsFunc(wanted, func(w Wanted) bool { return needs(missing, w.Rule) }) {
				c.problem(missing)
			}
			continue
		}
		if missing.Needs == NeedNothing {
			c.problems = slices.Clone(c.want.Problems) // what else is wrong does not matter yet
		}
		held := func(w Wanted) bool { return needs(missing, w.Rule) && !inPlace[w.Rule] }
		if missing.Needs == NeedNothing || slices.ContainsFunc(wanted, held) {
			c.problem(missing)
		}
		c.goal.Rules = slices.DeleteFunc(c.goal.Rules, held)
	}
}

// recount brings the usage up to the rules that are still in the goal.
func (c *checker) recount() {
	left := map[int]int{} // by entry
	for _, w := range c.goal.Rules {
		left[w.Entry]++
	}
	c.goal.Usage = slices.DeleteFunc(c.goal.Usage, func(u Usage) bool { return left[u.Entry] == 0 })
	for i := range c.goal.Usage {
		c.goal.Usage[i].Rules = left[c.goal.Usage[i].Entry]
	}
}

// foreign takes the rules out of the goal whose match somebody else has: on mlx5
// two rules with one match may coexist, but which one decides is not defined.
func (c *checker) foreign() {
	theirs := map[Match]Loc{}
	for loc, r := range c.have.Rules {
		if old, seen := theirs[r.Match]; !c.own.Contains(loc) && (!seen || loc < old) {
			theirs[r.Match] = loc
		}
	}
	if len(theirs) == 0 {
		return
	}
	c.goal.Rules = slices.DeleteFunc(c.goal.Rules, func(w Wanted) bool {
		loc, found := theirs[w.Rule.Match]
		if found {
			e := &c.want.Entries[w.Entry]
			c.problem(Problem{Severity: Blocked, Entry: e.Name, At: e.At,
				Text: fmt.Sprintf("%s: location %d: a rule that is not ours matches the same packets as %s", c.want.Link.Name, loc, w.Rule),
				Fix:  fmt.Sprintf("ethtool -N %s delete %d", c.want.Link.Name, loc)})
		}
		return found
	})
}
