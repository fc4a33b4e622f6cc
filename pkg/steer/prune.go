// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"slices"
)

// mostTests bounds the search for superfluous rules, counted in comparisons of
// two rules: mostTestsOfRule for one rule, mostTests for all together. Past it a
// rule is kept.
const (
	mostTestsOfRule = 1 << 16
	mostTests       = 4 << 20
)

// prune drops rules without which every packet would still go the same way,
// until there are none: the later ones first, and again those that overlap a
// rule which has gone.
func (c *compiler) prune() {
	tests := mostTests
	settled := make([]bool, len(c.rules))
	for again := true; again; {
		again = false
		for id := len(c.rules) - 1; id >= 0; id-- {
			if c.rules[id].gone || settled[id] {
				continue
			}
			settled[id] = true
			if !c.redundant(id, &tests) {
				continue
			}
			c.drop(id)
			for _, other := range c.rules[id].meets {
				settled[other], again = false, true
			}
		}
	}
}

// redundant reports whether other rules would decide as rule id does wherever it
// decides: those that win over it or tie leave it no packet, or those that come
// after it have the same action.
func (c *compiler) redundant(id int, tests *int) bool {
	if len(c.rules[id].meets) == 0 {
		return false
	}
	w := witness{rule: c.rules[id], tests: min(mostTestsOfRule, *tests)}
	*tests -= w.tests
	found := w.in(&w.rule.cube, c.overlapping(id))
	*tests += max(w.tests, 0)
	return !found
}

// overlapping is the rules left that overlap rule id and have a say in whether it
// is needed: those that win over it, those that tie and do the same, and then the
// others from the highest rank down.
func (c *compiler) overlapping(id int) (others []*candidate) {
	r := c.rules[id]
	for _, other := range r.meets {
		if o := c.rules[other]; !o.gone && (o.rank != r.rank || o.action == r.action) {
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
	tests int // comparisons left
}

// in reports whether there is such a packet in part, where others have a say, in
// the order of overlapping. It may say so wrongly when its tests run out.
func (w *witness) in(part *cube, others []*candidate) bool {
	if w.tests -= 1 + len(others); w.tests < 0 {
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
