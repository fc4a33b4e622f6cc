// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// What else the link does while the card has a parse graph node.

var _ = add(Experiment{
	Name: "a parse graph node leaves UDP, TCP, GRE and ESP on the queues that they had, before and after a refusal for GRE",
	Run: func(m *Machine) {
		flows := []string{
			"protocol=udp packets=3200", "protocol=tcp packets=3200", // random ports, both families
			"protocol=gre source=198.51.100.0/24,2001:db8:1::/120 packets=3200",
			"protocol=esp source=198.51.100.0/24,2001:db8:1::/120 packets=3200",
			"protocol=icmp source=198.51.100.0/24 packets=256", "protocol=icmpv6 source=2001:db8:1::/120 packets=256",
		}
		pcaps, before := map[string]string{}, map[string][]Fate{}
		for _, flow := range flows {
			pcaps[flow] = m.Generate(flow)
			before[flow] = m.FatesOf(pcaps[flow])
		}
		for _, flow := range flows[:4] {
			// 200 on each queue on average.
			if p := perQueueOf(before[flow]); slices.Min(p[:]) < 50 {
				m.Errorf("%s: without a rule the queues get %v, want a spread", flow, p)
			}
		}
		same := func(when string) {
			m.Helper()
			for _, flow := range flows {
				if now := m.FatesOf(pcaps[flow]); !slices.Equal(now, before[flow]) {
					m.Errorf("%s: %s: the queues get %v, without a node %v", when, flow, perQueueOf(now), perQueueOf(before[flow]))
				}
			}
		}
		m.Daemon(m.Example("protocol-253.yaml"))
		m.Becomes("configured", 32)
		m.nodes(1)
		same("with a node")
		for _, family := range []string{"ip4", "ip6"} {
			m.EthtoolRefused("Invalid argument", "-N", l4data(family, "47", "0x3", 0)...)
		}
		m.nodes(1)
		same("after rules for GRE were refused")
	},
})

// perQueueOf counts the frames that went to queues.
func perQueueOf(fates []Fate) (p Packets) {
	for _, f := range fates {
		if f >= 0 {
			p[f]++
		}
	}
	return p
}

// nodes checks how many parse graph nodes the card has.
func (m *Machine) nodes(want int) {
	m.Helper()
	r, err := m.card.Report()
	m.must(err)
	if got := r.Alive["parse graph node"]; got != want {
		m.must(fmt.Errorf("the card has %d parse graph nodes, want %d: %v", got, want, r.Alive))
	}
}

var _ = add(Experiment{
	Name: "beside a parse graph node TCP and UDP rules of both families work, and a drop rule drops",
	Run: func(m *Machine) {
		frames := [][]byte{
			m.Frame(segment(17, client4, server4, 4000, 53)),
			m.Frame(segment(17, client6, server6, 4000, 53)),
			m.Frame(segment(6, client4, server4, 4000, 443)),
			m.Frame(segment(6, client6, server6, 4000, 443)),
			m.Frame(segment(17, client4, server4, 4000, 123)),
			m.Frame(segment(17, client6, server6, 4000, 123)),
			m.Frame(Datagram{Source: client4, Destination: server4, Protocol: 253, Payload: toPort(3)}),
			m.Frame(Datagram{Source: client6, Destination: server6, Protocol: 253, Payload: toPort(3)}),
			// No rule is for these.
			m.Frame(segment(6, client4, server4, 4000, 53)),
			m.Frame(segment(6, client6, server6, 4000, 123)),
			m.Frame(segment(17, client4, server4, 4000, 443)),
			m.Frame(segment(17, client4, server4, 53, 4000)),
			m.Frame(Datagram{Source: client4, Destination: server4, Protocol: 254, Payload: toPort(3)}),
			m.Frame(Datagram{Source: client4, Destination: server4, Protocol: 253, Payload: toPort(53)}),
		}
		before := m.Fates(frames...)
		dns := awayFrom(before)
		web := awayFrom(append(before, Fate(dns)))
		raw := awayFrom(append(before, Fate(dns), Fate(web)))
		m.Daemon(policy(
			fmt.Sprintf("  - {protocol: 253, destination-port: 3, queue: %d}\n", raw),
			fmt.Sprintf("  - {protocol: udp, destination-port: 53, queue: %d}\n", dns),
			fmt.Sprintf("  - {protocol: tcp, destination-port: 443, queue: %d}\n", web),
			"  - {protocol: udp, destination-port: 123, drop: true}\n",
		))
		m.Becomes("configured", 8)
		want := slices.Clone(before)
		copy(want, []Fate{Fate(dns), Fate(dns), Fate(web), Fate(web), Dropped, Dropped, Fate(raw), Fate(raw)})
		if got := m.Fates(frames...); !slices.Equal(got, want) {
			m.Errorf("the frames go to %v, want %v", got, want)
		}

		// 20,000 packets that no queue and no buffer is spent on, and one that is.
		flood := m.Generate("protocol=udp destination-port=123 source=198.51.100.0/24,2001:db8:1::/120 packets=20000")
		start := m.QueuePackets()
		sent, err := m.card.Flood(flood)
		m.must(err)
		if sent.DroppedByRule != 20_000 || sent.Delivered+sent.NoBuffer > 0 {
			m.Errorf("a flood of 20,000 packets that a rule drops: %+v", sent)
		}
		m.Arrive(m.Capture(frames[0]), Only(dns, 1))
		if got := m.QueuePackets().Minus(start); got != Only(dns, 1) {
			m.Errorf("after the flood the queues have got %v, want one packet on queue %d", got, dns)
		}
	},
})

