// SPDX-License-Identifier: Apache-2.0

package steer

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
	v  key
	id int
}

// meeting is the members of a group by their value under fewer bits: chains
// through the members, from the last one of each value.
type meeting struct {
	last map[key]int32
	prev []int32 // the member before, of the same value; -1 for none
}

// add puts cube c into the index under the number id.
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
	g.cubes = append(g.cubes, groupMember{c.v, id})
	x.work += len(g.meets)
	for common, m := range g.meets {
		m.add(c.v.and(common))
	}
}

func (m *meeting) add(v key) {
	before, ok := m.last[v]
	if !ok {
		before = -1
	}
	m.last[v] = int32(len(m.prev))
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
		if n, ok := m.last[c.v.and(common)]; ok {
			for ; n >= 0; n = m.prev[n] {
				ids = append(ids, g.cubes[n].id)
			}
		}
	}
	x.work += len(ids)
	return ids
}

// meeting makes the meeting of g on the bits that it has in common with others.
func (g *group) meeting(common key) *meeting {
	m := &meeting{last: make(map[key]int32, len(g.cubes))}
	for i := range g.cubes {
		m.add(g.cubes[i].v.and(common))
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
next:
	for i := range g.cubes {
		m := &g.cubes[i]
		for w := range m.v {
			if (m.v[w]^c.v[w])&g.mask[w]&c.m[w] != 0 {
				continue next
			}
		}
		ids = append(ids, m.id)
	}
	return ids
}

func (k key) and(other key) key {
	for i := range k {
		k[i] &= other[i]
	}
	return k
}
