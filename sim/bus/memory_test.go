// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"bytes"
	"errors"
	"testing"
)

func TestMemoryIsWhereItIsMapped(t *testing.T) {
	m := &Memory{}
	m.Map(0, 1)
	m.Map(3*pageSize-1, 2) // the third and the fourth page
	m.Map(-pageSize&(1<<64-1), pageSize)
	for _, c := range []struct {
		name string
		addr uint64
		n    int
		ok   bool
	}{
		{"all of a page", 0, pageSize, true},
		{"over its end", pageSize - 1, 2, false},
		{"over two pages", 3*pageSize - 8, 16, true},
		{"before them", 2*pageSize - 1, 2, false},
		{"the last bytes there are", 1<<64 - 8, 8, true},
		{"over the last address", 1<<64 - 8, 16, false},
	} {
		data, back := bytes.Repeat([]byte{0x5a}, c.n), make([]byte, c.n)
		err := errors.Join(m.Write(c.addr, data), m.Read(c.addr, back))
		if (err == nil) != c.ok || c.ok && !bytes.Equal(back, data) {
			t.Errorf("%s: %x, %v", c.name, back, err)
		}
		if missing := (NotMapped{}); !c.ok && (!errors.As(err, &missing) || missing != NotMapped{c.addr, c.n}) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if m.Unmap(4*pageSize-1, 1); m.Read(3*pageSize-8, make([]byte, 16)) == nil {
		t.Error("a page that was taken away is there")
	}
}
