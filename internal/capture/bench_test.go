// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// The unit of one operation is one packet.
func BenchmarkNext(b *testing.B) {
	le := order(binary.LittleEndian)
	packet := strings.Repeat("x", 128)
	ng := section(le) + iface(le, Ethernet, 0)
	for _, c := range []struct {
		name, head, record string
	}{
		{"pcap", string(pcapFile(le, pcapMicro, Ethernet)), string(pcapFile(le, pcapMicro, Ethernet, packet)[24:])},
		{"pcapng", ng, enhanced(le, 0, packet, flags(le, 1))},
	} {
		file := []byte(c.head + strings.Repeat(c.record, 100_000))
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.record)))
			b.ReportAllocs()
			var r *Reader
			for i := range b.N {
				if i%100_000 == 0 {
					var err error
					if r, err = NewReader(bytes.NewReader(file)); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := r.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
