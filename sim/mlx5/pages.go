// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"encoding/binary"

	"github.com/flexsteer/flexsteer/sim/prm"
)

// How many pages of 4 KiB the firmware asks for at either time.
const (
	bootPages = 16
	initPages = 64
)

// pages is the memory that the driver lent to the firmware. The model keeps
// nothing in it, but knows what was lent.
type pages struct {
	given []uint64 // addresses, in the order of their coming
}

var (
	pageCount = at(0x60, 32) // QUERY_PAGES: signed; MANAGE_PAGES: of the input
	takenBack = at(0x40, 32) // MANAGE_PAGES: of the output
)

// QUERY_PAGES asks for these numbers,
const (
	askBoot    = 1
	askInit    = 2
	askRegular = 3
)

// and MANAGE_PAGES does one of these.
const (
	cannotGive = 0
	give       = 1
	take       = 2
)

var pageCommands = []command{
	{opcode: 0x107, name: "QUERY_PAGES", in: form{size: 16, uses: []prm.Field{functionID}}, modifiers: []uint16{askBoot, askInit, askRegular},
		reply: 16, when: enabled | running, run: (*function).queryPages, gives: gives("pages", pageCount)},
	{opcode: 0x108, name: "MANAGE_PAGES", in: form{size: 16, uses: []prm.Field{functionID, pageCount}, tail: 8}, modifiers: []uint16{cannotGive, give, take},
		reply: 16, when: enabled | running, run: (*function).managePages, shows: shows("pages", pageCount)},
}

// queryPages answers how many pages are missing, or with a number below 0 how many could be taken back.
func (f *function) queryPages(c *call) error {
	if err := ownFunction(c); err != nil {
		return err
	}
	missing := 0
	switch {
	case c.modifier == askBoot:
		missing = max(bootPages-len(f.pages.given), 0)
	case c.modifier == askInit:
		missing = max(bootPages+initPages-len(f.pages.given), 0)
	case f.state == enabled:
		missing = -len(f.pages.given)
	}
	c.put(pageCount, uint64(uint32(missing)))
	return nil
}

func (f *function) managePages(c *call) error {
	if err := ownFunction(c); err != nil {
		return err
	}
	tail, n := c.in[16:], int(c.get(pageCount))
	listed := 0
	if c.modifier == give {
		listed = n
	}
	if len(tail) != 8*listed {
		return refuse(BadInputLength, WrongLength, "%d pages in %d bytes", listed, len(tail))
	}
	switch c.modifier {
	case give:
		return f.givePages(addresses(tail))
	case take:
		return f.takePages(c, n)
	}
	return nil // the driver has none to give
}

func addresses(b []byte) []uint64 {
	list := make([]uint64, len(b)/8)
	for i := range list {
		list[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return list
}

func (f *function) givePages(given []uint64) error {
	lent := map[uint64]bool{}
	for _, a := range f.pages.given {
		lent[a] = true
	}
	for _, a := range given {
		var b [1]byte
		switch {
		case a%pageSize != 0 || a == 0:
			return badValue("%#x is no address of a page", a)
		case lent[a]:
			return badValue("page %#x was given already", a)
		case f.dev.bus.Read(a+pageSize-1, b[:]) != nil:
			return refuse(BadParam, BadMemory, "page %#x is not in the guest's memory", a)
		}
		lent[a] = true
	}
	f.pages.given = append(f.pages.given, given...)
	return nil
}

// takePages gives up to n pages back, the last ones first. An initialized function keeps what it asked for.
func (f *function) takePages(c *call, n int) error {
	kept := 0
	if f.state == running {
		kept = bootPages + initPages
	}
	n = max(min(n, len(f.pages.given)-kept), 0)
	if room := (len(c.out) - 16) / 8; n > room {
		return refuse(BadOutputLength, WrongLength, "room for %d of %d pages", room, n)
	}
	rest := len(f.pages.given) - n
	for i, a := range f.pages.given[rest:] {
		binary.BigEndian.PutUint64(c.out[16+8*i:], a)
	}
	f.pages.given = f.pages.given[:rest]
	c.put(takenBack, uint64(n))
	return nil
}
