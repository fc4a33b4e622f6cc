// SPDX-License-Identifier: Apache-2.0

package capture

import "encoding/binary"

// Block types, and the option that tells the direction (pcapng, section 4).
const (
	blockSection   = 0x0a0d0d0a // the same in both byte orders
	blockInterface = 1
	blockOldPacket = 2 // obsolete, still written by old tools
	blockSimple    = 3
	blockEnhanced  = 6

	byteOrderMagic = 0x1a2b3c4d

	optionFlags      = 2 // epb_flags, pack_flags
	directionMask    = 3
	directionOutgoes = 2
)

// maxInterfaces bounds the memory that a hostile file can ask for.
const maxInterfaces = 1 << 16

// pcapng is the format of Wireshark: blocks in sections, each section with its
// own byte order and list of interfaces.
type pcapng struct {
	order      binary.ByteOrder
	interfaces []ngInterface
}

type ngInterface struct {
	link LinkType
	snap uint32 // 0: no limit
}

func (p *pcapng) next(r *Reader) (Frame, error) {
	for {
		f, found, err := p.block(r)
		if found || err != nil {
			return f, err
		}
	}
}

// block reads one block; found says that it was a packet.
func (p *pcapng) block(r *Reader) (f Frame, found bool, err error) {
	h, err := r.peek(12) // the shortest block
	if err != nil {
		return f, false, err
	}
	if binary.BigEndian.Uint32(h) == blockSection {
		return f, false, p.section(r)
	}
	if p.order == nil {
		return f, false, r.broken("no section header")
	}
	kind, size := p.order.Uint32(h), p.order.Uint32(h[4:])
	if size < 12 || size%4 != 0 {
		return f, false, r.broken("a block of %d bytes", size)
	}
	switch kind {
	case blockInterface, blockOldPacket, blockSimple, blockEnhanced:
	default:
		return f, false, r.discard(int64(size))
	}
	if size > bufferSize {
		return f, false, r.broken("a packet block of %d bytes", size)
	}
	if h, err = r.peek(int(size)); err != nil {
		return f, false, err
	}
	body := h[8 : size-4]
	if kind == blockInterface {
		err = p.addInterface(r, body)
	} else {
		f, err = p.packet(r, kind, body)
		found = err == nil
	}
	r.take(int(size))
	return f, found, err
}

// section starts a new section: byte order and interfaces begin afresh.
func (p *pcapng) section(r *Reader) error {
	h, err := r.peek(16)
	if err != nil {
		return err
	}
	p.order, p.interfaces = binary.ByteOrder(binary.LittleEndian), nil
	if h[8] == byteOrderMagic>>24 {
		p.order = binary.BigEndian
	}
	size := p.order.Uint32(h[4:])
	switch {
	case p.order.Uint32(h[8:]) != byteOrderMagic:
		return r.broken("a section header without its byte order mark")
	case p.order.Uint16(h[12:]) != 1:
		return r.broken("pcapng version %d, and only 1 is known", p.order.Uint16(h[12:]))
	case size < 28 || size%4 != 0:
		return r.broken("a section header of %d bytes", size)
	}
	return r.discard(int64(size))
}

func (p *pcapng) addInterface(r *Reader, body []byte) error {
	if len(body) < 8 {
		return r.broken("an interface block of %d bytes", len(body)+12)
	}
	if len(p.interfaces) == maxInterfaces {
		return r.broken("more than %d interfaces", maxInterfaces)
	}
	p.interfaces = append(p.interfaces, ngInterface{LinkType(p.order.Uint16(body)), p.order.Uint32(body[4:])})
	return nil
}

// packet reads the body of one of the three packet blocks.
func (p *pcapng) packet(r *Reader, kind uint32, body []byte) (Frame, error) {
	var index, length uint32 // interface, captured bytes
	fixed := 20
	if kind == blockSimple {
		fixed = 4
	}
	if len(body) < fixed {
		return Frame{}, r.broken("a packet block of %d bytes", len(body)+12)
	}
	switch kind {
	case blockEnhanced:
		index, length = p.order.Uint32(body), p.order.Uint32(body[12:])
	case blockOldPacket:
		index, length = uint32(p.order.Uint16(body)), p.order.Uint32(body[12:])
	case blockSimple:
		length = p.order.Uint32(body)
	}
	if uint64(index) >= uint64(len(p.interfaces)) {
		return Frame{}, r.broken("a packet of interface %d, and %d are described", index, len(p.interfaces))
	}
	at := p.interfaces[index]
	if kind == blockSimple && at.snap > 0 {
		length = min(length, at.snap) // it tells the original length only
	}
	if uint64(length) > uint64(len(body)-fixed) {
		return Frame{}, r.broken("a packet of %d bytes in a block of %d", length, len(body)+12)
	}
	data := body[fixed : fixed+int(length)]
	rest := body[fixed+len(data)+(-len(data)&3):] // blocks are multiples of four, so the padding is there
	return Frame{Link: at.link, Data: data, Outgoing: kind != blockSimple && p.outgoing(rest)}, nil
}

// outgoing looks for the direction among the options of a packet. Options
// that make no sense say nothing.
func (p *pcapng) outgoing(options []byte) bool {
	for len(options) >= 4 {
		code, n := p.order.Uint16(options), int(p.order.Uint16(options[2:]))
		padded := n + (-n & 3)
		if code == 0 || len(options) < 4+padded {
			return false
		}
		if code == optionFlags && n == 4 {
			return p.order.Uint32(options[4:])&directionMask == directionOutgoes
		}
		options = options[4+padded:]
	}
	return false
}
