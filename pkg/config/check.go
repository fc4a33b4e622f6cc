// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/flexsteer/flexsteer/pkg/steer"
	"gopkg.in/yaml.v3"
)

var (
	actionKeys = []string{"queue", "queues", "spread", "drop"}
	portKeys   = []string{"source-port", "destination-port"}
	ipKeys     = []string{"family", "protocol", "source", "destination", "source-port", "destination-port", "l4data"}
	etherKeys  = []string{"vlan", "destination-mac", "ether-type"}

	// behindProtocol are the keys that mean nothing without a protocol.
	behindProtocol = []string{"source-port", "destination-port", "l4data", "queues", "spread"}
)

// check compares the keys of an entry with each other.
func (e *entry) check(n *yaml.Node) {
	e.checkAction(n)
	e.checkCompares(n)
	e.checkProtocol()
	e.checkExclusions()
	e.checkFamilies()
	e.checkQueues()
	e.checkSpreadBits()
}

func (e *entry) checkAction(n *yaml.Node) {
	var there []*yaml.Node
	for _, k := range actionKeys {
		if e.keys[k] != nil {
			there = append(there, e.keys[k])
		}
	}
	slices.SortFunc(there, byPlace)
	switch len(there) {
	case 0:
		if e.misspelt() {
			return
		}
		e.node(n, ruleRequired, "this entry has no action", "add queue, queues, spread or drop")
	case 1:
	default:
		e.also(there[1], there[0], ruleExcludes, fmt.Sprintf("%s and %s in one entry", there[0].Value, there[1].Value), "an entry has one action: keep one of them")
	}
}

// misspelt is true if the entry has unknown keys: what seems to be missing may
// be one of them.
func (e *entry) misspelt() bool {
	for k := range e.keys {
		if find(entryKeys(), k) == nil {
			return true
		}
	}
	return false
}

func byPlace(a, b *yaml.Node) int {
	if after(a, b) {
		return 1
	}
	return -1
}

func (e *entry) checkCompares(n *yaml.Node) {
	for _, k := range slices.Concat(ipKeys, etherKeys) {
		if e.keys[k] != nil {
			return
		}
	}
	if e.misspelt() {
		return
	}
	e.node(n, ruleRequired, "this entry compares nothing and would take every packet", "add a protocol, or family: [ipv4, ipv6] for all IP packets")
}

// checkProtocol wants a protocol for what lies behind the IP header, and one
// whose raw bytes may be matched.
func (e *entry) checkProtocol() {
	for _, k := range behindProtocol {
		n := e.keys[k]
		if n == nil {
			continue
		}
		if e.keys["protocol"] == nil {
			if e.misspelt() {
				return
			}
			e.node(n, ruleRequired, k+" without a protocol", "add protocol, such as udp or 146")
			return
		}
		p := e.out.Protocol
		if p.Mask == 0 || steer.Parsed(p.Value) && k != "l4data" {
			continue
		}
		e.rawBytes(n, p.Value, k)
	}
}

func (e *entry) checkExclusions() {
	for _, k := range portKeys {
		if e.keys["l4data"] != nil && e.keys[k] != nil {
			e.also(e.keys["l4data"], e.keys[k], ruleExcludes, "l4data and "+k+" in one entry", "ports are a part of l4data: keep one of them")
			break
		}
	}
	for _, k := range ipKeys {
		if e.keys["ether-type"] != nil && e.keys[k] != nil {
			e.also(e.keys["ether-type"], e.keys[k], ruleExcludes, "ether-type and "+k+" in one entry", "ether-type is for frames that are not IP")
			break
		}
	}
}

// checkFamilies settles the IP versions of an entry.
func (e *entry) checkFamilies() {
	if len(e.families) > 0 {
		e.checkGivenFamilies()
		return
	}
	for _, k := range ipKeys {
		if e.keys[k] != nil {
			e.out.Families = []steer.Family{steer.IPv4, steer.IPv6}
		}
	}
	e.narrow(e.out.Sources)
	e.narrow(e.out.Destinations)
	e.checkPrefixes("source", e.out.Sources, e.sources, "the destinations are", "no packet fits both: write two entries")
	e.checkPrefixes("destination", e.out.Destinations, e.destinations, "the sources are", "no packet fits both: write two entries")
}

// narrow keeps the families that some prefix has.
func (e *entry) narrow(prefixes []netip.Prefix) {
	if len(prefixes) == 0 {
		return
	}
	var kept []steer.Family
	for _, f := range e.out.Families {
		if hasFamily(prefixes, f) {
			kept = append(kept, f)
		}
	}
	e.out.Families = kept
}

func hasFamily(prefixes []netip.Prefix, f steer.Family) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return familyOf(p) == f })
}

