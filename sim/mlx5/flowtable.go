// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"github.com/flexsteer/flexsteer/sim/prm"
	"github.com/flexsteer/flexsteer/sim/steering"
)

// Fields that the flow table commands have in common. Tables of other vports
// and of other types than 0 (receive) are not modelled, so their fields are
// left out and must be 0.
var (
	tableNumber = at(0x0a8, 24)

	tableMissAction = at(0x0c4, 4)
	tableLevel      = at(0x0c8, 8)
	tableLogSize    = at(0x0d8, 8)
	tableMiss       = at(0x0e8, 24)
	tableChanges    = at(0x070, 16)

	groupNumber   = at(0x0c0, 32) // of DESTROY_FLOW_GROUP
	groupStart    = at(0x0e0, 32)
	groupEnd      = at(0x120, 32)
	groupEnable   = at(0x1f8, 8) // match_criteria_enable
	groupCriteria = at(8*criteriaBytes, 8*steering.MatchBytes)
)

const criteriaBytes = 0x40 // where match_criteria starts in CREATE_FLOW_GROUP

// MODIFY_FLOW_TABLE's one change, in tableChanges.
const changeMiss = 1 << 0

// SET_FLOW_TABLE_ROOT's op_mods.
const (
	connectRoot    = 0
	disconnectRoot = 1
)

var flowTableCommands = []command{
	// 64 bytes on Linux 6.1, 80 on 6.12: what is new stays 0.
	{opcode: 0x930, name: "CREATE_FLOW_TABLE", in: form{size: 64, uses: []prm.Field{tableMissAction, tableLevel, tableLogSize, tableMiss}},
		reply: 16, when: running, run: (*function).createTable, shows: []shown{{"level", tableLevel}, {"log_size", tableLogSize}}, gives: gives("table", numberField)},
	{opcode: 0x93c, name: "MODIFY_FLOW_TABLE", in: form{size: 64, uses: []prm.Field{tableNumber, tableChanges, tableMissAction, tableMiss}},
		when: running, run: (*function).modifyTable, shows: []shown{{"table", tableNumber}, {"miss", tableMiss}}},
	{opcode: 0x931, name: "DESTROY_FLOW_TABLE", in: form{size: 64, uses: []prm.Field{tableNumber}},
		when: running, run: (*function).destroyTable, shows: shows("table", tableNumber)},
	{opcode: 0x92f, name: "SET_FLOW_TABLE_ROOT", in: form{size: 64, uses: []prm.Field{tableNumber}}, modifiers: []uint16{connectRoot, disconnectRoot},
		when: running, run: (*function).setRoot, shows: shows("table", tableNumber)},
	{opcode: 0x933, name: "CREATE_FLOW_GROUP", in: form{size: 1024, uses: []prm.Field{tableNumber, groupStart, groupEnd, groupEnable, groupCriteria}},
		reply: 16, when: running, run: (*function).createGroup, shows: []shown{{"table", tableNumber}, {"start", groupStart}, {"end", groupEnd}},
		gives: gives("group", numberField)},
	{opcode: 0x934, name: "DESTROY_FLOW_GROUP", in: form{size: 64, uses: []prm.Field{tableNumber, groupNumber}},
		when: running, run: (*function).destroyGroup, shows: []shown{{"table", tableNumber}, {"group", groupNumber}}},
}

// missOf is where misses go, and the table that is used for it.
func missOf(c *call) (steering.Miss, []ref, error) {
	m := steering.Miss{Action: steering.MissAction(c.get(tableMissAction)), Table: c.number(tableMiss)}
	switch {
	case m.Action == steering.MissForward:
		return m, []ref{{flowTable, uint64(m.Table)}}, nil
	case m.Table != 0:
		return m, nil, badValue("table %#x for misses, which are not forwarded", m.Table)
	}
	return m, nil, nil
}

func (f *function) createTable(c *call) error {
	miss, uses, err := missOf(c)
	if err != nil {
		return err
	}
	t := steering.Table{Level: uint8(c.get(tableLevel)), LogSize: uint8(c.get(tableLogSize)), Miss: miss}
	number, err := f.create(flowTable, uses, func(n uint32) error { return f.steering.CreateTable(n, t) })
	c.put(numberField, uint64(number))
	return err
}

func (f *function) modifyTable(c *call) error {
	o := ref{flowTable, c.get(tableNumber)}
	if changes := c.get(tableChanges); changes != changeMiss {
		return badValue("MODIFY_FLOW_TABLE of %#x, only the miss table can be changed", changes)
	}
	miss, uses, err := missOf(c)
	if err != nil {
		return err
	}
	if why := f.objects.need(append(uses, o)...); why != nil {
		return why
	}
	if err := f.steering.ModifyTable(uint32(o.id), miss); err != nil {
		return err
	}
	f.objects.rebind(o, uses...)
	return nil
}

func (f *function) destroyTable(c *call) error {
	number := c.number(tableNumber)
	return f.destroy(ref{flowTable, uint64(number)}, func() error { return f.steering.DestroyTable(number) })
}

func (f *function) setRoot(c *call) error {
	number := c.number(tableNumber)
	if c.modifier == connectRoot {
		return f.steering.SetRoot(number)
	}
	if number != 0 {
		return badValue("table %#x named in a disconnect of the root", number)
	}
	return f.steering.ClearRoot()
}

func (f *function) createGroup(c *call) error {
	g := steering.Group{
		Table:  c.number(tableNumber),
		Start:  c.number(groupStart),
		End:    c.number(groupEnd),
		Enable: uint8(c.get(groupEnable)),
	}
	copy(g.Criteria[:], c.in[criteriaBytes:])
	number, err := f.create(flowGroup, []ref{{flowTable, uint64(g.Table)}}, func(n uint32) error { return f.steering.CreateGroup(n, g) })
	c.put(numberField, uint64(number))
	return err
}

func (f *function) destroyGroup(c *call) error {
	table, number := c.number(tableNumber), c.number(groupNumber)
	return f.destroy(ref{flowGroup, uint64(number)}, func() error { return f.steering.DestroyGroup(table, number) })
}
