// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Compile turns entries into ntuple rules such that a NIC which decides between
// overlapping rules by p takes each packet as reading the entries from the top
// would: the first entry that fits decides. No rule is superfluous, as far as
// mostTests lets prune see.
//
// Where the NIC would not keep the order by itself, Compile adds a rule for the
// overlap that the NIC does prefer, or makes the rules disjoint. An entry for
// which neither can be done is left out, with a Problem that names both places;
// the first entry for which the budget of locations is too small is left out
// with all that follow it.
func Compile(entries []Entry, p Precedence, budget int) (rules []Wanted, usage []Usage, problems []Problem) {
	c := compiler{entries: entries, rank: ranks[p], budget: budget, ends: []state{{}}}
	imbalance := make([]float64, len(entries))
	for i := range entries {
		parts := entries[i].parts(c.most())
		imbalance[i] = parts.imbalance
		if !c.add(i, &parts) {
			break
		}
		c.ends = append(c.ends, c.here())
	}
	c.fit()
	rules = c.wanted()
	return rules, c.usage(rules, imbalance), c.problems
}

// compiler holds the rules so far.
type compiler struct {
	entries  []Entry
	rank     func(*Match, int) int
	budget   int // locations
	rules    []*candidate
	live     int      // rules not gone
	current  int      // the entry being added
	ends     []state  // after so many entries
	refused  *refusal // of the entry after those
	index    index
	problems []Problem

	// Room that is used again and again.
	scratch []int
	targets []target
	match   Match
	spare   []candidate

	// For the problems, by entry:
	lost      map[int]bool // its fragments take the default path
	against   map[int]int  // the first earlier entry that it must be kept apart from
	coveredBy map[int]int  // the first earlier entry that takes a part of it
}

// note keeps the first earlier entry that is told of an entry.
func note(first *map[int]int, entry, earlier int) {
	if *first == nil {
		*first = map[int]int{}
	}
	if _, seen := (*first)[entry]; !seen {
		(*first)[entry] = earlier
	}
}

// state is how far the compiler is.
type state struct{ rules, live, problems int }

func (c *compiler) here() state { return state{len(c.rules), c.live, len(c.problems)} }

// candidate is a rule that may still prove superfluous.
type candidate struct {
	cube   cube
	action Action
	entry  int // the entry that it decides for
	rank   int
	meets  []int // candidates that overlap it
	gone   bool
}

// add compiles entry i. It reports whether the entries after it may follow.
func (c *compiler) add(i int, parts *parts) bool {
	before := c.here()
	c.current = i
	if n := parts.count(); n > c.most() {
		c.refused = &refusal{needs: n}
		return false
	}
	c.targets = parts.targets(c.targets[:0])
	for _, t := range c.targets {
		if conflict := c.emit(t, i, anyRank); conflict != nil {
			c.undo(before)
			c.problems = append(c.problems, *conflict)
			return true
		}
		if c.spent() {
			c.refused = &refusal{needs: max(len(c.targets), c.live-before.live), work: c.index.work > mostWork}
			c.undo(before)
			return false
		}
	}
	if c.live == before.live {
		c.problems = append(c.problems, c.shadowed(i))
	}
	return true
}

func (c *compiler) shadowed(i int) Problem {
	e := &c.entries[i]
	return Problem{Severity: Notice, Entry: e.Name, At: e.At,
		Text: fmt.Sprintf("entry %q decides for no packet: %s", e.Name, c.taker(i)),
		Fix:  fmt.Sprintf("move %q up, or remove it", e.Name)}
}

// taker says which earlier entries take the packets of entry i.
func (c *compiler) taker(i int) string {
	j, ok := c.coveredBy[i]
	if !ok {
		return "no packet fits it"
	}
	return fmt.Sprintf("those before it, such as entry %q (%s), take all of them", c.entries[j].Name, c.entries[j].At)
}

// anyRank is below every rank.
const anyRank = math.MinInt

