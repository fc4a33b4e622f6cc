// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"net/netip"
	"testing"
)

// policy is entries that make n rules: half of them spreads of a raw protocol
// from as many senders, the other half single ports of UDP, with one drop.
func policy(n int) (entries []Entry) {
	for i := range n / 32 {
		from := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24)
		s := Spread{Mask: 0xffff}
		for q := range uint32(16) {
			s.Over = append(s.Over, Weight{q, 1})
		}
		entries = append(entries, Entry{
			Name: fmt.Sprintf("spread%d", i), Families: []Family{IPv4}, Protocol: Bits8{146, 0xff},
			Sources: []netip.Prefix{from}, Steering: Steering{Kind: SteerSpread, Spread: s},
		})
		ports := Entry{
			Name: fmt.Sprintf("ports%d", i), Families: []Family{IPv4}, Protocol: Bits8{17, 0xff},
			DestinationPorts: []Ports{{uint16(4000 + 16*i), uint16(4015 + 16*i)}}, Steering: Steering{Kind: SteerQueues},
		}
		for q := range uint32(16) {
			ports.Steering.Queues = append(ports.Steering.Queues, q)
		}
		entries = append(entries, ports)
	}
	return entries
}

var sizes = []int{64, 256, 1024}

func BenchmarkCheckAndDiff(b *testing.B) {
	for _, p := range []Precedence{ByFields, ByLocation, UnknownPrecedence} {
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%v/rules=%d", p, n), func(b *testing.B) {
				want := Desired{Own: Range{0, 1023}, Entries: policy(n)}
				have := Observed{NIC: NIC{Precedence: p, Queues: 16, Capacity: 1024, RawProtocols: AnyProtocols}}
				goal, problems := Check(want, have)
				if len(goal.Rules) != n || len(problems) > 0 {
					b.Fatal(len(goal.Rules), problems)
				}
				b.ReportAllocs()
				for b.Loop() {
					goal, _ = Check(want, have)
					if plan := Diff(goal, have, want.Own); len(plan.Steps) != n {
						b.Fatal(len(plan.Steps))
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/rule")
			})
		}
	}
}

func BenchmarkDiffNothingToDo(b *testing.B) {
	want := Desired{Own: Range{0, 1023}, Entries: policy(1024)}
	have := Observed{NIC: NIC{Precedence: ByFields, Queues: 16, Capacity: 1024, RawProtocols: AnyProtocols}}
	goal, _ := Check(want, have)
	have.Rules = Table{}
	for _, s := range Diff(goal, have, want.Own).Steps {
		have.Rules[s.Loc] = s.Rule
	}
	for b.Loop() {
		if plan := Diff(goal, have, want.Own); len(plan.Steps) != 0 {
			b.Fatal(plan)
		}
	}
}

func BenchmarkClassify(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			rules, _, _ := Compile(policy(n), ByFields, 1024)
			c := NewClassifier(tableOf(rulesOf(rules)), ByFields, DefaultRSS(16, HashInput{}))
			p := Packet{EtherType: etherTypeIPv4, Family: IPv4, Protocol: 146, Source: [16]byte{10, 0, 1, 2}, HasL4: true}
			b.ReportAllocs()
			for b.Loop() {
				p.L4++
				if !c.Classify(&p).Matched {
					b.Fatal(p)
				}
			}
		})
	}
}
