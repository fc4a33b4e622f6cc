// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"cmp"
	"fmt"
	"slices"
)

// Action is a set of actions of an entry: flow_context.action.
type Action uint16

// The actions that the model knows. An entry has either Drop or Forward.
const (
	Drop    Action = 0x2
	Forward Action = 0x4
	Count   Action = 0x8
)

// DestinationType is destination_type.
type DestinationType uint8

// The destinations that the receive side has.
const (
	ToTable DestinationType = 1
	ToTIR   DestinationType = 2
)

// Destination is where an entry with Forward sends a packet, or a copy of it.
type Destination struct {
	Type DestinationType
	ID   uint32
}

// Entry is a flow table entry (FTE).
type Entry struct {
	Group        uint32
	Action       Action
	Tag          uint32        // 24 bits, for the completion
	Value        Match         // no bits outside of the group's criteria
	Destinations []Destination // with Forward: at least one, and at most one table
	Counters     []uint32      // with Count: at least one
}

// Change is a set of an entry's parts: modify_enable_mask.
type Change uint8

// The parts of an entry that ModifyEntry changes. Group and Value never change.
const (
	ChangeAction       Change = 1 << 0
	ChangeTag          Change = 1 << 1
	ChangeDestinations Change = 1 << 2
	ChangeCounters     Change = 1 << 3
)

// entry never changes: ModifyEntry puts another in its place. A Step keeps one.
type entry struct {
	Entry
	index uint32
	group *group
	key   string
	tirs  []*tir // of Destinations
	next  *table // of Destinations; nil: none
}

func (e *entry) name() string { return fmt.Sprintf("entry %d of table %d", e.index, e.group.table.id) }

// SetEntry adds an entry at an index of its group where there is none.
func (s *State) SetEntry(table, index uint32, e Entry) error {
	g, err := s.group(table, e.Group)
	if err != nil {
		return err
	}
	if index < g.Start || index > g.End {
		return refuse(BadParam, "entry %d of table %d: group %d has the entries %d to %d", index, table, g.id, g.Start, g.End)
	}
	if g.table.entries[index] != nil {
		return refuse(BadState, "entry %d of table %d exists already", index, table)
	}
	made, err := s.build(g, index, e)
	if err != nil {
		return err
	}
	g.put(made)
	return nil
}

// ModifyEntry changes the parts of an entry that which names to those of e. Its
// Group and Value must be the entry's own; the other parts of e do not count.
func (s *State) ModifyEntry(table, index uint32, which Change, e Entry) error {
	old, err := s.entry(table, index)
	if err != nil {
		return err
	}
	const known = ChangeAction | ChangeTag | ChangeDestinations | ChangeCounters
	switch {
	case which == 0 || which&^known != 0:
		return refuse(BadParam, "%s: modify_enable_mask %#x", old.name(), which)
	case e.Group != old.Group:
		return refuse(BadParam, "%s is in group %d, not in %d", old.name(), old.Group, e.Group)
	case e.Value != old.Value:
		return refuse(BadParam, "%s: the value of an entry cannot be changed", old.name())
	}
	made, err := s.build(old.group, index, old.with(which, e))
	if err != nil {
		return err
	}
	old.group.remove(old)
	old.group.put(made)
	return nil
}

func (e *entry) with(which Change, other Entry) Entry {
	merged := e.Entry
	if which&ChangeAction != 0 {
		merged.Action = other.Action
	}
	if which&ChangeTag != 0 {
		merged.Tag = other.Tag
	}
	if which&ChangeDestinations != 0 {
		merged.Destinations = other.Destinations
	}
	if which&ChangeCounters != 0 {
		merged.Counters = other.Counters
	}
	return merged
}

// DeleteEntry takes an entry away.
func (s *State) DeleteEntry(table, index uint32) error {
	e, err := s.entry(table, index)
	if err != nil {
		return err
	}
	e.group.remove(e)
	return nil
}

func (s *State) entry(table, index uint32) (*entry, error) {
	t, err := s.table(table)
	if err != nil {
		return nil, err
	}
	if e, ok := t.entries[index]; ok {
		return e, nil
	}
	return nil, refuse(NotFound, "table %d has no entry %d", table, index)
}

func (g *group) put(e *entry) {
	g.table.entries[e.index] = e
	g.used++
	same := g.byValue[e.key]
	at, _ := slices.BinarySearchFunc(same, e.index, func(have *entry, index uint32) int { return cmp.Compare(have.index, index) })
	g.byValue[e.key] = slices.Insert(same, at, e)
}

func (g *group) remove(e *entry) {
	delete(g.table.entries, e.index)
	g.used--
	same := slices.DeleteFunc(g.byValue[e.key], func(other *entry) bool { return other == e })
	if g.byValue[e.key] = same; len(same) == 0 {
		delete(g.byValue, e.key)
	}
}