func familyOf(p netip.Prefix) steer.Family {
	if p.Addr().Is4() {
		return steer.IPv4
	}
	return steer.IPv6
}

// checkPrefixes reports prefixes of a family that the entry cannot have.
func (e *entry) checkPrefixes(what string, prefixes []netip.Prefix, nodes []*yaml.Node, others, hint string) {
	for i, p := range prefixes {
		if !slices.Contains(e.out.Families, familyOf(p)) {
			e.node(nodes[i], ruleFamily, fmt.Sprintf("%s: %s is IPv%d, but %s not", what, p, familyOf(p), others), hint)
		}
	}
}

// checkGivenFamilies compares `family:` with the addresses and the protocol.
func (e *entry) checkGivenFamilies() {
	before := len(e.list) + e.missed
	e.checkPrefixes("source", e.out.Sources, e.sources, "family is", "remove it, or change family")
	e.checkPrefixes("destination", e.out.Destinations, e.destinations, "family is", "remove it, or change family")
	if len(e.list)+e.missed > before {
		return
	}
	for i, f := range e.out.Families {
		e.checkUsed(e.families[i], f, "source", e.out.Sources)
		e.checkUsed(e.families[i], f, "destination", e.out.Destinations)
	}
	e.checkICMP()
}

// checkUsed wants an address of a family that is asked for, if there are any.
func (e *entry) checkUsed(n *yaml.Node, f steer.Family, what string, prefixes []netip.Prefix) {
	if len(prefixes) > 0 && !hasFamily(prefixes, f) {
		e.node(n, ruleFamily, fmt.Sprintf("family: no %s is IPv%d", what, f), "remove it, or add an address")
	}
}

// checkICMP catches the ICMP of the other IP version.
func (e *entry) checkICMP() {
	p := e.out.Protocol
	if p.Mask == 0 || len(e.out.Families) != 1 {
		return
	}
	switch f := e.out.Families[0]; {
	case p.Value == 1 && f == steer.IPv6:
		e.also(e.value["protocol"], e.families[0], ruleExcludes, "protocol icmp is that of IPv4, but family is ipv6", "write icmpv6")
	case p.Value == 58 && f == steer.IPv4:
		e.also(e.value["protocol"], e.families[0], ruleExcludes, "protocol icmpv6 is that of IPv6, but family is ipv4", "write icmp")
	}
}

// checkQueues compares the number of queues with the number of ports.
func (e *entry) checkQueues() {
	key := e.keys["queues"]
	if key == nil {
		return
	}
	source, destination := e.keys["source-port"], e.keys["destination-port"]
	switch {
	case source == nil && destination == nil:
		e.node(key, ruleRequired, "queues without ports", "add destination-port with as many ports; to share traffic out by bits, use spread")
		return
	case source != nil && destination != nil:
		e.also(key, source, ruleExcludes, "queues with both source-port and destination-port", "queues follow one list of ports: remove the other one")
		return
	case e.value["queues"] == nil || e.value["source-port"] == nil && e.value["destination-port"] == nil:
		return
	}
	ports := countPorts(e.out.SourcePorts) + countPorts(e.out.DestinationPorts)
	if n := len(e.out.Steering.Queues); e.out.Steering.Kind == steer.SteerQueues && n != ports {
		other := e.value["source-port"]
		if other == nil {
			other = e.value["destination-port"]
		}
		hint := "give as many queues as ports; one queue may be listed more than once"
		if n == 1 {
			hint = fmt.Sprintf("write 0-%d for one queue a port, or queue: %d for all of them", ports-1, e.out.Steering.Queues[0])
		}
		e.also(e.value["queues"], other, ruleCount, count(n, "queue")+" for "+count(ports, "port"), hint)
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func countPorts(list []steer.Ports) (n int) {
	for _, p := range list {
		n += int(p.Last-p.First) + 1
	}
	return n
}

// checkSpreadBits wants bits that differ between the packets of the entry.
func (e *entry) checkSpreadBits() {
	s := e.spread
	if e.value["spread"] == nil || s.by == nil {
		return
	}
	free := s.out.Mask &^ e.out.L4Data.Mask
	if countPorts(e.out.SourcePorts) == 1 {
		free &^= sourcePortBits
	}
	if countPorts(e.out.DestinationPorts) == 1 {
		free &^= destinationPortBits
	}
	fixed := s.out.Mask &^ free
	switch {
	case fixed == 0:
	case free == 0:
		e.node(s.by, ruleBits, "by: these bits are the same in all packets of this entry", "spread by other bits, or use queue")
	default:
		e.node(s.by, ruleBits, fmt.Sprintf("by: the bits 0x%08x are the same in all packets of this entry", fixed), fmt.Sprintf("write \"0x%08x\", its other %d", free, bits.OnesCount32(free)))
	}
}
