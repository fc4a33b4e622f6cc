// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"slices"
)

// mostParts bounds the work on one rule in redundant: past it the rule is kept.
const mostParts = 4096

// prune drops rules without which every packet would still go the same way,
// until there are none.
func (c *compiler) prune() {
	for changed := true; changed; {
		changed = false
		for id := len(c.rules) - 1; id >= 0; id-- {
			if !c.rules[id].gone && c.redundant(id) {
				c.drop(id)
				changed = true
			}
		}
	}
}

// needed is how many rules prune would leave.
func (c *compiler) needed() int {
	gone, live := make([]bool, len(c.rules)), c.live
	for i := range c.rules {
		gone[i] = c.rules[i].gone
	}
	c.prune()
	n := c.live
	for i := range c.rules {
		c.rules[i].gone = gone[i]
	}
	c.live = live
	return n
}

// redundant reports whether other rules would decide as rule id does wherever it
// decides: those that win over it or tie leave it no packet, or those that come
// after it have the same action.
func (c *compiler) redundant(id int) bool {
	r := &c.rules[id]
	others := c.overlapping(id)
	below := len(others)
	parts := []cube{r.cube}
	for i, o := range others {
		if o.rank < r.rank {
			below = i
			break
		}
		if o.rank > r.rank || o.action == r.action {
			parts = without(parts, &o.cube)
		}
	}
	return follow(parts, others[below:], r.action)
}

// follow reports whether rules, the highest rank first, all take the action on
// the parts.
func follow(parts []cube, rules []*candidate, action Action) bool {
	for len(rules) > 0 && len(parts) > 0 {
		n := 1
		for n < len(rules) && rules[n].rank == rules[0].rank {
			n++
		}
		for _, o := range rules[:n] {
			if o.action != action && touches(parts, &o.cube) {
				return false
			}
		}
		for _, o := range rules[:n] {
			if o.action == action {
				parts = without(parts, &o.cube)
			}
		}
		rules = rules[n:]
	}
	return len(parts) == 0
}

func touches(parts []cube, d *cube) bool {
	return slices.ContainsFunc(parts, func(p cube) bool { return p.overlaps(d) })
}

// overlapping is the rules left that overlap rule id, the highest rank first.
func (c *compiler) overlapping(id int) (others []*candidate) {
	for _, other := range c.rules[id].meets {
		if !c.rules[other].gone {
			others = append(others, &c.rules[other])
		}
	}
	slices.SortStableFunc(others, func(a, b *candidate) int { return cmp.Compare(b.rank, a.rank) })
	return others
}

// without subtracts d from each part. It gives up, with the parts as they are,
// when there would be more than mostParts.
func without(parts []cube, d *cube) []cube {
	var rest []cube
	for i := range parts {
		rest = parts[i].subtract(d, rest)
		if len(rest) > mostParts {
			return parts
		}
	}
	return rest
}
