// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"
)

const (
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
	etherVLAN = 0x8100

	protoTCP  = 6
	protoUDP  = 17
	protoSCTP = 132
)

// payload is the bytes behind the IP header; it makes the shortest IPv4 frame
// as long as Ethernet wants.
const payload = 26

// frame is one Ethernet frame under construction.
type frame struct {
	buf [14 + 4 + 40 + payload]byte
	n   int
}

func (b *frame) bytes() []byte { return b.buf[:b.n] }

// grow appends n zero bytes and returns them.
func (b *frame) grow(n int) []byte {
	s := b.buf[b.n : b.n+n]
	clear(s)
	b.n += n
	return s
}

// ethernet begins a frame, and pads it to the shortest length.
func (b *frame) ethernet(f *Flow, etherType uint16) {
	b.header(f, etherType)
	b.grow(60 - b.n)
}

func (b *frame) header(f *Flow, etherType uint16) {
	b.n = 0
	h := b.grow(12)
	copy(h, f.DestinationMAC[:])
	h[6], h[11] = 0x02, 0x02 // 02:00:00:00:00:02, locally administered
	if f.VLAN != 0 {
		t := b.grow(4)
		binary.BigEndian.PutUint16(t, etherVLAN)
		binary.BigEndian.PutUint16(t[2:], f.VLAN)
	}
	binary.BigEndian.PutUint16(b.grow(2), etherType)
}

// ip builds an IP packet of f whose payload starts with word. Checksums are
// right, so that the frame can be sent as well.
func (b *frame) ip(f *Flow, source, destination netip.Addr, word uint32) {
	var sum uint32 // of the pseudo header
	if source.Is4() {
		b.header(f, etherIPv4)
		h := b.grow(20)
		h[0], h[8], h[9] = 0x45, 64, f.Protocol
		binary.BigEndian.PutUint16(h[2:], 20+payload)
		s, d := source.As4(), destination.As4()
		copy(h[12:], s[:])
		copy(h[16:], d[:])
		binary.BigEndian.PutUint16(h[10:], checksum(add(0, h)))
		sum = add(sum, h[12:])
	} else {
		b.header(f, etherIPv6)
		h := b.grow(40)
		h[0], h[6], h[7] = 0x60, f.Protocol, 64
		binary.BigEndian.PutUint16(h[4:], payload)
		s, d := source.As16(), destination.As16()
		copy(h[8:], s[:])
		copy(h[24:], d[:])
		sum = add(sum, h[8:])
	}
	transport(b.grow(payload), f.Protocol, word, sum+uint32(f.Protocol)+payload)
}

// transport fills in the header behind the IP header. pseudo is the sum over
// the pseudo header (RFC 768, RFC 9293, RFC 8200).
func transport(h []byte, protocol uint8, word uint32, pseudo uint32) {
	binary.BigEndian.PutUint32(h, word)
	switch protocol {
	case protoTCP:
		h[12], h[13] = 5<<4, 0x10 // five words of header; ACK
		binary.BigEndian.PutUint16(h[16:], checksum(add(pseudo, h)))
	case protoUDP:
		binary.BigEndian.PutUint16(h[4:], uint16(len(h)))
		c := checksum(add(pseudo, h))
		if c == 0 {
			c = 0xffff // zero means "no checksum"
		}
		binary.BigEndian.PutUint16(h[6:], c)
	case protoSCTP:
		// The one header whose checksum is little endian (RFC 9260, appendix A).
		binary.LittleEndian.PutUint32(h[8:], crc32.Checksum(h, castagnoli))
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// add adds the 16-bit words of b, whose length is even, to sum (RFC 1071).
func add(sum uint32, b []byte) uint32 {
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	return sum
}

func checksum(sum uint32) uint16 {
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
