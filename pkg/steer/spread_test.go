// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"math/bits"
	"testing"
)

func over(weights ...uint32) (w []Weight) {
	for q, n := range weights {
		w = append(w, Weight{uint32(q), n})
	}
	return w
}

func TestABucketForEachValueWhereTheQueuesAreAPowerOfTwo(t *testing.T) {
	s := Spread{Mask: 0xffff, Over: over(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)}
	b, imbalance := s.buckets()
	if len(b) != 16 || imbalance != 0 {
		t.Fatalf("%d buckets, imbalance %v", len(b), imbalance)
	}
	for i, x := range b {
		if x.queue != uint32(i) || x.bits != (Bits32{uint32(i), 0xf}) {
			t.Errorf("bucket %d: %+v", i, x)
		}
	}
}

func TestSpreads(t *testing.T) {
	for _, c := range []struct {
		name   string
		spread Spread
		rules  int
		shares []int // of the values of the lowest bits
		most   float64
	}{
		{"one queue", Spread{Mask: 0xf, Over: over(1)}, 1, []int{1}, 0},
		{"three queues", Spread{Mask: 0xffff, Over: over(1, 1, 1)}, 8, []int{11, 11, 10}, 0.04},
		{"weights two to one", Spread{Mask: 0xffff, Over: over(2, 1)}, 5, []int{11, 5}, 0.04},
		{"weights that divide", Spread{Mask: 0xffff, Over: over(3, 1)}, 3, []int{3, 1}, 0},
		{"buckets as asked", Spread{Mask: 0xffff, Over: over(1, 1, 1), Buckets: 4}, 3, []int{2, 1, 1}, 0.51},
		{"no queue goes empty", Spread{Mask: 0xffff, Over: over(100, 1)}, 8, []int{127, 1}, 0.01},
		{"too few bits for even shares", Spread{Mask: 0x3, Over: over(1, 1, 1)}, 3, []int{2, 1, 1}, 0.51},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, imbalance := c.spread.buckets()
			if len(b) != c.rules || imbalance > c.most {
				t.Errorf("%d rules, imbalance %v: %v", len(b), imbalance, b)
			}
			total := 0
			for _, n := range c.shares {
				total += n
			}
			got := make([]int, len(c.shares))
			for v := range total {
				hits := 0
				for _, x := range b {
					if scatter(uint32(v), c.spread.Mask)&x.bits.Mask == x.bits.Value {
						got[x.queue]++
						hits++
					}
				}
				if hits != 1 {
					t.Errorf("value %d is in %d buckets", v, hits)
				}
			}
			for q := range c.shares {
				if got[q] != c.shares[q] {
					t.Errorf("queue %d has %d of %d values, want %d", q, got[q], total, c.shares[q])
				}
			}
		})
	}
}

// scatter puts the low bits of v at the bits of mask.
func scatter(v, mask uint32) (r uint32) {
	for i := 0; mask != 0; i++ {
		low := uint32(1) << bits.TrailingZeros32(mask)
		if v>>i&1 != 0 {
			r |= low
		}
		mask &^= low
	}
	return r
}

func TestTheDefaultIsTheFewestBucketsWithinTenPercent(t *testing.T) {
	for n := 1; n <= 128; n++ {
		s := Spread{Mask: 0xffff, Over: over(make([]uint32, n)...)}
		for i := range s.Over {
			s.Over[i].Weight = 1
		}
		counts, width := s.counts()
		if got := s.imbalance(counts); got > tolerance {
			t.Errorf("%d queues: imbalance %v", n, got)
		}
		if width > 0 {
			if half := s.apportion(1 << (width - 1)); half != nil && s.imbalance(half) <= tolerance {
				t.Errorf("%d queues: %d buckets would do, not %d", n, 1<<(width-1), 1<<width)
			}
		}
	}
}

func TestEveryQueueKeepsItsBucketsAboveZero(t *testing.T) {
	for _, weights := range [][]uint32{{1, 1000}, {1000, 1, 1, 1}, {1, 1, 1, 1, 1000000}, {1, 1<<32 - 1}} {
		s := Spread{Mask: 0xffffffff, Over: over(weights...)}
		counts, _ := s.counts()
		for q, n := range counts {
			if n < 1 {
				t.Errorf("weights %v: queue %d has no bucket: %v", weights, q, counts)
			}
		}
	}
}
