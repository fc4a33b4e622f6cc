// SPDX-License-Identifier: Apache-2.0

package steer

import "hash/maphash"

// index finds, among many cubes, those that overlap a given one. Cubes of one
// mask form a group; two groups meet on the bits that both compare, so one map
// look-up a group is enough. Cost: the number of groups, not of cubes.
type index struct {
	groups map[key]*group
	order  []*group // as added, so that results do not depend on map order
	work   int      // comparisons made so far
}

type group struct {
	mask  key
	cubes []groupMember
	meets map[key]*meeting // by the bits compared in common, as far as asked for
}

type groupMember struct {
	v  *key
	id int
}

// meeting is the members of a group by a hash of their value under fewer bits:
// chains through the members, from the last one of each hash.
type meeting struct {
	common key
	last   map[uint64]int32
	prev   []int32 // the member before, of the same hash; -1 for none
}

var hashSeed = maphash.MakeSeed()

// add puts cube c, which must not change any more, into the index under the
// number id.
func (x *index) add(c *cube, id int) {
	if x.groups == nil {
		x.groups = map[key]*group{}
	}
	g := x.groups[c.m]
	if g == nil {
		g = &group{mask: c.m}
		x.groups[c.m] = g
		x.order = append(x.order, g)
	}
	g.cubes = append(g.cubes, groupMember{&c.v, id})
	x.work += len(g.meets)
	for _, m := range g.meets {
		m.add(&c.v)
	}
}

func (m *meeting) hash(v *key) uint64 { return maphash.Comparable(hashSeed, v.and(m.common)) }

func (m *meeting) add(v *key) {
	h := m.hash(v)
	before, ok := m.last[h]
	if !ok {
		before = -1
	}
	m.last[h] = int32(len(m.prev))
	m.prev = append(m.prev, before)
}

// overlapping appends to ids the numbers of the cubes that overlap c.
func (x *index) overlapping(c *cube, ids []int) []int {
	for _, g := range x.order {
		x.work++
		if len(g.cubes) <= fewCubes {
			ids = g.scan(c, ids)
			continue
		}
		common := g.mask.and(c.m)
		m := g.meets[common]
		if m == nil {
			m = g.meeting(common)
			x.work += len(g.cubes)
		}
		if n, ok := m.last[m.hash(&c.v)]; ok {
			for ; n >= 0; n = m.prev[n] {
				if c.v.equal(g.cubes[n].v, &common) {
					ids = append(ids, g.cubes[n].id)
				}
			}
		}
	}
	x.work += len(ids)
	return ids
}

// meeting makes the meeting of g on the bits that it has in common with others.
func (g *group) meeting(common key) *meeting {
	m := &meeting{common: common, last: make(map[uint64]int32, len(g.cubes))}
	for i := range g.cubes {
		m.add(g.cubes[i].v)
	}
	if g.meets == nil {
		g.meets = map[key]*meeting{}
	}
	g.meets[common] = m
	return m
}

// fewCubes is the size of a group up to which looking at each beats a map.
const fewCubes = 8

func (g *group) scan(c *cube, ids []int) []int {
	common := g.mask.and(c.m)
	for i := range g.cubes {
		if c.v.equal(g.cubes[i].v, &common) {
			ids = append(ids, g.cubes[i].id)
		}
	}
	return ids
}

// equal reports whether k and other agree in the bits of mask.
func (k *key) equal(other, mask *key) bool {
	for i := range k {
		if (k[i]^other[i])&mask[i] != 0 {
			return false
		}
	}
	return true
}

func (k key) and(other key) key {
	for i := range k {
		k[i] &= other[i]
	}
	return k
}
