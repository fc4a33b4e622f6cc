// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"io"
	"math/rand/v2"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// Maker makes the packets of flows, one flow after the other. The same flows
// make the same packets.
type Maker struct {
	flows []Flow
	left  uint64 // packets of flows[0]
	turns []turn // one for each family of flows[0]
	next  int    // whose turn it is
	rand  *rand.Rand
	frame frame
}

// turn counts through the values of one family, like an odometer.
type turn struct {
	family                 steer.Family
	sources, destinations  addresses
	src, dst, sport, dport uint64
}

// NewMaker makes the packets of flows, which ParseFlow has checked.
func NewMaker(flows []Flow) *Maker {
	m := &Maker{flows: flows, rand: rand.New(rand.NewPCG(1, 2))}
	m.start()
	return m
}

// Total is how many packets flows make, at most 2^63.
func Total(flows []Flow) uint64 {
	var n uint64
	for _, f := range flows {
		n = min(n+f.Packets, 1<<63)
	}
	return n
}

// Next is the next packet as an Ethernet frame without its check sequence,
// good until the next call; io.EOF after the last. None is outgoing.
func (m *Maker) Next() (data []byte, outgoing bool, err error) {
	for len(m.flows) > 0 && m.left == 0 {
		m.flows = m.flows[1:]
		m.start()
	}
	if len(m.flows) == 0 {
		return nil, false, io.EOF
	}
	m.left--
	f := &m.flows[0]
	if f.EtherType != 0 {
		m.frame.ethernet(f, f.EtherType)
		return m.frame.bytes(), false, nil
	}
	t := &m.turns[m.next]
	m.next = (m.next + 1) % len(m.turns)
	m.packet(f, t)
	t.advance(f)
	return m.frame.bytes(), false, nil
}

// start begins with flows[0].
func (m *Maker) start() {
	m.turns, m.next = nil, 0
	if len(m.flows) == 0 {
		return
	}
	f := &m.flows[0]
	m.left = f.Packets
	for _, family := range f.Families {
		m.turns = append(m.turns, turn{family: family, sources: f.Sources.of(family), destinations: f.Destinations.of(family)})
	}
}

// packet builds the packet at t's counters.
func (m *Maker) packet(f *Flow, t *turn) {
	source, destination := t.sources.at(t.src), t.destinations.at(t.dst)
	if t.sources.random {
		source = t.sources.any(m.rand)
	}
	if t.destinations.random {
		destination = t.destinations.any(m.rand)
	}
	m.frame.ip(f, source, destination, m.word(f, t))
}

// word is the first four bytes behind the IP header.
func (m *Maker) word(f *Flow, t *turn) uint32 {
	if f.L4Data != nil {
		return f.L4Data.Value | m.rand.Uint32()&^f.L4Data.Mask
	}
	sport, dport := t.sport, t.dport
	if f.SourcePorts.random {
		sport = m.rand.Uint64N(f.SourcePorts.size)
	}
	if f.DestinationPorts.random {
		dport = m.rand.Uint64N(f.DestinationPorts.size)
	}
	return uint32(f.SourcePorts.at(sport))<<16 | uint32(f.DestinationPorts.at(dport))
}

// advance counts on by one: the destination port first, and each next field
// when the one before it begins again. Random fields take no part.
func (t *turn) advance(f *Flow) {
	for _, d := range []struct {
		count *uint64
		size  uint64
		fixed bool
	}{
		{&t.dport, f.DestinationPorts.size, f.DestinationPorts.random || f.L4Data != nil},
		{&t.sport, f.SourcePorts.size, f.SourcePorts.random || f.L4Data != nil},
		{&t.src, t.sources.size, t.sources.random},
		{&t.dst, t.destinations.size, t.destinations.random},
	} {
		if d.fixed {
			continue
		}
		if *d.count++; *d.count < d.size {
			return
		}
		*d.count = 0
	}
}
