// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/binary"
	"fmt"
)

const (
	pcapMicro    = 0xa1b2c3d4
	pcapNano     = 0xa1b23c4d
	pcapModified = 0xa1b2cd34 // Kuznetsov's: eight more bytes in every record header
)

// pcap is the classic format: one 24-byte header, then records.
type pcap struct {
	order  binary.ByteOrder
	link   LinkType
	header int // bytes of a record's header
}

func newPcap(r *Reader) (*pcap, error) {
	magic, _ := r.in.Peek(4)
	p := &pcap{order: binary.LittleEndian, header: 16}
	if magic[0] == 0xa1 {
		p.order = binary.BigEndian
	}
	switch m := p.order.Uint32(magic); m {
	case pcapMicro, pcapNano:
	case pcapModified:
		p.header = 24
	default:
		return nil, fmt.Errorf("%w: it starts with the bytes % x", ErrFormat, magic)
	}
	h, err := r.peek(24)
	if err != nil {
		return nil, err
	}
	if v := p.order.Uint16(h[4:]); v != 2 {
		return nil, fmt.Errorf("%w: pcap version %d, and only 2 is known", ErrFormat, v)
	}
	// The upper bits tell the length of the frame check sequence.
	p.link = LinkType(p.order.Uint32(h[20:]) & 0xffff)
	r.take(24)
	return p, nil
}

func (p *pcap) next(r *Reader) (Frame, error) {
	h, err := r.peek(p.header)
	if err != nil {
		return Frame{}, err
	}
	n := p.order.Uint32(h[8:])
	if n > maxCaptured {
		return Frame{}, r.broken("a packet of %d bytes; the file is broken there", n)
	}
	whole := p.header + int(n)
	if h, err = r.peek(whole); err != nil {
		return Frame{}, err
	}
	r.take(whole)
	return Frame{Link: p.link, Data: h[p.header:]}, nil
}
