// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// gopacket is the second opinion: what it writes we read, and what we write it
// reads. (The product itself does without it: pcapgo pulls in all decoders of
// gopacket/layers, 1.8 MB of a binary.)

func randomPackets(r *rand.Rand) [][]byte {
	packets := make([][]byte, 50)
	for i := range packets {
		packets[i] = make([]byte, r.IntN(3000))
		for j := range packets[i] {
			packets[i][j] = byte(r.Uint32())
		}
	}
	return packets
}

func same(t *testing.T, file []byte, packets [][]byte) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range packets {
		f, err := r.Next()
		if err != nil || f.Link != Ethernet || !bytes.Equal(f.Data, want) {
			t.Fatalf("packet %d: %s, %d bytes, %v; want %d bytes", i, f.Link, len(f.Data), err, len(want))
		}
	}
}

func info(p []byte) gopacket.CaptureInfo {
	return gopacket.CaptureInfo{Timestamp: time.Unix(1, 2), CaptureLength: len(p), Length: len(p)}
}

func TestFilesThatGopacketWritesAreRead(t *testing.T) {
	packets := randomPackets(rand.New(rand.NewPCG(1, 1)))
	writers := map[string]*pcapgo.Writer{}
	files := map[string]*bytes.Buffer{"micro": {}, "nano": {}}
	writers["micro"], writers["nano"] = pcapgo.NewWriter(files["micro"]), pcapgo.NewWriterNanos(files["nano"])
	for name, w := range writers {
		if err := w.WriteFileHeader(65536, layers.LinkTypeEthernet); err != nil {
			t.Fatal(err)
		}
		for _, p := range packets {
			if err := w.WritePacket(info(p), p); err != nil {
				t.Fatal(err)
			}
		}
		t.Run(name, func(t *testing.T) { same(t, files[name].Bytes(), packets) })
	}
	var ng bytes.Buffer
	w, err := pcapgo.NewNgWriter(&ng, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packets {
		if err := w.WritePacket(info(p), p); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	t.Run("pcapng", func(t *testing.T) { same(t, ng.Bytes(), packets) })
}

func TestGopacketReadsWhatIsWritten(t *testing.T) {
	packets := randomPackets(rand.New(rand.NewPCG(2, 2)))
	var b bytes.Buffer
	w, err := NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packets {
		if err := w.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	r, err := pcapgo.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range packets {
		got, ci, err := r.ReadPacketData()
		if err != nil || !bytes.Equal(got, want) || ci.Timestamp.UnixMicro() != int64(i) {
			t.Fatal(fmt.Errorf("packet %d at %v: %w", i, ci.Timestamp, err))
		}
	}
}
