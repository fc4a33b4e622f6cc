// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"slices"
	"strconv"
	"strings"
)

// The settings that make the flex parser ready for l4data, and their values.
// Profile 4 gives up the protocols of the other profiles.
const (
	profileName = "FLEX_PARSER_PROFILE_ENABLE"
	graphName   = "PROG_PARSE_GRAPH"
)

var wanted = []struct {
	name  string
	value int
	shown string // as mstconfig prints it
}{
	{profileName, 4, "4"},
	{graphName, 1, "True(1)"},
}

func wantedNames() (names []string) {
	for _, w := range wanted {
		names = append(names, w.name)
	}
	return names
}

// Assignments are the arguments of `mstconfig set`.
func Assignments() (out []string) {
	for _, w := range wanted {
		out = append(out, w.name+"="+strconv.Itoa(w.value))
	}
	return out
}

// Verdict is what the firmware settings of a card mean for l4data.
type Verdict string

const (
	Right          Verdict = "right"           // now, and after the next boot
	Pending        Verdict = "pending"         // not now, but after the next boot
	ToSet          Verdict = "to-set"          // neither
	WillBeLost     Verdict = "will-be-lost"    // now, but not after the next boot
	CurrentUnknown Verdict = "current-unknown" // the firmware tells only what the next boot brings
	Unsupported    Verdict = "unsupported"     // this firmware does not have them
	Unknown        Verdict = "unknown"         // could not be read; see Reason
)

// Answer is all that is known of a card after it was asked, in one or more calls.
type Answer struct {
	Device  Device
	Refusal Refusal // of the last call that was refused; zero: none
	Hidden  bool    // mstconfig shows neither parameter, and does not say whether for being read-only
}

// read is the answer in one output of mstconfig for one device.
func read(o Output, address string) Answer {
	a := Answer{Refusal: refused(o)}
	switch d, ok := deviceAt(ParseTable(o.Stdout), address); {
	case ok:
		a.Device = d
	case a.Refusal.Reason == "":
		a.Refusal = Refusal{Reason: NotUnderstood, Said: lastLine(o.Stdout)}
	}
	return a
}

// deviceAt is the one section that is about the device.
func deviceAt(devices []Device, address string) (Device, bool) {
	i := slices.IndexFunc(devices, func(d Device) bool { return d.Address == address })
	if i < 0 || slices.ContainsFunc(devices[i+1:], func(d Device) bool { return d.Address == address }) {
		return Device{}, false
	}
	return devices[i], true
}

// Judge is the verdict on an answer, and the reason where there is one. Right is
// said only of values that were read for both parameters, now and for the next
// boot, without any error.
func Judge(a Answer) (Verdict, Reason) {
	switch a.Refusal.Reason {
	case "":
	case OldMstconfig, NoParameter, NoSettings:
		return Unsupported, a.Refusal.Reason
	default:
		return Unknown, a.Refusal.Reason
	}
	now, next := true, true
	told := true
	for _, w := range wanted {
		s, ok := a.Device.Rows[w.name]
		switch {
		case slices.Contains(a.Device.Bad, w.name) || !ok && len(a.Device.Rows) == 0:
			return Unknown, NotUnderstood
		case !ok:
			return Unsupported, NoParameter
		}
		value, known := number(s.Next)
		if !known {
			return Unknown, notNumber(s.Next)
		}
		next = next && value == w.value
		value, known = number(s.Current)
		if !known && s.Current != "" {
			return Unknown, NotUnderstood
		}
		told = told && known
		now = now && value == w.value
	}
	return verdictOf(now, next, told), ""
}

func verdictOf(now, next, told bool) Verdict {
	switch {
	case !told:
		return CurrentUnknown
	case now && next:
		return Right
	case next:
		return Pending
	case now:
		return WillBeLost
	}
	return ToSet
}

func notNumber(value string) Reason {
	if value == "" {
		return NotTold
	}
	return NotUnderstood
}

// number is the number of a value as printed: 4, True(1), NAME(4).
func number(value string) (int, bool) {
	if name, rest, ok := strings.Cut(value, "("); ok {
		if value, ok = strings.CutSuffix(rest, ")"); !ok || name == "" {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(value, 10, 31)
	return int(n), err == nil
}

// nextRight reports whether both settings are right for the next boot.
func nextRight(settings []Setting) bool {
	for _, w := range wanted {
		i := slices.IndexFunc(settings, func(s Setting) bool { return s.Name == w.name })
		if i < 0 {
			return false
		}
		if n, ok := number(settings[i].Next); !ok || n != w.value {
			return false
		}
	}
	return true
}

// settings is the rows of the two parameters, in our order.
func (d Device) settings() (out []Setting) {
	for _, w := range wanted {
		if s, ok := d.Rows[w.name]; ok {
			out = append(out, s)
		}
	}
	return out
}
