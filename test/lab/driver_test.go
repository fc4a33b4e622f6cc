// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"strings"
)

// What the driver and the card say to rules, and what flexsteerd makes of it.

// l4data is the arguments of an ethtool rule that compares the low four bits of
// the destination port of a protocol; ethtool's mask has the bits to ignore.
func l4data(family, protocol, value string, queue int) []string {
	return []string{"flow-type", family, "l4proto", protocol, "l4data", value, "m", "0xfffffff0", "action", fmt.Sprint(queue)}
}

var _ = add(Experiment{
	Name:  "the stock driver refuses l4data rules, and flexsteerd says what to do",
	Stock: true,
	Run: func(m *Machine) {
		m.EthtoolRefused("Invalid argument", "-N", l4data("ip4", "253", "0x3", 3)...)
		m.EthtoolRefused("Invalid argument", "-N", l4data("ip6", "253", "0x3", 3)...)
		m.Daemon(m.Example("protocol-253.yaml"))
		m.Blocked(0, "patched module not loaded: this mlx5_core cannot match l4data", "dkms status flexsteer-mlx5")
	},
})

var _ = add(Experiment{
	Name:        "a card without a parser supports no l4data rules, and flexsteerd says what to do",
	Personality: "connectx-6-dx",
	Run: func(m *Machine) {
		m.EthtoolRefused("Operation not supported", "-N", l4data("ip4", "253", "0x3", 3)...)
		m.EthtoolRefused("Operation not supported", "-N", l4data("ip6", "253", "0x3", 3)...)
		m.Daemon(m.Example("protocol-253.yaml"))
		m.Blocked(0, "the firmware setting for the flex parser is missing", "-e q FLEX_PARSER_PROFILE_ENABLE PROG_PARSE_GRAPH")
	},
})

var _ = add(Experiment{
	Name: "with one node a second protocol is busy, and the first stays",
	Run: func(m *Machine) {
		fits := m.IPv4(253, nil, 0, 1, 0, 3)
		chosen := Away(m.DefaultQueue(fits))
		m.Ethtool("-N", l4data("ip4", "253", "0x3", chosen)...)
		m.EthtoolRefused("Device or resource busy", "-N", l4data("ip4", "254", "0x3", chosen)...)
		m.Ethtool("-N", l4data("ip6", "253", "0x3", chosen)...)
		m.Arrive(m.Capture(fits), Only(chosen, 1))
		if got := m.Rules(); len(got) != 2 {
			m.Errorf("rules at %v, want two", got)
		}
	},
})

var _ = add(Experiment{
	Name:     "with flex_l4_max_nodes=2 two protocols are steered, and a third is busy",
	MaxNodes: 2,
	Run: func(m *Machine) {
		a, b := m.IPv4(253, nil, 0, 1, 0, 3), m.IPv4(146, nil, 0, 1, 0, 3)
		usual := m.DefaultQueue(a)
		first := Away(usual, m.DefaultQueue(b))
		second := Away(usual, m.DefaultQueue(b), first)
		m.Ethtool("-N", l4data("ip4", "253", "0x3", first)...)
		m.Ethtool("-N", l4data("ip4", "146", "0x3", second)...)
		m.EthtoolRefused("Device or resource busy", "-N", l4data("ip4", "254", "0x3", first)...)
		m.Arrive(m.Capture(a, a, a), Only(first, 3))
		m.Arrive(m.Capture(b, b), Only(second, 2))
	},
})

var _ = add(Experiment{
	Name: "protocols that the card parses by itself are refused",
	Run: func(m *Machine) {
		// Hop-by-hop options, ICMP, IGMP, IPv4, TCP, UDP, IPv6, routing header,
		// fragment header, GRE, ESP, AH, ICMPv6, none, destination options,
		// SCTP, mobility, HIP, Shim6. Docs: docs/kernel-module.md.
		parsed := []int{1, 2, 4, 6, 17, 41, 43, 44, 47, 50, 51, 58, 59, 60, 132, 135, 137, 139, 140}
		for _, protocol := range parsed {
			for _, family := range []string{"ip4", "ip6"} {
				m.EthtoolRefused("Invalid argument", "-N", l4data(family, fmt.Sprint(protocol), "0x3", 0)...)
			}
		}
		m.EthtoolRefused("Invalid argument", "-N", "flow-type", "ip4", "l4proto", "253", "m", "0x0f", "l4data", "0x3", "m", "0xfffffff0", "action", "0")
		if got := m.Rules(); len(got) != 0 {
			m.Errorf("rules at %v, want none", got)
		}
	},
})

var _ = add(Experiment{
	Name: "the kernel module's own selftests pass",
	Run: func(m *Machine) {
		r := m.Try("env", "NETIF="+m.Link, "/lab/flex_l4.sh")
		if r.Exit != 0 || !strings.Contains(r.Stdout, "14 passed, 0 failed\n") {
			m.must(fmt.Errorf("want 14 passed: %s", r))
		}
	},
})

var _ = add(Experiment{
	Name: "the suite that the fake kernel passes holds of the driver",
	Run: func(m *Machine) {
		r := m.Try("env", "FLEXSTEER_NIC="+m.Link, "/lab/hosttest", "-test.v", "-test.run=TestRealCardPassesTheSuite")
		if r.Exit != 0 || strings.Count(r.Stdout, "    --- PASS: ") != 13 || strings.Contains(r.Stdout, "SKIP") {
			m.must(fmt.Errorf("want 13 tests that pass: %s", r))
		}
	},
})
