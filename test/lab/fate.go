// SPDX-License-Identifier: Apache-2.0

package lab

import "fmt"

// Fate is where a frame went: a queue, or one of those.
type Fate int

const (
	Dropped Fate = -1 // by a rule
	Nowhere Fate = -2 // nothing in the card said where to, as for a VLAN that the link is not in
)

func (f Fate) String() string {
	switch f {
	case Dropped:
		return "dropped"
	case Nowhere:
		return "nowhere"
	}
	return fmt.Sprintf("queue %d", int(f))
}

// Fates sends frames and tells where each went, by the card's word. The guest
// must have counted the same.
func (m *Machine) Fates(frames ...[]byte) []Fate {
	m.Helper()
	return m.FatesOf(m.Capture(frames...))
}

// FatesOf is Fates of a pcap file.
func (m *Machine) FatesOf(pcap string) []Fate {
	m.Helper()
	queueOf := m.receiveQueues()
	before := m.QueuePackets()
	sent, err := m.card.Verdicts(pcap)
	m.must(err)
	fates, want := make([]Fate, len(sent.Verdicts)), Packets{}
	for i, v := range sent.Verdicts {
		fates[i] = Fate(v)
		if v >= 0 {
			q, known := queueOf[v]
			if !known {
				m.must(fmt.Errorf("frame %d of %s went to receive queue number %#x, which is none of the link's: %v", i, pcap, v, queueOf))
			}
			fates[i] = Fate(q)
			want[q]++
		}
	}
	m.note("sent %s: %d frames, of which the queues get %v, %d are dropped", pcap, sent.Sent, want, sent.DroppedByRule)
	m.counted(before, want)
	return fates
}

// counted waits until the guest has counted that many more packets than before.
func (m *Machine) counted(before, want Packets) {
	m.Helper()
	var got Packets
	m.Eventually(func() string {
		if got = m.QueuePackets().Minus(before); got.Total() >= want.Total() {
			return ""
		}
		return fmt.Sprintf("the card put %v packets on the queues, the guest has counted %v", want, got)
	})
	if got != want {
		m.must(fmt.Errorf("the card put %v packets on the queues, the guest has counted %v", want, got))
	}
}

// receiveQueues is the guest's queues by the card's numbers for them, which the
// driver gives whenever it opens its channels. A rule for each queue tells. It is
// asked once: what an experiment does to channels or links has to come before.
func (m *Machine) receiveQueues() map[int]int {
	m.Helper()
	if m.queueOf != nil {
		return m.queueOf
	}
	const port, first = 0xf000, 1000 // locations of ethtool's users
	var frames [][]byte
	rules := ""
	for q := range queues {
		rules += fmt.Sprintf("ethtool -N %s flow-type udp4 dst-port %d action %d loc %d\n", m.Link, port+q, q, first+q)
		frames = append(frames, m.IPv4(17, nil, 0, 9, port>>8, byte(q), 0, 8, 0, 0))
	}
	m.Script(rules)
	sent, err := m.card.Verdicts(m.Capture(frames...))
	m.must(err)
	m.Script(fmt.Sprintf("for loc in {%d..%d}; do ethtool -N %s delete $loc; done", first, first+queues-1, m.Link))
	m.queueOf = map[int]int{}
	for q, number := range sent.Verdicts {
		m.queueOf[number] = q
	}
	if len(m.queueOf) != queues {
		m.must(fmt.Errorf("rules for %d queues sent frames to receive queues %v", queues, sent.Verdicts))
	}
	return m.queueOf
}

// awayFrom is a queue that no frame went to.
func awayFrom(fates []Fate) int {
	var used []int
	for _, f := range fates {
		used = append(used, int(f))
	}
	return Away(used...)
}