// segment is a TCP segment or a UDP datagram, which only have ports and the
// least that makes a header.
func segment(protocol byte, source, destination netip.Addr, from, to uint16) Datagram {
	b := []byte{byte(from >> 8), byte(from), byte(to >> 8), byte(to)}
	if protocol == 6 {
		b = append(b, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0x10, 0, 0, 0, 0, 0) // five words, ACK
	} else {
		b = append(b, 0, 8, 0, 0) // length 8, no checksum
	}
	return Datagram{Source: source, Destination: destination, Protocol: protocol, Payload: b}
}

var _ = add(Experiment{
	Name: "beside a parse graph node IPv4 and IPv6 hosts answer a ping",
	Run: func(m *Machine) {
		m.Daemon(m.Example("homa.yaml"))
		m.Becomes("configured", 32)
		m.nodes(1)
		m.Script(fmt.Sprintf("ip address add 10.0.0.1/24 dev %[1]s; ip address add fd00::1/64 nodad dev %[1]s", m.Link))
		for _, host := range []string{"10.0.0.2", "fd00::2"} {
			// Neighbour discovery is part of it.
			said := m.Run("ping", "-c", "5", "-i", "0.2", "-W", "10", host)
			if !strings.Contains(said, "5 packets transmitted, 5 received, 0% packet loss") {
				m.Errorf("ping %s:\n%s", host, said)
			}
		}
	},
})

// mlx5 has rules for TCP and UDP, and none for SCTP.
var _ = add(Experiment{
	Name: "an entry for SCTP is blocked, since mlx5 takes no such rules, and the others are in place",
	Run: func(m *Machine) {
		refused := m.Try(m.ethtool("-N", []string{"flow-type", "sctp4", "dst-port", "9", "action", "1"})...)
		if !cannot(refused) {
			m.Errorf("the driver takes rules for SCTP: %s", refused)
		}
		m.Daemon(policy(
			"  - {name: first, protocol: tcp, destination-port: 80, queue: 1}\n",
			"  - {name: association, protocol: sctp, destination-port: 9, queue: 2}\n",
			"  - {name: last, protocol: udp, destination-port: 53, queue: 3}\n",
		))
		m.Blocked(4, "insert sctp4 dst-port 9 -> queue 2: operation not supported: this driver takes no such rule", "")
		m.Arrive(m.Capture(m.Frame(segment(6, client4, server4, 4000, 80)), m.Frame(segment(17, client6, server6, 4000, 53))), onQueues(1, 1, 3))
	},
})
