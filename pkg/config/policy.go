// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
	"gopkg.in/yaml.v3"
)

// Policy is one file and its drop-ins.
type Policy struct {
	File    string   // as a person would name it
	DropIns []string // the files merged after it, in order

	Match       Match
	Channels    uint32       // combined channels to set; 0: not said
	ChannelsAt  steer.Origin // of the value
	Locations   steer.Range  // when LocationsAt is a place
	LocationsAt steer.Origin
	Entries     []steer.Entry
}

// policyPart is one file of a policy: NAME.yaml or a drop-in of it.
type policyPart struct {
	*faults
	label string // in the default names of entries
	match *matchPart

	channels    uint32
	channelsAt  steer.Origin
	locations   steer.Range
	locationsAt steer.Origin
	entries     []steer.Entry
	names       []*yaml.Node // where each entry says its name, nil when it does not
}

func policyKeys() []key[policyPart] {
	return []key[policyPart]{
		{"match", func(p *policyPart, n *yaml.Node) { p.match = readMatch(p.faults, n) }},
		{"channels", (*policyPart).readChannels},
		{"locations", (*policyPart).readLocations},
		{"steer", (*policyPart).readSteer},
	}
}

// readPolicy reads one file; nil root is a file without content.
func readPolicy(f *faults, root *yaml.Node, label string) *policyPart {
	p := &policyPart{faults: f, label: label}
	if root == nil || isNull(root) {
		return p
	}
	if daemon := valueOf(root, "daemon"); daemon != nil {
		f.node(daemon, ruleHome, "daemon belongs into "+daemonFile, "move it there")
		root = without(root, "daemon")
	}
	walk(f, root, whatPolicy, policyKeys(), p)
	return p
}

// valueOf is the node of a key in a mapping, nil if it is not there.
func valueOf(n *yaml.Node, name string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i]
		}
	}
	return nil
}

// without is a mapping less one of its keys.
func without(n *yaml.Node, name string) *yaml.Node {
	out := *n
	out.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != name {
			out.Content = append(out.Content, n.Content[i], n.Content[i+1])
		}
	}
	return &out
}

func (p *policyPart) readChannels(n *yaml.Node) {
	if v, ok := p.number(n, "channels", boundsChannels); ok {
		p.channels, p.channelsAt = uint32(v), p.origin(n)
	}
}

func (p *policyPart) readLocations(n *yaml.Node) {
	if n.Kind == yaml.SequenceNode {
		p.node(n, ruleShape, "locations is one range, not a list", "write 0-895, for example")
		return
	}
	if _, ok := parseNumber(n.Value); ok {
		p.node(n, ruleShape, "locations: "+clip(n.Value)+" is one number, not a range", "write 0-895, for example")
		return
	}
	if s, ok := p.span(n, "locations", boundsLocation); ok {
		p.locations = steer.Range{First: steer.Loc(s.first), Last: steer.Loc(s.last)}
		p.locationsAt = p.origin(n)
	}
}

func (p *policyPart) readSteer(n *yaml.Node) {
	switch {
	case isNull(n):
		p.node(n, ruleShape, "steer is empty", "write entries below it, or [] for none")
		return
	case n.Kind != yaml.SequenceNode:
		p.node(n, ruleShape, "steer is a list of entries", "put \"- \" before each entry")
		return
	}
	for i, item := range n.Content {
		e, ok := readEntry(p.faults, item, fmt.Sprintf("%s:%d", p.label, i+1))
		if ok {
			p.entries = append(p.entries, e)
			p.names = append(p.names, valueAt(item, "name"))
		}
	}
}

func valueAt(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// merge makes the policy of a file and its drop-ins, in order.
func merge(parts []*policyPart) *Policy {
	first := parts[0]
	p := &Policy{File: first.src.name}
	m := &matchPart{}
	for _, part := range parts {
		if part != first {
			p.DropIns = append(p.DropIns, part.src.name)
		}
		if part.match != nil {
			m.merge(part.match)
		}
		if part.channelsAt.File != "" {
			p.Channels, p.ChannelsAt = part.channels, part.channelsAt
		}
		if part.locationsAt.File != "" {
			p.Locations, p.LocationsAt = part.locations, part.locationsAt
		}
		p.Entries = append(p.Entries, part.entries...)
	}
	p.Match = m.out
	checkNames(parts)
	return p
}

// checkNames reports names that two entries of one policy share.
func checkNames(parts []*policyPart) {
	seen := map[string]steer.Origin{}
	for _, part := range parts {
		for i, e := range part.entries {
			at := e.At
			if part.names[i] != nil {
				at = part.origin(part.names[i])
			}
			if first, dup := seen[e.Name]; dup {
				part.add(&Error{At: at, Also: first, Text: "two entries are named " + e.Name, Hint: "give one of them another name", rule: ruleNames})
				continue
			}
			seen[e.Name] = at
		}
	}
}

// defaultLabel is how the default names of entries name a file.
func defaultLabel(name string) string {
	dir, base := path.Split(name)
	if parent := path.Base(dir); strings.HasSuffix(parent, dropInSuffix) {
		return parent + "/" + base
	}
	return base
}
