// SPDX-License-Identifier: Apache-2.0

package nv

import (
	"bytes"
	"maps"
	"slices"

	"github.com/flexsteer/flexsteer/sim/prm"
)

// The header of a group in NVDA and NVDI, and behind a pointer in MNVGN.
var (
	nvOverwrite  = at(0x06, 1) // over_en
	nvReadable   = at(0x07, 1) // rd_en
	nvDefault    = at(0x08, 1) // the default is wanted
	nvCurrent    = at(0x09, 1) // the current value is wanted
	nvWriter     = at(0x0b, 5)
	nvVersion    = at(0x10, 4)
	nvWriterHost = at(0x14, 3)
	nvLength     = at(0x17, 9) // bytes
	nvType       = at(0x20, 32)

	nvHeader = []prm.Field{nvOverwrite, nvReadable, nvDefault, nvCurrent, nvWriter, nvVersion, nvWriterHost, nvLength, nvType}
)

const nvHeaderBytes = 12

// group finds the group that a header names, as far as faults leave it there.
func (f *Firmware) group(t typeID) *group {
	if f.faults.misses(t) {
		return nil
	}
	return f.store[t]
}

func (f *Firmware) writable(t typeID, g *group) bool { return !g.readOnly && !f.faults.locks(t) }

// readSettings is a get of NVDA. A group that was never stored and has no default,
// as those of the boot ROM, is not available, which tools take for zeros.
func (f *Firmware) readSettings(b []byte) Status {
	g := f.group(typeID(nvType.Get(b)))
	if g == nil {
		return NotAvailable
	}
	data := g.next()
	switch wantDefault, wantCurrent := nvDefault.Get(b) != 0, nvCurrent.Get(b) != 0; {
	case wantDefault && wantCurrent, wantDefault && f.faults.NoDefault, wantCurrent && f.faults.NoCurrent:
		return BadParameter
	case wantDefault:
		data = g.byDefault
	case wantCurrent:
		data = g.current
	}
	if len(b) < nvHeaderBytes+len(data) {
		return TooShort
	}
	nvLength.Set(b, uint64(len(data)))
	clear(b[nvHeaderBytes:])
	copy(b[nvHeaderBytes:], data)
	return OK
}

// writeSettings is a set of NVDA: it stores a group.
func (f *Firmware) writeSettings(b []byte) Status {
	t, n := typeID(nvType.Get(b)), int(nvLength.Get(b))
	g := f.group(t)
	switch {
	case g == nil || !f.writable(t, g):
		return BadParameter
	case n != len(g.byDefault) || len(b) < nvHeaderBytes+n:
		return TooShort
	}
	g.stored = bytes.Clone(b[nvHeaderBytes : nvHeaderBytes+n])
	g.writer = uint8(nvWriter.Get(b))
	f.save()
	return OK
}

// resetSettings is a set of NVDI: what is stored of a group is forgotten.
func (f *Firmware) resetSettings(b []byte) Status {
	t := typeID(nvType.Get(b))
	g := f.group(t)
	if g == nil || !f.writable(t, g) {
		return BadParameter
	}
	g.stored = nil
	f.save()
	return OK
}

var nviaWriter = at(0x17, 5)

// resetAllSettings is a set of NVIA.
func (f *Firmware) resetAllSettings([]byte) Status {
	for _, g := range f.store {
		g.stored = nil
	}
	f.save()
	return OK
}

// NVQC: is a group there, and of which version?
var (
	nvqcType    = at(0x00, 32)
	nvqcVersion = at(0x38, 4)
	nvqcWrite   = at(0x3e, 1)
	nvqcRead    = at(0x3f, 1)
)

func (f *Firmware) askSettings(b []byte) Status {
	t := typeID(nvqcType.Get(b))
	g := f.group(t)
	if g == nil {
		return OK
	}
	nvqcRead.Set(b, 1)
	nvqcWrite.Set(b, uint64(bit(f.writable(t, g), 0)))
	nvqcVersion.Set(b, uint64(layouts[t].version))
	return OK
}

// NVQGC: which values can be read?
var (
	nvqgcCurrent = at(0x1e, 1)
	nvqgcDefault = at(0x1f, 1)
)

func (f *Firmware) settingsAbilities(b []byte) Status {
	nvqgcCurrent.Set(b, uint64(bit(!f.faults.NoCurrent, 0)))
	nvqgcDefault.Set(b, uint64(bit(!f.faults.NoDefault, 0)))
	return OK
}

// MNVGN goes through what is stored: each answer has a pointer for the next
// question, and after the last group that is 0.
var (
	mnvgnPointer = at(0x00, 32)
	mnvgnHeader  = 16 // byte
)

func (f *Firmware) nextStored(b []byte) Status {
	var stored []typeID
	for _, t := range slices.Sorted(maps.Keys(f.store)) {
		if f.group(t) != nil && f.store[t].stored != nil {
			stored = append(stored, t)
		}
	}
	i := mnvgnPointer.Get(b)
	clear(b)
	switch {
	case len(stored) == 0:
		return NotAvailable
	case i >= uint64(len(stored)):
		return OK
	}
	g, header := f.store[stored[i]], b[mnvgnHeader:]
	mnvgnPointer.Set(b, i+1)
	nvOverwrite.Set(header, 1)
	nvReadable.Set(header, 1)
	nvWriter.Set(header, uint64(g.writer))
	nvVersion.Set(header, uint64(layouts[stored[i]].version))
	nvLength.Set(header, uint64(len(g.stored)))
	nvType.Set(header, uint64(stored[i]))
	copy(header[nvHeaderBytes:], g.stored)
	return OK
}
