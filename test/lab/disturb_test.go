// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"strings"
)

// What happens to a link and leaves the driver its rules, or some of them.

var _ = add(Experiment{
	Name: "the cable out and in, and the link down and up: all rules stay",
	Run: func(m *Machine) {
		s := m.Steer()
		m.must(m.card.SetLink(false))
		out := s.Watch.First(func(c Change) bool { return c.What == "link" && c.State == "no-carrier" })
		m.must(m.card.SetLink(true))
		s.Watch.After(out, func(c Change) bool { return c.What == "link" && c.State == "up" })
		s.Untouched()

		s.Watch.Mark()
		m.Run("ip", "link", "set", m.Link, "down")
		m.Run("ip", "link", "set", m.Link, "up")
		m.must(m.linkUp())
		s.Untouched()
	},
})

var _ = add(Experiment{
	Name: "rules deleted by hand come back, foreign ones do not",
	Run: func(m *Machine) {
		s := m.Steer()
		m.Ethtool("-N", "delete", "7")
		s.Again("one rule deleted by hand, resync 1 s")

		// All of them, in one go: the daemon may be quicker than the hand.
		s.Watch.Mark()
		m.Script(fmt.Sprintf("for loc in {0..%d}; do ethtool -N %s delete $loc; done", ownRules-1, m.Link))
		s.Again("all rules deleted by hand, one by one, resync 1 s")

		m.Ethtool("-N", "delete", fmt.Sprint(foreign))
		s.Daemon.Reload()
		m.Becomes("configured", ownRules)
		s.withoutForeign()
		m.same(s.rules, m.RuleTexts())
		s.Right()
	},
})

// Linux 6.1 renames only a link that is down.
var _ = add(Experiment{
	Name: "a renamed link keeps its rules, and a policy by name takes it in",
	Run: func(m *Machine) {
		s := m.Steer()
		usual := m.Link
		m.rename("uplink0")
		s.Watch.First(is("link", "uplink0"))
		m.Eventually(func() string {
			if l := m.LinkStatus(); l.State != "configured" || l.InPlace != ownRules {
				return fmt.Sprintf("the daemon knows no uplink0 that is configured: %+v", m.Status().Links)
			}
			return ""
		})
		s.Untouched()

		// A policy that names a link takes in what gets the name.
		m.Configure("10-lab.yaml", strings.Replace(m.Example("protocol-253.yaml"), "driver: mlx5_core", "name: uplink1", 1))
		s.Daemon.Reload()
		s.Watch.First(counts("rules", "uplink0", 1))
		s.Watch.Mark()
		m.rename("uplink1")
		event := s.Watch.First(is("link", "uplink1"))
		done := s.Watch.After(event, counts("rules", "uplink1", ownRules+1))
		m.Took("rename to the name of a policy", ownRules, Change{}, event, done)
		m.Becomes("configured", ownRules)
		m.same(s.rules, m.RuleTexts())
		s.Right()
		m.rename(usual)
	},
})

// rename gives the link another name, and brings it up again.
func (m *Machine) rename(to string) {
	m.Helper()
	m.Script(fmt.Sprintf("ip link set %[1]s down; ip link set %[1]s name %[2]s", m.Link, to))
	m.Link, m.link = to, to
	m.must(m.linkUp())
}

var _ = add(Experiment{
	Name: "fewer channels and all again: rules to queues that stay are not touched",
	Run: func(m *Machine) {
		m.Ethtool("-N", "flow-type", "udp4", "dst-port", "4000", "action", "7", "loc", fmt.Sprint(foreign))
		m.Daemon(onEightQueues)
		m.Becomes("configured", 16)
		rules := m.RuleTexts()
		w := m.Watch()
		w.Mark()
		for _, channels := range []int{8, 16} {
			m.channels(channels)
			w.First(counts("queues", m.Link, channels))
			m.Becomes("configured", 16)
			m.Arrive(m.Generate(pairOfHosts("253", "ipv4", 160)), onFirst(8, 20))
			m.Arrive(m.Capture(m.IPv4(17, nil, 0x10, 0, 0x0f, 0xa0, 0, 8, 0, 0)), Only(7, 1))
		}
		m.same(rules, m.RuleTexts())
		for _, c := range w.Since() {
			if c.What == "rules" {
				m.Errorf("the rules changed on the way: %+v", w.Since())
			}
		}
	},
})