// build is an entry of g whose every part is checked.
func (s *State) build(g *group, index uint32, e Entry) (*entry, error) {
	e.Destinations, e.Counters = slices.Clone(e.Destinations), slices.Clone(e.Counters)
	made := &entry{Entry: e, index: index, group: g, key: g.compare.keyOfValue(&e.Value)}
	for _, check := range []func(*entry) error{checkActions, checkValue, s.checkCounters, s.resolve} {
		if err := check(made); err != nil {
			return nil, err
		}
	}
	return made, nil
}

func checkActions(e *entry) error {
	const known = Drop | Forward | Count
	switch {
	case e.Action&^known != 0:
		return refuse(BadParam, "%s: action %#x; only %#x is modelled", e.name(), uint16(e.Action), uint16(known))
	case (e.Action&Drop != 0) == (e.Action&Forward != 0):
		return refuse(BadParam, "%s: action %#x; it must be either drop or forward", e.name(), uint16(e.Action))
	case (e.Action&Forward != 0) != (len(e.Destinations) > 0):
		return refuse(BadParam, "%s: %d destinations with action %#x", e.name(), len(e.Destinations), uint16(e.Action))
	case (e.Action&Count != 0) != (len(e.Counters) > 0):
		return refuse(BadParam, "%s: %d counters with action %#x", e.name(), len(e.Counters), uint16(e.Action))
	case e.Tag >= 1<<24:
		return refuse(BadParam, "%s: tag %#x has more than 24 bits", e.name(), e.Tag)
	}
	return nil
}

func checkValue(e *entry) error {
	for i, b := range e.Value {
		if outside := b &^ e.group.Criteria[i]; outside != 0 {
			return refuse(BadParam, "%s: value bits %#x in byte %d of %s are outside of the criteria of group %d",
				e.name(), outside, i%sectionBytes, sections[i/sectionBytes], e.Group)
		}
	}
	for _, bits := range vlanTags {
		if bits[0].Get(e.Value[:])&bits[1].Get(e.Value[:]) != 0 {
			return refuse(BadParam, "%s: a tag cannot be a C-tag and an S-tag", e.name())
		}
	}
	for _, m := range e.group.compare.samples {
		if id := uint32(sampleFields[m.pair].id.Get(e.Value[:])); id != m.id {
			return refuse(BadParam, "%s: pair %d of misc4 has the sample id %d; group %d has %d", e.name(), m.pair, id, e.Group, m.id)
		}
	}
	return nil
}

func (s *State) checkCounters(e *entry) error {
	if len(e.Counters) > 1<<s.limits.LogCounters {
		return refuse(BadParam, "%s: %d counters; an entry may have 2^%d", e.name(), len(e.Counters), s.limits.LogCounters)
	}
	for _, c := range e.Counters {
		if !s.counters[c] {
			return refuse(NotFound, "%s: flow counter %#x does not exist", e.name(), c)
		}
	}
	return nil
}

// resolve finds what the destinations name.
func (s *State) resolve(e *entry) (err error) {
	if len(e.Destinations) > 1<<s.limits.LogDestinations {
		return refuse(BadParam, "%s: %d destinations; an entry may have 2^%d", e.name(), len(e.Destinations), s.limits.LogDestinations)
	}
	for _, d := range e.Destinations {
		switch d.Type {
		case ToTIR:
			t, ok := s.tirs[d.ID]
			if !ok {
				return refuse(NotFound, "%s: TIR %#x does not exist", e.name(), d.ID)
			}
			if slices.Contains(e.tirs, t) {
				return refuse(BadParam, "%s leads to TIR %#x twice", e.name(), d.ID)
			}
			e.tirs = append(e.tirs, t)
		case ToTable:
			if e.next != nil {
				return refuse(BadParam, "%s leads to tables %d and %d", e.name(), e.next.id, d.ID)
			}
			if e.next, err = s.higher(e.group.table, d.ID, fmt.Sprintf("entry %d", e.index)); err != nil {
				return err
			}
		default:
			return refuse(BadParam, "%s: destination type %d is not modelled", e.name(), d.Type)
		}
	}
	return nil
}

// CreateCounter adds a flow counter. Its numbers are kept by who asks Steer.
func (s *State) CreateCounter(id uint32) error {
	if s.counters[id] {
		return refuse(BadState, "flow counter %#x exists already", id)
	}
	s.counters[id] = true
	return nil
}

// DestroyCounter takes a flow counter away. It is InUse while an entry counts in it.
func (s *State) DestroyCounter(id uint32) error {
	if !s.counters[id] {
		return refuse(NotFound, "flow counter %#x does not exist", id)
	}
	if e := s.entryThat(func(e *entry) bool { return slices.Contains(e.Counters, id) }); e != nil {
		return refuse(InUse, "flow counter %#x: %s counts in it", id, e.name())
	}
	delete(s.counters, id)
	return nil
}

// entryThat is the first entry, by table and index, that fits; nil if none does.
func (s *State) entryThat(fits func(*entry) bool) *entry {
	for _, id := range sortedKeys(s.tables) {
		var first *entry
		for _, e := range s.tables[id].entries {
			if fits(e) && (first == nil || e.index < first.index) {
				first = e
			}
		}
		if first != nil {
			return first
		}
	}
	return nil
}
