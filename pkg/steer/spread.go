// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"math/bits"
)

// tolerance is the imbalance up to which Spread.Buckets = 0 is content.
const tolerance = 0.10

// bucket is a run of values of the chosen bits that goes to one queue.
type bucket struct {
	bits  Bits32 // of the first four bytes behind the IP header
	queue uint32
}

// buckets divides the values of s.Mask over the queues. Buckets are exact on the
// lowest bits of the mask; runs of one queue are laid out largest first, so that
// each is aligned and takes one value/mask pair.
func (s *Spread) buckets() (b []bucket, imbalance float64) {
	counts, width := s.counts()
	start := 0
	for level := width; level >= 0; level-- {
		for i, w := range s.Over {
			if counts[i]>>level&1 != 0 {
				b = append(b, bucket{s.run(start, level, width), w.Queue})
				start += 1 << level
			}
		}
	}
	return b, s.imbalance(counts)
}

// run is the values start to start+2^level-1 of the lowest width bits of the mask.
func (s *Spread) run(start, level, width int) Bits32 {
	var r Bits32
	mask := s.Mask
	for i := range width {
		bit := mask & -mask
		mask &^= bit
		if i < level {
			continue
		}
		r.Mask |= bit
		if start>>i&1 != 0 {
			r.Value |= bit
		}
	}
	return r
}

// counts is how many of 2^width equal buckets each queue of Over gets. It is nil
// when the mask has fewer values than there are queues.
func (s *Spread) counts() (counts []int, width int) {
	most := bits.OnesCount32(s.Mask)
	if s.Buckets > 0 {
		width = bits.Len(uint(s.Buckets)) - 1
		return s.apportion(1 << min(width, most)), min(width, most)
	}
	for width = bits.Len(uint(len(s.Over) - 1)); width < most; width++ {
		if counts = s.apportion(1 << width); counts != nil && s.imbalance(counts) <= tolerance {
			return counts, width
		}
	}
	return s.apportion(1 << most), most
}

// apportion gives each queue at least one of n buckets and the rest where the
// ratio of share to weight is smallest. nil: fewer buckets than queues.
func (s *Spread) apportion(n int) []int {
	if n < len(s.Over) {
		return nil
	}
	total := s.weights()
	counts := make([]int, len(s.Over))
	left := n
	for i, w := range s.Over {
		counts[i] = max(1, int(uint64(n)*uint64(w.Weight)/total))
		left -= counts[i]
	}
	for ; left > 0; left-- {
		counts[s.extreme(counts, +1)]++
	}
	for ; left < 0; left++ {
		counts[s.extreme(counts, -1)]--
	}
	return counts
}

// extreme is the queue that suffers least from one bucket more or less.
func (s *Spread) extreme(counts []int, step int) int {
	best := -1
	for i, w := range s.Over {
		if counts[i]+step < 1 {
			continue
		}
		if best < 0 {
			best = i
			continue
		}
		// Compare (count+step)/weight; for less, the fullest queue gives.
		a, b := uint64(counts[i]+max(step, 0))*uint64(s.Over[best].Weight), uint64(counts[best]+max(step, 0))*uint64(w.Weight)
		if step > 0 && a < b || step < 0 && a > b {
			best = i
		}
	}
	return best
}

func (s *Spread) weights() (total uint64) {
	for _, w := range s.Over {
		total += uint64(w.Weight)
	}
	return total
}

// imbalance is the largest ratio of a queue's share to its fair share, minus 1.
func (s *Spread) imbalance(counts []int) float64 {
	n, total, worst := 0, float64(s.weights()), 0.0
	for _, c := range counts {
		n += c
	}
	for i, w := range s.Over {
		fair := float64(n) * float64(w.Weight) / total
		worst = max(worst, float64(counts[i])/fair-1)
	}
	return worst
}
