// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"encoding/binary"
	"slices"
)

// Group is a range of a table's entries which all compare the same bits.
type Group struct {
	Table      uint32
	Start, End uint32 // the first and the last index
	Enable     uint8  // sections that Criteria uses
	Criteria   Match  // ones where entries compare
}

type group struct {
	Group
	id      uint32
	table   *table
	used    int                 // entries
	byValue map[string][]*entry // by key; of equal ones, the lower index first
	compare comparison
	twin    *group // the next one of the table with the same criteria
}

// comparison is a group's criteria, prepared for look-ups by value. Groups
// compare few words: gathering them and one look-up of a map is faster than
// going through the entries from some eight on (BenchmarkGroup), and no slower with more.
type comparison struct {
	words   []maskedWord
	samples []maskedSample
	headers headers // that must be there
}

type maskedWord struct {
	at   int // bytes from the start of Match
	mask uint64
}

type maskedSample struct {
	pair     int // of misc4
	id, mask uint32
}

// CreateGroup adds a group to its table. Group ids are unique over all tables.
func (s *State) CreateGroup(id uint32, g Group) error {
	if s.groups[id] != nil {
		return refuse(BadState, "group %d exists already", id)
	}
	t, err := s.table(g.Table)
	if err != nil {
		return err
	}
	if g.Start > g.End || uint64(g.End) >= 1<<t.LogSize {
		return refuse(BadParam, "group %d: entries %d to %d; table %d has 0 to %d", id, g.Start, g.End, t.id, uint64(1)<<t.LogSize-1)
	}
	if err := checkCriteria(id, g.Enable, &g.Criteria); err != nil {
		return err
	}
	c, err := s.prepare(id, &g.Criteria)
	if err != nil {
		return err
	}
	made := &group{Group: g, id: id, table: t, byValue: map[string][]*entry{}, compare: c}
	if err := t.insert(made); err != nil {
		return err
	}
	s.groups[id] = made
	return nil
}

// insert puts a group between the others of the table.
func (t *table) insert(g *group) error {
	at, overlaps := slices.BinarySearchFunc(t.groups, g, func(have, want *group) int {
		switch {
		case have.End < want.Start:
			return -1
		case have.Start > want.End:
			return 1
		}
		return 0
	})
	if overlaps {
		return refuse(BadParam, "group %d: entries %d to %d of table %d overlap group %d, which has %d to %d",
			g.id, g.Start, g.End, t.id, t.groups[at].id, t.groups[at].Start, t.groups[at].End)
	}
	t.groups = slices.Insert(t.groups, at, g)
	if before := g.twinBefore(); before != nil {
		g.twin, before.twin = before.twin, g
	} else if i := slices.IndexFunc(t.groups[at+1:], g.same); i >= 0 {
		g.twin = t.groups[at+1+i]
	}
	return nil
}

func (g *group) same(other *group) bool { return g.Criteria == other.Criteria }

// twinBefore is the last group before g with the same criteria.
func (g *group) twinBefore() (before *group) {
	for _, other := range g.table.groups {
		if other == g {
			break
		}
		if g.same(other) {
			before = other
		}
	}
	return before
}

// checkCriteria refuses what the model does not compare, and what the card would
// ignore without a word: criteria in a section that is not enabled.
func checkCriteria(id uint32, enable uint8, criteria *Match) error {
	const known = EnableOuter | EnableMisc | EnableMisc3 | EnableMisc4
	if enable&^known != 0 {
		return refuse(BadParam, "group %d: match_criteria_enable %#x; only %#x is modelled", id, enable, known)
	}
	for i, b := range criteria {
		section := i / sectionBytes
		if b&^modelled[i] != 0 {
			return refuse(BadParam, "group %d: criteria %#x in byte %d of %s are not modelled", id, b&^modelled[i], i%sectionBytes, sections[section])
		}
		if b != 0 && enable&(1<<section) == 0 {
			return refuse(BadParam, "group %d: criteria in %s without its bit in match_criteria_enable %#x", id, sections[section], enable)
		}
	}
	return nil
}

func (s *State) prepare(id uint32, criteria *Match) (c comparison, err error) {
	mask := *criteria
	for _, bits := range vlanTags {
		if bits[0].Get(mask[:])|bits[1].Get(mask[:]) != 0 {
			bits[0].Set(mask[:], 1)
			bits[1].Set(mask[:], 1)
		}
	}
	for at := 0; at < misc4/8; at += 8 {
		if w := binary.BigEndian.Uint64(mask[at:]); w != 0 {
			c.words = append(c.words, maskedWord{at, w})
		}
	}
	for _, f := range fields {
		if h := headerOf[f.name]; h != 0 && f.Get(mask[:]) != 0 {
			c.headers |= h
		}
	}
	for pair, f := range sampleFields {
		m := maskedSample{pair, uint32(f.id.Get(mask[:])), uint32(f.value.Get(mask[:]))}
		if m.id == 0 && m.mask == 0 {
			continue
		}
		if err := s.checkSample(id, m, c.samples); err != nil {
			return c, err
		}
		c.samples = append(c.samples, m)
	}
	return c, nil
}

func (s *State) checkSample(group uint32, m maskedSample, others []maskedSample) error {
	if m.mask == 0 {
		return refuse(BadParam, "group %d: pair %d of misc4 names sample %d and compares nothing of it", group, m.pair, m.id)
	}
	if !s.samples[m.id] {
		return refuse(NotFound, "group %d: pair %d of misc4 names sample %d, which no parse graph node has", group, m.pair, m.id)
	}
	for _, o := range others {
		if o.id == m.id {
			return refuse(BadParam, "group %d: pairs %d and %d of misc4 both name sample %d", group, o.pair, m.pair, m.id)
		}
	}
	return nil
}

// DestroyGroup takes a group away. It is InUse while it has entries.
func (s *State) DestroyGroup(table, id uint32) error {
	g, err := s.group(table, id)
	if err != nil {
		return err
	}
	if g.used > 0 {
		return refuse(InUse, "group %d of table %d has %d entries", id, table, g.used)
	}
	if before := g.twinBefore(); before != nil {
		before.twin = g.twin
	}
	g.table.groups = slices.DeleteFunc(g.table.groups, func(other *group) bool { return other == g })
	delete(s.groups, id)
	return nil
}

func (s *State) group(table, id uint32) (*group, error) {
	t, err := s.table(table)
	if err != nil {
		return nil, err
	}
	if g, ok := s.groups[id]; ok && g.table == t {
		return g, nil
	}
	return nil, refuse(NotFound, "table %d has no group %d", table, id)
}

// keySize is enough for every key.
const keySize = MatchBytes + 4*len(sampleFields)

// keyOfValue is what entries of the group with this value are found by.
func (c *comparison) keyOfValue(value *Match) string {
	b := c.keyOfWords(make([]byte, 0, keySize), value)
	for _, m := range c.samples {
		b = binary.BigEndian.AppendUint32(b, uint32(sampleFields[m.pair].value.Get(value[:])))
	}
	return string(b)
}

// keyOf is what the entries that match p are found by, appended to b.
func (c *comparison) keyOf(b []byte, p *packet) []byte {
	b = c.keyOfWords(b, &p.match)
	for _, m := range c.samples {
		b = binary.BigEndian.AppendUint32(b, p.sample(m.id)&m.mask)
	}
	return b
}

func (c *comparison) keyOfWords(b []byte, m *Match) []byte {
	for _, w := range c.words {
		b = binary.BigEndian.AppendUint64(b, binary.BigEndian.Uint64(m[w.at:])&w.mask)
	}
	return b
}
