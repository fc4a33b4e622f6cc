// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
)

func seeds(f *testing.F) {
	le, be := order(binary.LittleEndian), order(binary.BigEndian)
	f.Add(pcapFile(le, pcapMicro, Ethernet, "one", "two"))
	f.Add(pcapFile(be, pcapNano, Raw, "one", ""))
	f.Add(pcapFile(le, pcapModified, SLL, "one"))
	f.Add([]byte(section(le) + iface(le, Ethernet, 0) + enhanced(le, 0, "one", flags(le, 2)) + old(le, 0, "two", "") + simple(le, 3, "three")))
	f.Add([]byte(section(be) + block(be, 9, "what") + iface(be, SLL2, 9) + enhanced(be, 0, "one", "") + section(le)))
}

// FuzzReader: any bytes end in io.EOF or a typed error, never give more bytes
// than the file has, and every packet can be turned into a frame.
func FuzzReader(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 1 && file[0] == 0x1f && file[1] == 0x8b {
			t.Skip("gzip")
		}
		r, err := NewReader(bytes.NewReader(file))
		var e Framer
		total := 0
		for err == nil {
			var p Frame
			if p, err = r.Next(); err != nil {
				break
			}
			total += len(p.Data) + 16
			e.Ethernet(p)
		}
		if err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrFormat) {
			t.Errorf("untyped error %v", err)
		}
		if total > len(file)+16 {
			t.Errorf("%d bytes of packets out of %d", total, len(file))
		}
	})
}

// FuzzAgainstGopacket: where gopacket reads a classic capture to its end, so
// do we, with the same packets.
func FuzzAgainstGopacket(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, file []byte) {
		theirs, err := pcapgo.NewReader(bytes.NewReader(file))
		if err != nil || len(file) > 0 && file[0] == 0x1f {
			t.Skip("gopacket takes it for no capture")
		}
		ours, err := NewReader(bytes.NewReader(file))
		if err != nil {
			t.Fatalf("gopacket reads the header, we say: %v", err)
		}
		for {
			want, _, err := theirs.ReadPacketData()
			if err != nil {
				return
			}
			if len(want) > maxCaptured {
				return
			}
			got, err := ours.Next()
			if err != nil || !bytes.Equal(got.Data, want) {
				t.Fatalf("got %d bytes, %v; gopacket reads %d bytes", len(got.Data), err, len(want))
			}
		}
	})
}
