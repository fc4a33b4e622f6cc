// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"encoding/binary"
	"slices"

	"github.com/flexsteer/flexsteer/sim/prm"
	"github.com/flexsteer/flexsteer/sim/steering"
)

var (
	entryIndex        = at(0x100, 32)
	entryChanges      = at(0x0d8, 8) // modify_enable_mask
	entryGroup        = at(0x220, 32)
	entryTag          = at(0x248, 24)
	entryAction       = at(0x270, 16)
	entryDestinations = at(0x288, 24)
	entryCounters     = at(0x2a8, 24)
	entryValue        = at(8*valueBytes, 8*steering.MatchBytes)
)

const (
	valueBytes = 0x80  // where match_value starts in SET_FLOW_TABLE_ENTRY
	entryList  = 0x340 // where destinations and then counters start, 8 bytes each
	listBytes  = 8
)

// SET_FLOW_TABLE_ENTRY's op_mods.
const (
	newEntry    = 0
	changeEntry = 1
)

var flowEntryCommands = []command{
	{opcode: 0x936, name: "SET_FLOW_TABLE_ENTRY", modifiers: []uint16{newEntry, changeEntry}, when: running, run: (*function).setEntry,
		in: form{size: entryList, tail: listBytes,
			uses: []prm.Field{tableNumber, entryIndex, entryChanges, entryGroup, entryTag, entryAction, entryDestinations, entryCounters, entryValue}},
		shows: []shown{{"table", tableNumber}, {"index", entryIndex}}},
	{opcode: 0x938, name: "DELETE_FLOW_TABLE_ENTRY", in: form{size: 64, uses: []prm.Field{tableNumber, entryIndex}}, when: running,
		run: (*function).deleteEntry, shows: []shown{{"table", tableNumber}, {"index", entryIndex}}},
}

// entryOf reads an entry, and what it uses.
func entryOf(c *call) (e steering.Entry, uses []ref, err error) {
	e = steering.Entry{Group: c.number(entryGroup), Action: steering.Action(c.get(entryAction)), Tag: c.number(entryTag)}
	copy(e.Value[:], c.in[valueBytes:])
	uses = []ref{{flowGroup, uint64(e.Group)}}
	list, destinations, counters := c.in[entryList:], int(c.get(entryDestinations)), int(c.get(entryCounters))
	if len(list) != listBytes*(destinations+counters) {
		return e, nil, refuse(BadInputLength, WrongLength, "%d destinations and %d counters in %d bytes", destinations, counters, len(list))
	}
	for ; destinations > 0; destinations-- {
		d, use, err := destinationOf(list[:listBytes])
		if err != nil {
			return e, nil, err
		}
		e.Destinations, uses, list = append(e.Destinations, d), append(uses, use), list[listBytes:]
	}
	for ; counters > 0; counters-- {
		n := binary.BigEndian.Uint32(list)
		if behind := list[4:listBytes]; binary.BigEndian.Uint32(behind) != 0 {
			return e, nil, refuse(BadParam, UnknownBits, "a flow counter with %x behind its number, which is not modelled", behind)
		}
		e.Counters, uses, list = append(e.Counters, n), append(uses, ref{flowCounter, uint64(n)}), list[listBytes:]
	}
	return e, uses, nil
}

func destinationOf(b []byte) (steering.Destination, ref, error) {
	word := binary.BigEndian.Uint32(b)
	d := steering.Destination{Type: steering.DestinationType(word >> 24), ID: word & 0xffffff}
	switch {
	case binary.BigEndian.Uint32(b[4:]) != 0:
		return d, ref{}, refuse(BadParam, UnknownBits, "a destination with %x behind its number, which is not modelled", b[4:])
	case d.Type == steering.ToTable:
		return d, ref{flowTable, uint64(d.ID)}, nil
	case d.Type == steering.ToTIR:
		return d, ref{tir, uint64(d.ID)}, nil
	}
	return d, ref{}, badValue("destination of type %d, the model has 1 (flow table) and 2 (TIR)", d.Type)
}

func (f *function) setEntry(c *call) error {
	e, uses, err := entryOf(c)
	if err != nil {
		return err
	}
	table := c.number(tableNumber)
	if why := f.objects.use(append(uses, ref{flowTable, uint64(table)})...); why != nil {
		return why
	}
	set := f.addEntry
	if c.modifier == changeEntry {
		set = f.changeEntry
	}
	return set(table, c.number(entryIndex), steering.Change(c.get(entryChanges)), e, uses)
}

func (f *function) addEntry(table, index uint32, changes steering.Change, e steering.Entry, uses []ref) error {
	if changes != 0 {
		return badValue("changes %#x of an entry that is new", changes)
	}
	if why := f.objects.room(flowEntry); why != nil {
		return why
	}
	if err := f.steering.SetEntry(table, index, e); err != nil {
		return err
	}
	f.objects.add(entryRef(table, index), uses...)
	return nil
}

func (f *function) changeEntry(table, index uint32, changes steering.Change, e steering.Entry, uses []ref) error {
	o := entryRef(table, index)
	if why := f.objects.need(o); why != nil {
		return why
	}
	if err := f.steering.ModifyEntry(table, index, changes, e); err != nil {
		return err
	}
	f.rebindEntry(o, changes, uses)
	return nil
}

// rebindEntry takes over what a changed entry uses, and leaves the parts that it kept.
func (f *function) rebindEntry(o ref, changes steering.Change, uses []ref) {
	of := func(k kind) []ref {
		return slices.DeleteFunc(slices.Clone(uses), func(used ref) bool { return used.kind != k })
	}
	if changes&steering.ChangeDestinations != 0 {
		f.objects.swap(o, flowTable, of(flowTable)...)
		f.objects.swap(o, tir, of(tir)...)
	}
	if changes&steering.ChangeCounters != 0 {
		f.objects.swap(o, flowCounter, of(flowCounter)...)
	}
}

func (f *function) deleteEntry(c *call) error {
	table, index := c.number(tableNumber), c.number(entryIndex)
	return f.destroy(entryRef(table, index), func() error { return f.steering.DeleteEntry(table, index) })
}