// The kernel checks that no rule goes to a queue that there will not be, but
// Linux 6.1 does not ask mlx5 for its rules.
var _ = add(Experiment{
	Name:    "Linux 6.12 refuses fewer channels than rules use; the daemon sets them itself where it is told to",
	Kernels: []string{"6.12"},
	Run: func(m *Machine) {
		s := m.Steer()
		m.EthtoolRefused("Invalid argument", "-L", "combined", "8")
		s.Untouched()

		m.Ethtool("-N", "delete", fmt.Sprint(foreign))
		m.Configure("10-lab.yaml", "channels: 8\n"+onEightQueues)
		s.Daemon.Reload()
		m.Becomes("configured", 16)
		m.Arrive(m.Generate(pairOfHosts("253", "ipv4", 160)), onFirst(8, 20))
		m.Configure("10-lab.yaml", "channels: 16\n"+m.Example("protocol-253.yaml"))
		s.Daemon.Reload()
		m.Becomes("configured", ownRules)
		s.Right()
	},
})

const onEightQueues = `match: {driver: mlx5_core}
steer:
  - name: word
    protocol: 253
    family: [ipv4, ipv6]
    spread: {by: destination-port, over: 0-7}
`

// onFirst is n packets on each of the first queues.
func onFirst(queues, n int) (p Packets) {
	for q := range queues {
		p[q] = n
	}
	return p
}

// The rules of words 8 to 15, for both families, must not stay: what they match
// would be lost.
var _ = add(Experiment{
	Name:    "Linux 6.1 takes queues away under rules; the daemon sees it and removes them, and brings them back with the queues",
	Kernels: []string{"6.1"},
	Run: func(m *Machine) {
		s := m.Steer()
		s.Daemon.Stop()
		m.channels(8)
		deaf := m.Generate("protocol=253 family=ipv4 source=198.51.100.1 destination=192.0.2.1 destination-port=8-15 packets=80")
		if lost := m.flood(deaf); lost != 80 {
			m.Errorf("without the daemon %d of 80 packets are lost to queues that are gone: Linux 6.1 has learnt to refuse this, or has never done it", lost)
		}
		m.channels(16)

		s.Daemon = Daemon{m.Start("flexsteerd")}
		m.Becomes("configured", ownRules)
		s.Untouched()
		s.Watch.Mark()
		m.channels(8)
		event := s.Watch.First(counts("queues", m.Link, 8))
		done := s.Watch.First(counts("rules", m.Link, 17))
		m.Took("ethtool -L combined 8 (rules to queues 8-15 out)", 16, Change{}, event, done)
		l := m.Becomes("blocked", 16)
		if len(l.Problems) != 8 {
			m.Errorf("want 8 problems, of word-08 to word-15, have %+v", l.Problems)
		}
		for i, p := range l.Problems {
			if want := fmt.Sprintf("queue %d: %s has 8 receive queues", 8+i, m.Link); p.Text != want || p.Fix == "" {
				m.Errorf("problem %d is %+v, want %q and a fix", i, p, want)
			}
		}
		m.Arrive(m.Generate("protocol=253 family=ipv4 source=198.51.100.1 destination=192.0.2.1 destination-port=0-7 packets=80"), onFirst(8, 10))
		m.Arrivals(deaf) // on whichever queue: m.Arrivals fails if one of those delivered is not counted
		if lost := m.flood(deaf); lost != 0 {
			m.Errorf("%d of 80 packets are lost", lost)
		}

		s.Watch.Mark()
		m.channels(16)
		event = s.Watch.First(counts("queues", m.Link, 16))
		done = s.Watch.First(counts("rules", m.Link, ownRules+1))
		m.Took("ethtool -L combined 16 (rules to queues 8-15 back)", ownRules, Change{}, event, done)
		m.Becomes("configured", ownRules)
		m.same(s.rules, m.RuleTexts())
		s.Right()
	},
})

func (m *Machine) channels(n int) {
	m.Helper()
	m.Ethtool("-L", "combined", fmt.Sprint(n))
	m.must(m.linkUp())
}

// flood sends frames that do not wait for buffers, and returns how many were lost.
func (m *Machine) flood(pcap string) int {
	m.Helper()
	sent, err := m.card.Flood(pcap)
	m.must(err)
	m.note("sent %s without waiting: %+v", pcap, sent)
	return sent.Sent - sent.Delivered
}
