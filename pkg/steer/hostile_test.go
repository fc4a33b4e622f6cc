// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
)

func addr4(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

// hostilePolicies is what pkg/config lets through and nobody should write.
func hostilePolicies() map[string][]Entry {
	h := map[string][]Entry{}
	e := udp("q", 0, 0)
	e.DestinationPorts = []Ports{{0, 65535}}
	e.Steering = Steering{Kind: SteerQueues}
	for i := range 65536 {
		e.Steering.Queues = append(e.Steering.Queues, uint32(i*7919%251))
	}
	h["port by port of all ports"] = []Entry{e}
	r := rand.New(rand.NewPCG(1, 2))
	e.Steering = Steering{Kind: SteerQueues}
	for range 65536 {
		e.Steering.Queues = append(e.Steering.Queues, uint32(r.IntN(150)))
	}
	h["port by port at random"] = []Entry{e}

	var far []Entry
	for i := range 10000 {
		far = append(far, raw(fmt.Sprint("a", i), 146))
		far[i].L4Data.Value = uint32(i)
		far[i].L4Data.Mask = 0xffff
	}
	for i := range 10000 {
		far = append(far, raw(fmt.Sprint("b", i), 253))
	}
	h["thousands of entries of a protocol too many"] = far

	var red []Entry
	for i := range 896 {
		red = append(red, udp(fmt.Sprint("p", i), uint16(2*i), 1))
	}
	rest := udp("rest", 0, 1)
	rest.DestinationPorts = nil
	red = append(red, rest)
	for i := range 20000 {
		s := udp(fmt.Sprint("s", i), uint16(i), 1)
		s.Sources = []netip.Prefix{netip.PrefixFrom(addr4(i), 32)}
		red = append(red, s)
	}
	h["thousands of superfluous entries"] = red

	var mix []Entry
	for i := range 400 {
		m := Entry{Name: fmt.Sprint("m", i), Families: []Family{IPv4}, Steering: Steering{Kind: SteerQueue, Queue: uint32(r.IntN(3))}}
		if r.IntN(2) == 0 {
			m.Sources = []netip.Prefix{netip.PrefixFrom(addr4(r.IntN(1<<24)), 8+r.IntN(25)).Masked()}
		}
		if r.IntN(2) == 0 {
			m.Destinations = []netip.Prefix{netip.PrefixFrom(addr4(r.IntN(1<<24)), 8+r.IntN(25)).Masked()}
		}
		m.Protocol = Bits8{choose[uint8](r, 6, 17, 146), 0xff}
		if r.IntN(2) == 0 {
			p := uint16(r.IntN(1 << 16))
			m.SourcePorts = []Ports{{p, p}}
		}
		if r.IntN(2) == 0 {
			p := uint16(r.IntN(1 << 16))
			m.DestinationPorts = []Ports{{p, p}}
		}
		mix = append(mix, m)
	}
	h["random firewall"] = mix
	var masks []Entry
	for i := range 600 {
		m := raw(fmt.Sprint("m", i), 146)
		m.L4Data.Mask = r.Uint32() & r.Uint32() & r.Uint32()
		m.L4Data.Value = r.Uint32() & m.L4Data.Mask
		m.Steering.Queue = uint32(r.IntN(2))
		masks = append(masks, m)
	}
	h["random masks"] = masks
	var same []Entry
	for i := range 800 {
		m := raw(fmt.Sprint("m", i), 146)
		m.L4Data.Mask = r.Uint32() & r.Uint32() & r.Uint32() & r.Uint32()
		m.L4Data.Value = r.Uint32() & m.L4Data.Mask
		same = append(same, m)
	}
	h["random masks, one queue"] = same
	var pre []Entry
	for i := range 3 {
		m := udp(fmt.Sprint("m", i), 0, uint32(i))
		m.DestinationPorts = nil
		for range 3000 {
			m.Sources = append(m.Sources, netip.PrefixFrom(addr4(r.IntN(1<<24)), 24+r.IntN(9)).Masked())
			m.Destinations = m.Sources
		}
		pre = append(pre, m)
	}
	h["thousands of prefixes"] = pre
	var sp []Entry
	for i := range 3 {
		m := homa(fmt.Sprint("m", i), 256)
		for j := range m.Steering.Spread.Over {
			m.Steering.Spread.Over[j].Weight = uint32(1 + r.IntN(1000))
		}
		m.Steering.Spread.Mask = 0xffffffff
		m.Families = []Family{IPv4}
		if i == 1 {
			m.Steering.Spread.Buckets = 65536
			m.Sources = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		}
		sp = append(sp, m)
	}
	h["spreads"] = sp
	h["spreads turned"] = []Entry{sp[1], sp[0]}
	x := homa("x", 2)
	x.Steering.Spread = Spread{Mask: 0xffffffff, Over: []Weight{{0, 1}, {1, 65535}, {2, 65535}, {3, 4294967295}}}
	h["weights"] = []Entry{x}
	return h
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
