// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sort"
)

// Diff is the steps that turn the rules in place into the goal's, within our
// locations: rules that are there already stay where they are. It never names a
// location outside own. The goal fits the locations (Check sees to that); rules
// past the last free location are left out.
//
// Order: removals, channels, replacements, insertions. Two rules with one match
// never coexist on the way, since on mlx5 it is not defined which of them
// decides; and no rule is in the way of a smaller number of channels.
func Diff(goal Goal, have Observed, own Range) Plan {
	own = own.within(have.NIC.Capacity)
	d := newDiffer(goal, have.Rules, own)
	if have.NIC.Precedence == ByLocation {
		d.placeInOrder()
	} else {
		d.placeKept()
		d.placeRest()
	}
	d.remove()
	if goal.Channels != 0 && goal.Channels != have.Channels.Combined {
		d.lower(goal.Channels)
		d.steps = append(d.steps, Step{Kind: SetChannels, Channels: goal.Channels})
	}
	d.put()
	return Plan{d.steps}
}

type differ struct {
	goal   Goal
	wanted matchIndex // of goal.Rules
	own    Range
	have   []held // in our locations, ascending
	locs   []Loc  // of goal.Rules; valid where placed
	set    []bool // placed
	steps  []Step
}

// held is a rule in place.
type held struct {
	loc       Loc
	rule      Rule
	successor bool // a rule of the goal is placed here
	gone      bool // a step removes it
}

func newDiffer(goal Goal, rules Table, own Range) *differ {
	n := len(goal.Rules)
	d := &differ{goal: goal, own: own, locs: make([]Loc, n), set: make([]bool, n)}
	d.have = make([]held, 0, len(rules))
	for loc, r := range rules {
		if own.Contains(loc) {
			d.have = append(d.have, held{loc: loc, rule: r})
		}
	}
	slices.SortFunc(d.have, func(a, b held) int { return cmp.Compare(a.loc, b.loc) })
	if len(d.have) > 0 {
		d.wanted = indexMatches(goal.Rules)
	}
	return d
}

// at is the rule in place at loc, or nil.
func (d *differ) at(loc Loc) *held {
	i, found := slices.BinarySearchFunc(d.have, loc, func(h held, loc Loc) int { return cmp.Compare(h.loc, loc) })
	if !found || d.have[i].gone {
		return nil
	}
	return &d.have[i]
}

// assign places rule i of the goal.
func (d *differ) assign(i int, loc Loc) {
	d.locs[i], d.set[i] = loc, true
	if h := d.at(loc); h != nil {
		h.successor = true
	}
}

// placeKept leaves rules where they are, and puts a rule whose match is in place
// with another action in the place of that.
func (d *differ) placeKept() {
	for _, same := range []bool{true, false} {
		for j := range d.have {
			h := &d.have[j]
			i, ok := d.wanted.find(&h.rule.Match)
			if ok && !d.set[i] && (!same || d.goal.Rules[i].Rule == h.rule) {
				d.assign(i, h.loc)
			}
		}
	}
}

// placeRest fills locations of rules no longer wanted, then free ones.
func (d *differ) placeRest() {
	i := d.unplaced(0)
	for j := range d.have {
		if i < len(d.locs) && !d.have[j].successor {
			d.assign(i, d.have[j].loc)
			i = d.unplaced(i)
		}
	}
	for next := d.own.First; i < len(d.locs) && d.own.Contains(next); next++ {
		if d.at(next) == nil {
			d.assign(i, next)
			i = d.unplaced(i)
		}
	}
}

// unplaced is the number of the first rule from i on that has no place yet.
func (d *differ) unplaced(i int) int {
	for i < len(d.set) && d.set[i] {
		i++
	}
	return i
}

// placeInOrder places rules in ascending locations, as the NIC decides by
// location. As many as can stay, stay: the longest run of rules in place that
// leaves room for the others between them. The others get even distances, so
// that an entry which comes between them later need not move them.
func (d *differ) placeInOrder() {
	first, from := 0, d.own.First
	for _, k := range d.stay() {
		d.assign(k.rule, k.loc)
		d.placeEvenly(first, k.rule, from, k.loc)
		first, from = k.rule+1, k.loc+1
	}
	d.placeEvenly(first, len(d.goal.Rules), from, d.own.Last+1)
}

// placeEvenly places the rules from first up to end at locations from low up to
// high, neither end included; those for which there is no room it leaves out.
func (d *differ) placeEvenly(first, end int, low, high Loc) {
	room := int(high) - int(low)
	n := min(end-first, room)
	for i := range n {
		d.assign(first+i, low+Loc((2*i+1)*room/(2*n)))
	}
}

// staying is a rule of the goal that is in place at loc.
type staying struct {
	rule int
	loc  Loc
}

