// SPDX-License-Identifier: Apache-2.0

package steering

// Table is a flow table of the receive side (table type 0, the only one).
type Table struct {
	Level   uint8 // a packet goes from lower levels to higher ones only
	LogSize uint8 // of the number of entries
	Miss    Miss
}

// MissAction is what happens to a packet that no entry of a table matches.
type MissAction uint8

// The miss actions: table_miss_action.
const (
	MissDefault MissAction = 0 // the domain's default: on the receive side nobody gets it
	MissForward MissAction = 1 // on to a table of a higher level
)

// Miss is where packets go that no entry matches. Table counts for MissForward only, and is 0 otherwise.
type Miss struct {
	Action MissAction
	Table  uint32
}

// MatchBytes is the size of a Match.
const MatchBytes = 512

// Match is fte_match_param: seven sections of 64 bytes (outer headers, misc,
// inner headers, misc2, misc3, misc4, misc5) and one reserved, as the bits of
// a group's criteria or the values of an entry.
type Match [MatchBytes]byte

// The sections that a group's criteria may use: match_criteria_enable.
const (
	EnableOuter uint8 = 1 << iota
	EnableMisc
	EnableInner
	EnableMisc2
	EnableMisc3
	EnableMisc4
	EnableMisc5
)

// Group is a range of a table's entries which all compare the same bits.
type Group struct {
	Table      uint32
	Start, End uint32 // the first and the last index
	Enable     uint8  // sections that Criteria uses
	Criteria   Match  // ones where entries compare
}

// Action is a set of actions of an entry: flow_context.action.
type Action uint16

// The actions that the model knows. Drop and Forward exclude each other, and an entry has one of them.
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
	Tag          uint32 // 24 bits, for the completion
	Value        Match  // no bits outside of the group's criteria
	Destinations []Destination
	Counters     []uint32 // with Count: at least one
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

// CreateTable adds an empty table.
func (s *State) CreateTable(id uint32, t Table) error { return unfinished }

// ModifyTable changes where a table's misses go.
func (s *State) ModifyTable(id uint32, m Miss) error { return unfinished }

// DestroyTable takes a table away. It is InUse while it has groups or while an
// entry or a miss leads to it. If it is the root there is no root afterwards:
// the driver destroys its last table without a word about the root.
func (s *State) DestroyTable(id uint32) error { return unfinished }

// SetRoot makes a table the one where every packet starts.
func (s *State) SetRoot(id uint32) error { return unfinished }

// ClearRoot leaves no root: nobody gets a packet. BadState if there is none.
func (s *State) ClearRoot() error { return unfinished }

// CreateGroup adds a group to its table. Group ids are unique over all tables.
func (s *State) CreateGroup(id uint32, g Group) error { return unfinished }

// DestroyGroup takes a group away. It is InUse while it has entries.
func (s *State) DestroyGroup(table, id uint32) error { return unfinished }

// SetEntry adds an entry at an index of its group where there is none.
func (s *State) SetEntry(table, index uint32, e Entry) error { return unfinished }

// ModifyEntry changes parts of an entry; of e, Group and Value must be the entry's own.
func (s *State) ModifyEntry(table, index uint32, which Change, e Entry) error { return unfinished }

// DeleteEntry takes an entry away.
func (s *State) DeleteEntry(table, index uint32) error { return unfinished }

// CreateCounter adds a flow counter. Its numbers are kept by who asks Steer.
func (s *State) CreateCounter(id uint32) error { return unfinished }

// DestroyCounter takes a flow counter away. It is InUse while an entry counts in it.
func (s *State) DestroyCounter(id uint32) error { return unfinished }

// Text is all tables, TIRs, RQTs and nodes in words, for people.
func (s *State) Text() string { return "" }

var unfinished = &Error{BadState, "not written yet"}
