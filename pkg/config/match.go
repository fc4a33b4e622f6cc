// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
	"gopkg.in/yaml.v3"
)

// Match says which links a policy is for: every field that is not empty must
// fit. Without Kind it fits physical links only.
type Match struct {
	Name   Patterns // kernel name or altname
	Driver Patterns
	Path   Patterns // udev ID_PATH
	MAC    Patterns // permanent address, lower case
	PCI    Patterns // vendor:device, lower case
	Kind   Patterns
}

// Patterns fit a value if one of those without Not does, or there is none, and
// if none of those with Not does.
type Patterns []Pattern

// Pattern is a glob as in path.Match.
type Pattern struct {
	Glob string
	Not  bool // written with a leading "!"
	At   steer.Origin
}

// Fits reports whether the policy is for link l.
func (m *Match) Fits(l steer.Link) bool {
	if len(m.Kind) == 0 && l.Kind != steer.Physical {
		return false
	}
	return m.Kind.fit(string(l.Kind)) &&
		m.Name.fit(append([]string{l.Name}, l.AltNames...)...) &&
		m.Driver.fit(l.Driver) && m.Path.fit(l.Path) &&
		m.MAC.fit(strings.ToLower(l.MAC)) && m.PCI.fit(strings.ToLower(l.PCI))
}

// fit tests the names of one thing: any of them may fit.
func (ps Patterns) fit(values ...string) bool {
	wanted, found := false, false
	for _, p := range ps {
		hit := slices.ContainsFunc(values, p.hit)
		if p.Not && hit {
			return false
		}
		wanted = wanted || !p.Not
		found = found || !p.Not && hit
	}
	return found || !wanted
}

func (p Pattern) hit(value string) bool {
	ok, err := path.Match(p.Glob, value)
	return ok && err == nil
}

// matchPart is a `match:` of one file while it is read. lists says which keys
// were written as lists, for drop-ins.
type matchPart struct {
	*faults
	out   Match
	lists map[string]bool
}

func matchKeys() []key[matchPart] {
	return []key[matchPart]{
		{"name", func(m *matchPart, n *yaml.Node) { m.out.Name = m.patterns(n, "name", m.anyText) }},
		{"driver", func(m *matchPart, n *yaml.Node) { m.out.Driver = m.patterns(n, "driver", m.anyText) }},
		{"path", func(m *matchPart, n *yaml.Node) { m.out.Path = m.patterns(n, "path", m.idPath) }},
		{"mac", func(m *matchPart, n *yaml.Node) { m.out.MAC = m.patterns(n, "mac", m.mac) }},
		{"pci", func(m *matchPart, n *yaml.Node) { m.out.PCI = m.patterns(n, "pci", m.pci) }},
		{"kind", func(m *matchPart, n *yaml.Node) { m.out.Kind = m.patterns(n, "kind", m.kind) }},
	}
}

// fields are the parts of a Match by key.
func (m *Match) fields() map[string]*Patterns {
	return map[string]*Patterns{"name": &m.Name, "driver": &m.Driver, "path": &m.Path, "mac": &m.MAC, "pci": &m.PCI, "kind": &m.Kind}
}

func readMatch(f *faults, n *yaml.Node) *matchPart {
	m := &matchPart{faults: f, lists: map[string]bool{}}
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 || isNull(n) {
		f.node(n, ruleRequired, "match is empty: it would fit every link or none", "name the links, such as name: ens1f1np1 or driver: mlx5_core")
		return m
	}
	walk(f, n, whatMatch, matchKeys(), m)
	return m
}

// merge puts the match of a drop-in over m: lists append, single values replace.
func (m *matchPart) merge(later *matchPart) {
	mine := m.out.fields()
	for k, theirs := range later.out.fields() {
		switch {
		case len(*theirs) == 0:
		case later.lists[k]:
			*mine[k] = append(slices.Clone(*mine[k]), *theirs...)
		default:
			*mine[k] = *theirs
		}
	}
}

