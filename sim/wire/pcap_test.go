// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

var le = binary.LittleEndian

// file is a pcap file, written by hand.
func file(order binary.AppendByteOrder, magic, link uint32, frames ...string) []byte {
	b := order.AppendUint32(nil, magic)
	b = order.AppendUint16(order.AppendUint16(b, 2), 4)
	b = order.AppendUint32(append(b, make([]byte, 8)...), 65535)
	b = order.AppendUint32(b, link)
	for i, f := range frames {
		b = order.AppendUint32(order.AppendUint32(b, uint32(i)), 999_999)
		b = append(order.AppendUint32(order.AppendUint32(b, uint32(len(f))), uint32(len(f))), f...)
	}
	return b
}

func all(t *testing.T, b []byte) (frames []string, err error) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(b))
	for err == nil {
		var f []byte
		if f, err = r.Next(); err == nil {
			frames = append(frames, string(f))
		}
	}
	return frames, err
}

func TestFilesOfAllOrders(t *testing.T) {
	want := []string{"first", "", "the third one"}
	for name, b := range map[string][]byte{
		"little, microseconds": file(binary.LittleEndian, magicMicro, 1, want...),
		"little, nanoseconds":  file(binary.LittleEndian, magicNano, 1, want...),
		"big, microseconds":    file(binary.BigEndian, magicMicro, 1, want...),
		"big, nanoseconds":     file(binary.BigEndian, magicNano, 1, want...),
	} {
		if got, err := all(t, b); err != io.EOF || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestFilesThatCannotBeSentAreRefused(t *testing.T) {
	good := file(le, magicMicro, 1, "first", "second")
	change := func(at int, v uint32) []byte {
		b := slices.Clone(good)
		le.PutUint32(b[at:], v)
		return b
	}
	for _, c := range []struct {
		name string
		file []byte
		says string
		is   error
	}{
		{"empty", nil, "header of 0 bytes, not 24", ErrFormat},
		{"half a header", good[:20], "header of 20 bytes", ErrFormat},
		{"text", []byte("# this is a text and not a pcap file\n"), "it begins with 23207468", ErrFormat},
		{"pcapng", append([]byte{10, 13, 13, 10}, good...), "editcap -F pcap", ErrFormat},
		{"raw IP", file(le, magicMicro, 101), "link type 0x65, not 1", ErrFormat},
		{"with check sequences", change(20, 0x24000001), "link type 0x24000001", ErrFormat},
		{"cut frame", change(24+12, 600), "frame 1 (at byte 24): only 5 of its 600 bytes were captured", ErrFormat},
		{"huge frame", change(24+8, 1<<31), "frame 1 (at byte 24): 2147483648 bytes; at most 262144", ErrFormat},
		{"ends in a header", good[:len(good)-8], "frame 2 (at byte 45): header of 14 bytes", io.ErrUnexpectedEOF},
		{"ends in a frame", good[:len(good)-1], "frame 2 (at byte 45): 5 of 6 bytes", io.ErrUnexpectedEOF},
		{"ends before a frame", good[:len(good)-6], "frame 2 (at byte 45): 0 of 6 bytes", io.ErrUnexpectedEOF},
	} {
		if _, err := all(t, c.file); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, not %q", c.name, err, c.says)
		}
	}
}

func TestTheFileThatIsWritten(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(time.Unix(0x01020304, 5_000), []byte{0xaa, 0xbb}); err != nil {
		t.Fatal(err)
	}
	const want = "d4c3b2a1" + "02000400" + "00000000" + "00000000" + "00000400" + "01000000" +
		"04030201" + "05000000" + "02000000" + "02000000" + "aabb"
	if got := hex.EncodeToString(b.Bytes()); got != want {
		t.Errorf("%s, not\n%s", got, want)
	}
	if got, err := all(t, b.Bytes()); err != io.EOF || !slices.Equal(got, []string{"\xaa\xbb"}) {
		t.Errorf("read back as %q, %v", got, err)
	}
}

// FuzzReader: any bytes end in io.EOF or an error that says what, and never give
// more than there is.
func FuzzReader(f *testing.F) {
	f.Add(file(binary.LittleEndian, magicMicro, 1, "one", "two"))
	f.Add(file(binary.BigEndian, magicNano, 1, "one", ""))
	f.Fuzz(func(t *testing.T, b []byte) {
		frames, err := all(t, b)
		if err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrFormat) {
			t.Errorf("untyped error %v", err)
		}
		total := fileHeader
		for _, f := range frames {
			total += frameHeader + len(f)
		}
		if len(frames) > 0 && total > len(b) {
			t.Errorf("%d bytes of frames out of %d", total, len(b))
		}
	})
}