// emit adds the part of t that no earlier entry takes, as rules that the NIC
// keeps in order.
//
// Why the order holds. Say a rule is wrong for a packet if it takes the packet
// and does not do what the packet's own entry, the first that fits, would do.
// Kept true from rule to rule: for each packet and each rule that is wrong for
// it, some rule that is right for it has a higher rank. Then the highest rank is
// right for every packet, whatever the NIC does between equals.
//
//  1. Each packet of an entry is in a rule of its own entry: a piece is given up
//     only to a rule of an earlier entry, which takes no packet of the entry's
//     own, or where no rule can name it (Compile tells of these).
//  2. Let a new rule be wrong for a packet. By 1 a rule of the packet's own entry
//     is there, of an earlier entry and with another action, so look has seen it.
//     Either it has the higher rank; or the packet was subtracted; or there is a
//     guard for the overlap. A guard is of the packet's own entry, so by 1 a part
//     of it holds the packet, and each part is above the rule it guards against.
//  3. A new rule does no harm to packets for which it is right. A guard may be
//     wrong for packets of still earlier entries: that is case 2 again, of an
//     earlier entry each time, and so it ends.
//
// Ranks need not grow as rules get narrower (mlx5 counts ip4 with a protocol as
// two fields and tcp4 as one), so the parts of a guard are looked at one by one.
func (c *compiler) emit(t target, entry, above int) *Problem {
	var room [2]cube
	pieces := append(room[:0], t.cube)
	for len(pieces) > 0 {
		if c.spent() {
			return nil // and the entry is refused
		}
		piece := pieces[len(pieces)-1]
		pieces = pieces[:len(pieces)-1]
		f := c.look(&piece, t.action, entry)
		if f.covered {
			continue
		}
		if f.split < 0 {
			if f.rank <= above {
				return c.conflict(entry)
			}
			if problem := c.keep(&piece, t.action, entry, f); problem != nil {
				return problem
			}
			continue
		}
		rest := piece.subtract(&c.rules[f.split].cube, nil)
		rest, problem := c.expressible(rest, entry, c.rules[f.split].entry)
		if problem != nil {
			return problem
		}
		pieces = append(pieces, rest...)
	}
	return nil
}

// finding is how a piece stands to the rules that it overlaps.
type finding struct {
	covered bool // an earlier entry takes all of it
	rank    int
	split   int // an earlier rule to subtract, or -1
	guards  []guard
	meets   []int
}

// guard is a rule for the overlap of an earlier entry with a later one.
type guard struct {
	target
	entry int // the earlier one
}

// look finds out what a piece needs so that the rules of earlier entries keep
// their packets: nothing where they win over it; guards, which are rules for the
// overlap that win; or to be split.
func (c *compiler) look(piece *cube, action Action, entry int) finding {
	f := finding{rank: c.rankOf(piece, entry), split: -1}
	c.scratch = c.index.overlapping(piece, c.scratch[:0])
	for _, id := range c.scratch {
		r := c.rules[id]
		if r.gone {
			continue
		}
		if r.entry < entry && r.cube.covers(piece) || r.entry == entry && r.cube == *piece {
			if r.entry < entry {
				note(&c.coveredBy, entry, r.entry)
			}
			return finding{covered: true}
		}
		f.meets = append(f.meets, id)
		if r.entry >= entry || r.action == action || r.rank > f.rank {
			continue
		}
		note(&c.against, entry, r.entry)
		guards := c.guards(r, piece, f.rank)
		if guards == nil {
			f.split = id
		}
		for _, g := range guards {
			f.guards = append(f.guards, guard{target{g, r.action}, r.entry})
		}
	}
	return f
}

// guards is the fewest rules for the overlap of r and piece that win over a rule
// of the given rank. nil: none can, or splitting the piece costs less.
func (c *compiler) guards(r *candidate, piece *cube, rank int) []cube {
	overlap := r.cube.intersect(piece)
	if c.rankOf(&overlap, r.entry) > rank {
		return worthIt([]cube{overlap}, piece, r)
	}
	if halves, ok := overlap.halve(); ok && c.rankOf(&halves[0], r.entry) > rank {
		return worthIt(halves[:], piece, r)
	}
	return nil
}

func worthIt(guards []cube, piece *cube, r *candidate) []cube {
	if piece.extraBits(&r.cube) <= len(guards) {
		return nil
	}
	return guards
}

func (c *compiler) rankOf(q *cube, entry int) int {
	c.match, _ = q.match()
	return c.rank(&c.match, entry)
}

// candidate is a new one that stays at its place in memory.
func (c *compiler) candidate() *candidate {
	if len(c.spare) == 0 {
		c.spare = make([]candidate, min(64, len(c.rules)+4))
	}
	r := &c.spare[0]
	c.spare = c.spare[1:]
	return r
}

