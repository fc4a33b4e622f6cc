// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Package is the name of the module in DKMS.
const Package = "flexsteer-mlx5"

// State is the state word of `dkms status`.
type State string

const (
	Added     State = "added"
	Built     State = "built"
	Installed State = "installed"
	Weak      State = "installed-weak" // a link to the module of another kernel
	Broken    State = "broken"         // its source is gone
)

// Entry is one line of `dkms status`.
type Entry struct {
	Version string   `json:"version"`
	Kernel  string   `json:"kernel,omitempty"` // "" for added and broken
	State   State    `json:"state"`
	From    string   `json:"from,omitempty"` // installed-weak: the kernel that it was built for
	Remarks []string `json:"remarks,omitempty"`
}

// ParseStatus reads what `dkms status` of 2.8 to 3.2 prints of our package:
//
//	flexsteer-mlx5, 0.3.1, 6.1.0-40-amd64, x86_64: installed     until 2.8.5, and weak lines always
//	flexsteer-mlx5/0.3.1, 6.1.0-40-amd64, x86_64: installed (original_module exists)
//	flexsteer-mlx5/0.3.1: added
//
// Lines of other packages, and all that is no such line, are passed over.
func ParseStatus(text string) (entries []Entry) {
	for line := range strings.Lines(text) {
		if e, ok := parseEntry(strings.TrimSpace(line)); ok {
			entries = append(entries, e)
		}
	}
	return entries
}

func parseEntry(line string) (e Entry, ok bool) {
	head, rest, ok := strings.Cut(line, ": ")
	if !ok {
		return e, false
	}
	// The first separator is a slash or a comma; all others are commas.
	head = strings.Replace(head, Package+"/", Package+", ", 1)
	parts := strings.Split(head, ", ")
	if parts[0] != Package || len(parts) != 2 && len(parts) != 4 {
		return e, false
	}
	e.Version = parts[1]
	word, more, _ := strings.Cut(rest, " ")
	e.State = State(word)
	if len(parts) == 4 {
		e.Kernel = parts[2]
	}
	if e.State == Weak {
		e.From, more, _ = strings.Cut(strings.TrimPrefix(more, "from "), " ")
	}
	e.Remarks = remarks(more)
	return e, e.plausible()
}

// plausible: a state has a kernel or not, and so has its line.
func (e Entry) plausible() bool {
	if e.Version == "" {
		return false
	}
	switch e.State {
	case Added, Broken:
		return e.Kernel == ""
	case Built, Installed, Weak:
		return e.Kernel != ""
	}
	return false
}

// remarks are the texts in brackets behind the state; a repeated one counts once.
func remarks(text string) (all []string) {
	for {
		_, rest, ok := strings.Cut(text, "(")
		if !ok {
			return all
		}
		remark, behind, ok := strings.Cut(rest, ")")
		if !ok {
			return all
		}
		if !slices.Contains(all, remark) {
			all = append(all, remark)
		}
		text = behind
	}
}

// differs reports whether a remark says that the installed file is not the one
// that was built, or that one of them is missing; both wordings.
func (e Entry) differs() bool {
	return slices.ContainsFunc(e.Remarks, func(r string) bool {
		return strings.Contains(r, "Diff") || strings.Contains(strings.ToLower(r), "missing")
	})
}

// at is the best entry for a kernel: installed before built before one that is
// only added, then the highest version. Broken ones are never it.
func at(entries []Entry, kernel string) (best Entry, ok bool) {
	rank := map[State]int{Added: 1, Built: 2, Weak: 3, Installed: 4}
	for _, e := range entries {
		if e.State == Broken || e.Kernel != "" && e.Kernel != kernel {
			continue
		}
		if !ok || cmp.Or(cmp.Compare(rank[e.State], rank[best.State]), compareVersions(e.Version, best.Version)) > 0 {
			best, ok = e, true
		}
	}
	return best, ok
}

// newest is the highest version whose source DKMS has: it can be built.
func newest(entries []Entry) (version string) {
	for _, e := range entries {
		if e.State != Broken && compareVersions(e.Version, version) > 0 {
			version = e.Version
		}
	}
	return version
}

// compareVersions compares by number where both have one: 0.10 is above 0.9.
func compareVersions(a, b string) int {
	split := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return r == '.' || r == '-' || r == '~' || r == '+' })
	}
	return slices.CompareFunc(split(a), split(b), func(x, y string) int {
		n, errN := strconv.Atoi(x)
		m, errM := strconv.Atoi(y)
		if errN == nil && errM == nil {
			return cmp.Compare(n, m)
		}
		return cmp.Compare(x, y)
	})
}
