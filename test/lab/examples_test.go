// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"slices"
	"strings"
)

// The ordinary files of examples/ do what their comments say. Homa and protocol
// 253 are in spread_test.go; virtual-function.yaml wants a card with virtual
// functions, which QEMU does not let through.

// exampleHere is the text of an example for the card's link, whatever it names.
func (m *Machine) exampleHere(name string) string {
	m.Helper()
	text := m.Example(name)
	start := strings.Index(text, "\nmatch:\n") + 1
	length := strings.Index(text[max(start, 0):], "\n\n")
	if start == 0 || length < 0 {
		m.must(fmt.Errorf("%s has no match with an empty line behind it", name))
	}
	return text[:start] + "match: {driver: mlx5_core}" + text[start+length:]
}

// all checks that every packet of flows has one fate.
func (m *Machine) all(want Fate, flows ...string) {
	m.Helper()
	for _, flow := range flows {
		if got := m.FatesOf(m.Generate(flow)); slices.ContainsFunc(got, func(f Fate) bool { return f != want }) {
			m.Errorf("%s: want all: %v, got queues %v and others %v", flow, want, perQueueOf(got), othersOf(got))
		}
	}
}

func othersOf(fates []Fate) map[string]int {
	n := map[string]int{}
	for _, f := range fates {
		if f < 0 {
			n[f.String()]++
		}
	}
	return n
}

// untouched sends flows now, and the returned function sends them once more:
// each packet must go where it went before.
func (m *Machine) untouched(flows ...string) func() {
	m.Helper()
	pcap := m.Generate(flows...)
	before := m.FatesOf(pcap)
	return func() {
		m.Helper()
		if now := m.FatesOf(pcap); !slices.Equal(now, before) {
			m.Errorf("%q: no rule is for these, but the queues get %v and got %v", flows, perQueueOf(now), perQueueOf(before))
		}
	}
}

var _ = add(Experiment{
	Name: "dns-ntp-flood.yaml: answers of the servers that were asked arrive, and others are dropped",
	Run: func(m *Machine) {
		untouched := m.untouched("protocol=udp source-port=54,124 destination-port=53,123 source=192.0.2.53,192.0.2.123,2001:db8::53 packets=120",
			"protocol=tcp source-port=53,123 source=203.0.113.0/24 packets=256")
		m.Daemon(m.exampleHere("dns-ntp-flood.yaml"))
		m.Becomes("configured", 8)
		m.all(0, "protocol=udp source-port=53 source=192.0.2.53,198.51.100.53,2001:db8::53 packets=120",
			"protocol=udp source-port=123 source=192.0.2.123 packets=40")
		m.all(Dropped, "protocol=udp source-port=53,123 source=203.0.113.0/24,2001:db8:5::/120 packets=4096",
			"protocol=udp source-port=123 source=192.0.2.53,198.51.100.53,2001:db8::53 packets=120",
			"protocol=udp source-port=53 source=192.0.2.123 packets=40")
		untouched()
	},
})

var _ = add(Experiment{
	Name: "web-server.yaml: sixteen channels, a queue for each worker's port, and ssh from one network",
	Run: func(m *Machine) {
		m.channels(8)
		m.Daemon(m.exampleHere("web-server.yaml"))
		m.Becomes("configured", 33) // the workers in both families, ssh in one
		m.must(m.linkUp())          // it was down while the channels were set
		for port := range 16 {
			m.all(Fate(port), fmt.Sprintf("protocol=tcp destination-port=%d packets=20", 8000+port))
		}
		m.all(15, "protocol=tcp destination-port=22 source=203.0.113.0/24 packets=256")
		others := m.FatesOf(m.Generate("protocol=tcp destination-port=7999,8016,8080 packets=3000",
			"protocol=tcp destination-port=22 source=198.51.100.0/24,2001:db8:1::/120 packets=3000"))
		if p := perQueueOf(others); slices.Min(p[:]) < 100 {
			m.Errorf("other packets get on queues %v, want a spread as without rules", p)
		}
	},
})

var _ = add(Experiment{
	Name: "weights.yaml: queue 0 gets half of what the others get",
	Run: func(m *Machine) {
		m.Daemon(m.exampleHere("weights.yaml"))
		m.Eventually(func() string {
			if l := m.LinkStatus(); l.State != "configured" || l.InPlace != l.Wanted {
				return fmt.Sprintf("want configured, is %+v", l)
			}
			return ""
		})
		if l := m.LinkStatus(); l.InPlace > 128 {
			m.Errorf("%d rules, want at most 64 for each IP version", l.InPlace)
		}
		// Each of 65,536 ports once in each family: the sum of weights is 7.
		got := m.Arrivals(m.Generate("protocol=homa destination-port=0-65535 packets=131072"))
		for q, weight := range []int{1, 2, 2, 2} {
			share := 131_072 * weight / 7
			if got[q] < share*9/10 || got[q] > share*11/10 {
				m.Errorf("queue %d gets %d packets, want %d and at most 10 %% more or less", q, got[q], share)
			}
		}
		if got.Total() != 131_072 || got[0]+got[1]+got[2]+got[3] != 131_072 {
			m.Errorf("the queues get %v, want all on queues 0-3", got)
		}
	},
})

var _ = add(Experiment{
	Name: "vlan.yaml: storage in its VLANs has queues of its own, apart from the rest",
	Run: func(m *Machine) {
		untouched := m.untouched("protocol=tcp source-port=3260,4420,8009 packets=600", // in no VLAN
			"protocol=tcp vlan=101 source-port=3260 packets=100", "protocol=tcp vlan=100 source-port=4420,8009 packets=100", // in the other's
			"protocol=tcp vlan=100 destination-port=3260 packets=100", "protocol=udp vlan=100 source-port=3260 packets=100")
		m.Daemon(m.exampleHere("vlan.yaml"))
		m.Eventually(func() string {
			if l := m.LinkStatus(); l.State != "configured" || l.InPlace != l.Wanted {
				return fmt.Sprintf("want configured, is %+v", l)
			}
			return ""
		})
		m.Arrive(m.Generate("protocol=tcp vlan=100 source-port=3260 destination-port=1024-2047 packets=4096"), onQueues(1024, 0, 1, 2, 3))
		m.Arrive(m.Generate("protocol=tcp vlan=101 source-port=4420,8009 destination-port=1024-2047 packets=4096"), onQueues(1024, 4, 5, 6, 7))
		m.all(8, "ether-type=0x88f7 packets=10", "ether-type=0x88f7 vlan=7 packets=10")
		untouched()
	},
})
