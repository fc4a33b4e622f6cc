// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bufio"
	"encoding/binary"
	"io"
)

// Writer writes Ethernet frames to a classic pcap file with microseconds.
type Writer struct {
	out    *bufio.Writer
	micros uint64
}

// NewWriter writes the file's header to w. Call Flush at the end.
func NewWriter(w io.Writer) (*Writer, error) {
	out := bufio.NewWriterSize(w, 1<<16)
	h := make([]byte, 0, 24)
	h = binary.LittleEndian.AppendUint32(h, pcapMicro)
	h = binary.LittleEndian.AppendUint16(h, 2) // version 2.4
	h = binary.LittleEndian.AppendUint16(h, 4)
	h = append(h, make([]byte, 8)...) // time zone, accuracy: zero by the format
	h = binary.LittleEndian.AppendUint32(h, 262144)
	h = binary.LittleEndian.AppendUint32(h, uint32(Ethernet))
	_, err := out.Write(h)
	return &Writer{out: out}, err
}

// Write appends one frame. Packets are one microsecond apart, from the epoch,
// so the same frames make the same file.
func (w *Writer) Write(frame []byte) error {
	var h [16]byte
	binary.LittleEndian.PutUint32(h[0:], uint32(w.micros/1e6))
	binary.LittleEndian.PutUint32(h[4:], uint32(w.micros%1e6))
	binary.LittleEndian.PutUint32(h[8:], uint32(len(frame)))
	binary.LittleEndian.PutUint32(h[12:], uint32(len(frame)))
	w.micros++
	if _, err := w.out.Write(h[:]); err != nil {
		return err
	}
	_, err := w.out.Write(frame)
	return err
}

// Flush writes what is still buffered.
func (w *Writer) Flush() error { return w.out.Flush() }
