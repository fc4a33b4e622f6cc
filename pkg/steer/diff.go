// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"maps"
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
	if size := have.NIC.Capacity; size > 0 && int(own.Last) >= size {
		own.Last = Loc(size - 1)
	}
	d := differ{goal: goal, own: own, have: owned(have.Rules, own)}
	d.place(have.NIC.Precedence)
	d.remove()
	if goal.Channels != 0 && goal.Channels != have.Channels.Combined {
		d.lower(goal.Channels)
		d.steps = append(d.steps, Step{Kind: SetChannels, Channels: goal.Channels})
	}
	d.put()
	return Plan{d.steps}
}

// owned is the rules of t in our locations.
func owned(t Table, own Range) Table {
	ours := Table{}
	for loc, r := range t {
		if own.Contains(loc) {
			ours[loc] = r
		}
	}
	return ours
}

type differ struct {
	goal  Goal
	own   Range
	have  Table       // in our locations; shrinks as steps remove rules
	locs  []Loc       // of goal.Rules; valid where placed
	set   []bool      // placed
	at    map[Loc]int // goal rule at a location
	steps []Step
}

// place gives each rule of the goal a location: first those that are in place.
func (d *differ) place(p Precedence) {
	n := len(d.goal.Rules)
	d.locs, d.set, d.at = make([]Loc, n), make([]bool, n), make(map[Loc]int, n)
	if p == ByLocation {
		d.placeInOrder()
		return
	}
	d.placeKept()
	d.placeRest()
}

func (d *differ) assign(i int, loc Loc) {
	d.locs[i], d.set[i], d.at[loc] = loc, true, i
}

// placeKept leaves rules where they are, and puts a rule whose match is in place
// with another action in the place of that.
func (d *differ) placeKept() {
	if len(d.have) == 0 {
		return
	}
	byMatch := make(map[Match]int, len(d.goal.Rules))
	for i, w := range d.goal.Rules {
		byMatch[w.Rule.Match] = i
	}
	locs := slices.Sorted(maps.Keys(d.have))
	for _, same := range []bool{true, false} {
		for _, loc := range locs {
			i, ok := byMatch[d.have[loc].Match]
			if ok && !d.set[i] && (!same || d.goal.Rules[i].Rule == d.have[loc]) {
				d.assign(i, loc)
			}
		}
	}
}

// placeRest fills locations of rules no longer wanted, then free ones.
func (d *differ) placeRest() {
	stale := []Loc{}
	for _, loc := range slices.Sorted(maps.Keys(d.have)) {
		if _, taken := d.at[loc]; !taken {
			stale = append(stale, loc)
		}
	}
	next := d.own.First
	for i := range d.goal.Rules {
		if d.set[i] {
			continue
		}
		if len(stale) > 0 {
			d.assign(i, stale[0])
			stale = stale[1:]
			continue
		}
		for d.taken(next) && d.own.Contains(next) {
			next++
		}
		if !d.own.Contains(next) {
			return
		}
		d.assign(i, next)
	}
}

func (d *differ) taken(loc Loc) bool {
	_, ours := d.at[loc]
	_, there := d.have[loc]
	return ours || there
}

// placeInOrder places rules in ascending locations, as the NIC decides by
// location. As many as can stay, stay: the longest run of rules in place that
// leaves room for the others between them.
func (d *differ) placeInOrder() {
	for _, k := range d.stay() {
		d.assign(k.rule, k.loc)
	}
	next := d.own.First
	for i := range d.goal.Rules {
		if d.set[i] {
			next = d.locs[i] + 1
			continue
		}
		if !d.own.Contains(next) {
			return
		}
		d.assign(i, next)
		next++
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
	return series
}

func (s staying) slack() int { return int(s.loc) - s.rule }

// inPlace is the goal's rules that are at some location of ours with room for
// those before and after them, ascending by number.
func (d *differ) inPlace() (all []staying) {
	byRule := make(map[Rule]int, len(d.goal.Rules))
	for i, w := range d.goal.Rules {
		byRule[w.Rule] = i
	}
	for _, loc := range slices.Sorted(maps.Keys(d.have)) {
		i, ok := byRule[d.have[loc]]
		if ok && int(loc-d.own.First) >= i && int(d.own.Last-loc) >= len(d.goal.Rules)-1-i {
			delete(byRule, d.have[loc])
			all = append(all, staying{i, loc})
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
	wanted := make(map[Match]Loc, len(d.goal.Rules))
	raw := map[uint8]bool{}
	for i, w := range d.goal.Rules {
		if d.set[i] {
			wanted[w.Rule.Match] = d.locs[i]
		}
		if w.Rule.Match.L4Data.Mask != 0 {
			raw[w.Rule.Match.Protocol.Value] = true
		}
	}
	for _, loc := range slices.Sorted(maps.Keys(d.have)) {
		_, successor := d.at[loc]
		m := d.have[loc].Match
		moved, elsewhere := wanted[m]
		if !successor || elsewhere && moved != loc || m.L4Data.Mask != 0 && !raw[m.Protocol.Value] {
			d.drop(loc)
		}
	}
}

func (d *differ) drop(loc Loc) {
	d.steps = append(d.steps, Step{Kind: Remove, Loc: loc, Rule: d.have[loc]})
	delete(d.have, loc)
}

// lower removes the rules to be replaced that use queues beyond n, which the
// kernel would not let go.
func (d *differ) lower(n uint32) {
	for _, loc := range slices.Sorted(maps.Keys(d.have)) {
		if a := d.have[loc].Action; !a.Drop && a.Queue >= n {
			d.drop(loc)
		}
	}
}

// put replaces, then inserts.
func (d *differ) put() {
	d.steps = slices.Grow(d.steps, len(d.goal.Rules))
	var inserts []int
	for i, w := range d.goal.Rules {
		if !d.set[i] {
			continue
		}
		loc := d.locs[i]
		old, there := d.have[loc]
		switch {
		case !there:
			inserts = append(inserts, i)
		case old != w.Rule:
			d.steps = append(d.steps, Step{Kind: Replace, Loc: loc, Rule: w.Rule, Old: old, Entry: w.Entry})
		}
	}
	for _, i := range inserts {
		w := d.goal.Rules[i]
		d.steps = append(d.steps, Step{Kind: Insert, Loc: d.locs[i], Rule: w.Rule, Entry: w.Entry})
	}
}
