// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
	"gopkg.in/yaml.v3"
)

// entry is an item of `steer:` while it is read. The nodes are kept for
// messages about two keys that do not go together; ok holds the keys whose
// values were good.
type entry struct {
	*faults
	out   steer.Entry
	keys  map[string]*yaml.Node // by name, the keys that are there
	value map[string]*yaml.Node // by name, the values that were good

	sources, destinations []*yaml.Node // of each prefix
	families              []*yaml.Node // of each family

	spread spread
}

func entryKeys() []key[entry] {
	return []key[entry]{
		{"name", (*entry).readName},
		{"family", (*entry).readFamily},
		{"protocol", (*entry).readProtocol},
		{"source", (*entry).readSource},
		{"destination", (*entry).readDestination},
		{"source-port", (*entry).readSourcePort},
		{"destination-port", (*entry).readDestinationPort},
		{"l4data", (*entry).readL4Data},
		{"vlan", (*entry).readVLAN},
		{"destination-mac", (*entry).readDestinationMAC},
		{"ether-type", (*entry).readEtherType},
		{"queue", (*entry).readQueue},
		{"queues", (*entry).readQueues},
		{"spread", (*entry).readSpread},
		{"drop", (*entry).readDrop},
	}
}

// readEntry reads one item of `steer:`; ok is false if anything is wrong with it.
func readEntry(f *faults, n *yaml.Node, defaultName string) (steer.Entry, bool) {
	before := len(f.list) + f.missed
	e := &entry{faults: f, value: map[string]*yaml.Node{}}
	e.out.Name, e.out.At = defaultName, f.origin(n)
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		f.node(n, ruleRequired, "this entry is empty", "remove it, or say which packets it is for and what to do with them")
	} else if e.keys = walk(f, n, whatEntry, entryKeys(), e); e.keys != nil {
		e.check(n)
	}
	return e.out, len(f.list)+f.missed == before
}

