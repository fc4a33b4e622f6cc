// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// hostilePolicies is what pkg/config lets through and nobody should write.
func hostilePolicies() map[string][]Entry {
	r := rand.New(rand.NewPCG(1, 2))
	return map[string][]Entry{
		"all ports, one by one":                  {portByPort(func(port int) int { return port * 7919 % 251 })},
		"all ports, at random":                   {portByPort(func(int) int { return r.IntN(150) })},
		"thousands of entries of other protocol": otherProtocol(10000),
		"thousands of superfluous entries":       superfluous(20000),
		"random firewall":                        firewall(r, 400),
		"random masks":                           randomMasks(r, 600, 2),
		"random masks, one queue":                randomMasks(r, 800, 1),
		"thousands of prefixes":                  manyPrefixes(r, 3000),
		"spreads over all bits":                  wideSpreads(r),
		"weights far apart":                      {{Families: []Family{IPv4}, Protocol: Bits8{146, 0xff}, Steering: farWeights}},
	}
}

var farWeights = Steering{Kind: SteerSpread, Spread: Spread{Mask: 1<<32 - 1, Over: []Weight{{0, 1}, {1, 65535}, {2, 65535}, {3, 1<<32 - 1}}}}

func addr4(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

func randomPrefix4(r *rand.Rand, shortest int) netip.Prefix {
	return netip.PrefixFrom(addr4(r.IntN(1<<24)), shortest+r.IntN(33-shortest)).Masked()
}

func portByPort(queue func(port int) int) Entry {
	e := udp("all", 0, 0)
	e.DestinationPorts = []Ports{{0, 65535}}
	e.Steering = Steering{Kind: SteerQueues}
	for port := range 65536 {
		e.Steering.Queues = append(e.Steering.Queues, uint32(queue(port)))
	}
	return e
}

// otherProtocol is n entries of one raw protocol, then n of another.
func otherProtocol(n int) (entries []Entry) {
	for i := range 2 * n {
		e := raw(fmt.Sprint("e", i), 146)
		e.L4Data = Bits32{uint32(i), 0xffff}
		if i >= n {
			e.Protocol.Value = 253
		}
		entries = append(entries, e)
	}
	return entries
}

// superfluous is entries that fill the locations, one that makes them all
// superfluous, and n that decide for no packet.
func superfluous(n int) (entries []Entry) {
	for i := range DefaultOwn.Size() {
		entries = append(entries, udp(fmt.Sprint("port", i), uint16(2*i), 1))
	}
	rest := udp("rest", 0, 1)
	rest.DestinationPorts = nil
	entries = append(entries, rest)
	for i := range n {
		e := udp(fmt.Sprint("none", i), uint16(i), 1)
		e.Sources = []netip.Prefix{netip.PrefixFrom(addr4(i), 32)}
		entries = append(entries, e)
	}
	return entries
}

func firewall(r *rand.Rand, n int) (entries []Entry) {
	ports := func() []Ports {
		p := uint16(r.IntN(1 << 16))
		return choose(r, nil, []Ports{{p, p}})
	}
	for i := range n {
		entries = append(entries, Entry{
			Name: fmt.Sprint("e", i), Families: []Family{IPv4}, Protocol: Bits8{choose[uint8](r, 6, 17, 146), 0xff},
			Sources:      choose(r, nil, []netip.Prefix{randomPrefix4(r, 8)}),
			Destinations: choose(r, nil, []netip.Prefix{randomPrefix4(r, 8)}),
			SourcePorts:  ports(), DestinationPorts: ports(),
			Steering: Steering{Kind: SteerQueue, Queue: uint32(r.IntN(3))},
		})
	}
	return entries
}

func randomMasks(r *rand.Rand, n, queues int) (entries []Entry) {
	for i := range n {
		e := raw(fmt.Sprint("e", i), 146)
		e.L4Data.Mask = r.Uint32() & r.Uint32() & r.Uint32()
		e.L4Data.Value = r.Uint32() & e.L4Data.Mask
		e.Steering.Queue = uint32(r.IntN(queues))
		entries = append(entries, e)
	}
	return entries
}

// manyPrefixes is three entries with n sources and n destinations each.
func manyPrefixes(r *rand.Rand, n int) (entries []Entry) {
	for i := range 3 {
		e := udp(fmt.Sprint("e", i), 0, uint32(i))
		e.DestinationPorts = nil
		for range n {
			e.Sources = append(e.Sources, randomPrefix4(r, 24))
		}
		e.Destinations = e.Sources
		entries = append(entries, e)
	}
	return entries
}

// wideSpreads is a spread over 256 queues of many weights for some senders, and
// another one for all.
func wideSpreads(r *rand.Rand) []Entry {
	some, all := homa("some", 256), homa("all", 256)
	some.Families, all.Families = []Family{IPv4}, []Family{IPv4}
	some.Sources = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	some.Steering.Spread.Buckets = 65536
	for _, e := range []*Entry{&some, &all} {
		e.Steering.Spread.Mask = 1<<32 - 1
		for j := range e.Steering.Spread.Over {
			e.Steering.Spread.Over[j].Weight = uint32(1 + r.IntN(1000))
		}
	}
	return []Entry{some, all}
}

func TestHostilePoliciesFitOrAreRefused(t *testing.T) {
	for name, entries := range hostilePolicies() {
		for _, p := range precedences {
			t.Run(fmt.Sprintf("%s, %v", name, p), func(t *testing.T) {
				goal, problems := Check(Desired{Own: DefaultOwn, Entries: entries}, hostileNIC(p, 0))
				if len(goal.Rules) > DefaultOwn.Size() {
					t.Errorf("%d rules", len(goal.Rules))
				}
				if len(goal.Rules) == 0 && len(problems) == 0 {
					t.Error("neither rules nor problems")
				}
			})
		}
	}
}

func hostileNIC(p Precedence, capacity int) Observed {
	return Observed{NIC: NIC{Precedence: p, RawProtocols: 1, Capacity: capacity}}
}

func BenchmarkHostilePolicies(b *testing.B) {
	for name, entries := range hostilePolicies() {
		for _, p := range precedences {
			for _, size := range []Loc{896, 65536} {
				b.Run(fmt.Sprintf("%s/%v/locations=%d", name, p, size), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						want, have := Desired{Own: Range{0, size - 1}, Entries: entries}, hostileNIC(p, int(size))
						goal, _ := Check(want, have)
						Diff(goal, have, want.Own)
					}
				})
			}
		}
	}
}
