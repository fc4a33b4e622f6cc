// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"maps"
	"slices"
)

// Classifier says which queue a packet gets from the rules of a link. Rules that
// compare the same bits share one look-up, so the cost of a packet grows with
// the number of different masks. It does not change: goroutines may share it.
type Classifier struct {
	masks []maskRules // the highest rank first
	rss   *RSS
}

// maskRules is the rules that compare the same bits.
type maskRules struct {
	mask  key
	rules map[key]ranked // by value; of several, the one that wins
	best  int            // highest rank in rules
}

type ranked struct {
	rank   int
	loc    Loc
	action Action
}

// NewClassifier prepares rules for a NIC that decides by p; other packets take
// the default path rss. Where the NIC's choice between two rules is not known,
// the lower location is taken. Rules of Flow Other take no packet here.
func NewClassifier(rules Table, p Precedence, rss *RSS) *Classifier {
	c := &Classifier{rss: rss}
	byMask := map[key]int{}
	for loc, r := range rules {
		q, ok := cubeOf(&r.Match)
		if !ok {
			continue
		}
		i, seen := byMask[q.m]
		if !seen {
			i = len(c.masks)
			byMask[q.m] = i
			c.masks = append(c.masks, maskRules{mask: q.m, rules: map[key]ranked{}})
		}
		c.masks[i].add(q.v, ranked{ranks[p](&r.Match, int(loc)), loc, r.Action})
	}
	for i := range c.masks {
		c.masks[i].best = slices.MaxFunc(slices.Collect(maps.Values(c.masks[i].rules)), ranked.compare).rank
	}
	slices.SortFunc(c.masks, func(a, b maskRules) int {
		return cmp.Or(cmp.Compare(b.best, a.best), slices.Compare(a.mask[:], b.mask[:]))
	})
	return c
}

func (m *maskRules) add(v key, r ranked) {
	if old, ok := m.rules[v]; !ok || r.compare(old) > 0 {
		m.rules[v] = r
	}
}

// compare orders by rank, and at equal ranks puts the lower location higher.
func (r ranked) compare(other ranked) int {
	return cmp.Or(cmp.Compare(r.rank, other.rank), cmp.Compare(other.loc, r.loc))
}

// Classify is where packet p goes.
func (c *Classifier) Classify(p *Packet) Verdict {
	k := p.key()
	var won ranked
	matched := false
	for i := range c.masks {
		m := &c.masks[i]
		if matched && won.rank > m.best {
			break
		}
		if r, ok := m.rules[k.and(m.mask)]; ok && (!matched || r.compare(won) > 0) {
			won, matched = r, true
		}
	}
	if !matched {
		return Verdict{Queue: c.rss.Queue(p)}
	}
	return Verdict{Matched: true, Loc: won.loc, Drop: won.action.Drop, Queue: won.action.Queue}
}
