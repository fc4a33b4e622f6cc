// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"slices"
)

// mostSteps bounds the search for one rule in redundant: past it the rule is kept.
const mostSteps = 1 << 16

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
	w := witness{rule: &c.rules[id], others: c.overlapping(id), steps: mostSteps}
	return !w.in(w.rule.cube, 0)
}

// witness searches packets that would go another way without a rule.
type witness struct {
	rule   *candidate
	others []*candidate // that overlap the rule: see overlapping
	steps  int
}

// in reports whether there is such a packet in part, on which the others before
// number i have no say. It may say so wrongly when steps run out.
func (w *witness) in(part cube, i int) bool {
	for ; i < len(w.others); i++ {
		o := w.others[i]
		if !o.cube.overlaps(&part) {
			continue
		}
		if o.rank < w.rule.rank && w.differs(&part, i) {
			return true
		}
		if o.rank > w.rule.rank || o.action == w.rule.action {
			return w.inAny(part.subtract(&o.cube, nil), i+1)
		}
	}
	return true
}

func (w *witness) inAny(parts []cube, i int) bool {
	for _, part := range parts {
		w.steps--
		if w.steps < 0 || w.in(part, i) {
			return true
		}
	}
	return false
}

// differs reports whether a rule of the rank of number i has another action on
// some packet of part.
func (w *witness) differs(part *cube, i int) bool {
	rank := w.others[i].rank
	for _, o := range w.others[i:] {
		if o.rank != rank {
			return false
		}
		if o.action != w.rule.action && o.cube.overlaps(part) {
			return true
		}
	}
	return false
}

// overlapping is the rules left that overlap rule id: those that win over it or
// tie first, then the others from the highest rank down. Among equals the widest
// come first, since they leave the fewest parts.
func (c *compiler) overlapping(id int) (others []*candidate) {
	r := &c.rules[id]
	for _, other := range r.meets {
		if !c.rules[other].gone {
			others = append(others, &c.rules[other])
		}
	}
	slices.SortStableFunc(others, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(min(b.rank, r.rank), min(a.rank, r.rank)), cmp.Compare(a.cube.bits(), b.cube.bits()))
	})
	return others
}
