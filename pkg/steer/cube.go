// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"encoding/binary"
	"math/bits"
)

// key is everything that a rule can look at in a packet, as one string of bits.
//
//	word 0  from the top: EtherType 16, tag flag, TCI 16, protocol 8, L4 flag, TOS 8
//	word 1  tag type 16, and in the low half the first four bytes behind the IP header
//	word 2  destination MAC in the low 48 bits; word 3: source MAC
//	words 4, 5  source address; words 6, 7  destination address
//
// The order matters to subtract: a match may look at an IP field only when it
// fixes the EtherType, at a tag only when there is one, and at ports only when
// it fixes the protocol and they are there, so these come first.
type key [8]uint64

const (
	etherTypeShift = 48
	flagTagged     = 1 << 47 // the packet's outer tag is one of 802.1Q
	tciShift       = 31
	protocolShift  = 16
	flagL4         = 1 << 15 // the packet has four bytes behind its IP header
	tosShift       = 0

	tagTypeShift = 48 // in word 1
)

// cube is the set of packets whose key equals v under the mask m. v has no bit
// outside m.
type cube struct{ v, m key }

const (
	etherTypeIPv4 = 0x0800
	etherTypeIPv6 = 0x86dd
)

func (c *cube) set(word, shift int, value, mask uint64) {
	c.v[word] |= (value & mask) << shift
	c.m[word] |= mask << shift
}

// covers reports whether every packet of d is in c.
func (c *cube) covers(d *cube) bool {
	for i := range c.m {
		if c.m[i]&^d.m[i] != 0 || (c.v[i]^d.v[i])&c.m[i] != 0 {
			return false
		}
	}
	return true
}

// overlaps reports whether some packet is in both.
func (c *cube) overlaps(d *cube) bool {
	for i := range c.m {
		if (c.v[i]^d.v[i])&c.m[i]&d.m[i] != 0 {
			return false
		}
	}
	return true
}

// intersect is the packets that are in both of two overlapping cubes.
func (c *cube) intersect(d *cube) cube {
	r := *c
	for i := range r.m {
		r.v[i] |= d.v[i]
		r.m[i] |= d.m[i]
	}
	return r
}

// extraBits is how many bits d compares and c does not: subtracting d from c
// leaves that many pieces.
func (c *cube) extraBits(d *cube) int {
	n := 0
	for i := range c.m {
		n += bits.OnesCount64(d.m[i] &^ c.m[i])
	}
	return n
}

// subtract appends to pieces disjoint cubes that hold the packets of c which
// are not in d. Each piece agrees with d on a growing run of d's bits and then
// differs in the next one.
func (c *cube) subtract(d *cube, pieces []cube) []cube {
	if !c.overlaps(d) {
		return append(pieces, *c)
	}
	rest := *c
	for i := range c.m {
		for extra := d.m[i] &^ c.m[i]; extra != 0; {
			bit := uint64(1) << (63 - bits.LeadingZeros64(extra))
			extra &^= bit
			rest.m[i] |= bit
			rest.v[i] |= d.v[i] & bit
			piece := rest
			piece.v[i] ^= bit
			pieces = append(pieces, piece)
		}
	}
	return pieces
}

// halve splits c at one bit of a field that it does not compare yet, an address
// where it can: each half then compares one field more. ok is false when there is
// no such field.
func (c *cube) halve() (halves [2]cube, ok bool) {
	word, bit, ok := c.freeField()
	if !ok {
		return halves, false
	}
	halves = [2]cube{*c, *c}
	halves[0].m[word] |= bit
	halves[1].m[word] |= bit
	halves[1].v[word] |= bit
	return halves, true
}

// freeField is the lowest bit, as a word of the key and a bit of it, of the
// source address, the destination address or the destination MAC address: the
// first of them that c may and does not compare.
func (c *cube) freeField() (word int, bit uint64, ok bool) {
	lowest := [...]struct {
		word int
		bit  uint64
	}{{5, 1}, {7, 1}}
	etherType := c.v[0] >> etherTypeShift
	isIP := c.m[0]>>etherTypeShift == 0xffff && (etherType == etherTypeIPv4 || etherType == etherTypeIPv6)
	if etherType == etherTypeIPv4 {
		lowest[0].word, lowest[0].bit, lowest[1].word, lowest[1].bit = 4, 1<<32, 6, 1<<32
	}
	for i, f := range lowest {
		if isIP && c.m[4+2*i]|c.m[5+2*i] == 0 {
			return f.word, f.bit, true
		}
	}
	return 2, 1, c.m[2] == 0
}

// cubeOf is the packets that m takes. An Opaque match gives ok false: which
// packets it takes is not known.
func cubeOf(m *Match) (c cube, ok bool) {
	if m.Flow == Other {
		return c, false
	}
	c.setEthernet(m)
	c.setIP(m)
	c.setL4(m)
	return c, true
}

func (c *cube) setEthernet(m *Match) {
	c.set(0, etherTypeShift, uint64(m.EtherType.Value), uint64(m.EtherType.Mask))
	c.v[2], c.m[2] = word48(m.DestinationMAC.Value), word48(m.DestinationMAC.Mask)
	c.v[3], c.m[3] = word48(m.SourceMAC.Value), word48(m.SourceMAC.Mask)
	c.set(0, tciShift, uint64(m.VLAN.Value), uint64(m.VLAN.Mask))
	c.set(1, tagTypeShift, uint64(m.VLANEtherType.Value), uint64(m.VLANEtherType.Mask))
	if m.VLAN.Mask != 0 && m.VLANEtherType.Mask == 0 {
		c.set(0, 0, flagTagged, flagTagged)
	}
}

