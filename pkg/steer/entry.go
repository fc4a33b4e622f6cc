// SPDX-License-Identifier: Apache-2.0

package steer

import "net/netip"

// Origin is a place in a configuration file. The zero value is "no place".
type Origin struct {
	File   string // as a person would name it, such as /etc/flexsteer/10-homa.yaml
	Line   int    // from 1
	Column int    // from 1, in characters
	Text   string // that line of the file, for the caret
}

// Ports is the port numbers First to Last, both included.
type Ports struct{ First, Last uint16 }

// Entry is one item of `steer:`, checked but not yet compiled. Empty lists and
// zero masks compare nothing.
type Entry struct {
	Name string
	At   Origin // the entry

	Families         []Family // at least one, unless the entry compares Ethernet fields only
	Protocol         Bits8    // mask 0 or 0xff
	Sources          []netip.Prefix
	Destinations     []netip.Prefix
	SourcePorts      []Ports // first 16-bit word behind the IP header
	DestinationPorts []Ports // second word
	L4Data           Bits32  // the ethtool form, instead of ports
	VLAN             Bits16  // mask 0 or 0x0fff
	DestinationMAC   MACBits
	EtherType        Bits16 // mask 0 or 0xffff; then no Families

	Steering   Steering
	SteeringAt Origin // the value of queue, queues, spread or drop
}

// SteeringKind says which action an entry has.
type SteeringKind uint8

const (
	SteerQueue  SteeringKind = iota + 1 // all to Queue
	SteerQueues                         // the j-th port to Queues[j]
	SteerSpread                         // buckets of some bits over queues
	SteerDrop                           // discard
)

// Steering is the action of an Entry.
type Steering struct {
	Kind   SteeringKind
	Queue  uint32
	Queues []uint32 // as many as there are ports in the entry's one list of ports
	Spread Spread
}

// Spread sends buckets of the traffic to queues by weight.
type Spread struct {
	Mask    uint32   // bits of the first four bytes: 0xffff0000 source port, 0x0000ffff destination port
	Over    []Weight // at least one, ascending by queue, weights at least 1
	Buckets int      // a power of two up to 2^(bits in Mask), or 0: the fewest that keep the imbalance at or under 10 %
}

// Weight is a queue's share of a Spread.
type Weight struct{ Queue, Weight uint32 }

// Parsed reports whether NICs parse protocol p themselves, so that its ports
// are ordinary fields of tcp4, udp4, sctp4 and their IPv6 kin.
func Parsed(p uint8) bool { return p == 6 || p == 17 || p == 132 }

// UsesL4Data reports whether e needs the flex parser: it looks behind the IP
// header of a protocol which the NIC does not parse.
func (e *Entry) UsesL4Data() bool {
	if Parsed(e.Protocol.Value) && e.Protocol.Mask == 0xff {
		return false
	}
	return len(e.SourcePorts) > 0 || len(e.DestinationPorts) > 0 || e.L4Data.Mask != 0 ||
		e.Steering.Kind == SteerSpread && len(e.Steering.Spread.Over) > 1 // one queue takes all, whatever the bits
}
