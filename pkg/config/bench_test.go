// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// manyFiles is files with the entries shared out between them.
func manyFiles(files, entries int) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := range files {
		var b strings.Builder
		b.WriteString("match:\n  driver: mlx5_core\nsteer:\n")
		for j := range entries / files {
			fmt.Fprintf(&b, "  - name: f%d-e%d   # an entry\n    protocol: udp\n    source: 192.0.2.%d\n    destination-port: %d\n    queue: %d\n", i, j, j%256, 1024+j, j%16)
		}
		fsys[fmt.Sprintf("etc/flexsteer/%02d-policy.yaml", i)] = &fstest.MapFile{Data: []byte(b.String())}
	}
	return fsys
}

func manyLinks(n int) (links []steer.Link) {
	for i := range n {
		links = append(links, steer.Link{Index: i + 1, Name: fmt.Sprintf("ens%d", i), Driver: "mlx5_core", Kind: steer.Physical})
	}
	return links
}

func BenchmarkLoad(b *testing.B) {
	for _, size := range []struct{ files, entries int }{{1, 64}, {1, 1024}, {64, 1024}} {
		b.Run(fmt.Sprintf("files=%d/entries=%d", size.files, size.entries), func(b *testing.B) {
			fsys := manyFiles(size.files, size.entries)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Load(fsys, SearchPath); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size.entries), "ns/entry")
		})
	}
}

func BenchmarkResolve(b *testing.B) {
	c, err := Load(manyFiles(64, 1024), SearchPath)
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1, 8, 512} {
		b.Run(fmt.Sprintf("links=%d", n), func(b *testing.B) {
			links := manyLinks(n)
			b.ReportAllocs()
			for b.Loop() {
				c.Resolve(links)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/link")
		})
	}
}
