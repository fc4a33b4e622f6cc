// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"slices"

	"github.com/flexsteer/flexsteer/sim/prm"
	"github.com/flexsteer/flexsteer/sim/queue"
)

// A receive queue's context.
var (
	rqKeepVLAN   = at(0x003, 1).At(workContext)
	rqMemoryType = at(0x004, 4).At(workContext)
	rqCounterSet = at(0x060, 8).At(workContext)
)

// What MODIFY_RQ changes besides the state, as bits of workChanges.
const (
	changeKeepVLAN   = 1 << 1
	changeCounterSet = 1 << 3
)

var rqCommands = []command{
	{opcode: 0x908, name: "CREATE_RQ", reply: 16, when: running, run: (*function).createRQ, gives: gives("rq", numberField),
		in: form{size: ringPages, tail: 8,
			uses: append(inside(workQueue, wqFields...), workState, workCQ, rqKeepVLAN, rqMemoryType, rqCounterSet),
			// Padding at the end of a buffer is the PCIe bus's business.
			ignores: inside(workQueue, wqPadding)}},
	{opcode: 0x909, name: "MODIFY_RQ", in: form{size: ringPages, uses: []prm.Field{numberField, workFrom, workChanges, workState, rqKeepVLAN, rqCounterSet}},
		when: running, run: (*function).modifyRQ, shows: []shown{{"rq", numberField}, {"from", workFrom}, {"to", workState}}},
	{opcode: 0x90a, name: "DESTROY_RQ", in: plain, when: running, run: (*function).destroyRQ, shows: shows("rq", numberField)},
	{opcode: 0x90b, name: "QUERY_RQ", in: plain, reply: ringPages, when: running, run: (*function).queryRQ, shows: shows("rq", numberField)},
}

func (f *function) createRQ(c *call) error {
	if err := newWorkQueue(c); err != nil {
		return err
	}
	if t := c.get(rqMemoryType); t != 0 {
		return badValue("mem_rq_type %d, the model has 0 (entries in the queue) only", t)
	}
	q := queue.RQ{
		Pages:      wqPages(c),
		LogSize:    int(c.get(wqLogSize.At(workQueue))),
		LogStride:  int(c.get(wqLogStride.At(workQueue))),
		Record:     c.get(wqRecord.At(workQueue)),
		CQ:         c.number(workCQ),
		KeepVLAN:   c.flag(rqKeepVLAN),
		CounterSet: uint8(c.get(rqCounterSet)),
	}
	uses := append(counterUse(q.CounterSet), ref{cq, uint64(q.CQ)})
	// Linux makes one queue without a PD, where frames go while there are no others. Nothing is ever posted to it.
	if domain := c.get(wqPD.At(workQueue)); domain != 0 {
		uses = append(uses, ref{pd, domain})
	}
	number, err := f.create(rq, uses, func(n uint32) error { return f.rings.CreateRQ(n, q) })
	c.put(numberField, uint64(number))
	return err
}

// counterUse is the use of a Q counter; 0 is none.
func counterUse(set uint8) []ref {
	if set == 0 {
		return nil
	}
	return []ref{{qCounter, uint64(set)}}
}

func (f *function) modifyRQ(c *call) error {
	o, changes := ref{rq, c.get(numberField)}, c.get(workChanges)
	if other := changes &^ (changeKeepVLAN | changeCounterSet); other != 0 {
		return badValue("MODIFY_RQ of %#x, only VLAN stripping and the Q counter can be changed", other)
	}
	change := queue.RQChange{From: queue.State(c.get(workFrom)), To: queue.State(c.get(workState))}
	keep, set := c.flag(rqKeepVLAN), uint8(c.get(rqCounterSet))
	if changes&changeKeepVLAN != 0 {
		change.KeepVLAN = &keep
	}
	if changes&changeCounterSet != 0 {
		change.CounterSet = &set
	}
	if why := f.objects.need(slices.Concat([]ref{o}, counterUse(set))...); why != nil {
		return why
	}
	if err := f.rings.ModifyRQ(uint32(o.id), change); err != nil {
		return err
	}
	if change.CounterSet != nil {
		f.objects.swap(o, qCounter, counterUse(set)...)
	}
	return nil
}

func (f *function) destroyRQ(c *call) error {
	number := c.number(numberField)
	return f.destroy(ref{rq, uint64(number)}, func() error { return f.rings.DestroyRQ(number) })
}

func (f *function) queryRQ(c *call) error {
	number := c.number(numberField)
	if why := f.objects.need(ref{rq, uint64(number)}); why != nil {
		return why
	}
	state, err := f.rings.RQState(number)
	c.put(workState, uint64(state))
	return err
}