var (
	entryName   = pattern(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,63}$`)
	notEntryRun = pattern(`[^A-Za-z0-9._:/@+-]+`)
)

func (e *entry) readName(n *yaml.Node) {
	s, ok := e.text(n, "name")
	if !ok {
		return
	}
	if !entryName.MatchString(s) {
		hint := "use letters, digits and . _ : / @ + -, at most 64"
		if near := strings.Trim(notEntryRun.compiled().ReplaceAllString(s, "-"), "-"); entryName.MatchString(near) {
			hint = "write " + near
		}
		e.node(n, ruleText, fmt.Sprintf("%s cannot be the name of an entry", clip(printable(s))), hint)
		return
	}
	e.out.Name, e.value["name"] = s, n
}

func (e *entry) readFamily(n *yaml.Node) {
	seen := map[string]*yaml.Node{}
	for _, item := range e.items(n, "family") {
		if plain(item) && (item.Value == "4" || item.Value == "6") {
			e.node(item, ruleWord, "family is a word", "write ipv"+item.Value)
			continue
		}
		s, ok := e.word(item, "family", []string{"ipv4", "ipv6"})
		if !ok {
			continue
		}
		if first, dup := seen[s]; dup {
			e.also(item, first, ruleRepeat, "family: "+s+" is in this list twice", "keep one of them")
			continue
		}
		seen[s] = item
		e.out.Families = append(e.out.Families, map[string]steer.Family{"ipv4": steer.IPv4, "ipv6": steer.IPv6}[s])
		e.families = append(e.families, item)
	}
	if len(e.families) > 0 {
		e.value["family"] = n
	}
}

func (e *entry) readProtocol(n *yaml.Node) {
	if p, ok := e.protocol(n); ok {
		e.out.Protocol = steer.Bits8{Value: p, Mask: 0xff}
		e.value["protocol"] = n
	}
}

func (e *entry) readSource(n *yaml.Node) {
	if e.out.Sources, e.sources = e.prefixes(n, "source"); len(e.sources) > 0 {
		e.value["source"] = n
	}
}

func (e *entry) readDestination(n *yaml.Node) {
	if e.out.Destinations, e.destinations = e.prefixes(n, "destination"); len(e.destinations) > 0 {
		e.value["destination"] = n
	}
}

func (e *entry) readSourcePort(n *yaml.Node) {
	e.out.SourcePorts = e.ports(n, "source-port")
}

func (e *entry) readDestinationPort(n *yaml.Node) {
	e.out.DestinationPorts = e.ports(n, "destination-port")
}

func (e *entry) ports(n *yaml.Node, what string) (out []steer.Ports) {
	spans, ok := e.spans(n, what, boundsPort, true)
	if !ok {
		return nil
	}
	for _, s := range spans {
		out = append(out, steer.Ports{First: uint16(s.first), Last: uint16(s.last)})
	}
	e.value[what] = n
	return out
}

// readL4Data reads VALUE/MASK, or VALUE for all 32 bits.
func (e *entry) readL4Data(n *yaml.Node) {
	if plain(n) && !strings.Contains(n.Value, "/") {
		if v, ok := e.number(n, "l4data", boundsWord); ok {
			e.out.L4Data, e.value["l4data"] = steer.Bits32{Value: uint32(v), Mask: 0xffffffff}, n
		}
		return
	}
	s, ok := e.text(n, "l4data")
	if !ok {
		return
	}
	first, second, found := strings.Cut(s, "/")
	if !found || first == "" || second == "" || strings.ContainsAny(s, " \t") {
		e.node(n, ruleText, fmt.Sprintf("l4data: %s is not VALUE/MASK", clip(printable(s))), "write 0x00000003/0x0000000f, for example")
		return
	}
	quote := 0
	if !plain(n) {
		quote = 1
	}
	v, ok1 := e.numeral(n, quote, first, "l4data value", boundsWord)
	m, ok2 := e.numeral(n, quote+columns(first)+1, second, "l4data mask", boundsWord)
	if ok1 && ok2 {
		e.l4data(n, uint32(v), uint32(m))
	}
}

func (e *entry) l4data(n *yaml.Node, value, mask uint32) {
	switch {
	case mask == 0:
		e.node(n, ruleMask, "l4data: the mask is zero and compares nothing", "a set bit of the mask means compare (ethtool's own m is the inverse)")
	case value&^mask != 0:
		e.node(n, ruleMask, fmt.Sprintf("l4data: the value has bits %#x outside the mask", value&^mask), fmt.Sprintf("write 0x%08x/0x%08x; a set bit of the mask means compare (ethtool's own m is the inverse)", value&mask, mask))
	default:
		e.out.L4Data, e.value["l4data"] = steer.Bits32{Value: value, Mask: mask}, n
	}
}

func (e *entry) readVLAN(n *yaml.Node) {
	if n.Kind == yaml.SequenceNode {
		e.node(n, ruleShape, "vlan is one number, not a list", "write one entry for each VLAN")
		return
	}
	if v, ok := e.number(n, "vlan", boundsVLAN); ok {
		e.out.VLAN, e.value["vlan"] = steer.Bits16{Value: uint16(v), Mask: 0x0fff}, n
	}
}

func (e *entry) readDestinationMAC(n *yaml.Node) {
	if m, ok := e.destinationMAC(n); ok {
		e.out.DestinationMAC, e.value["destination-mac"] = m, n
	}
}

// etherTypeKeys are the EtherTypes that have keys of their own.
var etherTypeKeys = map[uint64]string{0x0800: "family: ipv4", 0x86dd: "family: ipv6", 0x8100: "vlan: NUMBER", 0x88a8: "vlan: NUMBER"}

func (e *entry) readEtherType(n *yaml.Node) {
	v, ok := e.number(n, "ether-type", boundsEtherType)
	if !ok {
		return
	}
	if ours, has := etherTypeKeys[v]; has {
		e.node(n, ruleExcludes, fmt.Sprintf("ether-type 0x%04x has a key of its own", v), "write "+ours)
		return
	}
	e.out.EtherType, e.value["ether-type"] = steer.Bits16{Value: uint16(v), Mask: 0xffff}, n
}

func (e *entry) steering(n *yaml.Node, s steer.Steering) {
	e.out.Steering, e.out.SteeringAt = s, e.origin(n)
}

func (e *entry) readQueue(n *yaml.Node) {
	if n.Kind == yaml.SequenceNode || plain(n) && strings.Contains(n.Value, "-") && !strings.HasPrefix(n.Value, "-") {
		e.node(n, ruleShape, "queue is one number", "write queues: for one queue a port, or spread: to share the traffic out")
		return
	}
	if plain(n) && n.Value == "-1" {
		e.node(n, ruleNumber, "queue: -1 is ethtool's way to say drop", "write drop: true")
		return
	}
	if v, ok := e.number(n, "queue", boundsQueue); ok {
		e.value["queue"] = n
		e.steering(n, steer.Steering{Kind: steer.SteerQueue, Queue: uint32(v)})
	}
}

func (e *entry) readQueues(n *yaml.Node) {
	spans, ok := e.spans(n, "queues", boundsQueue, false)
	if !ok {
		return
	}
	queues := e.expand(n, spans)
	if len(queues) == 0 {
		return
	}
	e.value["queues"] = n
	e.steering(n, steer.Steering{Kind: steer.SteerQueues, Queues: queues})
}

func (e *entry) readDrop(n *yaml.Node) {
	v, ok := e.yes(n, "drop")
	if !ok {
		return
	}
	if !v {
		e.node(n, ruleWord, "drop can only be true", "remove the key, and say what to do with the packets: queue, queues or spread")
		return
	}
	e.value["drop"] = n
	e.steering(n, steer.Steering{Kind: steer.SteerDrop})
}