// patterns reads one pattern or a list of them; check sees each without its "!".
func (m *matchPart) patterns(n *yaml.Node, what string, check func(*yaml.Node, string) bool) (out Patterns) {
	m.lists[what] = n.Kind == yaml.SequenceNode
	seen := map[string]*yaml.Node{}
	for _, item := range m.items(n, what) {
		s, ok := m.text(item, what)
		if !ok {
			continue
		}
		if what == "mac" || what == "pci" {
			s = strings.ToLower(s)
		}
		glob, not := strings.CutPrefix(s, "!")
		if !m.wellFormed(item, what, glob) || !check(item, glob) {
			continue
		}
		if first, dup := seen[s]; dup {
			m.also(item, first, ruleRepeat, fmt.Sprintf("%s: %s is in this list twice", what, clip(printable(s))), "keep one of them")
			continue
		}
		seen[s] = item
		out = append(out, Pattern{Glob: glob, Not: not, At: m.origin(item)})
	}
	return out
}

// matchText is what a pattern may hold behind its "!": ASCII without spaces and
// commas, and no second "!" at the start.
var matchText = pattern(`^["-+\--~][!-+\--~]{0,254}$`)

func (m *matchPart) wellFormed(n *yaml.Node, what, glob string) bool {
	if !matchText.MatchString(glob) {
		hint := "write one name or pattern in ASCII; a list may hold several"
		switch {
		case strings.HasPrefix(glob, "!"):
			hint = "one ! is enough"
		case strings.ContainsAny(glob, ", "):
			hint = separatorHint(n.Value)
		}
		m.node(n, ruleText, fmt.Sprintf("%s: %s is not a pattern", what, clip(printable(n.Value))), hint)
		return false
	}
	if _, err := path.Match(glob, ""); err != nil {
		m.node(n, ruleGlob, fmt.Sprintf("%s: %s is not a pattern", what, clip(printable(n.Value))), "close the bracket, or write \\[ for a bracket itself")
		return false
	}
	return true
}

func (m *matchPart) anyText(n *yaml.Node, s string) bool { return true }

var (
	pciAddress  = pattern(`^([0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$`)
	pciID       = pattern(`^[0-9a-f]{4}:[0-9a-f]{4}$`)
	hexGlob     = pattern(`^[0-9a-f:*?\[\]^-]*[*?\[][0-9a-f:*?\[\]^-]*$`)
	kinds       = []string{string(steer.Physical), string(steer.VF), string(steer.Representor)}
	spokenKinds = map[string]string{"pf": "physical", "phys": "physical", "virtual": "vf", "vport": "representor", "rep": "representor", "uplink": "physical"}
)

func (m *matchPart) idPath(n *yaml.Node, s string) bool {
	if !pciAddress.MatchString(s) {
		return true
	}
	full := s
	if strings.Count(s, ":") == 1 {
		full = "0000:" + s
	}
	m.node(n, ruleText, "path: "+s+" is a PCI address, not udev's ID_PATH", "write pci-"+full)
	return false
}

func (m *matchPart) mac(n *yaml.Node, s string) bool {
	if hexGlob.MatchString(s) {
		return true
	}
	return m.macAddress(n, s, "mac")
}

func (m *matchPart) pci(n *yaml.Node, s string) bool {
	switch {
	case pciID.MatchString(s), hexGlob.MatchString(s):
		return true
	case pciAddress.MatchString(s):
		m.node(n, ruleText, "pci: "+s+" is an address; pci is vendor:device", "match an address with path: pci-0000:03:00.1")
	default:
		m.node(n, ruleText, "pci: "+clip(printable(n.Value))+" is not vendor:device", "write four hexadecimal digits each, as in 15b3:a2dc (lspci -n)")
	}
	return false
}

func (m *matchPart) kind(n *yaml.Node, s string) bool {
	if slices.Contains(kinds, s) {
		return true
	}
	hint := "write " + either(kinds)
	if ours, ok := spokenKinds[strings.ToLower(s)]; ok {
		hint = "write " + ours
	} else if near := m.nearest(s, kinds); near != "" {
		hint = "did you mean " + near + "?"
	}
	m.node(n, ruleWord, "kind cannot be "+clip(printable(s)), hint)
	return false
}
