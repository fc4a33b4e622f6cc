// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"math/bits"
	"slices"
)

// coverPorts splits a set of ports into few disjoint value/mask pairs, never more
// than prefixes would take. No ports means "any port": one pair that compares
// nothing.
func coverPorts(ports []Ports) []Bits16 {
	if len(ports) == 0 {
		return []Bits16{{}}
	}
	if b, ok := aligned(ports); ok {
		return []Bits16{b}
	}
	ranges := normalize(ports)
	if len(ranges) > mostRanges {
		return prefixes(ranges)
	}
	var s portSets
	cubes := slices.Clone(s.cover(s.of(ranges)))
	slices.SortFunc(cubes, func(a, b Bits16) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(b.Mask, a.Mask))
	})
	return cubes
}

// mostRanges bounds the work on one list: longer ones are split into prefixes,
// which takes time in proportion to their length.
const mostRanges = 512

// prefixes splits normalized ranges into pairs whose masks are prefixes.
func prefixes(ranges []Ports) (pairs []Bits16) {
	for _, p := range ranges {
		for first := uint32(p.First); first <= uint32(p.Last); {
			size := uint32(1) << bits.TrailingZeros32(first|1<<16)
			for first+size-1 > uint32(p.Last) {
				size /= 2
			}
			pairs = append(pairs, Bits16{uint16(first), ^uint16(size - 1)})
			first += size
		}
	}
	return pairs
}

// aligned is the one pair for a single port or an aligned power of two of them.
func aligned(ports []Ports) (Bits16, bool) {
	if len(ports) != 1 {
		return Bits16{}, false
	}
	p, size := ports[0], uint32(ports[0].Last)-uint32(ports[0].First)+1
	if bits.OnesCount32(size) != 1 || uint32(p.First)&(size-1) != 0 {
		return Bits16{}, false
	}
	return Bits16{p.First, ^uint16(size - 1)}, true
}

// normalize sorts ranges and joins those that touch.
func normalize(ports []Ports) []Ports {
	sorted := slices.SortedFunc(slices.Values(ports), func(a, b Ports) int { return cmp.Compare(a.First, b.First) })
	joined := sorted[:0]
	for _, p := range sorted {
		if n := len(joined); n > 0 && uint32(p.First) <= uint32(joined[n-1].Last)+1 {
			joined[n-1].Last = max(joined[n-1].Last, p.Last)
			continue
		}
		joined = append(joined, p)
	}
	return joined
}

// portSets makes sets of 16-bit values as binary decision diagrams, highest bit
// first. A set is a number; equal sets have equal numbers.
type portSets struct {
	nodes  []portNode
	ids    map[portNode]portSet
	ands   map[[2]portSet]portSet
	nots   map[portSet]portSet
	covers map[portSet][]Bits16
}

type portSet int32

type portNode struct {
	depth  int8 // number of bits above; the node tests bit 15-depth
	lo, hi portSet
}

const (
	noPorts  portSet = 0
	allPorts portSet = 1
)

func (s *portSets) node(depth int, lo, hi portSet) portSet {
	if lo == hi {
		return lo
	}
	if s.ids == nil {
		s.ids, s.ands = map[portNode]portSet{}, map[[2]portSet]portSet{}
		s.nots, s.covers = map[portSet]portSet{}, map[portSet][]Bits16{}
		s.nodes = []portNode{noPorts: {depth: 16}, allPorts: {depth: 16}}
	}
	n := portNode{int8(depth), lo, hi}
	id, ok := s.ids[n]
	if !ok {
		id = portSet(len(s.nodes))
		s.nodes, s.ids[n] = append(s.nodes, n), id
	}
	return id
}

// of is the set of normalized ranges.
func (s *portSets) of(ranges []Ports) portSet { return s.within(ranges, 0, 0) }

