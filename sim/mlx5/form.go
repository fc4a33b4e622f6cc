// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"github.com/flexsteer/flexsteer/sim/prm"
)

// at is the field of width bits at a bit of its structure.
func at(bit, width int) prm.Field { return prm.Field{Bit: bit, Width: width} }

// inside moves the fields of a structure to where it lies in another, in bits.
func inside(bit int, fields ...prm.Field) []prm.Field {
	moved := make([]prm.Field, len(fields))
	for i, f := range fields {
		moved[i] = f.At(bit)
	}
	return moved
}

// Fields that every command has.
var (
	opcodeField   = at(0x00, 16)
	modifierField = at(0x30, 16) // op_mod; the object type of general objects
	statusField   = at(0x00, 8)
	syndromeField = at(0x20, 32)
)

// form is what a command's input may look like. Any bit that is set outside of
// it is refused.
type form struct {
	size int // bytes, without a tail
	uses []prm.Field
	// ignores are fields that a driver may set and which change nothing here.
	ignores []prm.Field
	tail    int // bytes of each element behind size; 0: nothing may follow
}

// mask has ones where the fixed part of the input may.
func (f form) mask() []byte {
	m := make([]byte, f.size)
	for _, fields := range [][]prm.Field{{opcodeField, modifierField}, f.uses, f.ignores} {
		for _, field := range fields {
			for i := range field.Width {
				at(field.Bit+i, 1).Set(m, 1)
			}
		}
	}
	return m
}

// check holds an input against the form, given its mask.
func (f form) check(mask, in []byte) *refusal {
	if len(in) < f.size {
		return refuse(BadInputLength, WrongLength, "input of %d bytes, not %d", len(in), f.size)
	}
	for i, b := range in {
		allowed := byte(0)
		if i < len(mask) {
			allowed = mask[i]
		} else if f.tail > 0 {
			break
		}
		if odd := b &^ allowed; odd != 0 {
			return refuse(BadParam, UnknownBits, "bits %#02x of byte %#x of the input are not modelled", odd, i)
		}
	}
	if f.tail > 0 && (len(in)-f.size)%f.tail != 0 {
		return refuse(BadInputLength, WrongLength, "%d bytes follow the input's %d, and no elements of %d", len(in)-f.size, f.size, f.tail)
	}
	return nil
}
