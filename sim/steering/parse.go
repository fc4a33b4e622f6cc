// SPDX-License-Identifier: Apache-2.0

package steering

import "encoding/binary"

// packet is a frame as the tables see it.
type packet struct {
	frame []byte
	match Match

	tags      int    // VLAN tags, 0 to 2
	etherType uint16 // behind the tags
	version   uint8  // of IP, 4 or 6; 0: no IP
	fragment  bool
	protocol  uint8 // of IP, behind IPv6 extension headers
	payload   int   // what follows the IP header, in bytes from the frame's start
	end       int   // of the IP packet in frame
	node      *node // that follows protocol and whose header is complete; nil: none

	has              headers
	hasPorts         bool
	srcPort, dstPort [2]byte
	hasSPI           bool
	spi              uint32
}

const (
	etherTypeIPv4 = 0x0800
	etherTypeIPv6 = 0x86dd
	etherTypeCTag = 0x8100
	etherTypeSTag = 0x88a8

	protocolICMP   = 1
	protocolTCP    = 6
	protocolUDP    = 17
	protocolGRE    = 47
	protocolESP    = 50
	protocolAH     = 51
	protocolICMPv6 = 58

	ethernetBytes = 14
)

// parse reads a frame of at least ethernetBytes.
func (s *State) parse(p *packet, frame []byte) {
	p.frame = frame
	at := p.ethernet()
	switch p.etherType {
	case etherTypeIPv4:
		p.ipv4(at)
	case etherTypeIPv6:
		p.ipv6(at)
	}
	if p.version == 0 {
		return
	}
	p.match[16] = p.protocol
	if !p.fragment {
		p.layer4()
	}
	// Assumed: the parse graph knows nothing of fragments, so that a node
	// takes the payload of a later fragment for its header.
	if n := s.byProto[p.protocol]; n != nil && p.end-p.payload >= n.HeaderBytes {
		p.node = n
	}
}

// sample is a parse graph sample. Assumed: it is 0 in packets that do not pass
// its node, and in those that end before the node's header does.
func (p *packet) sample(id uint32) uint32 {
	if p.node == nil {
		return 0
	}
	for _, s := range p.node.Samples {
		if s.ID == id {
			return binary.BigEndian.Uint32(p.frame[p.payload+s.Offset:])
		}
	}
	return 0
}

// addresses are those of an IP packet.
func (p *packet) addresses() (src, dst []byte) {
	if p.version == 4 {
		return p.match[44:48], p.match[60:64]
	}
	return p.match[32:48], p.match[48:64]
}

func (p *packet) put16(at int, v uint16) { binary.BigEndian.PutUint16(p.match[at:], v) }

// ethernet gives the offset of what follows the header and at most two tags.
func (p *packet) ethernet() (at int) {
	copy(p.match[0:6], p.frame[6:12]) // smac
	copy(p.match[8:14], p.frame[0:6]) // dmac
	at = ethernetBytes
	p.etherType = binary.BigEndian.Uint16(p.frame[12:])
	for p.tags < 2 && isTag(p.etherType) && len(p.frame) >= at+4 {
		p.tag(p.etherType, binary.BigEndian.Uint16(p.frame[at:]))
		p.etherType = binary.BigEndian.Uint16(p.frame[at+2:])
		at += 4
	}
	p.put16(6, p.etherType)
	return at
}

func isTag(etherType uint16) bool { return etherType == etherTypeCTag || etherType == etherTypeSTag }

func (p *packet) tag(tpid, tci uint16) {
	p.tags++
	if p.tags == 1 {
		p.put16(14, tci)
		if tpid == etherTypeCTag {
			p.match[18] |= 0x80
		} else {
			p.match[18] |= 0x40
		}
		return
	}
	p.put16(misc/8+8, tci)
	if tpid == etherTypeCTag {
		p.match[misc/8+12] |= 0x80
	} else {
		p.match[misc/8+12] |= 0x20
	}
}

// ipv4 reads a header with its options. What says that it is IPv4 and is not has
// no IP version, but its ethertype.
func (p *packet) ipv4(at int) {
	b := p.frame[at:]
	if len(b) < 20 || b[0]>>4 != 4 {
		return
	}
	length := int(b[0]&0xf) * 4
	if length < 20 || len(b) < length {
		return
	}
	p.payload, p.protocol = at+length, b[9]
	p.end = p.payload + max(0, min(int(binary.BigEndian.Uint16(b[2:])), len(b))-length)
	const moreOrOffset = 0x3fff
	p.layer3(4, b[1], b[8], binary.BigEndian.Uint16(b[6:])&moreOrOffset != 0)
	p.match[26] = b[0] << 4 // ipv4_ihl
	copy(p.match[44:48], b[12:16])
	copy(p.match[60:64], b[16:20])
}

