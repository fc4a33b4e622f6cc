// SPDX-License-Identifier: Apache-2.0

package steer

// index finds, among many cubes, those that overlap a given one. Cubes of one
// mask form a group; two groups meet on the bits that both compare, so one map
// look-up a group is enough. Cost: the number of groups, not of cubes.
type index struct {
	groups map[key]*group
	order  []*group // as added, so that results do not depend on map order
}

type group struct {
	mask  key
	cubes []groupMember
	// meets is the members by value, for each set of compared bits asked so far.
	meets map[key]map[key][]int
}

type groupMember struct {
	v  key
	id int
}

// add puts cube c into the index under the number id.
func (x *index) add(c *cube, id int) {
	if x.groups == nil {
		x.groups = map[key]*group{}
	}
	g := x.groups[c.m]
	if g == nil {
		g = &group{mask: c.m, meets: map[key]map[key][]int{}}
		x.groups[c.m] = g
		x.order = append(x.order, g)
	}
	g.cubes = append(g.cubes, groupMember{c.v, id})
	for common, byValue := range g.meets {
		v := c.v.and(common)
		byValue[v] = append(byValue[v], id)
	}
}

// overlapping appends to ids the numbers of the cubes that overlap c.
func (x *index) overlapping(c *cube, ids []int) []int {
	for _, g := range x.order {
		if len(g.cubes) <= fewCubes {
			ids = g.scan(c, ids)
			continue
		}
		common := g.mask.and(c.m)
		ids = append(ids, g.meeting(common)[c.v.and(common)]...)
	}
	return ids
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

func (g *group) meeting(common key) map[key][]int {
	byValue := g.meets[common]
	if byValue == nil {
		byValue = make(map[key][]int, len(g.cubes))
		for _, m := range g.cubes {
			v := m.v.and(common)
			byValue[v] = append(byValue[v], m.id)
		}
		g.meets[common] = byValue
	}
	return byValue
}

func (k key) and(other key) key {
	for i := range k {
		k[i] &= other[i]
	}
	return k
}
