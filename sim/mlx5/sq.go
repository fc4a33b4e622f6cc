// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"github.com/flexsteer/flexsteer/sim/prm"
	"github.com/flexsteer/flexsteer/sim/queue"
)

// A send queue's context.
var (
	sqFlush = at(0x003, 1).At(workContext)
	sqTISs  = at(0x100, 16).At(workContext)
	sqTIS   = at(0x168, 24).At(workContext)
)

var sqCommands = []command{
	{opcode: 0x904, name: "CREATE_SQ", reply: 16, when: running, run: (*function).createSQ, gives: gives("sq", numberField),
		in: form{size: ringPages, tail: 8,
			uses: append(inside(workQueue, append(wqFields, wqUAR)...), workState, workCQ, sqFlush, sqTISs, sqTIS),
		}},
	{opcode: 0x905, name: "MODIFY_SQ", in: form{size: ringPages, uses: []prm.Field{numberField, workFrom, workState}},
		when: running, run: (*function).modifySQ, shows: []shown{{"sq", numberField}, {"from", workFrom}, {"to", workState}}},
	{opcode: 0x906, name: "DESTROY_SQ", in: plain, when: running, run: (*function).destroySQ, shows: shows("sq", numberField)},
	{opcode: 0x907, name: "QUERY_SQ", in: plain, reply: ringPages, when: running, run: (*function).querySQ, shows: shows("sq", numberField)},
}

const logBasicBlock = 6 // of 64 bytes

func (f *function) createSQ(c *call) error {
	if err := newWorkQueue(c); err != nil {
		return err
	}
	if stride := c.get(wqLogStride.At(workQueue)); stride != logBasicBlock {
		return badValue("a send queue with entries of 2^%d bytes, not 2^%d", stride, logBasicBlock)
	}
	q := queue.SQ{
		Pages:        wqPages(c),
		LogSize:      int(c.get(wqLogSize.At(workQueue))),
		UAR:          c.number(wqUAR.At(workQueue)),
		Record:       c.get(wqRecord.At(workQueue)),
		CQ:           c.number(workCQ),
		FlushInError: c.flag(sqFlush),
	}
	uses := []ref{{cq, uint64(q.CQ)}, {pd, c.get(wqPD.At(workQueue))}, {uar, uint64(q.UAR)}}
	switch n := c.get(sqTISs); n {
	case 0: // for requests that send nothing
	case 1:
		uses = append(uses, ref{tis, c.get(sqTIS)})
	default:
		return badValue("a send queue with %d TISs", n)
	}
	number, err := f.create(sq, uses, func(n uint32) error { return f.rings.CreateSQ(n, q) })
	c.put(numberField, uint64(number))
	return err
}

func (f *function) modifySQ(c *call) error {
	number := c.number(numberField)
	if why := f.objects.need(ref{sq, uint64(number)}); why != nil {
		return why
	}
	return f.rings.ModifySQ(number, queue.SQChange{From: queue.State(c.get(workFrom)), To: queue.State(c.get(workState))})
}

func (f *function) destroySQ(c *call) error {
	number := c.number(numberField)
	return f.destroy(ref{sq, uint64(number)}, func() error { return f.rings.DestroySQ(number) })
}

func (f *function) querySQ(c *call) error {
	number := c.number(numberField)
	if why := f.objects.need(ref{sq, uint64(number)}); why != nil {
		return why
	}
	state, err := f.rings.SQState(number)
	c.put(workState, uint64(state))
	return err
}
