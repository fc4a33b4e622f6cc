// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
	"gopkg.in/yaml.v3"
)

// key is a key of a mapping and what reads its value into T.
type key[T any] struct {
	name string
	read func(*T, *yaml.Node)
}

// walk reads a mapping: each key at most once, each known, each value by its
// reader. It reports the nodes of the keys that are there, nil if n is no mapping.
func walk[T any](f *faults, n *yaml.Node, what string, keys []key[T], into *T) map[string]*yaml.Node {
	if n.Kind != yaml.MappingNode {
		f.notMapping(n, what)
		return nil
	}
	seen := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if !f.newKey(name, seen, what) {
			continue
		}
		if k := find(keys, name.Value); k != nil {
			k.read(into, value)
			continue
		}
		f.unknownKey(name, what, names(keys))
	}
	return seen
}

func find[T any](keys []key[T], name string) *key[T] {
	for i := range keys {
		if keys[i].name == name {
			return &keys[i]
		}
	}
	return nil
}

func names[T any](keys []key[T]) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k.name
	}
	return out
}

// newKey notes a key, unless it is no word or was there before.
func (f *faults) newKey(k *yaml.Node, seen map[string]*yaml.Node, what string) bool {
	if k.Kind != yaml.ScalarNode {
		f.node(k, ruleShape, "a key of "+what+" is a word", "write KEY: VALUE")
		return false
	}
	if k.Value == "<<" {
		f.node(k, ruleSubset, "merge key", "write the keys out; anchors, aliases and merge keys are not supported")
		return false
	}
	if first, ok := seen[k.Value]; ok {
		f.also(k, first, ruleTwice, fmt.Sprintf("the key %s is here twice", clip(printable(k.Value))), "keep one of them")
		return false
	}
	seen[k.Value] = k
	return true
}

// unknownKey names the key that was meant, if it can be guessed.
func (f *faults) unknownKey(k *yaml.Node, what string, known []string) {
	if len(f.list) >= maxErrors {
		f.missed++
		return
	}
	text := fmt.Sprintf("unknown key %s in %s", clip(printable(k.Value)), what)
	hint := "the keys here are " + strings.Join(known, ", ")
	if strings.Contains(k.Value, ":") {
		hint = "put a space behind the colon"
	} else if near := f.meant(k.Value, known); near != "" {
		hint = "did you mean " + near + "?"
	} else if home := homeOf(k.Value); home != "" && home != what {
		hint = fmt.Sprintf("%s is a key of %s: check the indentation", k.Value, home)
	}
	f.node(k, ruleKey, text, hint)
}

// spoken maps words that people bring from ethtool, nft, tc and netplan to ours.
var spoken = map[string]string{
	"action": "queue", "dest-ip": "destination", "dest-port": "destination-port", "dip": "destination",
	"dmac": "destination-mac", "dport": "destination-port", "dst": "destination", "dst-ip": "destination",
	"dst-mac": "destination-mac", "dst-port": "destination-port", "ethertype": "ether-type", "ethertypes": "ether-type",
	"family-type": "family", "id-path": "path", "id-path-policy": "path", "interface": "name", "ifname": "name",
	"ip-version": "family", "l4-data": "l4data", "l4proto": "protocol", "loc": "locations", "macaddress": "mac", "mac-address": "mac",
	"channel": "channels", "combined": "channels", "proto": "protocol", "ring": "queue", "rules": "steer", "rule": "steer",
	"saddr": "source", "daddr": "destination", "sip": "source", "source-ip": "source", "destination-ip": "destination",
	"sport": "source-port", "src": "source", "src-ip": "source", "src-port": "source-port", "vendor": "pci", "vlan-id": "vlan",
	"weights": "over", "vid": "vlan", "dev": "name", "device": "name", "links": "match", "link": "match", "queue-list": "queues",
	"deny": "drop", "discard": "drop", "reject": "drop", "mask": "by", "bits": "by",
}

// meant guesses which of the known keys a word stands for, "" if none.
func (f *faults) meant(word string, known []string) string {
	folded := strings.ReplaceAll(strings.ToLower(word), "_", "-")
	if ours, ok := spoken[folded]; ok {
		for _, k := range known {
			if k == ours {
				return ours
			}
		}
	}
	return f.nearest(word, known)
}

// homeOf says where a key belongs, "" for a word that is no key anywhere.
func homeOf(word string) string {
	places := []struct {
		what string
		keys []string
	}{
		{whatPolicy, names(policyKeys())}, {whatEntry, names(entryKeys())}, {whatMatch, names(matchKeys())},
		{whatSpread, names(spreadKeys())}, {whatDaemon, names(daemonKeys())},
	}
	for _, p := range places {
		for _, k := range p.keys {
			if k == word {
				return p.what
			}
		}
	}
	return ""
}

// How messages name the mappings of the format.
const (
	whatPolicy   = "a policy"
	whatMatch    = "match"
	whatEntry    = "an entry of steer"
	whatSpread   = "spread"
	whatDaemon   = "daemon"
	whatModule   = "module"
	whatFirmware = "firmware"
)

func (f *faults) notMapping(n *yaml.Node, what string) {
	switch {
	case isNull(n):
		f.node(n, ruleShape, what+" is empty", "remove the key, or write its keys below it, indented")
	case n.Kind == yaml.SequenceNode:
		f.node(n, ruleShape, what+" holds keys, not a list", "remove the \"- \"")
	default:
		f.node(n, ruleShape, what+" holds keys, not a value", "write its keys below it, indented")
	}
}

// node reports a fault at a node.
func (f *faults) node(n *yaml.Node, r rule, text, hint string) { f.inside(n, 0, r, text, hint) }

// inside reports a fault at a character of a plain value.
func (f *faults) inside(n *yaml.Node, offset int, r rule, text, hint string) {
	f.at(n.Line, n.Column+offset, r, text, hint)
}

// also reports a fault that takes two places.
func (f *faults) also(n, other *yaml.Node, r rule, text, hint string) {
	f.add(&Error{At: f.origin(n), Text: text, Hint: hint, Also: f.origin(other), rule: r})
}

func (f *faults) origin(n *yaml.Node) steer.Origin { return f.src.origin(n.Line, n.Column) }
