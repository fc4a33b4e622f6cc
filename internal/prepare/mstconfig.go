// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"slices"
	"strings"
)

// Device is what mstconfig says of one device. A section for it is no success:
// the heading comes before most errors.
type Device struct {
	Address string // as mstconfig was given it, such as 0000:03:00.0
	Type    string // BlueField3, ConnectX6DX, ...
	Part    string // part number; "" or N/A where it is not told
	Rows    map[string]Setting
	Bad     []string // parameters whose row is not understood
}

// Setting is one parameter. Values are as printed: 4, True(1), NAME(2),
// Array[0..7]; "" is a value that was not told.
type Setting struct {
	Name     string `json:"name"`
	Default  string `json:"default,omitempty"`
	Current  string `json:"current,omitempty"`
	Next     string `json:"next_boot,omitempty"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// column says where a value of a row belongs.
type column uint8

const (
	columnDefault column = iota
	columnCurrent
	columnNext
	columnNew
)

func (s *Setting) put(c column, value string) {
	if value == "N/A" {
		value = ""
	}
	switch c {
	case columnDefault:
		s.Default = value
	case columnCurrent:
		s.Current = value
	case columnNext:
		s.Next = value
	}
}

// ParseTable reads the text of `mstconfig q` and `mstconfig -e q`, of mstconfig
// 4.6 to 4.36. Lines that are no part of a table are passed over.
//
// The `*` in front of a row is not kept: it means that the next value differs
// from the default or from the current one, and stays after the reboot.
func ParseTable(text string) []Device {
	t := tables{}
	for line := range strings.Lines(text) {
		t.read(strings.TrimSpace(line))
	}
	t.finish()
	return t.devices
}

// tables is the devices while their text is read.
type tables struct {
	devices []Device
	columns []column // of the table that is being read; nil: none
	open    bool     // a title line was read
	lacks   []column // values that the text below the table says the firmware cannot tell
}

func (t *tables) read(line string) {
	key, value, _ := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	switch {
	case strings.HasPrefix(line, "Device #"):
		t.finish()
		t.devices = append(t.devices, Device{Rows: map[string]Setting{}})
	case len(t.devices) == 0:
	case key == "Configurations":
		t.columns, t.open = titles(value), true
	case t.open:
		t.row(line)
	case key == "Device type":
		t.device().Type = value
	case key == "Name":
		t.device().Part = value
	case key == "Device", key == "PCI device": // the latter until 4.8
		t.device().Address = value
	}
}

func (t *tables) device() *Device { return &t.devices[len(t.devices)-1] }

// titles is the columns of a title line, nil if one of them is not known.
func titles(line string) (columns []column) {
	known := map[string]column{"Default": columnDefault, "Current": columnCurrent, "Next": columnNext, "New": columnNew}
	words := strings.Fields(line)
	for i := 0; i < len(words); i++ {
		c, ok := known[words[i]]
		if c == columnNext {
			i++
			ok = ok && i < len(words) && words[i] == "Boot"
		}
		if !ok || slices.Contains(columns, c) {
			return nil
		}
		columns = append(columns, c)
	}
	return columns
}

// firmwareLacks is how mstconfig ends a table whose firmware does not tell all.
const firmwareLacks = "Device Firmware does not support reading "

func (t *tables) row(line string) {
	if what, ok := strings.CutPrefix(line, firmwareLacks); ok {
		if strings.Contains(what, "current") {
			t.lacks = append(t.lacks, columnCurrent)
		}
		if strings.Contains(what, "default") {
			t.lacks = append(t.lacks, columnDefault)
		}
		return
	}
	words := strings.Fields(line)
	s := Setting{}
	if len(words) > 0 && (words[0] == "*" || words[0] == "RO" || words[0] == "*RO") {
		s.ReadOnly = words[0] != "*"
		words = words[1:]
	}
	if len(words) == 0 || !parameter(words[0]) {
		return
	}
	s.Name = words[0]
	values := unglue(words[1:])
	if len(values) != len(t.columns) || !slices.Contains(t.columns, columnNext) {
		t.bad(s.Name)
		return
	}
	for i, c := range t.columns {
		s.put(c, values[i])
	}
	t.put(s)
}

// put keeps a row. Two different rows of one name cannot both be true.
func (t *tables) put(s Setting) {
	d := t.device()
	if old, twice := d.Rows[s.Name]; twice && old != s {
		t.bad(s.Name)
		return
	}
	d.Rows[s.Name] = s
}

func (t *tables) bad(name string) {
	if d := t.device(); !slices.Contains(d.Bad, name) {
		d.Bad = append(d.Bad, name)
	}
}

// finish ends the section of a device.
func (t *tables) finish() {
	if len(t.devices) > 0 {
		d := t.device()
		for _, name := range d.Bad {
			delete(d.Rows, name)
		}
		for name, s := range d.Rows {
			for _, c := range t.lacks {
				s.put(c, "")
			}
			d.Rows[name] = s
		}
	}
	t.columns, t.open, t.lacks = nil, false, nil
}

// parameter reports whether a word can be a name: FLEX_PARSER_PROFILE_ENABLE,
// VL_ARB[3], PF_LOG_BAR_SIZE_P1.
func parameter(word string) bool {
	name, _, _ := strings.Cut(word, "[")
	return name != "" && name[0] >= 'A' && name[0] <= 'Z' &&
		strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// unglue separates values that stand without a space between them: before 4.26
// that is so behind a value of exactly 16 characters. All values that long end
// in a bracket.
func unglue(words []string) (values []string) {
	for _, w := range words {
		for {
			end := strings.IndexAny(w, ")]")
			if end < 0 || end == len(w)-1 {
				break
			}
			values = append(values, w[:end+1])
			w = w[end+1:]
		}
		values = append(values, w)
	}
	return values
}
