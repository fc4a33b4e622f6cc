// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// BenchmarkQuietPass is a pass over links with 64 rules each that are all in
// place. The cost of one link should not grow with their number.
func BenchmarkQuietPass(b *testing.B) {
	for _, n := range []int{8, 64, 512} {
		b.Run(fmt.Sprintf("links=%d", n), func(b *testing.B) {
			w, p := newWorld(), policy{}
			for i := range n {
				name := fmt.Sprintf("eth%d", i)
				w.AddMLX5(name, 16)
				p[name] = steering(253, 64, 16)
			}
			w.load(p)
			w.passes(b)
			for b.Loop() {
				w.now = w.now.Add(time.Minute)
				w.loop.Pass(context.Background())
				w.Calls()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/link")
		})
	}
}

// BenchmarkConverge brings one link from an empty table to its goal.
func BenchmarkConverge(b *testing.B) {
	for _, n := range []int{64, 1024} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			d := steering(253, n, 16)
			d.Own = steer.Range{First: 0, Last: 1023}
			w := newWorld()
			w.AddMLX5("eth0", 16)
			w.load(policy{"eth0": d})
			for b.Loop() {
				w.Reset("eth0")
				w.now = w.now.Add(time.Minute)
				w.passes(b)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/rule")
		})
	}
}
