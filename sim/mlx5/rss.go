// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"encoding/binary"

	"github.com/flexsteer/flexsteer/sim/prm"
	"github.com/flexsteer/flexsteer/sim/steering"
)

// A TIR's context, in bits from the start of CREATE_TIR and MODIFY_TIR.
const tirContext = 0x100

var (
	tirIndirect     = at(0x020, 4).At(tirContext) // disp_type
	tirQueue        = at(0x0e8, 24).At(tirContext)
	tirSymmetric    = at(0x100, 1).At(tirContext)
	tirRQT          = at(0x108, 24).At(tirContext)
	tirHashFunction = at(0x120, 4).At(tirContext)
	tirLoopback     = at(0x126, 2).At(tirContext) // self_lb_block
	tirDomain       = at(0x128, 24).At(tirContext)
	tirL3           = at(0x280, 1).At(tirContext)
	tirL4           = at(0x281, 1).At(tirContext)
	tirFields       = at(0x282, 30).At(tirContext)
	tirKeyBits      = at(0x140, 320).At(tirContext)

	tirHash = []prm.Field{tirSymmetric, tirHashFunction, tirL3, tirL4, tirFields, tirKeyBits}

	tirChanges = at(0x80, 64)
)

const tirKey = (tirContext + 0x140) / 8 // byte

// What MODIFY_TIR changes, as bits of tirChanges.
const (
	changeMerge    = 1 << 0 // large receive offload, which is not offered
	changeHash     = 1 << 2
	changeLoopback = 1 << 4
)

// An RQT's list, in bytes from the start of CREATE_RQT and MODIFY_RQT.
const rqtList = 0x110

var (
	rqtMaximum = at(0x1b0, 16)
	rqtActual  = at(0x1d0, 16)
	rqtChanges = at(0x80, 64)
)

const changeQueues = 1 << 0

var rssCommands = []command{
	// What the guest sends to itself never comes back over the wire here.
	{opcode: 0x900, name: "CREATE_TIR", in: form{size: 272, ignores: []prm.Field{tirLoopback},
		uses: append([]prm.Field{tirIndirect, tirQueue, tirRQT, tirDomain}, tirHash...)},
		reply: 16, when: running, run: (*function).createTIR, gives: gives("tir", numberField)},
	{opcode: 0x901, name: "MODIFY_TIR", in: form{size: 272, ignores: []prm.Field{tirLoopback}, uses: append([]prm.Field{numberField, tirChanges}, tirHash...)},
		when: running, run: (*function).modifyTIR, shows: []shown{{"tir", numberField}, {"change", tirChanges}}},
	{opcode: 0x902, name: "DESTROY_TIR", in: plain, when: running, run: (*function).destroyTIR, shows: shows("tir", numberField)},
	{opcode: 0x916, name: "CREATE_RQT", in: form{size: rqtList, uses: []prm.Field{rqtMaximum, rqtActual}, tail: 4},
		reply: 16, when: running, run: (*function).createRQT, gives: gives("rqt", numberField)},
	{opcode: 0x917, name: "MODIFY_RQT", in: form{size: rqtList, uses: []prm.Field{numberField, rqtChanges, rqtActual}, tail: 4},
		when: running, run: (*function).modifyRQT, shows: shows("rqt", numberField)},
	{opcode: 0x918, name: "DESTROY_RQT", in: plain, when: running, run: (*function).destroyRQT, shows: shows("rqt", numberField)},
}

func hashOf(c *call) steering.Hash {
	h := steering.Hash{
		Function:  steering.HashFunction(c.get(tirHashFunction)),
		Symmetric: c.flag(tirSymmetric),
		L3:        uint8(c.get(tirL3)),
		L4:        uint8(c.get(tirL4)),
		Fields:    c.number(tirFields),
	}
	copy(h.Key[:], c.in[tirKey:])
	return h
}

func (f *function) createTIR(c *call) error {
	t := steering.TIR{Queue: c.number(tirQueue), RQT: c.number(tirRQT), Hash: hashOf(c)}
	target := ref{rq, uint64(t.Queue)}
	switch mode := c.get(tirIndirect); mode {
	case 0:
	case 1:
		t.Indirect, target = true, ref{rqt, uint64(t.RQT)}
	default:
		return badValue("disp_type %d of a TIR", mode)
	}
	number, err := f.create(tir, []ref{target, {transportDomain, c.get(tirDomain)}}, func(n uint32) error { return f.steering.CreateTIR(n, t) })
	c.put(numberField, uint64(number))
	return err
}

func (f *function) modifyTIR(c *call) error {
	number, changes := c.number(numberField), c.get(tirChanges)
	if other := changes &^ (changeHash | changeLoopback); other != 0 {
		return badValue("MODIFY_TIR of %#x, only the hash and loopback can be changed", other)
	}
	if why := f.objects.need(ref{tir, uint64(number)}); why != nil {
		return why
	}
	if changes&changeHash == 0 {
		return nil
	}
	return f.steering.ModifyTIR(number, hashOf(c))
}

func (f *function) destroyTIR(c *call) error {
	number := c.number(numberField)
	return f.destroy(ref{tir, uint64(number)}, func() error { return f.steering.DestroyTIR(number) })
}

// queuesOf reads an RQT's list, whose elements have 24 bits.
func queuesOf(c *call) (numbers []uint32, refs []ref, err error) {
	list := c.in[rqtList:]
	if n := int(c.get(rqtActual)); n == 0 || len(list) != 4*n {
		return nil, nil, refuse(BadInputLength, WrongLength, "%d queues in %d bytes", n, len(list))
	}
	for ; len(list) > 0; list = list[4:] {
		n := binary.BigEndian.Uint32(list)
		numbers, refs = append(numbers, n), append(refs, ref{rq, uint64(n)})
	}
	return numbers, refs, nil
}

func (f *function) createRQT(c *call) error {
	queues, uses, err := queuesOf(c)
	if err != nil {
		return err
	}
	t := steering.RQT{MaxSize: int(c.get(rqtMaximum)), Queues: queues}
	number, err := f.create(rqt, uses, func(n uint32) error { return f.steering.CreateRQT(n, t) })
	c.put(numberField, uint64(number))
	return err
}

func (f *function) modifyRQT(c *call) error {
	o := ref{rqt, c.get(numberField)}
	if changes := c.get(rqtChanges); changes != changeQueues {
		return badValue("MODIFY_RQT of %#x, only the list of queues can be changed", changes)
	}
	queues, uses, err := queuesOf(c)
	if err != nil {
		return err
	}
	if why := f.objects.use(append(uses, o)...); why != nil {
		return why
	}
	if err := f.steering.ModifyRQT(uint32(o.id), queues); err != nil {
		return err
	}
	f.objects.swap(o, rq, uses...)
	return nil
}

func (f *function) destroyRQT(c *call) error {
	number := c.number(numberField)
	return f.destroy(ref{rqt, uint64(number)}, func() error { return f.steering.DestroyRQT(number) })
}
