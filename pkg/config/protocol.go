// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/flexsteer/flexsteer/pkg/steer"
	"gopkg.in/yaml.v3"
)

// protocols names the IP protocols by number, as IANA's registry of Assigned
// Internet Protocol Numbers and /etc/protocols do, in lower case.
var protocols = map[string]uint8{
	"icmp": 1, "igmp": 2, "ipip": 4, "tcp": 6, "egp": 8, "igp": 9, "udp": 17, "dccp": 33, "ipv6-in-ip": 41,
	"ipv6-route": 43, "ipv6-frag": 44, "rsvp": 46, "gre": 47, "esp": 50, "ah": 51, "icmpv6": 58, "ipv6-nonxt": 59,
	"ipv6-opts": 60, "eigrp": 88, "ospf": 89, "etherip": 97, "pim": 103, "ipcomp": 108, "vrrp": 112, "l2tp": 115,
	"sctp": 132, "fc": 133, "mobility-header": 135, "udplite": 136, "mpls-in-ip": 137, "manet": 138, "hip": 139,
	"shim6": 140, "wesp": 141, "rohc": 142, "ethernet": 143, "homa": 146,
}

// otherProtocolNames leads from names in use elsewhere to ours.
var otherProtocolNames = map[string]string{
	"ipv6-icmp": "icmpv6", "icmp6": "icmpv6", "udp-lite": "udplite", "ipencap": "ipip", "ip-in-ip": "ipip",
	"6in4": "ipv6-in-ip", "ospfigp": "ospf", "ipsec-esp": "esp", "ipsec-ah": "ah", "mh": "mobility-header",
	"ip": "family: ipv4", "ip4": "family: ipv4", "ipv4": "family: ipv4", "ip6": "family: ipv6", "ipv6": "family: ipv6",
	"any": "no protocol key at all", "all": "no protocol key at all", "vlan": "vlan: NUMBER", "arp": "ether-type: 0x0806",
}

// Protocol is the number of a protocol by the name that policies use.
func Protocol(name string) (number uint8, ok bool) {
	number, ok = protocols[name]
	return number, ok
}

// ProtocolName is the name of a protocol that policies may use for its number.
func ProtocolName(number uint8) (name string, ok bool) {
	for name, n := range protocols {
		if n == number {
			return name, true
		}
	}
	return "", false
}

func protocolNames() []string { return slices.Sorted(maps.Keys(protocols)) }

// protocol reads a protocol by number or by name.
func (f *faults) protocol(n *yaml.Node) (uint8, bool) {
	if n.Kind == yaml.SequenceNode {
		f.node(n, ruleShape, "protocol is one value, not a list", "write one entry for each protocol")
		return 0, false
	}
	name := n.Kind == yaml.ScalarNode && n.Value != "" && unicode.IsLetter([]rune(n.Value)[0])
	if !name || isNull(n) {
		v, ok := f.number(n, "protocol", boundsProtocol)
		return uint8(v), ok
	}
	if p, ok := protocols[n.Value]; ok {
		return p, true
	}
	hint := "write its number " + boundsProtocol.String()
	if strings.ContainsAny(n.Value, ", /|") {
		hint = "write one entry for each protocol"
	} else if ours, ok := otherProtocolNames[strings.ToLower(n.Value)]; ok {
		hint = "write " + ours
	} else if near := f.nearest(n.Value, protocolNames()); near != "" {
		hint = "did you mean " + near + "?"
	}
	f.node(n, ruleWord, "unknown protocol "+clip(printable(n.Value)), hint)
	return 0, false
}

// refused are the protocols whose bytes behind the IP header cannot be matched
// raw: NICs parse them (or they are IPv6 extension headers), and a parser node
// on one of them takes its traffic away from RSS.
var refused = map[uint8]string{
	0: "IPv6 hop-by-hop options", 1: "ICMP", 2: "IGMP", 4: "IP in IP", 6: "TCP", 17: "UDP", 41: "IPv6 in IP",
	43: "the IPv6 routing header", 44: "the IPv6 fragment header", 47: "GRE", 50: "ESP", 51: "AH", 58: "ICMPv6",
	59: "no next header of IPv6", 60: "IPv6 destination options", 132: "SCTP", 135: "the mobility header",
	137: "MPLS in IP", 139: "HIP", 140: "SHIM6",
}

// rawBytes checks that protocol p may be matched by what, which looks at raw bytes.
func (f *faults) rawBytes(n *yaml.Node, p uint8, what string) {
	name, ok := refused[p]
	if !ok {
		return
	}
	hint := "leave " + what + " out for this protocol"
	if steer.Parsed(p) {
		hint = "use source-port and destination-port"
	}
	f.node(n, ruleParsed, fmt.Sprintf("%s with protocol %d: NICs parse %s themselves; steering it by raw bytes would take it away from RSS", what, p, name), hint)
}