// stay is the longest series of rules in place with ascending numbers whose
// locations leave room for the rules between: loc minus number never falls.
func (d *differ) stay() []staying {
	var tails []int // candidate that ends the shortest-slack series of each length
	candidates := d.inPlace()
	before := make([]int, len(candidates))
	for i, c := range candidates {
		n := sort.Search(len(tails), func(k int) bool { return candidates[tails[k]].slack() > c.slack() })
		before[i] = -1
		if n > 0 {
			before[i] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, i)
		} else {
			tails[n] = i
		}
	}
	if len(tails) == 0 {
		return nil
	}
	var series []staying
	for i := tails[len(tails)-1]; i >= 0; i = before[i] {
		series = append(series, candidates[i])
	}
	slices.Reverse(series)
	return series
}

func (s staying) slack() int { return int(s.loc) - s.rule }

// inPlace is the goal's rules that are at some location of ours with room for
// those before and after them, ascending by number.
func (d *differ) inPlace() (all []staying) {
	seen := make([]bool, len(d.goal.Rules))
	for j := range d.have {
		h := &d.have[j]
		i, ok := d.wanted.find(&h.rule.Match)
		if ok && !seen[i] && d.goal.Rules[i].Rule == h.rule &&
			int(h.loc-d.own.First) >= i && int(d.own.Last-h.loc) >= len(d.goal.Rules)-1-i {
			seen[i] = true
			all = append(all, staying{i, h.loc})
		}
	}
	slices.SortFunc(all, func(a, b staying) int { return cmp.Compare(a.rule, b.rule) })
	return all
}

// remove takes away what has no successor, what would share its match with a rule
// put elsewhere, and what looks behind the IP header of a protocol no longer
// wanted: mlx5 takes the parser for a new protocol before it lets the old one go.
func (d *differ) remove() {
	if len(d.have) == 0 {
		return
	}
	raw := map[uint8]bool{}
	for i := range d.goal.Rules {
		if m := &d.goal.Rules[i].Rule.Match; m.L4Data.Mask != 0 {
			raw[m.Protocol.Value] = true
		}
	}
	for j := range d.have {
		h := &d.have[j]
		m := &h.rule.Match
		i, ok := d.wanted.find(m)
		elsewhere := ok && d.set[i] && d.locs[i] != h.loc
		if !h.successor || elsewhere || m.L4Data.Mask != 0 && !raw[m.Protocol.Value] {
			d.drop(h)
		}
	}
}

func (d *differ) drop(h *held) {
	d.steps = append(d.steps, Step{Kind: Remove, Loc: h.loc, Rule: h.rule})
	h.gone = true
}

// lower removes the rules to be replaced that use queues beyond n, which the
// kernel would not let go.
func (d *differ) lower(n uint32) {
	for j := range d.have {
		if h := &d.have[j]; !h.gone && !h.rule.Action.Drop && h.rule.Action.Queue >= n {
			d.drop(h)
		}
	}
}

// put replaces, then inserts.
func (d *differ) put() {
	var replaced []Step
	var inserts []int
	for i := range d.goal.Rules {
		if !d.set[i] {
			continue
		}
		w := &d.goal.Rules[i]
		switch old := d.at(d.locs[i]); {
		case old == nil:
			inserts = append(inserts, i)
		case old.rule != w.Rule:
			replaced = append(replaced, Step{Kind: Replace, Loc: old.loc, Rule: w.Rule, Old: old.rule, Entry: w.Entry})
		}
	}
	d.steps = append(slices.Grow(d.steps, len(replaced)+len(inserts)), replaced...)
	for _, i := range inserts {
		w := &d.goal.Rules[i]
		d.steps = append(d.steps, Step{Kind: Insert, Loc: d.locs[i], Rule: w.Rule, Entry: w.Entry})
	}
}

// matchIndex finds rules by their match, no two of which are the same. It is a
// hash table of its own since a map keeps each key of that size in an allocation
// of its own.
type matchIndex struct {
	rules []Wanted
	last  map[uint64]int32 // by hash, the last rule
	prev  []int32          // the rule before, of the same hash; -1 for none
}

func indexMatches(rules []Wanted) matchIndex {
	x := matchIndex{rules, make(map[uint64]int32, len(rules)), make([]int32, len(rules))}
	for i := range rules {
		h := maphash.Comparable(hashSeed, rules[i].Rule.Match)
		before, ok := x.last[h]
		if !ok {
			before = -1
		}
		x.last[h], x.prev[i] = int32(i), before
	}
	return x
}

func (x *matchIndex) find(m *Match) (i int, ok bool) {
	if len(x.rules) == 0 {
		return 0, false
	}
	n, ok := x.last[maphash.Comparable(hashSeed, *m)]
	for ; ok && n >= 0; n = x.prev[n] {
		if x.rules[n].Rule.Match == *m {
			return int(n), true
		}
	}
	return 0, false
}
