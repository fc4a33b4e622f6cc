// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/binary"
	"net/netip"
)

// Datagram is an IP packet, for Machine.Frame. Its family is the Source's.
type Datagram struct {
	Tags        []Tag // outer first
	Source      netip.Addr
	Destination netip.Addr
	Protocol    byte      // what the payload is, also behind a fragment header
	Options     []byte    // of IPv4: whole words, at most 10
	Fragment    *Fragment // nil: a whole packet
	Payload     []byte
}

// Tag is a VLAN tag.
type Tag struct{ Type, VLAN uint16 }

// Fragment is a place in a packet that was cut to pieces.
type Fragment struct {
	Offset uint16 // in 8 bytes, below 1<<13
	More   bool
}

// The hosts of RFC 5737 and RFC 3849 that Machine.IPv4 and Machine.IPv6 have, too.
var (
	client4, server4 = netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("192.0.2.1")
	client6, server6 = netip.MustParseAddr("2001:db8:1::1"), netip.MustParseAddr("2001:db8:2::1")
)

// six is d between the same hosts by IPv6.
func (d Datagram) six() Datagram {
	d.Source, d.Destination, d.Options = client6, server6, nil
	return d
}

// Frame is d in an Ethernet frame to this link.
func (m *Machine) Frame(d Datagram) []byte {
	m.Helper()
	etherType, packet := uint16(0x0800), d.ipv4
	if d.Source.Is6() {
		etherType, packet = 0x86dd, d.ipv6
	}
	return m.Tagged(d.Tags, etherType, packet()...)
}

// Tagged is Ethernet with VLAN tags.
func (m *Machine) Tagged(tags []Tag, etherType uint16, payload ...byte) []byte {
	m.Helper()
	var b []byte
	for i, t := range tags {
		b = binary.BigEndian.AppendUint16(b, t.VLAN)
		next := etherType
		if i+1 < len(tags) {
			next = tags[i+1].Type
		}
		b = binary.BigEndian.AppendUint16(b, next)
	}
	if len(tags) > 0 {
		etherType = tags[0].Type
	}
	return m.Ethernet(etherType, append(b, payload...)...)
}

func (d Datagram) ipv4() []byte {
	h := []byte{byte(0x45 + len(d.Options)/4), 0, 0, 0, 0, 1, 0, 0, 64, d.Protocol, 0, 0}
	h = append(h, d.Source.AsSlice()...)
	h = append(h, d.Destination.AsSlice()...)
	h = append(h, d.Options...)
	binary.BigEndian.PutUint16(h[2:], uint16(len(h)+len(d.Payload)))
	if f := d.Fragment; f != nil {
		binary.BigEndian.PutUint16(h[6:], f.Offset)
		if f.More {
			h[6] |= 0x20
		}
	}
	binary.BigEndian.PutUint16(h[10:], ^sum16(h))
	return append(h, d.Payload...)
}

func (d Datagram) ipv6() []byte {
	next, payload := d.Protocol, d.Payload
	if f := d.Fragment; f != nil {
		const fragmentHeader = 44
		h := []byte{next, 0, byte(f.Offset >> 5), byte(f.Offset << 3), 0, 0, 0, 1}
		if f.More {
			h[3] |= 1
		}
		next, payload = fragmentHeader, append(h, payload...)
	}
	h := []byte{0x60, 0, 0, 0, byte(len(payload) >> 8), byte(len(payload)), next, 64}
	h = append(h, d.Source.AsSlice()...)
	h = append(h, d.Destination.AsSlice()...)
	return append(h, payload...)
}