// keep adds the piece as a rule, and the guards that it needs.
func (c *compiler) keep(piece *cube, action Action, entry int, f finding) *Problem {
	id := len(c.rules)
	for _, other := range f.meets {
		c.rules[other].meets = append(c.rules[other].meets, id)
	}
	r := c.candidate()
	*r = candidate{cube: *piece, action: action, entry: entry, rank: f.rank, meets: f.meets}
	c.rules = append(c.rules, r)
	c.index.add(&r.cube, id)
	c.live++
	for _, g := range f.guards {
		if problem := c.emit(g.target, g.entry, f.rank); problem != nil {
			return problem
		}
	}
	return nil
}

// expressible drops the pieces of an entry that hold only packets without ports
// (fragments), and refuses those that no rule can name. A guard must not lose
// any: the later rule would take them.
func (c *compiler) expressible(pieces []cube, entry, earlier int) ([]cube, *Problem) {
	kept := pieces[:0]
	for _, q := range pieces {
		if _, ok := q.match(); ok {
			kept = append(kept, q)
			continue
		}
		switch {
		case entry != c.current:
			return nil, c.conflict(entry)
		case q.m[0]&^q.v[0]&flagL4 == 0:
			return nil, c.conflict(earlier)
		}
		c.noteFragments(earlier)
	}
	return kept, nil
}

func (c *compiler) noteFragments(earlier int) {
	if c.lost[c.current] {
		return
	}
	if c.lost == nil {
		c.lost = map[int]bool{}
	}
	c.lost[c.current] = true
	e, first := &c.entries[c.current], &c.entries[earlier]
	c.problems = append(c.problems, Problem{
		Severity: Notice, Entry: e.Name, At: e.At,
		Text: fmt.Sprintf("entry %q overlaps entry %q (%s), this driver would not keep their order, "+
			"and no ntuple rule says \"without ports\": fragments of the packets of %q take the default path", e.Name, first.Name, first.At, e.Name),
		Fix: fmt.Sprintf("give %q ports of its own, or put it before %q", e.Name, first.Name),
	})
}

// conflict is the problem of the current entry, which no rules keep apart from an
// earlier one: what would be left has no VLAN tag, or no field to add.
func (c *compiler) conflict(earlier int) *Problem {
	e, first := &c.entries[c.current], &c.entries[earlier]
	text := fmt.Sprintf("entry %q overlaps entry %q (%s), this driver would not keep their order, and ", e.Name, first.Name, first.At)
	if first.VLAN.Mask != 0 && e.VLAN.Mask == 0 {
		return &Problem{Severity: Failed, Entry: e.Name, At: e.At,
			Text: text + "no ntuple rule says \"without this VLAN tag\"",
			Fix:  fmt.Sprintf("put %q before %q, or give it a vlan of its own", e.Name, first.Name)}
	}
	return &Problem{Severity: Failed, Entry: e.Name, At: e.At,
		Text: text + "no ntuple rules keep them apart",
		Fix:  fmt.Sprintf("put %q before %q, or let their addresses, ports or protocols differ", e.Name, first.Name)}
}

// undo takes back the rules and problems since before.
func (c *compiler) undo(before state) {
	for id := before.rules; id < len(c.rules); id++ {
		c.drop(id)
	}
	c.problems = c.problems[:before.problems]
}

func (c *compiler) drop(id int) {
	if r := c.rules[id]; !r.gone {
		r.gone = true
		c.live--
	}
}

// wanted is the rules that are left, in reading order.
func (c *compiler) wanted() (rules []Wanted) {
	rules = make([]Wanted, 0, c.live)
	for i := range c.rules {
		if r := c.rules[i]; !r.gone {
			m, _ := r.cube.match()
			rules = append(rules, Wanted{Rule{m, r.action}, r.entry})
		}
	}
	slices.SortStableFunc(rules, func(a, b Wanted) int { return cmp.Compare(a.Entry, b.Entry) })
	return rules
}

func (c *compiler) usage(rules []Wanted, imbalance []float64) (usage []Usage) {
	for _, r := range rules {
		if n := len(usage); n == 0 || usage[n-1].Entry != r.Entry {
			usage = append(usage, Usage{Entry: r.Entry, Imbalance: imbalance[r.Entry]})
		}
		usage[len(usage)-1].Rules++
	}
	return usage
}
