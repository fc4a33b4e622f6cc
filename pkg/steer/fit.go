// SPDX-License-Identifier: Apache-2.0

package steer

import "fmt"

// mostWork bounds what Compile does before it gives up on an entry, counted in
// comparisons of two rules. A policy that a person wrote takes thousands; one of
// many masks that overlap in all ways could take days.
const mostWork = 8 << 20

// most is a number of rules that no pruning brings down to the budget any more.
func (c *compiler) most() int { return 4*c.budget + 64 }

// spent reports whether it is of no use to go on with the present entry.
func (c *compiler) spent() bool { return c.live > c.most() || c.index.work > mostWork }

// refusal is why the entries from one on are left out.
type refusal struct {
	needs int  // locations, at least
	work  bool // not for the locations, but since it takes more than mostWork
}

// fit prunes the rules. Where more than the budget are left, it takes back the
// first entry that does not fit and all after it.
func (c *compiler) fit() {
	fit := len(c.ends) - 1 // entries
	if c.live > c.budget && c.needed(fit) > c.budget {
		over := fit
		for fit = 0; over-fit > 1; {
			if middle := (fit + over) / 2; c.needed(middle) <= c.budget {
				fit = middle
			} else {
				over = middle
			}
		}
		total := c.needed(over)
		c.undo(c.ends[fit])
		c.prune()
		c.refused = &refusal{needs: total - c.live}
	} else {
		c.prune()
	}
	if c.refused != nil {
		c.problems = append(c.problems, c.refusal(fit))
	}
}

// needed is how many rules are left of the first n entries when pruned.
func (c *compiler) needed(n int) int {
	end, live := c.ends[n], c.live
	if end.live <= c.budget {
		return end.live // at most, and that fits
	}
	gone := make([]bool, len(c.rules))
	for id := range c.rules {
		gone[id] = c.rules[id].gone
		c.rules[id].gone = gone[id] || id >= end.rules
	}
	c.live = end.live
	c.prune()
	pruned := c.live
	for id := range c.rules {
		c.rules[id].gone = gone[id]
	}
	c.live = live
	return pruned
}

// refusal is the problem of entry i, the first that is left out, once the rules
// are pruned.
func (c *compiler) refusal(i int) Problem {
	e := &c.entries[i]
	p := Problem{Severity: Failed, Entry: e.Name, At: e.At}
	if c.refused.work {
		p.Text = fmt.Sprintf("entry %q overlaps earlier entries in too many ways to find rules that keep their order", e.Name)
		p.Fix = fmt.Sprintf("put %q before them, or use fewer different masks, ports and prefixes", e.Name)
	} else {
		p.Text = fmt.Sprintf("entry %q needs at least %s, %d of %d are left", e.Name, counted(c.refused.needs, "location"), c.budget-c.live, c.budget)
		p.Fix = "widen `locations`, or use fewer buckets, ports or prefixes"
		if j, ok := c.against[i]; ok {
			p.Text += fmt.Sprintf("; it overlaps entry %q (%s), and this driver would not keep their order", c.entries[j].Name, c.entries[j].At)
		}
	}
	if after := len(c.entries) - i - 1; after > 0 {
		p.Text += fmt.Sprintf("; it and the %d after it are left out", after)
	}
	return p
}
