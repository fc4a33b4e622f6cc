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
	w := witness{rule: &c.rules[id], steps: mostSteps}
	return !w.in(&w.rule.cube, c.overlapping(id))
}

// overlapping is the rules left that overlap rule id and have a say in whether it
// is needed: those that win over it, those that tie and do the same, and then the
// others from the highest rank down.
func (c *compiler) overlapping(id int) (others []*candidate) {
	r := &c.rules[id]
	for _, other := range r.meets {
		if o := &c.rules[other]; !o.gone && (o.rank != r.rank || o.action == r.action) {
			others = append(others, o)
		}
	}
	slices.SortStableFunc(others, func(a, b *candidate) int {
		return cmp.Compare(min(b.rank, r.rank), min(a.rank, r.rank))
	})
	return others
}

// witness searches packets that would go another way without a rule.
type witness struct {
	rule  *candidate
	steps int
}

// in reports whether there is such a packet in part, where others have a say, in
// the order of overlapping. It may say so wrongly when steps run out.
func (w *witness) in(part *cube, others []*candidate) bool {
	if w.steps--; w.steps < 0 {
		return true
	}
	others = overlaid(part, others)
	if len(others) == 0 {
		return true
	}
	level := w.level(others)
	if others[0].rank < w.rule.rank && w.differs(others[:level]) {
		return true
	}
	if w.follows(part, others) {
		return false
	}
	first := fewestParts(part, others[:level])
	for _, rest := range part.subtract(&first.cube, nil) {
		if w.in(&rest, others) {
			return true
		}
	}
	return false
}

// overlaid is the others that overlap part.
func overlaid(part *cube, others []*candidate) (some []*candidate) {
	for _, o := range others {
		if o.cube.overlaps(part) {
			some = append(some, o)
		}
	}
	return some
}

// level is how many of the others, from the first, are of its kind: those that
// keep packets from the rule, or those of one lower rank.
func (w *witness) level(others []*candidate) int {
	n := 1
	for n < len(others) && min(others[n].rank, w.rule.rank) == min(others[0].rank, w.rule.rank) {
		n++
	}
	return n
}

// follows reports whether the rules that come right after this one do the same
// on all of part: then it does not matter which of it other rules keep.
func (w *witness) follows(part *cube, others []*candidate) bool {
	from := slices.IndexFunc(others, func(o *candidate) bool { return o.rank < w.rule.rank })
	if from < 0 {
		return false
	}
	next := others[from : from+w.level(others[from:])]
	return !w.differs(next) && slices.ContainsFunc(next, func(o *candidate) bool { return o.cube.covers(part) })
}

func (w *witness) differs(level []*candidate) bool {
	return slices.ContainsFunc(level, func(o *candidate) bool { return o.action != w.rule.action })
}

// fewestParts is the rule that leaves the fewest parts when subtracted.
func fewestParts(part *cube, level []*candidate) *candidate {
	return slices.MinFunc(level, func(a, b *candidate) int {
		return cmp.Compare(part.extraBits(&a.cube), part.extraBits(&b.cube))
	})
}
