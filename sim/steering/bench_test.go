// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// busy is a card with 1,024 rules: l4data for two protocols over both IP
// versions, exact UDP flows, prefixes, MAC addresses.
func busy(t testing.TB) *card {
	c := newCard(t, 16)
	samples := []int{c.node(253), c.node(146)}
	for i := range 512 {
		ethertype := []int{0x0800, 0x86dd}[i%2]
		c.flexRule(ethertype, []int{253, 146}[i/2%2], samples[i/2%2], i/4, 0xffff, i%16)
	}
	exact := match("ethertype", 0xffff, "ip_protocol", 255, "src3", 0xffffffff, "dst3", 0xffffffff, "udp_sport", 0xffff, "udp_dport", 0xffff)
	for i := range 384 {
		c.rule(2, exact, match("ethertype", 0x800, "ip_protocol", 17, "src3", 0x0a000002, "dst3", 0x0a000001, "udp_sport", i, "udp_dport", 53), i%16)
	}
	for i := range 96 {
		bits := 17 + i%8
		c.rule(5, match("ethertype", 0xffff, "dst3", 0xffffffff<<(32-bits)&0xffffffff), match("ethertype", 0x800, "dst3", 0xc0000000|i<<16), i%16)
	}
	for i := range 32 {
		c.rule(10, match("smac", 0xffffffffffff), match("smac", i), i%16)
	}
	return c
}

func mixedFrames(n int) (frames [][]byte) {
	r := rand.New(rand.NewPCG(9, 9))
	for range n {
		port := uint16(r.IntN(512))
		w := []wire{to4(253, ports(1, port, 64)), to6(146, ports(1, port, 64)), to4(17, ports(port, 53, 64)), to6(6, tcp(port, 80, 16, 64))}[r.IntN(4)]
		frames = append(frames, w.bytes())
	}
	return frames
}

// BenchmarkSteer is frames through all tables of an interface with rules.
func BenchmarkSteer(b *testing.B) {
	frames := mixedFrames(4096)
	for name, c := range map[string]*card{"no rules": newCard(b, 16), "1024 rules": busy(b)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if v := c.Steer(frames[i%len(frames)]); len(v.Queues) != 1 {
					b.Fatal(v.Path)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
		})
	}
}

func BenchmarkTrace(b *testing.B) {
	c, frames := busy(b), mixedFrames(4096)
	n := 0
	for i := 0; b.Loop(); i++ {
		for _, s := range c.Steer(frames[i%len(frames)]).Path {
			n += len(s.String())
		}
	}
	b.ReportMetric(float64(n)/float64(b.N), "chars/frame")
}

// BenchmarkGroup is why a group finds its entries by value: the look-up of a
// miss, against a comparison with one entry after the other.
func BenchmarkGroup(b *testing.B) {
	for _, n := range []int{1, 4, 16, 256, 1024} {
		c := newCard(b, 16)
		exact := match("ethertype", 0xffff, "ip_protocol", 255, "src3", 0xffffffff, "dst3", 0xffffffff, "udp_sport", 0xffff)
		for i := range n {
			c.rule(2, exact, match("ethertype", 0x800, "ip_protocol", 17, "src3", 0x0a000002, "dst3", 0x0a000001, "udp_sport", i), i%16)
		}
		t := c.State.tables[c.ethtool[2]]
		p := see(to4(17, udp(0xffff, 1)).bytes())
		b.Run(fmt.Sprintf("by value/%d", n), func(b *testing.B) {
			for b.Loop() {
				if t.look(&p).Entry >= 0 {
					b.Fatal()
				}
			}
		})
		g := t.groups[0]
		var keys []string
		for _, index := range sortedKeys(t.entries) {
			keys = append(keys, t.entries[index].key)
		}
		b.Run(fmt.Sprintf("one by one/%d", n), func(b *testing.B) {
			for b.Loop() {
				var room [keySize]byte
				key := g.compare.keyOf(room[:0], &p)
				if slices.ContainsFunc(keys, func(k string) bool { return k == string(key) }) {
					b.Fatal()
				}
			}
		})
	}
}
