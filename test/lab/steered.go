// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Steered is a machine whose link is steered by flexsteerd with
// examples/protocol-253.yaml, beside a rule that somebody else made.
type Steered struct {
	*Machine
	Daemon  Daemon
	Watch   *Watch
	Foreign int // queue of the foreign rule, for UDP packets to port 4000

	index int            // of the link
	rules map[int]string // all rules, by location
}

// What Steered has: rules of ours, and the location of the other one.
const (
	ownRules = 32
	foreign  = 1000
)

// resync has flexsteerd look every second, which is the shortest: nothing tells
// it that a rule is gone.
const resync = "daemon: {resync: 1s}\n"

// Steer makes it so, and sees that packets go where the rules say.
func (m *Machine) Steer() *Steered {
	m.Helper()
	s := &Steered{Machine: m}
	s.Foreign = Away(m.DefaultQueue(s.udp()))
	m.Ethtool("-N", "flow-type", "udp4", "dst-port", "4000", "action", fmt.Sprint(s.Foreign), "loc", fmt.Sprint(foreign))
	m.Configure("flexsteerd.yaml", resync)
	s.Daemon = m.Daemon(m.Example("protocol-253.yaml"))
	m.Becomes("configured", ownRules)
	s.Watch = m.Watch()
	s.index = s.Watch.First(counts("rules", m.Link, ownRules+1)).Index
	s.Watch.Mark()
	s.rules = m.RuleTexts()
	s.Right()
	return s
}

// udp is a packet to port 4000.
func (s *Steered) udp() []byte {
	s.Helper()
	return s.IPv4(17, nil, 0x10, 0, 0x0f, 0xa0, 0, 8, 0, 0)
}

// Right sends packets: each word to its queue, for both families, and the
// foreign rule's too if there is one.
func (s *Steered) Right() {
	s.Helper()
	s.Arrive(s.Generate(pairOfHosts("253", "ipv4", 160), pairOfHosts("253", "ipv6", 160)), Each(20))
	if _, there := s.RuleTexts()[foreign]; there {
		s.Arrive(s.Capture(s.udp()), Only(s.Foreign, 1))
	}
}

// Untouched checks that all rules are there that were there first, the foreign
// one too, and that no count of rules ever was another one.
func (s *Steered) Untouched() {
	s.Helper()
	s.same(s.rules, s.RuleTexts())
	for _, c := range s.Watch.Since() {
		if c.What == "rules" && c.Index == s.index && c.Count != ownRules+1 {
			s.must(fmt.Errorf("the rules changed on the way: %+v", s.Watch.Since()))
		}
	}
	s.Becomes("configured", ownRules)
	s.Right()
}

// Restored waits until our rules are there again on the netdev that came in place
// of the one that is gone, and notes the time.
func (s *Steered) Restored(what string) {
	s.Helper()
	loss := s.Watch.First(func(c Change) bool { return c.What == "gone" && c.Index == s.index })
	event := s.Watch.After(loss, func(c Change) bool { return c.What == "link" })
	done := s.Watch.After(event, func(c Change) bool { return c.What == "rules" && c.Index == event.Index && c.Count == ownRules })
	s.Took(what, ownRules, loss, event, done)
	s.Rediscover()
	s.withoutForeign()
	s.same(s.rules, s.RuleTexts())
	s.Becomes("configured", ownRules)
	s.Right()
}

// withoutForeign: the driver has lost the rules of others too, and nobody may
// bring those back.
func (s *Steered) withoutForeign() { delete(s.rules, foreign) }

// Again waits until all rules are there again on the same netdev, and notes the
// time.
func (s *Steered) Again(what string) {
	s.Helper()
	s.Eventually(func() string {
		if got := s.RuleTexts(); !maps.Equal(got, s.rules) {
			return fmt.Sprintf("rules at %v", slices.Sorted(maps.Keys(got)))
		}
		return ""
	})
	// Rules that were gone for some milliseconds only may not have been missed.
	var loss, done Change
	for _, c := range s.Watch.Since() {
		if c.What == "rules" && loss == (Change{}) {
			loss = c
		}
		if c.What == "rules" {
			done = c
		}
	}
	s.Took(what, ownRules, loss, Change{}, done)
	s.Becomes("configured", ownRules)
	s.Right()
}

// same fails if the rules are not those.
func (m *Machine) same(want, got map[int]string) {
	m.Helper()
	if !maps.Equal(want, got) {
		m.must(fmt.Errorf("the rules are\n%v\nwant\n%v", got, want))
	}
}

// RuleTexts is each rule as ethtool tells it, by location.
func (m *Machine) RuleTexts() map[int]string {
	m.Helper()
	texts := map[int]string{}
	for _, block := range strings.Split(m.Ethtool("-n"), "\n\n") {
		if at := filter.FindStringSubmatch(block); at != nil {
			texts[m.number(at[1])] = strings.TrimSpace(block)
		}
	}
	return texts
}

// Rediscover finds the link of the card again after it came back, perhaps by
// another name, and brings it up.
func (m *Machine) Rediscover() {
	m.Helper()
	m.must(m.findLink())
	m.must(m.linkUp())
	m.Link, m.MAC = m.link, m.mac
}

// Plugged is a machine as seen by a card that was plugged in: Link, MAC, rules,
// packets and the card are the new one's.
type Plugged struct {
	*Machine
	at string // PCI address
}

// Plug plugs in one more card. A machine has room for few, and none becomes free.
func (m *Machine) Plug(personality string) *Plugged {
	m.Helper()
	c, at, err := m.plug(personality)
	m.must(err)
	view := *m.session
	view.card = c
	view.link, view.mac, err = m.linkAt(at)
	m.must(err)
	return &Plugged{&Machine{T: m.T, session: &view, Link: view.link, MAC: view.mac, experiment: m.experiment, folder: m.folder}, at}
}

// Unplug takes the card from the driver, which must leave nothing in it.
func (p *Plugged) Unplug() {
	p.Helper()
	p.Script("echo 1 >/sys/bus/pci/devices/" + p.at + "/remove")
	r, err := p.card.Report()
	p.must(err)
	if wrong := r.Wrong(); wrong != "" || len(r.Alive) > 0 {
		p.must(fmt.Errorf("the driver has left the card, which %s and holds %v", wrong, r.Alive))
	}
}