// within is the part of ranges that has the given first port and depth bits fixed.
func (s *portSets) within(ranges []Ports, first uint32, depth int) portSet {
	last := first + 1<<(16-depth) - 1
	from, _ := slices.BinarySearchFunc(ranges, first, func(p Ports, v uint32) int { return cmp.Compare(uint32(p.Last), v) })
	if from == len(ranges) || uint32(ranges[from].First) > last {
		return noPorts
	}
	if uint32(ranges[from].First) <= first && last <= uint32(ranges[from].Last) {
		return allPorts
	}
	half := uint32(1) << (15 - depth)
	return s.node(depth, s.within(ranges[from:], first, depth+1), s.within(ranges[from:], first+half, depth+1))
}

// halves splits a set at the bit below depth.
func (s *portSets) halves(a portSet, depth int) (lo, hi portSet) {
	if a <= allPorts || int(s.nodes[a].depth) != depth {
		return a, a
	}
	return s.nodes[a].lo, s.nodes[a].hi
}

func (s *portSets) and(a, b portSet) portSet {
	switch {
	case a == noPorts || b == noPorts:
		return noPorts
	case a == allPorts || a == b:
		return b
	case b == allPorts:
		return a
	}
	if a > b {
		a, b = b, a
	}
	if r, ok := s.ands[[2]portSet{a, b}]; ok {
		return r
	}
	depth := int(min(s.nodes[a].depth, s.nodes[b].depth))
	a0, a1 := s.halves(a, depth)
	b0, b1 := s.halves(b, depth)
	r := s.node(depth, s.and(a0, b0), s.and(a1, b1))
	s.ands[[2]portSet{a, b}] = r
	return r
}

func (s *portSets) not(a portSet) portSet {
	if a <= allPorts {
		return allPorts - a
	}
	if r, ok := s.nots[a]; ok {
		return r
	}
	n := s.nodes[a]
	r := s.node(int(n.depth), s.not(n.lo), s.not(n.hi))
	s.nots[a] = r
	return r
}

func (s *portSets) minus(a, b portSet) portSet { return s.and(a, s.not(b)) }

// cover splits a set into disjoint pairs. At each bit it covers the two halves
// apart, or first what they have in common, or one half of that, whichever takes
// the fewest pairs. Of the 528 ranges of five bits 503 get the smallest split there
// is, the others one pair more (tested).
func (s *portSets) cover(a portSet) []Bits16 {
	switch a {
	case noPorts:
		return nil
	case allPorts:
		return []Bits16{{}}
	}
	if c, ok := s.covers[a]; ok {
		return c
	}
	depth, lo, hi := int(s.nodes[a].depth), s.nodes[a].lo, s.nodes[a].hi
	common := s.and(lo, hi)
	common0, common1 := s.halves(common, depth+1)
	best := join(depth, s.cover(lo), s.cover(hi), nil)
	for _, first := range []portSet{common, s.node(depth+1, common0, noPorts), s.node(depth+1, noPorts, common1)} {
		if first == noPorts {
			continue
		}
		pairs := join(depth, s.cover(s.minus(lo, first)), s.cover(s.minus(hi, first)), s.cover(first))
		if len(pairs) < len(best) {
			best = pairs
		}
	}
	s.covers[a] = best
	return best
}

// join puts together the pairs of the half where the bit below depth is 0, of
// the half where it is 1, and of both. A pair of both halves need not compare it.
func join(depth int, lo, hi, both []Bits16) []Bits16 {
	pairs := slices.Clone(both)
	bit := uint16(1) << (15 - depth)
	for _, b := range lo {
		if slices.Contains(hi, b) {
			pairs = append(pairs, b)
		} else {
			pairs = append(pairs, Bits16{b.Value, b.Mask | bit})
		}
	}
	for _, b := range hi {
		if !slices.Contains(lo, b) {
			pairs = append(pairs, Bits16{b.Value | bit, b.Mask | bit})
		}
	}
	return pairs
}
