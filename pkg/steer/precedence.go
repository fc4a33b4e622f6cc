// SPDX-License-Identifier: Apache-2.0

package steer

// Precedence is how a driver decides between rules that overlap.
type Precedence uint8

const (
	// UnknownPrecedence: which rule wins is not known, so rules with different
	// actions must not overlap.
	UnknownPrecedence Precedence = iota
	// ByLocation: the rule at the lower location wins.
	ByLocation
	// ByFields: the rule that compares more fields wins, whatever its location;
	// between equals it is not known (mlx5).
	ByFields
)

var precedenceNames = map[Precedence]string{
	UnknownPrecedence: "unknown", ByLocation: "by location", ByFields: "by fields",
}

func (p Precedence) String() string { return precedenceNames[p] }

// ranks gives the rank of a rule at a position (its location, or that of its
// entry): the higher rank wins. Between equal ranks it is not known which wins.
var ranks = map[Precedence]func(m *Match, position int) int{
	UnknownPrecedence: func(*Match, int) int { return 0 },
	ByLocation:        func(_ *Match, position int) int { return -position },
	ByFields:          func(m *Match, _ int) int { return m.fields() },
}

// l3Rank lifts every IP rule over every Ethernet rule: mlx5 keeps the Ethernet
// tables behind the IP tables (at most 4 fields there, 7 here).
const l3Rank = 16

// fields is the order of mlx5's tables: the number of fields a rule compares,
// the flow type itself being one for IP rules (validate_flow and get_flow_table
// of mlx5's en_fs_ethtool.c). The first four bytes behind the IP header count as
// one field, as in flexsteer's patch.
func (m *Match) fields() int {
	compared := [...]bool{
		m.Source.Mask != [16]byte{}, m.Destination.Mask != [16]byte{},
		m.Protocol.Mask != 0, m.L4Data.Mask != 0, m.TOS.Mask != 0,
		m.SourcePort.Mask != 0, m.DestinationPort.Mask != 0,
		m.SourceMAC.Mask != [6]byte{}, m.DestinationMAC.Mask != [6]byte{}, m.EtherType.Mask != 0,
		m.VLAN.Mask&0x0fff != 0,
	}
	n := 0
	for _, c := range compared {
		if c {
			n++
		}
	}
	if m.Flow != Ether {
		n += 1 + l3Rank
	}
	return n
}
