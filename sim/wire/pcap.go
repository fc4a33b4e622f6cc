// SPDX-License-Identifier: Apache-2.0

// Package wire is the other end of the card's cable: capture files that frames
// come from and go to, a peer that answers pings, and a sender that can wait for
// a guest that is slower than itself.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// A pcap file (draft-ietf-opsawg-pcap) is a header of 24 bytes and, before each
// frame, one of 16: seconds, fraction, bytes in the file, bytes on the wire.
const (
	fileHeader  = 24
	frameHeader = 16

	magicMicro = 0xa1b2c3d4 // the fraction is in microseconds
	magicNano  = 0xa1b23c4d
	magicNG    = 0x0a0d0d0a // a pcapng section

	ethernet = 1 // LINKTYPE_ETHERNET
	maxFrame = 256 << 10
)

// ErrFormat says that a file is no pcap file that can be sent as frames.
var ErrFormat = errors.New("not a pcap file of Ethernet frames")

// Reader reads the frames of a pcap file.
type Reader struct {
	r      io.Reader
	order  binary.ByteOrder
	frames int   // read
	offset int64 // in the file
	buf    []byte
}

// NewReader reads a file's header. Both byte orders, and times in micro- and
// nanoseconds, are read.
func NewReader(r io.Reader) (*Reader, error) {
	var h [fileHeader]byte
	if n, err := io.ReadFull(r, h[:]); err != nil {
		return nil, fmt.Errorf("%w: header of %d bytes, not %d (%v)", ErrFormat, n, fileHeader, err)
	}
	p := &Reader{r: r, offset: fileHeader}
	switch magic := binary.LittleEndian.Uint32(h[:]); {
	case magic == magicMicro, magic == magicNano:
		p.order = binary.LittleEndian
	case binary.BigEndian.Uint32(h[:]) == magicMicro, binary.BigEndian.Uint32(h[:]) == magicNano:
		p.order = binary.BigEndian
	case magic == magicNG:
		return nil, fmt.Errorf("%w: pcapng; `editcap -F pcap` makes one of it", ErrFormat)
	default:
		return nil, fmt.Errorf("%w: it begins with %x", ErrFormat, h[:4])
	}
	// The upper bits say whether frames end in a check sequence.
	if link := p.order.Uint32(h[20:]); link != ethernet {
		return nil, fmt.Errorf("%w: link type %#x, not %d", ErrFormat, link, ethernet)
	}
	return p, nil
}

// Next is the next frame, valid until the one after it is read; io.EOF behind the last.
func (p *Reader) Next() ([]byte, error) {
	var h [frameHeader]byte
	n, err := io.ReadFull(p.r, h[:])
	if err == io.EOF {
		return nil, io.EOF
	}
	if err != nil {
		return nil, p.wrong("header of %d bytes: %w", n, err)
	}
	kept, long := p.order.Uint32(h[8:]), p.order.Uint32(h[12:])
	switch {
	case kept > maxFrame:
		return nil, p.wrong("%d bytes; at most %d can be: %w", kept, maxFrame, ErrFormat)
	case kept < long:
		return nil, p.wrong("only %d of its %d bytes were captured (tcpdump -s 0 captures all): %w", kept, long, ErrFormat)
	}
	if int(kept) > len(p.buf) {
		p.buf = make([]byte, kept)
	}
	if n, err := io.ReadFull(p.r, p.buf[:kept]); err != nil {
		return nil, p.wrong("%d of %d bytes: %w", n, kept, noEOF(err))
	}
	p.frames++
	p.offset += frameHeader + int64(kept)
	return p.buf[:kept], nil
}

func (p *Reader) wrong(format string, args ...any) error {
	return fmt.Errorf("frame %d (at byte %d): "+format, append([]any{p.frames + 1, p.offset}, args...)...)
}

// noEOF makes an end in the middle of a frame one that nobody takes for the end of the file.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Writer writes a pcap file.
type Writer struct{ w io.Writer }

// NewWriter writes a file's header.
func NewWriter(w io.Writer) (*Writer, error) {
	var h [fileHeader]byte
	binary.LittleEndian.PutUint32(h[:], magicMicro)
	binary.LittleEndian.PutUint16(h[4:], 2) // version 2.4
	binary.LittleEndian.PutUint16(h[6:], 4)
	binary.LittleEndian.PutUint32(h[16:], maxFrame)
	binary.LittleEndian.PutUint32(h[20:], ethernet)
	_, err := w.Write(h[:])
	return &Writer{w}, err
}

// Write adds a frame.
func (p *Writer) Write(at time.Time, frame []byte) error {
	b := make([]byte, frameHeader, frameHeader+len(frame))
	binary.LittleEndian.PutUint32(b, uint32(at.Unix()))
	binary.LittleEndian.PutUint32(b[4:], uint32(at.Nanosecond()/1000))
	binary.LittleEndian.PutUint32(b[8:], uint32(len(frame)))
	binary.LittleEndian.PutUint32(b[12:], uint32(len(frame)))
	_, err := p.w.Write(append(b, frame...))
	return err
}
