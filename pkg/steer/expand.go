// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"math/bits"
	"net/netip"
	"slices"
)

// target is a set of packets and what an entry does with them.
type target struct {
	cube   cube
	action Action
}

// parts is what an entry names, as if no other entry existed: every combination
// of an address pair with a part of the bytes behind the IP header. Each of the
// two lists ends soon after limit, the number past which nothing fits.
type parts struct {
	entry     *Entry
	addresses []addressPair
	l4        []l4Target
	imbalance float64
}

type addressPair struct {
	family   Family
	src, dst AddrBits
}

func (e *Entry) parts(limit int) parts {
	p := parts{entry: e}
	p.l4, p.imbalance = e.behindIP(limit)
	for _, f := range e.Families {
		dsts := joinPrefixes(e.Destinations, f)
		for _, src := range joinPrefixes(e.Sources, f) {
			for _, dst := range dsts {
				p.addresses = append(p.addresses, addressPair{f, src, dst})
			}
			if len(p.addresses) > limit {
				return p
			}
		}
	}
	return p
}

// count is the number of targets.
func (p *parts) count() int {
	if len(p.entry.Families) == 0 {
		return 1
	}
	return len(p.addresses) * len(p.l4)
}

// targets appends the disjoint sets of packets, each with its action.
func (p *parts) targets(targets []target) []target {
	if len(p.entry.Families) == 0 {
		return append(targets, p.entry.ethernet())
	}
	targets = slices.Grow(targets, p.count())
	for _, a := range p.addresses {
		for _, l := range p.l4 {
			targets = append(targets, target{p.entry.cube(a, l.bits), l.action})
		}
	}
	return targets
}

func (e *Entry) ethernet() target {
	m := Match{Flow: Ether, EtherType: e.EtherType, DestinationMAC: e.DestinationMAC, VLAN: e.VLAN}
	c, _ := cubeOf(&m)
	return target{c, e.Steering.action()}
}

func (s *Steering) action() Action {
	if s.Kind == SteerDrop {
		return Drop
	}
	return ToQueue(s.Queue)
}

func (e *Entry) cube(a addressPair, l4 Bits32) cube {
	m := Match{
		Flow: IP4, Source: a.src, Destination: a.dst, Protocol: e.Protocol, L4Data: l4,
		DestinationMAC: e.DestinationMAC, VLAN: e.VLAN,
	}
	if a.family == IPv6 {
		m.Flow = IP6
	}
	c, _ := cubeOf(&m)
	return c
}

// l4Target is a part of the first four bytes behind the IP header and its action.
type l4Target struct {
	bits   Bits32
	action Action
}

func (e *Entry) behindIP(limit int) (targets []l4Target, imbalance float64) {
	switch e.Steering.Kind {
	case SteerQueues:
		return e.portByPort(limit), 0
	case SteerSpread:
		return e.spread(limit)
	}
	for _, b := range e.ports(limit) {
		targets = append(targets, l4Target{b, e.Steering.action()})
	}
	return targets, 0
}

// ports is the ports, or the l4data, that the entry compares.
func (e *Entry) ports(limit int) (all []Bits32) {
	if e.L4Data.Mask != 0 {
		return []Bits32{e.L4Data}
	}
	return cross(coverPorts(e.SourcePorts), coverPorts(e.DestinationPorts), limit)
}

// cross is every combination of the two ports, up to the first above limit.
func cross(src, dst []Bits16, limit int) (all []Bits32) {
	for _, s := range src {
		for _, d := range dst {
			if len(all) > limit {
				return all
			}
			all = append(all, Bits32{uint32(s.Value)<<16 | uint32(d.Value), uint32(s.Mask)<<16 | uint32(d.Mask)})
		}
	}
	return all
}

// portByPort sends the j-th port of the entry's one list to the j-th queue.
// Ports of one queue share pairs.
func (e *Entry) portByPort(limit int) (targets []l4Target) {
	list := e.DestinationPorts
	if len(list) == 0 {
		list = e.SourcePorts
	}
	byQueue, order := map[uint32][]Ports{}, []uint32{}
	j := 0
	for _, r := range list {
		for p := int(r.First); p <= int(r.Last) && j < len(e.Steering.Queues); p++ {
			q := e.Steering.Queues[j]
			if byQueue[q] == nil {
				order = append(order, q)
			}
			byQueue[q] = append(byQueue[q], Ports{uint16(p), uint16(p)})
			j++
		}
	}
	for _, q := range order {
		if len(targets) > limit {
			break
		}
		src, dst := []Bits16{{}}, coverPorts(byQueue[q])
		if len(e.DestinationPorts) == 0 {
			src, dst = dst, src
		}
		for _, b := range cross(src, dst, limit) {
			targets = append(targets, l4Target{b, ToQueue(q)})
		}
	}
	return targets
}

// spread is the buckets, each within the ports of the entry, and the imbalance
// over these ports.
func (e *Entry) spread(limit int) (targets []l4Target, imbalance float64) {
	spread := &e.Steering.Spread
	buckets, imbalance := spread.buckets()
	within := e.ports(limit)
	sizes := map[uint32]int{} // values by queue
	for _, b := range buckets {
		if len(targets) > limit {
			break
		}
		for _, p := range within {
			if (b.bits.Value^p.Value)&b.bits.Mask&p.Mask == 0 {
				both := Bits32{b.bits.Value | p.Value, b.bits.Mask | p.Mask}
				targets = append(targets, l4Target{both, ToQueue(b.queue)})
				sizes[b.queue] += 1 << (32 - bits.OnesCount32(both.Mask))
			}
		}
	}
	if len(within) > 1 || within[0].Mask&spread.Mask != 0 {
		counts := make([]int, len(spread.Over))
		for i, w := range spread.Over {
			counts[i] = sizes[w.Queue]
		}
		imbalance = spread.imbalance(counts)
	}
	return targets, imbalance
}

// joinPrefixes is the prefixes of family f as address matches: none that lies in
// another, and two halves of one prefix as that prefix. No prefixes at all means
// any address; none of this family means no match.
func joinPrefixes(all []netip.Prefix, f Family) (joined []AddrBits) {
	if len(all) == 0 {
		return []AddrBits{{}}
	}
	var stack []netip.Prefix
	for _, p := range sortedPrefixes(all, f) {
		if n := len(stack); n > 0 && stack[n-1].Overlaps(p) {
			continue
		}
		stack = append(stack, p)
		for n := len(stack); n > 1; n-- {
			parent, ok := parentOf(stack[n-2], stack[n-1])
			if !ok {
				break
			}
			stack = append(stack[:n-2], parent)
		}
	}
	for _, p := range stack {
		joined = append(joined, AddrFromPrefix(p))
	}
	return joined
}

// sortedPrefixes is the prefixes of family f by address, the wider first.
func sortedPrefixes(all []netip.Prefix, f Family) (sorted []netip.Prefix) {
	for _, p := range all {
		if p.Addr().Is4() == (f == IPv4) {
			sorted = append(sorted, p.Masked())
		}
	}
	slices.SortFunc(sorted, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	return sorted
}

// parentOf is the prefix of which lo and hi are the two halves.
func parentOf(lo, hi netip.Prefix) (parent netip.Prefix, ok bool) {
	if lo.Bits() != hi.Bits() || lo.Bits() == 0 {
		return parent, false
	}
	parent, err := lo.Addr().Prefix(lo.Bits() - 1)
	return parent, err == nil && parent.Contains(hi.Addr()) && lo != hi
}
