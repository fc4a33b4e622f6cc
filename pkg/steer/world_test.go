// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
)

// This file holds the small, obviously right models that the laws compare with:
// a reader of entries, a matcher of rules field by field, and a NIC that tries
// every rule. None of them uses cubes.

var precedences = []Precedence{UnknownPrecedence, ByLocation, ByFields}

func choose[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// randomEntry takes its values from a few, so that entries overlap often. It is
// as pkg/config would let it through.
func randomEntry(r *rand.Rand, i int) Entry {
	e := Entry{Name: fmt.Sprintf("e%d", i), At: Origin{File: "x.yaml", Line: i + 1, Column: 3}}
	if r.IntN(12) == 0 {
		randomEthernet(r, &e)
		return e
	}
	e.Families = choose(r, []Family{IPv4}, []Family{IPv6}, []Family{IPv4, IPv6})
	if r.IntN(8) > 0 {
		e.Protocol = Bits8{choose[uint8](r, 6, 17, 132, 146, 146, 253), 0xff}
	}
	many := 1 + 2*r.IntN(2) // fields in plenty leave no field to add to a guard
	if r.IntN(6) < 2*many {
		e.Sources = randomPrefixes(r, e.Families)
	}
	if r.IntN(6) < many {
		e.Destinations = randomPrefixes(r, e.Families)
	}
	if r.IntN(10) == 0 {
		e.VLAN = Bits16{choose[uint16](r, 10, 20), 0x0fff}
	}
	if r.IntN(10) < many {
		e.DestinationMAC = randomMAC(r)
	}
	if e.Protocol.Mask != 0 {
		randomPorts(r, &e)
	}
	e.Steering = randomSteering(r, &e)
	return e
}

func randomEthernet(r *rand.Rand, e *Entry) {
	if r.IntN(2) == 0 {
		e.EtherType = Bits16{choose[uint16](r, 0x0806, 0x88cc, 0x88f7), 0xffff}
	}
	if r.IntN(2) == 0 {
		e.VLAN = Bits16{choose[uint16](r, 10, 20), 0x0fff}
	}
	if r.IntN(3) > 0 || e.EtherType.Mask == 0 && e.VLAN.Mask == 0 {
		e.DestinationMAC = randomMAC(r)
	}
	e.Steering = choose(r, Steering{Kind: SteerDrop}, Steering{Kind: SteerQueue, Queue: uint32(r.IntN(4))})
}

func randomMAC(r *rand.Rand) (m MACBits) {
	m.Value, m.Mask = [6]byte{2, 0, 0, 0, 0, choose[byte](r, 1, 2)}, [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	return m
}

func randomPrefixes(r *rand.Rand, families []Family) (all []netip.Prefix) {
	for _, f := range families {
		for range 1 + r.IntN(3) {
			text := choose(r, "192.0.2.0/24", "192.0.2.0/25", "192.0.2.128/25", "192.0.2.7/32", "192.0.2.6/31", "198.51.100.0/24", "192.0.0.0/14", "0.0.0.0/0")
			if f == IPv6 {
				text = choose(r, "2001:db8::/32", "2001:db8::/33", "2001:db8:8000::/33", "2001:db8::7/128", "2001:db8::6/127", "2001:db8::/64", "2001:db8::/96", "2000::/3", "::/0")
			}
			all = append(all, netip.MustParsePrefix(text))
		}
	}
	return all
}

// randomPortList is ranges that do not overlap.
func randomPortList(r *rand.Rand) (list []Ports) {
	for _, first := range choose(r, []uint16{0}, []uint16{4000}, []uint16{4004}, []uint16{53}, []uint16{4000, 53}, []uint16{4020, 4000, 7}) {
		list = append(list, Ports{first, first + choose[uint16](r, 0, 0, 1, 3, 7, 10)})
	}
	return list
}

func randomPorts(r *rand.Rand, e *Entry) {
	switch r.IntN(8) {
	case 0, 1:
		e.DestinationPorts = randomPortList(r)
	case 2:
		e.SourcePorts = randomPortList(r)
	case 3:
		e.SourcePorts, e.DestinationPorts = randomPortList(r), randomPortList(r)
	case 4:
		if !Parsed(e.Protocol.Value) {
			e.L4Data.Mask = choose[uint32](r, 1, 3, 0xf, 0x00010001, 0xffff0000, 0x0f00000f, 0xffffffff)
			e.L4Data.Value = r.Uint32() & 0x0fa0000f & e.L4Data.Mask
		}
	}
}

func randomSteering(r *rand.Rand, e *Entry) Steering {
	switch k := r.IntN(6); {
	case k == 0:
		return Steering{Kind: SteerDrop}
	case k <= 2 && e.Protocol.Mask != 0:
		if s, ok := randomSpread(r, e); ok {
			return s
		}
	case k == 3 && countPorts(e.SourcePorts)*countPorts(e.DestinationPorts) == 0 && e.L4Data.Mask == 0:
		s := Steering{Kind: SteerQueues}
		for range countPorts(e.SourcePorts) + countPorts(e.DestinationPorts) {
			s.Queues = append(s.Queues, uint32(r.IntN(3)))
		}
		if len(s.Queues) > 0 {
			return s
		}
	}
	return Steering{Kind: SteerQueue, Queue: uint32(r.IntN(4))}
}

// randomSpread is over bits that the entry leaves free; ok is false where it
// leaves none.
func randomSpread(r *rand.Rand, e *Entry) (steering Steering, ok bool) {
	s := Spread{Mask: choose[uint32](r, 0xffff, 0xf, 0xffff0000, 0x00010003, 0xffffffff)}
	s.Mask &^= e.L4Data.Mask
	if countPorts(e.SourcePorts) == 1 {
		s.Mask &^= 0xffff0000
	}
	if countPorts(e.DestinationPorts) == 1 {
		s.Mask &^= 0xffff
	}
	for q := range min(1+r.IntN(5), 1<<popcount(s.Mask)) {
		s.Over = append(s.Over, Weight{uint32(q), choose[uint32](r, 1, 1, 2, 5)})
	}
	if n := choose(r, 0, 8, 16); n <= 1<<popcount(s.Mask) {
		s.Buckets = n
	}
	return Steering{Kind: SteerSpread, Spread: s}, s.Mask != 0
}

func countPorts(list []Ports) (n int) {
	for _, p := range list {
		n += int(p.Last-p.First) + 1
	}
	return n
}

func popcount(m uint32) (n int) {
	for ; m != 0; m &= m - 1 {
		n++
	}
	return n
}

func randomPacket(r *rand.Rand) (p Packet) {
	p.DestinationMAC = [6]byte{2, 0, 0, 0, 0, choose[byte](r, 1, 2, 3)}
	if r.IntN(4) == 0 {
		p.Tagged, p.TagType, p.VLAN = true, choose[uint16](r, 0x8100, 0x8100, 0x88a8), choose[uint16](r, 10, 20, 30)|choose[uint16](r, 0, 0x2000)
	}
	switch r.IntN(8) {
	case 0:
		p.EtherType = choose[uint16](r, 0x0806, 0x88cc, 0x88f7)
		return p
	case 1, 2, 3:
		p.Family, p.EtherType = IPv6, 0x86dd
		p.Source, p.Destination = randomAddr(r, IPv6), randomAddr(r, IPv6)
	default:
		p.Family, p.EtherType = IPv4, 0x0800
		p.Source, p.Destination = randomAddr(r, IPv4), randomAddr(r, IPv4)
	}
	p.Protocol = choose[uint8](r, 6, 17, 132, 146, 146, 253, 1)
	if r.IntN(8) > 0 {
		p.HasL4 = true
		p.L4 = uint32(randomPort(r))<<16 | uint32(randomPort(r))
	}
	return p
}

func randomPort(r *rand.Rand) uint16 {
	if r.IntN(8) == 0 {
		return uint16(r.Uint32())
	}
	return choose[uint16](r, 0, 53, 4000, 4004) + uint16(r.IntN(16))
}

func randomAddr(r *rand.Rand, f Family) (a [16]byte) {
	if f == IPv4 {
		copy(a[:], netip.MustParseAddr(choose(r, "192.0.2.6", "192.0.2.7", "192.0.2.8", "192.0.2.200", "198.51.100.1", "203.0.113.5")).AsSlice())
		return a
	}
	return netip.MustParseAddr(choose(r, "2001:db8::6", "2001:db8::7", "2001:db8::8", "2001:db8::1:0:8", "2001:db8:8000::1", "2001:db9::1")).As16()
}

// read is what reading the entries from the top says about p.
func read(entries []Entry, p *Packet) (Action, bool) {
	for i := range entries {
		if a, ok := fits(&entries[i], p); ok {
			return a, true
		}
	}
	return Action{}, false
}

func fits(e *Entry, p *Packet) (Action, bool) {
	if e.VLAN.Mask != 0 && (p.TagType != 0x8100 || p.VLAN&0xfff != e.VLAN.Value) {
		return Action{}, false
	}
	if e.DestinationMAC.Mask[0] != 0 && p.DestinationMAC != e.DestinationMAC.Value {
		return Action{}, false
	}
	if len(e.Families) == 0 {
		return e.Steering.action(), e.EtherType.Mask == 0 || p.EtherType == e.EtherType.Value
	}
	if !slices.Contains(e.Families, p.Family) || e.Protocol.Mask != 0 && p.Protocol != e.Protocol.Value ||
		!inPrefixes(e.Sources, p.Family, p.Source) || !inPrefixes(e.Destinations, p.Family, p.Destination) {
		return Action{}, false
	}
	src, dst := uint16(p.L4>>16), uint16(p.L4)
	looksBehind := len(e.SourcePorts)+len(e.DestinationPorts) > 0 || e.L4Data.Mask != 0 ||
		e.Steering.Kind == SteerSpread && len(e.Steering.Spread.Over) > 1
	if looksBehind && !p.HasL4 || !inPorts(e.SourcePorts, src) || !inPorts(e.DestinationPorts, dst) ||
		p.L4&e.L4Data.Mask != e.L4Data.Value {
		return Action{}, false
	}
	switch e.Steering.Kind {
	case SteerQueues:
		if len(e.SourcePorts) > 0 {
			return ToQueue(e.Steering.Queues[position(e.SourcePorts, src)]), true
		}
		return ToQueue(e.Steering.Queues[position(e.DestinationPorts, dst)]), true
	case SteerSpread:
		buckets, _ := e.Steering.Spread.buckets() // which value goes where has tests of its own
		for _, b := range buckets {
			if p.L4&b.bits.Mask == b.bits.Value {
				return ToQueue(b.queue), true
			}
		}
		panic("no bucket")
	}
	return e.Steering.action(), true
}

func inPorts(ports []Ports, v uint16) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p Ports) bool { return p.First <= v && v <= p.Last })
}

