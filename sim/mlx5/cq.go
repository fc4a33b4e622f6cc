// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"github.com/flexsteer/flexsteer/sim/prm"
	"github.com/flexsteer/flexsteer/sim/queue"
)

// The rest of a completion queue's context, in bits.
var (
	cqEQ            = at(0x0a0, 32)
	cqIgnoreOverrun = at(0x00e, 1)
	cqRecord        = at(0x1c0, 64)
	cqModeration    = []prm.Field{at(0x00f, 2), at(0x084, 12), at(0x090, 16)} // period mode, period, count

	cqChanges = at(0x60, 32) // MODIFY_CQ's modify_field_select
)

// What MODIFY_CQ may change, as bits of cqChanges: period, count, period mode.
const moderationChanges = 1<<0 | 1<<1 | 1<<4

var cqFields = append(inside(contextBit, ringOffset, ringLogSize, ringUAR, ringLogPage, cqEQ, cqIgnoreOverrun), cqRecord.At(contextBit))

var cqCommands = []command{
	// Interrupts are not moderated: each completion that is waited for is told at once.
	{opcode: 0x400, name: "CREATE_CQ", in: form{size: ringPages, uses: cqFields, ignores: inside(contextBit, cqModeration...), tail: 8},
		reply: 16, when: running, run: (*function).createCQ, gives: gives("cq", numberField)},
	{opcode: 0x401, name: "DESTROY_CQ", in: plain, when: running, run: (*function).destroyCQ, shows: shows("cq", numberField)},
	{opcode: 0x403, name: "MODIFY_CQ", in: form{size: ringPages, uses: []prm.Field{numberField, cqChanges}, ignores: inside(contextBit, cqModeration...)},
		when: running, run: (*function).modifyCQ, shows: shows("cq", numberField)},
}

func (f *function) createCQ(c *call) error {
	q := queue.CQ{
		Pages:         ringPagesOf(c),
		LogSize:       int(c.get(ringLogSize.At(contextBit))),
		UAR:           c.number(ringUAR.At(contextBit)),
		EQ:            c.number(cqEQ.At(contextBit)),
		Record:        c.get(cqRecord.At(contextBit)),
		IgnoreOverrun: c.flag(cqIgnoreOverrun.At(contextBit)),
	}
	uses := []ref{{eq, uint64(q.EQ)}, {uar, uint64(q.UAR)}}
	number, err := f.create(cq, uses, func(n uint32) error { return f.rings.CreateCQ(n, q) })
	c.put(numberField, uint64(number))
	return err
}

func (f *function) destroyCQ(c *call) error {
	number := c.number(numberField)
	return f.destroy(ref{cq, uint64(number)}, func() error { return f.rings.DestroyCQ(number) })
}

func (f *function) modifyCQ(c *call) error {
	if other := c.get(cqChanges) &^ moderationChanges; other != 0 {
		return badValue("MODIFY_CQ of %#x, only moderation can be changed", other)
	}
	if why := f.objects.need(ref{cq, c.get(numberField)}); why != nil {
		return why
	}
	return nil
}
