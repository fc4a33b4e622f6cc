// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// bufferSize holds the largest record whole, so that its bytes need no copy.
const bufferSize = 1 << 20

// maxCaptured is the longest packet that is taken for one; a longer length
// means a broken file. BIG TCP frames end at 512 KiB, and libpcap writes at
// most 256 KiB.
const maxCaptured = 512 << 10

// Frame is one packet as it was captured.
type Frame struct {
	Link     LinkType
	Data     []byte // what the file holds of the packet; good until the next call of Next
	Outgoing bool   // the file says that the capturing host sent it
}

// Reader reads one capture. It is not safe for use from several goroutines.
type Reader struct {
	in      *bufio.Reader
	taken   int   // peeked bytes that the next peek drops
	offset  int64 // of the first byte behind them, in the unpacked file
	packets int64
	format  format
}

// format reads the next packet of one file format.
type format interface {
	next(*Reader) (Frame, error)
}

// ErrFormat is wrapped by the errors about input that is no capture, or a
// broken one.
var ErrFormat = errors.New("not a good pcap or pcapng file")

// TruncatedError says that the file ends inside a packet or block, as after a
// full disk or a killed capture. All packets before it were returned.
type TruncatedError struct {
	Packets int64 // whole packets before the cut
	Offset  int64 // where the packet or block that is cut starts, in bytes
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("the file is cut short inside the record at byte %d, after %d whole packets", e.Offset, e.Packets)
}

// Unwrap makes errors.Is(err, io.ErrUnexpectedEOF) true.
func (e *TruncatedError) Unwrap() error { return io.ErrUnexpectedEOF }

// NewReader reads the header of r, and unpacks gzip on the way. Errors are
// those of r, or wrap ErrFormat or io.ErrUnexpectedEOF.
func NewReader(r io.Reader) (*Reader, error) {
	in := bufio.NewReaderSize(r, bufferSize)
	if magic, _ := in.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		zr, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		in = bufio.NewReaderSize(zr, bufferSize)
	}
	c := &Reader{in: in}
	magic, err := in.Peek(4)
	if err != nil && !ended(err) {
		return nil, err
	}
	if len(magic) < 4 {
		return nil, fmt.Errorf("%w: it has only %d bytes", ErrFormat, len(magic))
	}
	if binary.BigEndian.Uint32(magic) == blockSection {
		c.format = new(pcapng)
		return c, nil
	}
	c.format, err = newPcap(c)
	return c, err
}

// Packets is how many packets Next has returned.
func (r *Reader) Packets() int64 { return r.packets }

// Next returns the next packet. It returns io.EOF at the end of a whole file,
// a *TruncatedError where the file is cut short, and an error that wraps
// ErrFormat where it makes no sense. After an error the reader is spent.
func (r *Reader) Next() (Frame, error) {
	f, err := r.format.next(r)
	if err == nil {
		r.packets++
	}
	return f, err
}

// peek returns the next n bytes, at most bufferSize, without taking them. At
// the very end it returns io.EOF, and a *TruncatedError if only a part of the
// n bytes is there.
func (r *Reader) peek(n int) ([]byte, error) {
	r.in.Discard(r.taken) // cannot fail: these bytes were peeked
	r.taken = 0
	b, err := r.in.Peek(n)
	switch {
	case err == nil:
		return b, nil
	case ended(err) && len(b) > 0, err == io.ErrUnexpectedEOF:
		return nil, &TruncatedError{r.packets, r.offset}
	}
	return nil, err
}

// take marks n peeked bytes as used; they stay good until the next peek.
func (r *Reader) take(n int) {
	r.taken += n
	r.offset += int64(n)
}

// discard passes over the next n bytes, of which the first are peeked.
func (r *Reader) discard(n int64) error {
	start := r.offset
	r.offset += n
	for n > 0 {
		done, err := r.in.Discard(int(min(n, 1<<30)))
		n -= int64(done)
		if ended(err) {
			return &TruncatedError{r.packets, start}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ended reports whether err means "no more bytes"; a cut gzip stream says
// io.ErrUnexpectedEOF.
func ended(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }

// broken is an error about the record at the reader's offset.
func (r *Reader) broken(text string, args ...any) error {
	return fmt.Errorf("%w: byte %d: %s", ErrFormat, r.offset, fmt.Sprintf(text, args...))
}
