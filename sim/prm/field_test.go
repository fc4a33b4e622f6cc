// SPDX-License-Identifier: Apache-2.0

package prm

import (
	"bytes"
	"testing"
)

func TestFieldsAreNumberedFromTheMostSignificantBit(t *testing.T) {
	for _, c := range []struct {
		field Field
		value uint64
		bytes []byte
	}{
		{Field{0, 16}, 0x100, []byte{1, 0, 0, 0}},
		{Field{8, 24}, 0x0a0b0c, []byte{0, 0x0a, 0x0b, 0x0c}},
		{Field{3, 2}, 3, []byte{0x18, 0, 0, 0}},
		{Field{12, 8}, 0xff, []byte{0, 0x0f, 0xf0, 0}},
		{Field{31, 1}, 1, []byte{0, 0, 0, 1}},
	} {
		b := make([]byte, 4)
		c.field.Set(b, c.value)
		if !bytes.Equal(b, c.bytes) || c.field.Get(b) != c.value {
			t.Errorf("%v = %#x: bytes %x, read back as %#x", c.field, c.value, b, c.field.Get(b))
		}
		for i := range b {
			b[i] = ^b[i]
		}
		inverse := bytes.Clone(b)
		if c.field.Set(b, c.value); c.field.Get(b) != c.value {
			t.Errorf("%v over %x: %#x", c.field, inverse, c.field.Get(b))
		}
	}
}

func TestAFieldBehindTheEndIsZeroAndSetsNothing(t *testing.T) {
	b := []byte{0xff}
	f := Field{4, 8}
	f.Set(b, 0)
	if b[0] != 0xf0 || f.Get([]byte{0xff}) != 0xf0 {
		t.Errorf("%x, %#x", b, f.Get([]byte{0xff}))
	}
}
