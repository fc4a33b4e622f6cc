// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"net/netip"
)

var be = binary.BigEndian

// Peer is a station that a guest can ping: it answers ARP, neighbour discovery,
// and echo requests of ICMP and ICMPv6. Frames with VLAN tags are answered with
// the same tags.
type Peer struct {
	MAC  [6]byte
	IPv4 netip.Addr
	IPv6 netip.Addr
}

// DefaultPeer is 10.0.0.2 and fd00::2.
var DefaultPeer = Peer{[6]byte{0x02, 0, 0, 0, 0, 0x02}, netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")}

const (
	typeVLAN    = 0x8100
	typeService = 0x88a8
	typeARP     = 0x0806
	typeIPv4    = 0x0800
	typeIPv6    = 0x86dd

	protoICMP   = 1
	protoICMPv6 = 58

	shortest = 60 // bytes of a frame without its check sequence
)

// Answer is the frame that the peer sends upon one, or nil.
func (p Peer) Answer(frame []byte) []byte {
	n := 12 // bytes before the last EtherType
	for len(frame) >= n+6 && (be.Uint16(frame[n:]) == typeVLAN || be.Uint16(frame[n:]) == typeService) {
		n += 4
	}
	if len(frame) < n+2 {
		return nil
	}
	var payload []byte
	switch body := frame[n+2:]; be.Uint16(frame[n:]) {
	case typeARP:
		payload = p.arp(body)
	case typeIPv4:
		payload = p.icmp(body)
	case typeIPv6:
		payload = p.icmpv6(body)
	}
	if payload == nil {
		return nil
	}
	answer := bytes.Join([][]byte{frame[6:12], p.MAC[:], frame[12 : n+2], payload}, nil)
	return append(answer, make([]byte, max(0, shortest-len(answer)))...)
}

// arp answers a request (RFC 826: Ethernet, IPv4): operation at 6, sender's
// addresses at 8 and 14, target's at 18 and 24.
func (p Peer) arp(b []byte) []byte {
	if len(b) < 28 || !bytes.Equal(b[:8], []byte{0, 1, 8, 0, 6, 4, 0, 1}) || netip.AddrFrom4([4]byte(b[24:])) != p.IPv4 {
		return nil
	}
	return bytes.Join([][]byte{b[:6], {0, 2}, p.MAC[:], p.IPv4.AsSlice(), b[8:18]}, nil)
}

// icmp answers an echo request in a whole IPv4 packet.
func (p Peer) icmp(b []byte) []byte {
	if len(b) < 20 || b[0]>>4 != 4 {
		return nil
	}
	head, size := int(b[0]&0xf)*4, int(be.Uint16(b[2:]))
	fragment := be.Uint16(b[6:])&0x3fff != 0
	if head < 20 || size < head+8 || size > len(b) || fragment || b[9] != protoICMP || netip.AddrFrom4([4]byte(b[16:])) != p.IPv4 {
		return nil
	}
	echo := b[head:size]
	if echo[0] != 8 || echo[1] != 0 || sum(0, echo) != 0xffff || sum(0, b[:head]) != 0xffff {
		return nil
	}
	a := bytes.Clone(b[:size])
	copy(a[12:], b[16:20])
	copy(a[16:], b[12:16])
	a[8] = 64
	a[head] = 0
	seal(a[10:12], sumWithout(0, a[:head], 10))
	seal(a[head+2:], sumWithout(0, a[head:], 2))
	return a
}

// icmpv6 answers an echo request and a neighbour solicitation (RFC 4443, RFC 4861).
func (p Peer) icmpv6(b []byte) []byte {
	if len(b) < 48 || b[0]>>4 != 6 || b[6] != protoICMPv6 {
		return nil
	}
	size := int(be.Uint16(b[4:]))
	if size < 8 || 40+size > len(b) {
		return nil
	}
	message := b[40 : 40+size]
	if sum(pseudo(b[8:40], size), message) != 0xffff {
		return nil
	}
	to := netip.AddrFrom16([16]byte(b[24:]))
	switch {
	case message[0] == 128 && message[1] == 0 && to == p.IPv6:
		return p.packet(b, append([]byte{129}, message[1:]...))
	case message[0] == 135 && message[1] == 0 && b[7] == 255 && size >= 24 && netip.AddrFrom16([16]byte(message[8:])) == p.IPv6:
		return p.advertise(b)
	}
	return nil
}

// advertise tells the peer's address to who solicits it. One who has none itself
// (duplicate detection) learns it with all others.
func (p Peer) advertise(b []byte) []byte {
	const solicited, override = 0x40, 0x20
	flags, to := byte(solicited|override), b[8:24]
	if netip.AddrFrom16([16]byte(to)).IsUnspecified() {
		flags, to = override, netip.IPv6LinkLocalAllNodes().AsSlice()
	}
	request := append(bytes.Clone(b[:8]), to...)
	message := bytes.Join([][]byte{{136, 0, 0, 0, flags, 0, 0, 0}, p.IPv6.AsSlice(), {2, 1}, p.MAC[:]}, nil)
	return p.packet(request, message)
}

// packet is the message in a packet to the sender of request.
func (p Peer) packet(request, message []byte) []byte {
	a := bytes.Join([][]byte{request[:4], {0, 0, protoICMPv6, 255}, p.IPv6.AsSlice(), request[8:24], message}, nil)
	be.PutUint16(a[4:], uint16(len(message)))
	seal(a[42:], sumWithout(pseudo(a[8:40], len(message)), a[40:], 2))
	return a
}

// sum is the Internet checksum's sum (RFC 1071) of b, on top of one.
func sum(on uint32, b []byte) uint16 {
	for ; len(b) > 1; b = b[2:] {
		on += uint32(be.Uint16(b))
	}
	if len(b) > 0 {
		on += uint32(b[0]) << 8
	}
	for on>>16 != 0 {
		on = on&0xffff + on>>16
	}
	return uint16(on)
}

// sumWithout leaves out the checksum at byte at.
func sumWithout(on uint32, b []byte, at int) uint16 {
	return sum(on+uint32(sum(0, b[:at])), b[at+2:])
}

func seal(at []byte, sum uint16) { be.PutUint16(at, ^sum) }

// pseudo sums the pseudo-header of ICMPv6 up: addresses, length, protocol.
func pseudo(addresses []byte, size int) uint32 {
	return uint32(sum(0, addresses)) + uint32(size) + protoICMPv6
}
