// SPDX-License-Identifier: Apache-2.0

// Package prm is how the card's structures are written down: fields of bits in
// big-endian bytes, numbered from the structure's first bit, the most
// significant one of byte 0, as NVIDIA's Programmer's Reference Manual (PRM)
// and the driver's header do.
package prm

// Field is a field of 1 to 64 bits.
type Field struct {
	Bit   int // of the field's most significant bit, from the structure's start
	Width int // bits
}

// At is the field of a structure that lies bit bits into another.
func (f Field) At(bit int) Field { return Field{f.Bit + bit, f.Width} }

// Get reads the field; bits behind the end of b are 0.
func (f Field) Get(b []byte) (v uint64) {
	for bit := f.Bit; bit < f.Bit+f.Width; bit++ {
		v <<= 1
		if bit/8 < len(b) {
			v |= uint64(b[bit/8]>>(7-bit%8)) & 1
		}
	}
	return v
}

// Set writes the low Width bits of v; bits behind the end of b are left out.
func (f Field) Set(b []byte, v uint64) {
	for i := range f.Width {
		bit := f.Bit + f.Width - 1 - i
		if bit/8 < len(b) {
			mask := byte(1) << (7 - bit%8)
			b[bit/8] = b[bit/8]&^mask | byte(v>>i&1)<<(7-bit%8)
		}
	}
}
