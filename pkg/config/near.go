// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
)

// nearest is the name in names that was probably meant by word, or "". It does
// not try any more once no further error is told.
func (f *faults) nearest(word string, names []string) string {
	if len(word) > 40 || len(f.list) >= maxErrors {
		return ""
	}
	folded := strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(word))
	best, bestDistance := "", 1+max(1, len(folded)/4)
	for _, name := range names {
		if d := distance(folded, name); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	return best
}

// distance counts the insertions, deletions, substitutions and swaps of
// neighbours that turn a into b (optimal string alignment).
func distance(a, b string) int {
	before, last, this := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		this[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			this[j] = min(last[j]+1, this[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				this[j] = min(this[j], before[j-2]+1)
			}
		}
		before, last, this = last, this, before
	}
	return last[len(b)]
}

// clip shortens a value for a message.
func clip(s string) string {
	r := []rune(s)
	if len(r) <= 40 {
		return s
	}
	return string(r[:39]) + "…"
}