// layer3 sets what both versions have.
func (p *packet) layer3(version, trafficClass, hops uint8, fragment bool) {
	p.version = version
	p.match[17] = trafficClass
	p.match[18] |= version << 1
	p.match[27] = hops
	if p.fragment = fragment; fragment {
		p.match[18] |= 0x20
	}
}

func (p *packet) ipv6(at int) {
	b := p.frame[at:]
	if len(b) < 40 || b[0]>>4 != 6 {
		return
	}
	p.end = len(p.frame)
	// A payload length of 0 is a jumbogram's.
	if n := int(binary.BigEndian.Uint16(b[4:])); n != 0 {
		p.end = min(p.end, at+40+n)
	}
	first := binary.BigEndian.Uint32(b)
	p.layer3(6, uint8(first>>20), b[7], false)
	binary.BigEndian.PutUint32(p.match[misc/8+28:], first&0xfffff)
	copy(p.match[32:48], b[8:24])
	copy(p.match[48:64], b[24:40])
	p.extensions(b[6], at+40)
}

// extensions follows the extension headers of IPv6 to the protocol behind them;
// DPDK's mlx5 driver takes ip_protocol for the fragment header's next header,
// too. Assumed for the others alike. AH is no extension header here: the driver
// has a rule of its own for ip_protocol 51. A header that is cut short ends it.
func (p *packet) extensions(next uint8, at int) {
	for {
		p.protocol, p.payload = next, at
		n := p.extensionLength(next, at)
		if n == 0 || at+n > p.end {
			return
		}
		next = p.frame[at]
		if p.protocol == 44 {
			p.fragment = true
			p.match[18] |= 0x20
			if binary.BigEndian.Uint16(p.frame[at+2:])>>3 != 0 {
				// What follows is the middle of something.
				p.protocol, p.payload = next, at+n
				return
			}
		}
		at += n
	}
}

// extensionLength is in bytes, at least 8; 0 if there is no extension header at at.
func (p *packet) extensionLength(protocol uint8, at int) int {
	switch protocol {
	case 44:
		return 8
	case 0, 43, 60, 135, 139, 140:
		if at+2 <= p.end {
			return int(p.frame[at+1])*8 + 8
		}
	}
	return 0
}

// layer4 reads what is behind IP of a packet that is no fragment. A header that
// the IP packet ends within is not there.
func (p *packet) layer4() {
	b := p.frame[p.payload:p.end]
	switch p.protocol {
	case protocolTCP:
		p.tcp(b)
	case protocolUDP:
		p.udp(b)
	case protocolICMP:
		p.icmp(b, 4, 0)
	case protocolICMPv6:
		p.icmp(b, 6, 1)
	case protocolGRE:
		p.gre(b)
	case protocolESP:
		if len(b) >= 8 {
			p.has |= hasESP
			p.hasSPI, p.spi = true, binary.BigEndian.Uint32(b)
			copy(p.match[misc/8+48:], b[:4])
		}
	case protocolAH:
		if len(b) >= 12 {
			p.hasSPI, p.spi = true, binary.BigEndian.Uint32(b[4:])
		}
	}
}

func (p *packet) ports(b []byte, at int, l4type uint8) {
	p.hasPorts, p.srcPort, p.dstPort = true, [2]byte(b), [2]byte(b[2:])
	copy(p.match[at:at+4], b)
	p.match[24] = l4type << 6
}

func (p *packet) tcp(b []byte) {
	if len(b) < 20 {
		return
	}
	p.has |= hasTCP
	p.ports(b, 20, 1)
	flags := binary.BigEndian.Uint16(b[12:])
	p.match[18] |= uint8(flags>>8) & 1
	p.match[19] = uint8(flags)
}

func (p *packet) udp(b []byte) {
	if len(b) >= 8 {
		p.has |= hasUDP
		p.ports(b, 28, 2)
	}
}

// icmp fills the first or the second fields of misc3: ICMP counts behind IPv4
// only, ICMPv6 behind IPv6.
func (p *packet) icmp(b []byte, version uint8, which int) {
	if p.version == version && len(b) >= 8 {
		p.has |= [2]headers{hasICMP, hasICMPv6}[which]
		copy(p.match[misc3/8+24+4*which:], b[4:8])
		copy(p.match[misc3/8+32+2*which:], b[:2])
	}
}

// gre reads version 0; version 1 (PPTP) has other fields in the same bits.
func (p *packet) gre(b []byte) {
	const checksum, key, sequence, version = 0x8000, 0x2000, 0x1000, 7
	if len(b) < 4 {
		return
	}
	flags := binary.BigEndian.Uint16(b)
	if flags&version != 0 {
		return
	}
	p.has |= hasGRE
	p.match[misc/8] |= uint8(flags>>8) & uint8((checksum|key|sequence)>>8)
	copy(p.match[misc/8+14:], b[2:4])
	at := 4
	if flags&checksum != 0 {
		at += 4
	}
	if flags&key != 0 && len(b) >= at+4 {
		copy(p.match[misc/8+16:], b[at:at+4])
	}
}
