// SPDX-License-Identifier: Apache-2.0

package steering

// Table is a flow table of the only type that the model has, NIC receive.
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

// Miss is where packets go that no entry matches. Table counts for MissForward
// only, and is 0 otherwise.
type Miss struct {
	Action MissAction
	Table  uint32
}

type table struct {
	Table
	id      uint32
	groups  []*group // by index
	entries map[uint32]*entry
	next    *table // of a miss; nil: nobody
}

// CreateTable adds an empty table.
func (s *State) CreateTable(id uint32, t Table) error {
	switch {
	case s.tables[id] != nil:
		return refuse(BadState, "table %d exists already", id)
	case int(t.Level) >= s.limits.Levels:
		return refuse(BadParam, "table %d: level %d; the card has levels 0 to %d", id, t.Level, s.limits.Levels-1)
	case int(t.LogSize) > s.limits.LogTableSize:
		return refuse(BadParam, "table %d: 2^%d entries; the largest table has 2^%d", id, t.LogSize, s.limits.LogTableSize)
	case len(s.tables) >= 1<<s.limits.LogTables:
		return refuse(NoResources, "table %d: there are 2^%d tables already", id, s.limits.LogTables)
	}
	made := &table{Table: t, id: id, entries: map[uint32]*entry{}}
	if err := s.setMiss(made, t.Miss); err != nil {
		return err
	}
	s.tables[id] = made
	return nil
}

// ModifyTable changes where a table's misses go.
func (s *State) ModifyTable(id uint32, m Miss) error {
	t, err := s.table(id)
	if err != nil {
		return err
	}
	return s.setMiss(t, m)
}

func (s *State) setMiss(t *table, m Miss) error {
	var next *table
	switch m.Action {
	case MissDefault:
		if m.Table != 0 {
			return refuse(BadParam, "table %d: miss table %d with the default miss action", t.id, m.Table)
		}
	case MissForward:
		var err error
		if next, err = s.higher(t, m.Table, "miss"); err != nil {
			return err
		}
	default:
		return refuse(BadParam, "table %d: miss action %d is not modelled", t.id, m.Action)
	}
	t.Miss, t.next = m, next
	return nil
}

// higher is a table that t may send packets on to.
func (s *State) higher(t *table, id uint32, what string) (*table, error) {
	to, ok := s.tables[id]
	if !ok {
		return nil, refuse(NotFound, "table %d: its %s leads to table %d, which does not exist", t.id, what, id)
	}
	if to.Level <= t.Level {
		return nil, refuse(BadParam, "table %d of level %d: its %s leads to table %d of level %d, which is not higher",
			t.id, t.Level, what, id, to.Level)
	}
	return to, nil
}

// DestroyTable takes a table away. It is InUse while it has groups or while an
// entry or a miss leads to it. If it is the root there is no root afterwards:
// the driver destroys its last table without a word about the root.
func (s *State) DestroyTable(id uint32) error {
	t, err := s.table(id)
	if err != nil {
		return err
	}
	if len(t.groups) > 0 {
		return refuse(InUse, "table %d has group %d", id, t.groups[0].id)
	}
	for _, other := range sortedKeys(s.tables) {
		if s.tables[other].next == t {
			return refuse(InUse, "table %d: the miss of table %d leads to it", id, other)
		}
	}
	if e := s.entryThat(func(e *entry) bool { return e.next == t }); e != nil {
		return refuse(InUse, "table %d: %s leads to it", id, e.name())
	}
	if s.root == t {
		s.root = nil
	}
	delete(s.tables, id)
	return nil
}

// SetRoot makes a table the one where every packet starts.
func (s *State) SetRoot(id uint32) error {
	t, err := s.table(id)
	if err != nil {
		return err
	}
	s.root = t
	return nil
}

// ClearRoot leaves no root: nobody gets a packet. It is BadState if there is none.
func (s *State) ClearRoot() error {
	if s.root == nil {
		return refuse(BadState, "there is no root table")
	}
	s.root = nil
	return nil
}

func (s *State) table(id uint32) (*table, error) {
	if t, ok := s.tables[id]; ok {
		return t, nil
	}
	return nil, refuse(NotFound, "table %d does not exist", id)
}
