// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"slices"
)

// One pair of ports, of a protocol that the card does not parse.

var _ = add(Experiment{
	Name: "flexsteerd with one pair of ports: its 1,000 packets of 160,000, and the rest on the default path",
	Run: func(m *Machine) {
		// 16 by 10 pairs of ports, each 1,000 times.
		const flow = "protocol=253 source-port=40000-40015 destination-port=8080-8089 packets=160000"
		four := m.Generate(flow + " family=ipv4 source=198.51.100.1 destination=192.0.2.1")
		six := m.Generate(flow + " family=ipv6 source=2001:db8:1::1 destination=2001:db8:2::1")
		ports := []byte{0x9c, 0x43, 0x1f, 0x94} // 40003, 8084
		usual4, usual6 := m.DefaultQueue(m.IPv4(253, nil, ports...)), m.DefaultQueue(m.IPv6(253, ports...))
		chosen := Away(usual4, usual6)

		d := m.Daemon(policy(onePair("", chosen)))
		m.Becomes("configured", 2)
		m.Arrive(four, plus(Only(chosen, 1_000), Only(usual4, 159_000)))
		m.Arrive(six, plus(Only(chosen, 1_000), Only(usual6, 159_000)))

		// IPv4 alone.
		m.Configure("10-lab.yaml", policy(onePair("family: ipv4, ", chosen)))
		d.Reload()
		m.Becomes("configured", 1)
		m.Arrive(m.Capture(m.IPv4(253, nil, ports...)), Only(chosen, 1))
		m.Arrive(m.Capture(m.IPv6(253, ports...)), Only(usual6, 1))
	},
})

// onePair is an entry for protocol 253, port 40003 to port 8084.
func onePair(more string, queue int) string {
	return fmt.Sprintf("  - {name: pair, protocol: 253, %ssource-port: 40003, destination-port: 8084, queue: %d}\n", more, queue)
}

func plus(a, b Packets) Packets {
	for q := range a {
		a[q] += b[q]
	}
	return a
}

var _ = add(Experiment{
	Name: "ports are found behind IPv4 options and VLAN tags, and not in fragments",
	Run: func(m *Machine) {
		ports := []byte{0x9c, 0x43, 0x1f, 0x94, 1, 2, 3, 4, 5, 6, 7, 8} // 40003, 8084
		four := Datagram{Source: client4, Destination: server4, Protocol: 253, Payload: ports}
		six := four.six()
		nops := slices.Repeat([]byte{1}, 40) // option 1: no operation
		vlan100, priority, stacked := []Tag{{0x8100, 100}}, []Tag{{0x8100, 0}}, []Tag{{0x88a8, 7}, {0x8100, 100}}
		first, middle, last := &Fragment{0, true}, &Fragment{185, true}, &Fragment{185, false}
		frames := []struct {
			name  string
			taken bool
			Datagram
		}{
			{"IPv4", true, four},
			{"IPv6", true, six},
			{"4 bytes of options", true, with(four, func(d *Datagram) { d.Options = nops[:4] })},
			{"40 bytes of options", true, with(four, func(d *Datagram) { d.Options = nops })},
			// Behind an option 0, the end, anything may follow.
			{"other ports in options", true, with(four, func(d *Datagram) { d.Options = []byte{0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44} })},
			{"the ports in options only", false, with(four, func(d *Datagram) {
				d.Options, d.Payload = []byte{0, 0, 0, 0, 0x9c, 0x43, 0x1f, 0x94}, []byte{0, 9, 0, 9, 0x9c, 0x43, 0x1f, 0x94}
			})},
			{"VLAN 100", true, with(four, func(d *Datagram) { d.Tags = vlan100 })},
			{"VLAN 100, IPv6", true, with(six, func(d *Datagram) { d.Tags = vlan100 })},
			{"a priority tag", true, with(four, func(d *Datagram) { d.Tags = priority })},
			{"two tags", true, with(four, func(d *Datagram) { d.Tags = stacked })},
			{"VLAN 100 and options", true, with(four, func(d *Datagram) { d.Tags, d.Options = vlan100, nops[:8] })},
			{"first fragment", false, with(four, func(d *Datagram) { d.Fragment = first })},
			{"middle fragment", false, with(four, func(d *Datagram) { d.Fragment = middle })},
			{"last fragment", false, with(four, func(d *Datagram) { d.Fragment = last })},
			{"first fragment, IPv6", false, with(six, func(d *Datagram) { d.Fragment = first })},
			{"middle fragment, IPv6", false, with(six, func(d *Datagram) { d.Fragment = middle })},
			{"last fragment, IPv6", false, with(six, func(d *Datagram) { d.Fragment = last })},
			{"first fragment in VLAN 100", false, with(four, func(d *Datagram) { d.Tags, d.Fragment = vlan100, first })},
		}
		var all [][]byte
		for _, f := range frames {
			all = append(all, m.Frame(f.Datagram))
		}
		before := m.Fates(all...)
		chosen := awayFrom(before)
		m.Daemon(policy(onePair("", chosen)))
		m.Becomes("configured", 2)
		for i, got := range m.Fates(all...) {
			want := before[i]
			if frames[i].taken {
				want = Fate(chosen)
			}
			if got != want {
				m.Errorf("%s: %v, want %v", frames[i].name, got, want)
			}
		}
	},
})

func with(d Datagram, change func(*Datagram)) Datagram {
	change(&d)
	return d
}

var _ = add(Experiment{
	Name: "a rule for ports in a VLAN takes no packets of other VLANs, nor those in none",
	Run: func(m *Machine) {
		var all [][]byte
		for _, d := range []Datagram{
			{Source: client4, Destination: server4, Protocol: 253, Payload: toPort(4000)},
			{Source: client6, Destination: server6, Protocol: 253, Payload: toPort(4000)},
		} {
			for _, tags := range [][]Tag{
				{{0x8100, 100}}, {{0x8100, 100}, {0x8100, 101}}, {{0x8100, 0xa000 | 100}}, // in VLAN 100, also with a priority
				nil, {{0x8100, 101}}, {{0x8100, 0}},
			} {
				d.Tags = tags
				all = append(all, m.Frame(d))
			}
		}
		before := m.Fates(all...)
		chosen := awayFrom(before)
		m.Daemon(policy(fmt.Sprintf("  - {protocol: 253, vlan: 100, destination-port: 4000, queue: %d}\n", chosen)))
		m.Becomes("configured", 2)
		want := slices.Clone(before)
		for _, i := range []int{0, 1, 2, 6, 7, 8} {
			want[i] = Fate(chosen)
		}
		if got := m.Fates(all...); !slices.Equal(got, want) {
			m.Errorf("the frames went to %v, want %v", got, want)
		}
	},
})
