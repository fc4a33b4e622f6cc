// SPDX-License-Identifier: Apache-2.0

package nv

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// store is the groups of settings of a card.
type store map[typeID]*group

// group is one TLV.
type group struct {
	byDefault []byte
	current   []byte
	stored    []byte // for the next boot; nil: none is stored, and the default holds
	writer    uint8  // who stored it
	readOnly  bool
}

func (g *group) next() []byte {
	if g.stored != nil {
		return g.stored
	}
	return g.byDefault
}

// newStore is a card as its maker delivers it, before it boots.
func newStore(p Personality) store {
	s := store{}
	for t, l := range layouts {
		if p.has(t) {
			s[t] = &group{byDefault: make([]byte, l.bytes), readOnly: l.tells}
		}
	}
	for _, parameter := range parameters {
		if g := s[parameter.group]; g != nil {
			parameter.field.Set(g.byDefault, p.usual(parameter))
		}
	}
	s.boot()
	return s
}

// boot makes the values of the next boot the current ones.
func (s store) boot() {
	for _, g := range s {
		g.current = bytes.Clone(g.next())
	}
}

// value is a current value; false: the card has no such parameter.
func (s store) value(name string) (uint64, bool) {
	p, known := findParameter(name)
	g := s[p.group]
	if !known || g == nil {
		return 0, false
	}
	return p.field.Get(g.current), true
}

// set stores a value for the next boot.
func (s store) set(name string, value uint64) error {
	p, known := findParameter(name)
	g := s[p.group]
	if !known || g == nil || g.readOnly {
		return fmt.Errorf("the card has no parameter %q that can be set", name)
	}
	if value>>p.field.Width != 0 {
		return fmt.Errorf("%s is %d, more than %d bits hold", name, value, p.field.Width)
	}
	data := bytes.Clone(g.next())
	p.field.Set(data, value)
	g.stored = data
	return nil
}

// saved is one stored group in a file.
type saved struct {
	Name   string `json:"name"` // for people
	Writer uint8  `json:"writer"`
	Data   string `json:"data"` // hex digits
}

// encode is all that is stored, as JSON. What is not stored is the default.
func (s store) encode() []byte {
	file := map[string]saved{}
	for t, g := range s {
		if g.stored != nil {
			file[fmt.Sprintf("%#08x", uint32(t))] = saved{layouts[t].name, g.writer, hex.EncodeToString(g.stored)}
		}
	}
	text, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		panic(err) // of strings and numbers: never
	}
	return append(text, '\n')
}

// decode takes over what encode wrote, for a card of the same kind.
func (s store) decode(text []byte) error {
	file := map[string]saved{}
	if err := json.Unmarshal(text, &file); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(file)) {
		n, err := strconv.ParseUint(key, 0, 32)
		if err != nil {
			return fmt.Errorf("%q is no type of a group", key)
		}
		g := s[typeID(n)]
		data, err := hex.DecodeString(file[key].Data)
		if g == nil || g.readOnly || err != nil || len(data) != len(g.byDefault) {
			return fmt.Errorf("%s: this card stores no such group, or not in %d bytes", key, len(data))
		}
		g.stored, g.writer = data, file[key].Writer
	}
	return nil
}
