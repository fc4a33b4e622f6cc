// SPDX-License-Identifier: Apache-2.0

package pci

import (
	"encoding/binary"
	"fmt"
)

var le = binary.LittleEndian

// ConfigSize is the size of configuration space in bytes: that of PCI Express.
const ConfigSize = 4096

// Register is a part of configuration space, or of a capability: what it reads
// after a reset, and which of its bits can be written.
type Register struct {
	At, Size        int // bytes
	Value, Writable uint64
}

// The registers of a header of type 0 (PCI 3.0, 6.1 and 6.2) that are not zero.
const (
	command   = 0x04
	pointer   = 0x34 // to the first capability
	headerEnd = 0x40
	listEnd   = 0x100 // capabilities lie before it

	memoryEnable = 1 << 1 // in command
	masterEnable = 1 << 2
)

var header = []Register{
	{At: 0x00, Size: 2, Value: 0x15b3}, // vendor
	{At: command, Size: 2, Writable: 0x0546},
	{At: 0x06, Size: 2, Value: 0x0010}, // status: has capabilities
	{At: 0x08, Size: 1, Value: 0x01},   // revision
	{At: 0x09, Size: 3, Value: 0x020000},
	{At: 0x0c, Size: 1, Writable: 0xff}, // cache line size
	// BAR 0: 64-bit, prefetchable. The writable bits are how its size is found.
	{At: 0x10, Size: 8, Value: 0xc, Writable: -BAR0 & (1<<64 - 1)},
	{At: 0x2c, Size: 2, Value: 0x15b3}, // subsystem vendor
	{At: 0x2e, Size: 2, Value: 0x0051},
	{At: 0x3c, Size: 1, Writable: 0xff}, // interrupt line; there is no INTx
}

// Capability is an item of the list that begins at byte 0x34.
type Capability struct {
	At, Size  int // bytes; At is a multiple of 4 from 0x40 on
	ID        byte
	Registers []Register // from the capability's start; bytes 0 and 1 are ID and next
	// Dwords, if there are some, are all of the capability behind its first four bytes.
	Dwords Dwords
}

// Dwords are registers that do something when read or written. Offsets are from
// the capability's start and multiples of 4, from 4 on.
type Dwords interface {
	ReadDword(off int) uint32
	WriteDword(off int, v uint32)
}

// The capabilities of every card, where a ConnectX has them.
const (
	express       = 0x60
	deviceControl = express + 0x08
	resetBit      = 1 << 15 // Initiate Function Level Reset, in deviceControl
)

var (
	// PCI Express 4.0, 7.5.3: version 2, endpoint, 32 GT/s x16.
	expressCapability = Capability{At: express, Size: 0x3c, ID: 0x10, Registers: []Register{
		{At: 0x02, Size: 2, Value: 0x0002},
		{At: 0x04, Size: 4, Value: 0x10008fe2},               // payload of 512, extended tags, function level reset
		{At: 0x08, Size: 2, Value: 0x2810, Writable: 0x7fff}, // reads of 512
		{At: 0x0c, Size: 4, Value: 0x00400105},               // link can
		{At: 0x10, Size: 2, Writable: 0x01cb},
		{At: 0x12, Size: 2, Value: 0x1105}, // link is
		{At: 0x24, Size: 4, Value: 0x10},   // completion timeout can be disabled
		{At: 0x28, Size: 2, Writable: 0x10},
		{At: 0x2c, Size: 4, Value: 0x3e},                      // 2.5 to 32 GT/s
		{At: 0x30, Size: 2, Value: 0x0005, Writable: 0x000f}}} // target speed
	// PCI 3.0, 6.8.2.
	msixCapability = Capability{At: 0x9c, Size: 12, ID: 0x11, Registers: []Register{
		{At: 2, Size: 2, Value: Vectors - 1, Writable: 0xc000}, // enable, mask all
		{At: 4, Size: 4, Value: msixTable},
		{At: 8, Size: 4, Value: msixPending}}}
	// PCI Power Management 1.2, 3.2: D0 and D3; D3 to D0 resets nothing.
	powerCapability = Capability{At: 0x40, Size: 8, ID: 0x01, Registers: []Register{
		{At: 2, Size: 2, Value: 0x0003},
		{At: 4, Size: 2, Value: 0x0008, Writable: 0x0003}}}
)

// space is configuration space as bytes.
type space struct {
	now, initial, writable [ConfigSize]byte
	dwords                 map[int]window // by the address of the dword
}

type window struct {
	Dwords
	off int
}

// lay makes the space of a header and a list of capabilities.
func lay(device uint16, list []Capability) (*space, error) {
	s := &space{dwords: map[int]window{}}
	for _, r := range append(header, Register{At: 0x02, Size: 2, Value: uint64(device)}) {
		s.put(0, r)
	}
	var taken [listEnd]bool
	next := pointer
	for _, c := range list {
		if c.At < headerEnd || c.At%4 != 0 || c.Size < 2 || c.At+c.Size > listEnd {
			return nil, fmt.Errorf("capability %#x of %d bytes at %#x: capabilities begin at multiples of 4 and lie between %#x and %#x", c.ID, c.Size, c.At, headerEnd, listEnd)
		}
		for i := c.At; i < c.At+c.Size; i++ {
			if taken[i] {
				return nil, fmt.Errorf("capability %#x of %d bytes at %#x lies over another", c.ID, c.Size, c.At)
			}
			taken[i] = true
		}
		if err := s.add(c); err != nil {
			return nil, err
		}
		s.initial[next] = byte(c.At)
		next = c.At + 1
	}
	s.now = s.initial
	return s, nil
}

func (s *space) add(c Capability) error {
	s.initial[c.At] = c.ID
	for _, r := range c.Registers {
		if r.At < 2 || r.At+r.Size > c.Size {
			return fmt.Errorf("capability %#x: a register of %d bytes at %d; there are bytes 2 to %d", c.ID, r.Size, r.At, c.Size-1)
		}
		s.put(c.At, r)
	}
	if c.Dwords != nil {
		for off := 4; off+4 <= c.Size; off += 4 {
			s.dwords[c.At+off] = window{c.Dwords, off}
		}
	}
	return nil
}

func (s *space) put(base int, r Register) {
	var value, writable [8]byte
	le.PutUint64(value[:], r.Value)
	le.PutUint64(writable[:], r.Writable)
	copy(s.initial[base+r.At:], value[:r.Size])
	copy(s.writable[base+r.At:], writable[:r.Size])
}

func (s *space) reset() { s.now = s.initial }

// word reads two bytes.
func (s *space) word(at int) uint16 { return le.Uint16(s.now[at:]) }

// read fills b from byte off on.
func (s *space) read(off int, b []byte) {
	copy(b, s.now[off:])
	for at := off &^ 3; at < off+len(b); at += 4 {
		if w, ok := s.dwords[at]; ok {
			var v [4]byte
			le.PutUint32(v[:], w.ReadDword(w.off))
			for i := max(at, off); i < min(at+4, off+len(b)); i++ {
				b[i-off] = v[i-at]
			}
		}
	}
}

// write changes what can be written of the bytes from off on. A dword that does
// something takes only a write of all its bytes.
func (s *space) write(off int, b []byte) {
	for i, v := range b {
		s.now[off+i] = s.now[off+i]&^s.writable[off+i] | v&s.writable[off+i]
	}
	for at := (off + 3) &^ 3; at+4 <= off+len(b); at += 4 {
		if w, ok := s.dwords[at]; ok {
			w.WriteDword(w.off, le.Uint32(b[at-off:]))
		}
	}
}