func (c *cube) setIP(m *Match) {
	switch f, _ := m.Flow.Family(); f {
	case IPv4:
		c.set(0, etherTypeShift, etherTypeIPv4, 0xffff)
	case IPv6:
		c.set(0, etherTypeShift, etherTypeIPv6, 0xffff)
	default:
		return
	}
	c.set(0, tosShift, uint64(m.TOS.Value), uint64(m.TOS.Mask))
	for i := range 2 {
		c.v[4+i] = binary.BigEndian.Uint64(m.Source.Value[8*i:])
		c.m[4+i] = binary.BigEndian.Uint64(m.Source.Mask[8*i:])
		c.v[6+i] = binary.BigEndian.Uint64(m.Destination.Value[8*i:])
		c.m[6+i] = binary.BigEndian.Uint64(m.Destination.Mask[8*i:])
	}
}

func (c *cube) setL4(m *Match) {
	l4 := m.L4Data
	if p, ok := m.Flow.protocol(); ok {
		c.set(0, protocolShift, uint64(p), 0xff)
		l4.Value = uint32(m.SourcePort.Value)<<16 | uint32(m.DestinationPort.Value)
		l4.Mask = uint32(m.SourcePort.Mask)<<16 | uint32(m.DestinationPort.Mask)
	} else {
		c.set(0, protocolShift, uint64(m.Protocol.Value), uint64(m.Protocol.Mask))
	}
	if l4.Mask != 0 {
		c.set(0, 0, flagL4, flagL4)
		c.set(1, 0, uint64(l4.Value), uint64(l4.Mask))
	}
}

func word48(a [6]byte) uint64 {
	return uint64(a[0])<<40 | uint64(a[1])<<32 | uint64(binary.BigEndian.Uint32(a[2:]))
}

func mac48(w uint64) (a [6]byte) {
	a[0], a[1] = byte(w>>40), byte(w>>32)
	binary.BigEndian.PutUint32(a[2:], uint32(w))
	return a
}

// protocol is the protocol that a flow type implies.
func (t FlowType) protocol() (p uint8, ok bool) {
	switch t {
	case TCP4, TCP6:
		return 6, true
	case UDP4, UDP6:
		return 17, true
	case SCTP4, SCTP6:
		return 132, true
	}
	return 0, false
}

// flow is the flow type of a family for a protocol that NICs parse.
func (f Family) flow(protocol uint8) (t FlowType, parsed bool) {
	switch protocol {
	case 6:
		t = TCP4
	case 17:
		t = UDP4
	case 132:
		t = SCTP4
	default:
		return 0, false
	}
	if f == IPv6 {
		t++
	}
	return t, true
}

// match is the inverse of cubeOf. ok is false for sets that no ntuple rule can
// name: packets without a tag, packets without the bytes behind the IP header.
func (c *cube) match() (m Match, ok bool) {
	flags := c.m[0] & (flagL4 | flagTagged)
	if flags&^c.v[0] != 0 {
		return m, false
	}
	m.VLAN = Bits16{uint16(c.v[0] >> tciShift), uint16(c.m[0] >> tciShift)}
	m.VLANEtherType = Bits16{uint16(c.v[1] >> tagTypeShift), uint16(c.m[1] >> tagTypeShift)}
	if flags&flagTagged != 0 && m.VLAN.Mask == 0 {
		return m, false
	}
	m.DestinationMAC = MACBits{mac48(c.v[2]), mac48(c.m[2])}
	m.SourceMAC = MACBits{mac48(c.v[3]), mac48(c.m[3])}
	etherType := Bits16{uint16(c.v[0] >> etherTypeShift), uint16(c.m[0] >> etherTypeShift)}
	switch etherType {
	case Bits16{etherTypeIPv4, 0xffff}:
		return m, c.matchIP(&m, IPv4)
	case Bits16{etherTypeIPv6, 0xffff}:
		return m, c.matchIP(&m, IPv6)
	}
	m.Flow, m.EtherType = Ether, etherType
	return m, true
}

func (c *cube) matchIP(m *Match, f Family) bool {
	m.Flow = IP4
	if f == IPv6 {
		m.Flow = IP6
	}
	m.TOS = Bits8{uint8(c.v[0] >> tosShift), uint8(c.m[0] >> tosShift)}
	for i := range 2 {
		binary.BigEndian.PutUint64(m.Source.Value[8*i:], c.v[4+i])
		binary.BigEndian.PutUint64(m.Source.Mask[8*i:], c.m[4+i])
		binary.BigEndian.PutUint64(m.Destination.Value[8*i:], c.v[6+i])
		binary.BigEndian.PutUint64(m.Destination.Mask[8*i:], c.m[6+i])
	}
	proto := Bits8{uint8(c.v[0] >> protocolShift), uint8(c.m[0] >> protocolShift)}
	l4 := Bits32{uint32(c.v[1]), uint32(c.m[1])}
	if t, parsed := f.flow(proto.Value); parsed && proto.Mask == 0xff {
		m.Flow = t
		m.SourcePort = Bits16{uint16(l4.Value >> 16), uint16(l4.Mask >> 16)}
		m.DestinationPort = Bits16{uint16(l4.Value), uint16(l4.Mask)}
		return true
	}
	m.Protocol, m.L4Data = proto, l4
	return m.SourceMAC == MACBits{}
}
