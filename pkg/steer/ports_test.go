// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"math/rand/v2"
	"testing"
)

func holds(cubes []Bits16, v int) bool {
	for _, c := range cubes {
		if uint16(v)&c.Mask == c.Value {
			return true
		}
	}
	return false
}

// fewestPairs is the size of the smallest split of the range lo-hi of w-bit
// values into disjoint pairs, by trying all sets of pairs of growing size.
func fewestPairs(w int, lo, hi int) int {
	var want uint64
	for v := lo; v <= hi; v++ {
		want |= 1 << v
	}
	var inside []uint64
	for mask := range 1 << w {
		for value := range 1 << w {
			if value&^mask != 0 {
				continue
			}
			var set uint64
			for v := range 1 << w {
				if v&mask == value {
					set |= 1 << v
				}
			}
			if set&^want == 0 {
				inside = append(inside, set)
			}
		}
	}
	for n := 1; ; n++ {
		if splits(inside, want, n) {
			return n
		}
	}
}

func splits(sets []uint64, want uint64, n int) bool {
	if want == 0 {
		return true
	}
	if n == 0 {
		return false
	}
	first := want & -want
	for _, s := range sets {
		if s&first != 0 && s&^want == 0 && splits(sets, want&^s, n-1) {
			return true
		}
	}
	return false
}

func TestRangesTakeTheFewestPairsOrOneMore(t *testing.T) {
	const w = 5
	longer := 0
	for lo := range 1 << w {
		for hi := lo; hi < 1<<w; hi++ {
			// The high bits are fixed, so the range lives in its own corner of the 16 bits.
			const corner = 0xab << w
			cubes := coverPorts([]Ports{{uint16(corner + lo), uint16(corner + hi)}})
			for v := range 1 << w {
				if holds(cubes, corner+v) != (lo <= v && v <= hi) {
					t.Fatalf("%d-%d: wrong at %d: %v", lo, hi, v, cubes)
				}
			}
			if want := fewestPairs(w, lo, hi); len(cubes) > want+1 {
				t.Errorf("%d-%d: %d pairs, %d would do: %v", lo, hi, len(cubes), want, cubes)
			} else if len(cubes) > want {
				longer++
			}
		}
	}
	if longer > 25 {
		t.Errorf("%d of 528 ranges take one pair more than need be, want at most 25", longer)
	}
}

func TestPortSetsAreSplitIntoDisjointPairs(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for world := range 200 {
		n, width := 1+rnd.IntN(8), 16
		if world == 0 {
			n, width = 4000, 3 // so many that the pairs are prefixes
		}
		var ports []Ports
		for range n {
			first := rnd.IntN(1 << 16)
			ports = append(ports, Ports{uint16(first), uint16(min(first+rnd.IntN(1<<rnd.IntN(width)), 0xffff))})
		}
		pairs := coverPorts(ports)
		for v := range 1 << 16 {
			in := false
			for _, p := range ports {
				in = in || int(p.First) <= v && v <= int(p.Last)
			}
			n := 0
			for _, c := range pairs {
				if uint16(v)&c.Mask == c.Value {
					n++
				}
			}
			if in != (n == 1) || n > 1 {
				t.Fatalf("%v: port %d is in %d pairs of %v", ports, v, n, pairs)
			}
		}
	}
}

func TestPortsThatDifferInOneBitShareAPair(t *testing.T) {
	got := coverPorts([]Ports{{0x50, 0x50}, {0xd0, 0xd0}})
	if len(got) != 1 || got[0] != (Bits16{0x50, 0xff7f}) {
		t.Errorf("coverPorts(0x50, 0xd0) = %v", got)
	}
}

func TestNoPortsMeansAnyPort(t *testing.T) {
	if got := coverPorts(nil); len(got) != 1 || got[0] != (Bits16{}) {
		t.Errorf("coverPorts(nil) = %v", got)
	}
}

func BenchmarkCoverPortsWorstList(b *testing.B) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var ports []Ports
	for range mostRanges {
		p := uint16(rnd.Uint32())
		ports = append(ports, Ports{p, p})
	}
	for b.Loop() {
		coverPorts(ports)
	}
}
