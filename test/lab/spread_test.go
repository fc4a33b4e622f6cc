// SPDX-License-Identifier: Apache-2.0

package lab

import "fmt"

// The main job: packets of protocols that the card does not parse, over queues.

var _ = add(Experiment{
	Name: "without rules all packets between two hosts are on one queue",
	Run: func(m *Machine) {
		for _, protocol := range []string{"253", "homa"} {
			for _, family := range []string{"ipv4", "ipv6"} {
				got := m.Arrivals(m.Generate(pairOfHosts(protocol, family, 10_000)))
				if !onOneQueue(got, 10_000) {
					m.Errorf("%s over %s: want 10,000 packets on one queue, got %v", protocol, family, got)
				}
			}
		}
	},
})

func onOneQueue(p Packets, n int) bool {
	for q := range p {
		if p == Only(q, n) {
			return true
		}
	}
	return false
}

var _ = add(Experiment{
	Name: "flexsteerd with protocol-253.yaml: 10,000 packets on each of 16 queues",
	Run:  func(m *Machine) { spreads(m, "protocol-253.yaml", "253") },
})

var _ = add(Experiment{
	Name: "flexsteerd with homa.yaml: 10,000 packets on each of 16 queues",
	Run:  func(m *Machine) { spreads(m, "homa.yaml", "homa") },
})

// spreads: sixteen rules for each family, IPv4 and IPv6 alike.
func spreads(m *Machine, example, protocol string) {
	m.Helper()
	d := m.Daemon(m.Example(example))
	m.Becomes("configured", 32)
	for _, family := range []string{"ipv4", "ipv6"} {
		m.Arrive(m.Generate(pairOfHosts(protocol, family, 160_000)), Each(10_000))
	}
	// The rules stay when the daemon goes.
	d.Stop()
	m.Arrive(m.Generate(pairOfHosts(protocol, "ipv4", 1_600)), Each(100))
}

var _ = add(Experiment{
	Name: "a rule for one pair of ports takes these packets and no others",
	Run: func(m *Machine) {
		// Ports 40000 and 8080, then a payload that no rule looks at.
		fits := m.IPv4(253, nil, 0x9c, 0x40, 0x1f, 0x90, 1, 2, 3, 4)
		fits6 := m.IPv6(253, 0x9c, 0x40, 0x1f, 0x90, 1, 2, 3, 4)
		usual := m.DefaultQueue(fits)
		usual6 := m.DefaultQueue(fits6)
		chosen := Away(usual, usual6)
		m.Ethtool("-N", "flow-type", "ip4", "l4proto", "253", "l4data", "0x9c401f90", "m", "0x0", "action", fmt.Sprint(chosen))

		m.Arrive(m.Capture(fits, fits, fits), Only(chosen, 3))
		m.Arrive(m.Capture(
			m.IPv4(253, nil, 0x9c, 0x41, 0x1f, 0x90, 1, 2, 3, 4), // another source port
			m.IPv4(253, nil, 0x9c, 0x40, 0x1f, 0x91, 1, 2, 3, 4), // another destination port
			m.IPv4(253, nil, 0x1f, 0x90, 0x9c, 0x40, 1, 2, 3, 4), // the other way round
			m.IPv4(254, nil, 0x9c, 0x40, 0x1f, 0x90, 1, 2, 3, 4), // another protocol
		), Only(usual, 4))
		m.Arrive(m.Capture(fits6), Only(usual6, 1))

		m.Ethtool("-N", "flow-type", "ip6", "l4proto", "253", "l4data", "0x9c401f90", "m", "0x0", "action", fmt.Sprint(chosen))
		m.Arrive(m.Capture(fits6, fits6), Only(chosen, 2))
		for _, at := range m.Rules() {
			m.Ethtool("-N", "delete", fmt.Sprint(at))
		}
		m.Arrive(m.Capture(fits), Only(usual, 1))
		m.Arrive(m.Capture(fits6), Only(usual6, 1))
	},
})

var _ = add(Experiment{
	Name:  "the stock driver steers UDP ports",
	Stock: true,
	Run: func(m *Machine) {
		// Ports 4000 and 53, length 12, no checksum.
		dns := m.IPv4(17, nil, 0x0f, 0xa0, 0, 53, 0, 12, 0, 0, 'd', 'a', 't', 'a')
		other := m.IPv4(17, nil, 0x0f, 0xa0, 0, 54, 0, 12, 0, 0, 'd', 'a', 't', 'a')
		usual := m.DefaultQueue(other)
		chosen := Away(usual, m.DefaultQueue(dns))
		m.Ethtool("-N", "flow-type", "udp4", "dst-port", "53", "action", fmt.Sprint(chosen))
		m.Arrive(m.Capture(dns, dns), Only(chosen, 2))
		m.Arrive(m.Capture(other), Only(usual, 1))
	},
})
