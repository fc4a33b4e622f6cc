// SPDX-License-Identifier: Apache-2.0

package steer

import "net/netip"

// Family is an IP version: 4 or 6.
type Family uint8

const (
	IPv4 Family = 4
	IPv6 Family = 6
)

// FlowType is the kind of packets that an ntuple rule looks at, in the words
// of ethtool(8): `flow-type ether|ip4|tcp4|...`.
type FlowType uint8

const (
	Other FlowType = iota // a rule that this package cannot express; see Match.Opaque
	Ether
	IP4
	IP6
	TCP4
	TCP6
	UDP4
	UDP6
	SCTP4
	SCTP6
)

// Bits8, Bits16 and Bits32 compare the bits that are set in Mask with Value.
// Canonical form: no bit of Value outside Mask. The zero value matches anything.
type (
	Bits8  struct{ Value, Mask uint8 }
	Bits16 struct{ Value, Mask uint16 }
	Bits32 struct{ Value, Mask uint32 }
)

// AddrBits compares an IP address, network byte order, under a mask. IPv4
// takes the first four bytes. The zero value matches any address.
type AddrBits struct{ Value, Mask [16]byte }

// MACBits compares an Ethernet address under a mask. The zero value matches any.
type MACBits struct{ Value, Mask [6]byte }

// Match is what a packet must look like for a rule to take it. Two matches are
// the same exactly if they are ==, provided both are canonical (Canonical).
//
// A set mask bit means "compare", as in the kernel's struct
// ethtool_rx_flow_spec; ethtool(8) prints and takes the inverse.
type Match struct {
	Flow FlowType

	Source      AddrBits // all but Ether
	Destination AddrBits // all but Ether
	TOS         Bits8    // IPv4 TOS byte or IPv6 traffic class; all but Ether

	Protocol Bits8  // IP4, IP6: the protocol behind the IP header
	L4Data   Bits32 // IP4, IP6: the first four bytes behind the IP header, big endian

	SourcePort      Bits16 // TCP, UDP, SCTP
	DestinationPort Bits16 // TCP, UDP, SCTP

	SourceMAC      MACBits // Ether
	DestinationMAC MACBits // Ether, and FLOW_MAC_EXT of the others
	EtherType      Bits16  // Ether

	// The outer tag: its control information (TCI), of which the VLAN id is the
	// low 12 bits, and its EtherType. Where that is not compared, only tags of
	// 802.1Q (0x8100) are meant, as mlx5 has it (set_cvlan of en_fs_ethtool.c).
	VLAN          Bits16
	VLANEtherType Bits16

	// Opaque holds the kernel's bytes of a rule of Flow Other, so that rules
	// other people made (ESP, AH, user-defined data) still compare and are seen.
	Opaque string
}

// NoContext is the Action.Context of a rule outside any RSS context.
const NoContext = 0

// Action is what happens to the packet: dropped, or received on a queue.
type Action struct {
	Drop    bool
	Queue   uint32 // receive queue (channel) number, when not Drop
	VF      uint8  // 0, or number of the virtual function + 1 (ring_cookie bits 32-39)
	Context uint32 // RSS context that spreads the packet; NoContext for one queue
}

// ToQueue receives the packet on queue q.
func ToQueue(q uint32) Action { return Action{Queue: q} }

// Drop discards the packet.
var Drop = Action{Drop: true}

// Loc is the location of a rule in the NIC's table, from 0.
type Loc uint32

// Rule is one ntuple rule, without its location.
type Rule struct {
	Match  Match
	Action Action
}

// Table is the rules of one link by location.
type Table map[Loc]Rule

// Range is the locations First to Last, both included.
type Range struct{ First, Last Loc }

// Contains reports whether l is in r.
func (r Range) Contains(l Loc) bool { return r.First <= l && l <= r.Last }

// Size is the number of locations in r.
func (r Range) Size() int { return int(r.Last) - int(r.First) + 1 }

// within is the part of r that a table of so many locations has; 0: unknown, all.
// It is empty (Size below 1) when r begins past the table's end.
func (r Range) within(capacity int) Range {
	if capacity > 0 && int(r.Last) >= capacity {
		r.Last = Loc(capacity - 1)
	}
	return r
}

// DefaultOwn is the range that is ours unless a policy says otherwise. ethtool(8)
// picks locations from 1023 downward, so people keep 896-1023.
var DefaultOwn = Range{0, 895}

// AddrFromPrefix is the match "in p"; the family is p's.
func AddrFromPrefix(p netip.Prefix) AddrBits {
	var a AddrBits
	copy(a.Value[:], p.Masked().Addr().AsSlice())
	for i := range p.Bits() {
		a.Mask[i/8] |= 0x80 >> (i % 8)
	}
	return a
}

// Prefix is the inverse of AddrFromPrefix for family f. ok is false when the
// mask is not a prefix.
func (a AddrBits) Prefix(f Family) (p netip.Prefix, ok bool) {
	n := 0
	for n < 128 && a.Mask[n/8]&(0x80>>(n%8)) != 0 {
		n++
	}
	addr := netip.AddrFrom16(a.Value)
	if f == IPv4 {
		addr = netip.AddrFrom4([4]byte(a.Value[:4]))
		n = min(n, 32)
	}
	p = netip.PrefixFrom(addr, n)
	return p, AddrFromPrefix(p) == a
}

// Family is the IP version of a flow type; ok is false for Ether and Other.
func (t FlowType) Family() (f Family, ok bool) {
	switch t {
	case IP4, TCP4, UDP4, SCTP4:
		return IPv4, true
	case IP6, TCP6, UDP6, SCTP6:
		return IPv6, true
	}
	return 0, false
}

// Canonical is m with every value bit outside its mask cleared.
func (m Match) Canonical() Match {
	m.Source, m.Destination = m.Source.canonical(), m.Destination.canonical()
	m.TOS.Value &= m.TOS.Mask
	m.Protocol.Value &= m.Protocol.Mask
	m.L4Data.Value &= m.L4Data.Mask
	m.SourcePort.Value &= m.SourcePort.Mask
	m.DestinationPort.Value &= m.DestinationPort.Mask
	m.SourceMAC, m.DestinationMAC = m.SourceMAC.canonical(), m.DestinationMAC.canonical()
	m.EtherType.Value &= m.EtherType.Mask
	m.VLAN.Value &= m.VLAN.Mask
	m.VLANEtherType.Value &= m.VLANEtherType.Mask
	return m
}

func (a AddrBits) canonical() AddrBits {
	for i := range a.Value {
		a.Value[i] &= a.Mask[i]
	}
	return a
}

func (a MACBits) canonical() MACBits {
	for i := range a.Value {
		a.Value[i] &= a.Mask[i]
	}
	return a
}
