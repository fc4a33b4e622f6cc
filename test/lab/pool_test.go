// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"slices"
	"strings"
)

// The samples of the flex parser: how many protocols at once.

const nodesParameter = "/sys/module/mlx5_core/parameters/flex_l4_max_nodes"

var _ = add(Experiment{
	Name: "four protocols at once with flex_l4_max_nodes=4 and eight samples; a fifth is busy",
	Run: func(m *Machine) {
		m.Write(nodesParameter, "4")
		var entries []string
		var frames [][]byte
		var want Packets
		for i, protocol := range protocols {
			to := shifted(4, 4*i)
			entries = append(entries, words(protocol, bothFamilies, to))
			for port, queue := range to {
				frames = append(frames, m.IPv4(protocol, nil, toPort(port)...), m.IPv6(protocol, toPort(port)...))
				want[queue] += 2
			}
		}
		m.Daemon(policy(entries...))
		m.Becomes("configured", 32)
		m.Arrive(m.Capture(frames...), want)
		m.EthtoolRefused("Device or resource busy", "-N", append(l4data("ip4", "252", "0x3", 3), "loc", "1000")...)
		m.Arrive(m.Capture(frames...), want)
	},
})

var _ = add(Experiment{
	Name: "a pool of one sample: a second protocol is busy, and harms no live rule",
	Run:  func(m *Machine) { usedUp(m, "bluefield-3-samples-1", protocols[:1]) },
})

var _ = add(Experiment{
	Name: "a pool of three samples: a fourth protocol is busy, and harms no live rule",
	Run:  func(m *Machine) { usedUp(m, "bluefield-3-samples-3", protocols[:3]) },
})

// usedUp: the driver would take eight protocols, the card takes those.
func usedUp(m *Machine, personality string, fit []byte) {
	m.Helper()
	m.Write(nodesParameter, "8")
	c := m.Plug(personality)
	c.must(c.linkUp())
	var live [][]byte
	var want Packets
	for i, protocol := range fit {
		frame := c.IPv4(protocol, nil, toPort(3)...)
		queue := Away(c.DefaultQueue(frame))
		c.Ethtool("-N", slices.Concat(l4data("ip4", fmt.Sprint(protocol), "0x3", queue), []string{"loc", fmt.Sprint(900 + i)})...)
		live = append(live, frame)
		want[queue]++
	}
	more := protocols[len(fit)]
	busy := slices.Concat(l4data("ip4", fmt.Sprint(more), "0x3", 5), []string{"loc", "999"})
	c.EthtoolRefused("Device or resource busy", "-N", busy...)
	c.Arrive(c.Capture(live...), want)

	// One goes, the other comes.
	c.Ethtool("-N", "delete", "900")
	c.Ethtool("-N", busy...)
	for _, at := range c.Rules() {
		c.Ethtool("-N", "delete", fmt.Sprint(at))
	}
	usedUpDaemon(m, c, fit, more)
	c.Unplug()
}

// namely is a policy for one link.
func namely(link string, entries ...string) string {
	return strings.Replace(policy(entries...), "driver: mlx5_core", "name: "+link, 1)
}

const udpEntry = "  - {name: udp, protocol: udp, family: [ipv4], destination-port: 4000, queue: 9}\n"

var _ = add(Experiment{
	Name: "a card without a parser: rules that need none are in place all the same",
	Run: func(m *Machine) {
		c := m.Plug("connectx-6-dx")
		c.must(c.linkUp())
		d := m.Daemon(namely(c.Link, words(253, bothFamilies, shifted(4, 0)), udpEntry))
		c.Blocked(1, "the firmware setting for the flex parser is missing", "-e q FLEX_PARSER_PROFILE_ENABLE PROG_PARSE_GRAPH")
		c.Arrive(c.Capture(c.IPv4(17, nil, 0x10, 0, 0x0f, 0xa0, 0, 8, 0, 0)), Only(9, 1))
		d.Stop()
		c.Unplug()
	},
})

// usedUpDaemon: flexsteerd puts in what goes in, also what stands behind the
// protocol for which there is no sample, and says why.
func usedUpDaemon(m *Machine, c *Plugged, fit []byte, more byte) {
	c.Helper()
	var entries []string
	var frames [][]byte
	var want Packets
	for i, protocol := range append(slices.Clone(fit), more) {
		to := shifted(2, 2*i)
		entries = append(entries, words(protocol, "ipv4", to))
		if protocol != more {
			frames = append(frames, c.IPv4(protocol, nil, toPort(0)...), c.IPv4(protocol, nil, toPort(1)...))
			want[to[0]]++
			want[to[1]]++
		}
	}
	entries = append(entries, udpEntry)
	frames = append(frames, c.IPv4(17, nil, 0x10, 0, 0x0f, 0xa0, 0, 8, 0, 0))
	want[9]++
	d := m.Daemon(namely(c.Link, entries...))
	c.Blocked(2*len(fit)+1, "the device has no parser sample left", "remove the rules of protocol")
	c.Arrive(c.Capture(frames...), want)

	// The last protocol gets the sample that the first one leaves.
	m.Configure("10-lab.yaml", namely(c.Link, entries[1:]...))
	d.Reload()
	c.Becomes("configured", 2*len(fit)+1)
	m.Run("rm", "/etc/flexsteer/10-lab.yaml")
	d.Reload()
	c.Becomes("unmanaged", 0)
	d.Stop()
}
