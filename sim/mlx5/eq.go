// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"encoding/binary"

	"github.com/flexsteer/flexsteer/sim/prm"
	"github.com/flexsteer/flexsteer/sim/queue"
)

// Types of events that this package posts; queue posts those of the rings.
const (
	eventPortChange uint8 = 0x09
	eventCommand    uint8 = 0x0a
)

// A context of an event or completion queue, in bits: the two have these in common.
var (
	ringOffset  = at(0x054, 6) // of the first entry in the first page, in units of 64 bytes
	ringLogSize = at(0x063, 5)
	ringUAR     = at(0x068, 24)
	ringLogPage = at(0x0c3, 5)
)

var (
	eqVector = at(0x0b4, 12)
	eqNumber = at(0x58, 8)
)

const (
	contextBit = 0x80      // where the context starts in CREATE_EQ, CREATE_CQ and MODIFY_CQ
	eventMask  = 0x2c0 / 8 // byte of CREATE_EQ's event_bitmask, 32 bytes
	ringPages  = 0x880 / 8 // byte of the page list, behind all fields
)

var eqForm = form{size: ringPages, tail: 8,
	uses: append(inside(contextBit, ringOffset, ringLogSize, ringUAR, ringLogPage, eqVector), at(8*eventMask, 256))}

var eqCommands = []command{
	{opcode: 0x301, name: "CREATE_EQ", in: eqForm, reply: 16, when: running, run: (*function).createEQ, gives: gives("eq", eqNumber)},
	{opcode: 0x302, name: "DESTROY_EQ", in: form{size: 16, uses: []prm.Field{eqNumber}}, when: running, run: (*function).destroyEQ, shows: shows("eq", eqNumber)},
}

// ringPagesOf is where the ring of an event or completion queue lies.
func ringPagesOf(c *call) queue.Pages {
	return queue.Pages{
		Addr:        addresses(c.in[ringPages:]),
		LogPageSize: int(c.get(ringLogPage.At(contextBit))),
		Offset:      int(c.get(ringOffset.At(contextBit))) * 64,
	}
}

func (f *function) createEQ(c *call) error {
	page := c.number(ringUAR.At(contextBit))
	e := queue.EQ{
		Pages:   ringPagesOf(c),
		LogSize: int(c.get(ringLogSize.At(contextBit))),
		UAR:     page,
		Vector:  int(c.get(eqVector.At(contextBit))),
	}
	for i := range e.Events {
		e.Events[i] = binary.BigEndian.Uint64(c.in[eventMask+8*i:])
	}
	number, err := f.create(eq, []ref{{uar, uint64(page)}}, func(n uint32) error { return f.rings.CreateEQ(n, e) })
	if err != nil {
		return err
	}
	if e.Events[0]>>eventCommand&1 != 0 {
		f.commandEQ[number] = true
	}
	c.put(eqNumber, uint64(number))
	return nil
}

func (f *function) destroyEQ(c *call) error {
	number := c.number(eqNumber)
	return f.destroy(ref{eq, uint64(number)}, func() error {
		if err := f.rings.DestroyEQ(number); err != nil {
			return err
		}
		delete(f.commandEQ, number)
		return nil
	})
}
