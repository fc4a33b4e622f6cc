// SPDX-License-Identifier: Apache-2.0

package steer

import "encoding/binary"

// Packet is what the parser of a NIC sees of a received frame.
type Packet struct {
	SourceMAC, DestinationMAC [6]byte
	Tagged                    bool
	TagType, VLAN             uint16 // EtherType and TCI of the outer tag, when Tagged
	EtherType                 uint16 // behind the tags

	Family      Family   // 0: not IP
	Source      [16]byte // as in AddrBits
	Destination [16]byte
	TOS         uint8
	Protocol    uint8 // IPv4 protocol, or the Next Header of IPv6: of the fixed header, or of the fragment header behind it

	L4    uint32 // the first four bytes behind the IP header, big endian
	HasL4 bool   // false for fragments, and where the packet or the frame ends before that

	SPI    uint32 // the Security Parameters Index of ESP (RFC 4303) and AH (RFC 4302)
	HasSPI bool   // false for fragments, and where the packet or the frame ends within the header
}

// Verdict is where a packet goes.
type Verdict struct {
	Matched bool // false: no rule took it, and Queue is the default path's (RSS)
	Loc     Loc  // the rule that decided, when Matched
	Drop    bool
	Queue   uint32 // when not Drop
}

// ParseEthernet reads a frame without its preamble and check sequence, of any
// length. Up to two VLAN tags are skipped; the outer one counts. Of the IPv6
// extension headers only a fragment header is skipped, so that fragments are of
// one protocol in both families (DPDK's mlx5 guide); what a NIC makes of the
// others differs. Ports of fragments are not read, not even of the first one:
// mlx5 has no match there (the same guide, "Limitations").
// What is behind the end of the IP packet, as padding is, is not there: so it is
// assumed of NICs. What they really sample beyond that end is not known
// (docs/lab.md). A length of 0 is no end: captures have it where the host segments
// or joins packets (IPv6: also in jumbograms).
// A frame that says it is IP and is not (cut short, another version) has
// EtherType 0: no rule for IP takes it.
func ParseEthernet(frame []byte) (p Packet) {
	if len(frame) < 14 {
		return p
	}
	copy(p.DestinationMAC[:], frame)
	copy(p.SourceMAC[:], frame[6:])
	p.EtherType = binary.BigEndian.Uint16(frame[12:])
	rest := frame[14:]
	for tags := 0; tags < 2 && isTag(p.EtherType) && len(rest) >= 4; tags++ {
		if !p.Tagged {
			p.Tagged, p.TagType, p.VLAN = true, p.EtherType, binary.BigEndian.Uint16(rest)
		}
		p.EtherType, rest = binary.BigEndian.Uint16(rest[2:]), rest[4:]
	}
	p.parseIP(rest)
	return p
}

// ParseIP reads a packet that starts with its IP header, as from a tunnel or a
// raw capture. The Ethernet fields stay zero but for the EtherType.
func ParseIP(packet []byte) (p Packet) {
	if len(packet) > 0 {
		switch packet[0] >> 4 {
		case 4:
			p.EtherType = etherTypeIPv4
		case 6:
			p.EtherType = etherTypeIPv6
		}
	}
	p.parseIP(packet)
	return p
}

// EtherTypes of tags: IEEE 802.1Q and, of a provider's network, 802.1ad.
const (
	tagVLAN    = 0x8100
	tagService = 0x88a8
)

func isTag(etherType uint16) bool { return etherType == tagVLAN || etherType == tagService }

func (p *Packet) parseIP(b []byte) {
	switch p.EtherType {
	case etherTypeIPv4:
		if len(b) >= 20 && b[0]>>4 == 4 {
			p.parseIPv4(b)
			return
		}
	case etherTypeIPv6:
		if len(b) >= 40 && b[0]>>4 == 6 {
			p.parseIPv6(b)
			return
		}
	default:
		return
	}
	p.EtherType = 0
}

func (p *Packet) parseIPv4(b []byte) {
	if total := int(binary.BigEndian.Uint16(b[2:])); total != 0 {
		b = b[:min(len(b), max(total, 20))]
	}
	p.Family, p.TOS, p.Protocol = IPv4, b[1], b[9]
	copy(p.Source[:], b[12:16])
	copy(p.Destination[:], b[16:20])
	const moreOrOffset = 0x3fff
	header := int(b[0]&0x0f) * 4
	if binary.BigEndian.Uint16(b[6:])&moreOrOffset == 0 && header >= 20 {
		p.parseL4(b, header)
	}
}

func (p *Packet) parseIPv6(b []byte) {
	if payload := int(binary.BigEndian.Uint16(b[4:])); payload != 0 {
		b = b[:min(len(b), 40+payload)]
	}
	p.Family, p.TOS, p.Protocol = IPv6, uint8(binary.BigEndian.Uint16(b)>>4), b[6]
	copy(p.Source[:], b[8:24])
	copy(p.Destination[:], b[24:40])
	const fragment = 44
	switch {
	case p.Protocol != fragment:
		p.parseL4(b, 40)
	case len(b) >= 48:
		p.Protocol = b[40]
	}
}

func (p *Packet) parseL4(b []byte, header int) {
	if len(b) < header+4 {
		return
	}
	b = b[header:]
	p.L4, p.HasL4 = binary.BigEndian.Uint32(b), true
	const esp, ah = 50, 51
	switch {
	case p.Protocol == esp && len(b) >= 8:
		p.SPI, p.HasSPI = p.L4, true
	case p.Protocol == ah && len(b) >= 12:
		p.SPI, p.HasSPI = binary.BigEndian.Uint32(b[4:]), true
	}
}

// key is the packet as the bits that a rule looks at.
func (p *Packet) key() (k key) {
	k[0] = uint64(p.EtherType)<<etherTypeShift | uint64(p.VLAN)<<tciShift |
		uint64(p.Protocol)<<protocolShift | uint64(p.TOS)<<tosShift
	if p.HasL4 {
		k[0] |= flagL4
	}
	if p.TagType == tagVLAN {
		k[0] |= flagTagged
	}
	k[1] = uint64(p.TagType)<<tagTypeShift | uint64(p.L4)
	k[2], k[3] = word48(p.DestinationMAC), word48(p.SourceMAC)
	k[4], k[5] = binary.BigEndian.Uint64(p.Source[:]), binary.BigEndian.Uint64(p.Source[8:])
	k[6], k[7] = binary.BigEndian.Uint64(p.Destination[:]), binary.BigEndian.Uint64(p.Destination[8:])
	return k
}
