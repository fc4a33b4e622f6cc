// SPDX-License-Identifier: Apache-2.0

package nv

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
)

// Card is what a card's firmware says of itself.
type Card struct {
	Personality
	PCIDevice uint16
	Version   [3]uint32 // of the firmware: major, minor, sub-minor
	PSID      string    // board id, at most 16 bytes
	MAC       net.HardwareAddr
}

// Personality is the part of a card's personality that is for tools: the object
// "settings" of a file in sim/personalities.
type Personality struct {
	HardwareID  Hex32  `json:"hardware_id"` // bits 15:0 the chip, 23:16 its revision: "0x0001021c" is a BlueField-3
	Part        string `json:"part"`        // part number
	Description string `json:"description"`
	Ports       int    `json:"ports"` // of the card, 1 or 2
	// DPU is a card with cores of its own. Where those own it, a reboot of the host
	// does not restart its firmware.
	DPU        bool `json:"dpu"`
	ParseGraph bool `json:"parse_graph"` // it has PROG_PARSE_GRAPH
	Profiles   int  `json:"profiles"`    // of the flex parser, from 0 on; at most 8
	// Stored is settings, other than the defaults, that somebody made at some time.
	Stored map[string]uint64 `json:"stored"`
}

// ParsePersonality reads and checks a personality. An unknown field is an error.
func ParsePersonality(text []byte) (p Personality, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return p, fmt.Errorf("settings: %w", err)
	}
	if err := p.check(); err != nil {
		return p, fmt.Errorf("settings: %w", err)
	}
	return p, nil
}

func (p Personality) check() error {
	const longest = 0xffff // of a text, by MQIS
	switch {
	case p.HardwareID == 0:
		return errors.New("hardware_id is missing")
	case p.Part == "" || len(p.Part) > longest:
		return fmt.Errorf("part has %d bytes, not 1 to %d", len(p.Part), longest)
	case p.Description == "" || len(p.Description) > longest:
		return fmt.Errorf("description has %d bytes, not 1 to %d", len(p.Description), longest)
	case p.Ports < 1 || p.Ports > 2:
		return fmt.Errorf("ports is %d, not 1 or 2", p.Ports)
	case p.Profiles < 0 || p.Profiles > 8:
		return fmt.Errorf("profiles is %d, not 0 to 8", p.Profiles)
	}
	return newStore(p).setAll(p.Stored)
}

func (s store) setAll(values map[string]uint64) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := s.set(name, values[name]); err != nil {
			return fmt.Errorf("stored: %w", err)
		}
	}
	return nil
}

// has tells whether the card has a group.
func (p Personality) has(t typeID) bool {
	switch t {
	case internalCPU:
		return p.DPU
	case ofPort(linkType, 2):
		return p.Ports > 1
	}
	return true
}

// usual is the default of a parameter.
func (p Personality) usual(q parameter) uint64 {
	switch q.name {
	case "prog_parse_graph_supported":
		return uint64(bit(p.ParseGraph, 0))
	case "flex_parser_profiles_supported":
		return uint64(0xff00>>p.Profiles) & 0xff
	case "NUM_OF_PF":
		return uint64(p.Ports)
	}
	return q.usual
}

// Hex32 is a number that JSON has as a string like "0x0001021c".
type Hex32 uint32

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hex32) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 0, 32)
	*h = Hex32(n)
	return err
}