// position is where v stands in the list, counted in ports.
func position(list []Ports, v uint16) (n int) {
	for _, p := range list {
		if p.First <= v && v <= p.Last {
			return n + int(v-p.First)
		}
		n += int(p.Last-p.First) + 1
	}
	panic("not in the list")
}

func inPrefixes(all []netip.Prefix, f Family, a [16]byte) bool {
	addr := netip.AddrFrom16(a)
	if f == IPv4 {
		addr = netip.AddrFrom4([4]byte(a[:4]))
	}
	return len(all) == 0 || slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// takes reports whether a rule with match m takes p, field by field as ethtool(8)
// describes them.
func takes(m *Match, p *Packet) bool {
	f, isIP := m.Flow.Family()
	if isIP && f != p.Family {
		return false
	}
	for _, b := range []struct{ have, value, mask []byte }{
		{p.Source[:], m.Source.Value[:], m.Source.Mask[:]},
		{p.Destination[:], m.Destination.Value[:], m.Destination.Mask[:]},
		{p.SourceMAC[:], m.SourceMAC.Value[:], m.SourceMAC.Mask[:]},
		{p.DestinationMAC[:], m.DestinationMAC.Value[:], m.DestinationMAC.Mask[:]},
		{[]byte{p.Protocol}, []byte{m.Protocol.Value}, []byte{m.Protocol.Mask}},
		{be16(p.EtherType), be16(m.EtherType.Value), be16(m.EtherType.Mask)},
		{be16(p.VLAN), be16(m.VLAN.Value), be16(m.VLAN.Mask)},
	} {
		for i := range b.have {
			if b.have[i]&b.mask[i] != b.value[i] {
				return false
			}
		}
	}
	if m.VLAN.Mask != 0 && p.TagType != 0x8100 {
		return false
	}
	if proto, ok := map[FlowType]uint8{TCP4: 6, TCP6: 6, UDP4: 17, UDP6: 17, SCTP4: 132, SCTP6: 132}[m.Flow]; ok && p.Protocol != proto {
		return false
	}
	if m.L4Data.Mask == 0 && m.SourcePort.Mask == 0 && m.DestinationPort.Mask == 0 {
		return true
	}
	return p.HasL4 && p.L4&m.L4Data.Mask == m.L4Data.Value &&
		uint16(p.L4>>16)&m.SourcePort.Mask == m.SourcePort.Value && uint16(p.L4)&m.DestinationPort.Mask == m.DestinationPort.Value
}

func be16(v uint16) []byte { return binary.BigEndian.AppendUint16(nil, v) }

// decide is what a NIC with these rules does with p: all rules that could win by
// what is known of its precedence. More than one action means "not defined".
func decide(rules []Rule, p Precedence, pkt *Packet) (actions []Action) {
	best := -1 << 30
	for loc, r := range rules {
		if !takes(&r.Match, pkt) {
			continue
		}
		rank := 0
		switch p {
		case ByLocation:
			rank = -loc
		case ByFields:
			rank = mlx5Tables(&r.Match)
		}
		if rank > best {
			best, actions = rank, nil
		}
		if rank == best && !slices.Contains(actions, r.Action) {
			actions = append(actions, r.Action)
		}
	}
	return actions
}

// mlx5Tables counts as the driver's validate_* functions do; IP tables come
// before Ethernet tables.
func mlx5Tables(m *Match) (n int) {
	count := func(compared bool) {
		if compared {
			n++
		}
	}
	count(m.DestinationMAC.Mask != [6]byte{})
	count(m.VLAN.Mask != 0)
	if m.Flow == Ether {
		count(m.SourceMAC.Mask != [6]byte{})
		count(m.EtherType.Mask != 0)
		return n
	}
	n += 101
	count(m.Source.Mask != [16]byte{})
	count(m.Destination.Mask != [16]byte{})
	count(m.Protocol.Mask != 0)
	count(m.L4Data.Mask != 0)
	count(m.SourcePort.Mask != 0)
	count(m.DestinationPort.Mask != 0)
	return n
}
