// SPDX-License-Identifier: Apache-2.0

package nv

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flexsteer/flexsteer/sim/prm"
)

// Status is what an access to a register answers (mtcr_ul_com.c, return_by_reg_status).
type Status uint8

// The answers of the model, and those that faults often give.
const (
	OK            Status = 0x00
	Busy          Status = 0x01
	NotSupported  Status = 0x04 // no such register
	BadMethod     Status = 0x06
	BadParameter  Status = 0x07
	NotAvailable  Status = 0x08
	TooShort      Status = 0x24
	InternalError Status = 0x70
)

var statusNames = map[Status]string{
	OK: "OK", Busy: "BUSY", NotSupported: "NOT_SUPPORTED", BadMethod: "BAD_METHOD", BadParameter: "BAD_PARAMETER",
	NotAvailable: "NOT_AVAILABLE", TooShort: "TOO_SHORT", InternalError: "INTERNAL_ERROR",
}

func (s Status) String() string {
	if name := statusNames[s]; name != "" {
		return name
	}
	return fmt.Sprintf("%#02x", uint8(s))
}

// UnmarshalText implements encoding.TextUnmarshaler: a name that String gives, or
// a number.
func (s *Status) UnmarshalText(text []byte) error {
	for status, name := range statusNames {
		if name == string(text) {
			*s = status
			return nil
		}
	}
	n, err := strconv.ParseUint(string(text), 0, 7)
	if err != nil {
		return fmt.Errorf("no status %q of a register; there are %s, and numbers below 0x80", text, strings.Join(slices.Sorted(maps.Values(statusNames)), ", "))
	}
	*s = Status(n)
	return nil
}

// register is one that tools can reach. Its data is read and answered in place.
type register struct {
	name string
	size int         // bytes that it has at least
	asks []prm.Field // what the input of get may hold, in all of its size
	sets []prm.Field // the same of set
	get  func(f *Firmware, b []byte) Status
	set  func(f *Firmware, b []byte) Status
}

// registers are those that the model has.
var registers map[uint16]*register

func init() { // here, since MCAM tells of all of them
	registers = map[uint16]*register{
		0x9020: {name: "MGIR", size: 0xa0, get: (*Firmware).identity},
		0x9024: {name: "NVDA", size: 12, asks: nvHeader, sets: nvHeader, get: (*Firmware).readSettings, set: (*Firmware).writeSettings},
		0x9025: {name: "NVDI", size: 12, sets: nvHeader, set: (*Firmware).resetSettings},
		0x9028: {name: "MFRL", size: 8, asks: mfrlFields, sets: mfrlFields, get: (*Firmware).resetLevels, set: (*Firmware).armReset},
		0x902f: {name: "MROQ", size: 4, asks: []prm.Field{mroqTrigger, mroqType}, get: (*Firmware).resetOptions},
		0x9030: {name: "NVQC", size: 8, asks: []prm.Field{nvqcType}, get: (*Firmware).askSettings},
		0x9033: {name: "NVIA", size: 8, sets: []prm.Field{nviaWriter}, set: (*Firmware).resetAllSettings},
		0x9034: {name: "NVQGC", size: 16, get: (*Firmware).settingsAbilities},
		0x9035: {name: "MNVGN", size: 0x9c, asks: []prm.Field{mnvgnPointer}, get: (*Firmware).nextStored},
		0x905a: {name: "MPCIR", size: 16, asks: []prm.Field{mpcirPorts}, get: (*Firmware).prepareReset},
		0x9060: {name: "MCQS", size: 16, asks: []prm.Field{mcqsIndex}, get: (*Firmware).component},
		0x9061: {name: "MCQI", size: 0x94, asks: mcqiFields, get: (*Firmware).componentInfo},
		0x9064: {name: "MQIS", size: 0x18, asks: mqisFields, get: (*Firmware).description},
		0x907f: {name: "MCAM", size: 0x48, asks: []prm.Field{mcamFeatures, mcamRegisters}, get: (*Firmware).registerMasks},
	}
}

// declined are registers that tools ask for on the chance that they are there.
var declined = map[uint16]string{
	0x5050: "PCNR", // a quicker link after a reset
}

func named(id uint16) bool { return registers[id] != nil || declined[id] != "" }

func registerName(id uint16) string {
	if r := registers[id]; r != nil {
		return r.name
	}
	if name := declined[id]; name != "" {
		return name
	}
	return fmt.Sprintf("%#x", id)
}

// register does what is asked of a register, with its data in b.
func (f *Firmware) register(id uint16, how method, b []byte) Status {
	if s := f.faults.register(id, how); s != OK {
		return s
	}
	r := registers[id]
	if r == nil {
		if !named(id) {
			f.violate("register %#x, which the model does not know", id)
		}
		return NotSupported
	}
	do, fields := r.get, r.asks
	if how == methodSet {
		do, fields = r.set, r.sets
	}
	switch {
	case do == nil || how != methodGet && how != methodSet:
		f.violate("%v of register %s", how, r.name)
		return BadMethod
	case len(b) < r.size:
		return TooShort
	}
	if where := stray(b[:r.size], fields); where >= 0 {
		f.violate("%v of register %s with bits of byte %#x that the model does not know", how, r.name, where)
		return BadParameter
	}
	return do(f, b)
}

// stray is the first byte with a bit that is set outside of the fields; -1: none.
func stray(b []byte, fields []prm.Field) int {
	rest := append([]byte(nil), b...)
	for _, field := range fields {
		field.Set(rest, 0)
	}
	for i, v := range rest {
		if v != 0 {
			return i
		}
	}
	return -1
}
