// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

type order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// pcapFile builds a classic capture by hand, not with Writer.
func pcapFile(o order, magic uint32, link LinkType, packets ...string) []byte {
	b := o.AppendUint32(nil, magic)
	b = o.AppendUint16(b, 2)
	b = o.AppendUint16(b, 4)
	b = append(b, make([]byte, 8)...)
	b = o.AppendUint32(b, 65535)
	b = o.AppendUint32(b, uint32(link))
	for _, p := range packets {
		b = append(b, "timestmp"...)
		b = o.AppendUint32(b, uint32(len(p)))
		b = o.AppendUint32(b, uint32(len(p))+100)
		if magic == pcapModified {
			b = append(b, "ifindex "...)
		}
		b = append(b, p...)
	}
	return b
}

func block(o order, kind uint32, body string) string {
	body += strings.Repeat("\x00", -len(body)&3)
	b := o.AppendUint32(nil, kind)
	b = o.AppendUint32(b, uint32(len(body))+12)
	b = append(b, body...)
	return string(o.AppendUint32(b, uint32(len(body))+12))
}

func u16(o order, v uint16) string { return string(o.AppendUint16(nil, v)) }
func u32(o order, v uint32) string { return string(o.AppendUint32(nil, v)) }

func section(o order) string {
	return block(o, blockSection, u32(o, byteOrderMagic)+u16(o, 1)+u16(o, 0)+"\xff\xff\xff\xff\xff\xff\xff\xff")
}

func iface(o order, link LinkType, snap uint32) string {
	return block(o, blockInterface, u16(o, uint16(link))+"\x00\x00"+u32(o, snap)+"\x09\x00\x01\x00\x09\x00\x00\x00")
}

func enhanced(o order, index uint32, data, options string) string {
	pad := strings.Repeat("\x00", -len(data)&3)
	return block(o, blockEnhanced, u32(o, index)+"timestmp"+u32(o, uint32(len(data)))+u32(o, uint32(len(data)))+data+pad+options)
}

func old(o order, index uint16, data, options string) string {
	pad := strings.Repeat("\x00", -len(data)&3)
	return block(o, blockOldPacket, u16(o, index)+"\xff\xff"+"timestmp"+u32(o, uint32(len(data)))+u32(o, uint32(len(data)))+data+pad+options)
}

func simple(o order, length uint32, data string) string {
	return block(o, blockSimple, u32(o, length)+data)
}

func flags(o order, v uint32) string {
	return u16(o, 1) + u16(o, 2) + "hi\x00\x00" + u16(o, optionFlags) + u16(o, 4) + u32(o, v) + u32(o, 0)
}

// read shows everything that comes out of a capture as text.
func read(t *testing.T, file []byte) (packets []string, err error) {
	t.Helper()
	r, err := NewReader(iotest.HalfReader(bytes.NewReader(file)))
	if err != nil {
		return nil, err
	}
	for {
		f, err := r.Next()
		if err == io.EOF {
			if r.Packets() != int64(len(packets)) {
				t.Errorf("Packets() = %d after %d packets", r.Packets(), len(packets))
			}
			return packets, nil
		}
		if err != nil {
			return packets, err
		}
		mark := ""
		if f.Outgoing {
			mark = " outgoing"
		}
		packets = append(packets, fmt.Sprintf("%s %s%s", f.Link, f.Data, mark))
	}
}

func TestEveryFormatGivesItsPackets(t *testing.T) {
	le, be := order(binary.LittleEndian), order(binary.BigEndian)
	for _, c := range []struct {
		name string
		file string
		want []string
	}{
		{"pcap", string(pcapFile(le, pcapMicro, Ethernet, "one", "two two")), []string{"EN10MB one", "EN10MB two two"}},
		{"big-endian pcap", string(pcapFile(be, pcapMicro, Raw, "one")), []string{"RAW one"}},
		{"nanosecond pcap", string(pcapFile(le, pcapNano, SLL2, "one")), []string{"LINUX_SLL2 one"}},
		{"big-endian nanosecond pcap", string(pcapFile(be, pcapNano, Null, "one")), []string{"NULL one"}},
		{"modified pcap", string(pcapFile(le, pcapModified, Ethernet, "one", "two")), []string{"EN10MB one", "EN10MB two"}},
		{"pcap without packets", string(pcapFile(le, pcapMicro, Ethernet)), nil},
		{"pcap with an empty packet", string(pcapFile(le, pcapMicro, Ethernet, "", "two")), []string{"EN10MB ", "EN10MB two"}},
		{"pcapng", section(le) + iface(le, Ethernet, 0) + enhanced(le, 0, "one", "") + enhanced(le, 0, "four", ""),
			[]string{"EN10MB one", "EN10MB four"}},
		{"big-endian pcapng", section(be) + iface(be, SLL, 0) + enhanced(be, 0, "one", ""), []string{"LINUX_SLL one"}},
		{"two interfaces", section(le) + iface(le, Ethernet, 0) + iface(le, Raw, 0) + enhanced(le, 1, "raw", "") + enhanced(le, 0, "eth", ""),
			[]string{"RAW raw", "EN10MB eth"}},
		{"two sections of different byte order", section(le) + iface(le, Ethernet, 0) + enhanced(le, 0, "one", "") +
			section(be) + iface(be, IPv6, 0) + enhanced(be, 0, "two", ""), []string{"EN10MB one", "IPV6 two"}},
		{"blocks that are not packets", section(le) + block(le, 4, "names") + iface(le, Ethernet, 0) + block(le, 5, "statistics") +
			block(le, 0x80000001, strings.Repeat("private", 400_000)) + enhanced(le, 0, "one", "") + block(le, 10, ""), []string{"EN10MB one"}},
		{"direction", section(le) + iface(le, Ethernet, 0) + enhanced(le, 0, "in", flags(le, 1)) + enhanced(le, 0, "out", flags(le, 2)) +
			old(le, 0, "old", flags(le, 2)), []string{"EN10MB in", "EN10MB out outgoing", "EN10MB old outgoing"}},
		{"options that make no sense", section(le) + iface(le, Ethernet, 0) + enhanced(le, 0, "one", u16(le, 2)+u16(le, 400)+"abcd"),
			[]string{"EN10MB one"}},
		{"old packet blocks", section(be) + iface(be, Ethernet, 0) + old(be, 0, "one", ""), []string{"EN10MB one"}},
		{"simple packet blocks", section(le) + iface(le, Ethernet, 5) + simple(le, 3, "one") + simple(le, 1500, "cut to"[:5]),
			[]string{"EN10MB one", "EN10MB cut t"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := read(t, []byte(c.file))
			if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %q, %v\nwant %q", got, err, c.want)
			}
		})
	}
}

func TestEveryFormatCanBeGzipped(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(pcapFile(binary.LittleEndian, pcapMicro, Ethernet, "one", "two"))
	z.Close()
	got, err := read(t, b.Bytes())
	if err != nil || fmt.Sprint(got) != "[EN10MB one EN10MB two]" {
		t.Errorf("got %q, %v", got, err)
	}
	got, err = read(t, b.Bytes()[:b.Len()-9])
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut gzip: got %q, %v", got, err)
	}
}

// Whatever byte a file is cut at, the packets before the cut are counted and
// the error says that it is cut, except between two records.
func TestCutFileGivesThePacketsBeforeTheCut(t *testing.T) {
	le := order(binary.LittleEndian)
	ng := section(le) + iface(le, Ethernet, 0) + enhanced(le, 0, "first packet", "") + block(le, 4, "names") + enhanced(le, 0, "second", "")
	for name, file := range map[string]string{
		"pcap":   string(pcapFile(le, pcapMicro, Ethernet, "first packet", "second")),
		"pcapng": ng,
	} {
		whole, _ := read(t, []byte(file))
		clean := 0
		for cut := 4; cut < len(file); cut++ {
			got, err := read(t, []byte(file[:cut]))
			for i, p := range got {
				if p != whole[i] {
					t.Fatalf("%s cut at %d: packet %d is %q", name, cut, i, p)
				}
			}
			var truncated *TruncatedError
			switch {
			case err == nil:
				clean++
			case !errors.As(err, &truncated):
				t.Fatalf("%s cut at %d: %v", name, cut, err)
			case truncated.Packets != int64(len(got)) || truncated.Offset > int64(cut):
				t.Fatalf("%s cut at %d: %d packets, but %+v", name, cut, len(got), truncated)
			}
		}
		if want := map[string]int{"pcap": 2, "pcapng": 4}[name]; clean != want {
			t.Errorf("%s: %d cuts lie between records, want %d", name, clean, want)
		}
	}
}

func TestBrokenFileIsAnErrorThatSaysWhere(t *testing.T) {
	le := order(binary.LittleEndian)
	start := section(le) + iface(le, Ethernet, 0)
	for _, c := range []struct{ name, file, want string }{
		{"empty", "", "it has only 0 bytes"},
		{"three bytes", "abc", "it has only 3 bytes"},
		{"text", "match:\n  name: eth0\n", "it starts with the bytes 6d 61 74 63"},
		{"pcap version 3", strings.Replace(string(pcapFile(le, pcapMicro, Ethernet)), "\x02\x00", "\x03\x00", 1), "pcap version 3"},
		{"huge packet", string(pcapFile(le, pcapMicro, Ethernet)) + "timestmp" + "\xff\xff\xff\xff\xff\xff\xff\xff", "byte 24: a packet of 4294967295 bytes"},
		{"huge block", start + u32(le, blockEnhanced) + u32(le, 0xfffffffc) + "....", "a packet block of 4294967292 bytes"},
		{"odd block", start + u32(le, 4) + u32(le, 15) + "....", "a block of 15 bytes"},
		{"tiny block", start + u32(le, 4) + u32(le, 8) + "....", "a block of 8 bytes"},
		{"packet before its interface", section(le) + enhanced(le, 0, "one", ""), "a packet of interface 0, and 0 are described"},
		{"packet longer than its block", start + block(le, blockEnhanced, u32(le, 0)+"timestmp"+u32(le, 99)+u32(le, 99)+"abcd"), "a packet of 99 bytes in a block of 36"},
		{"short packet block", start + block(le, blockEnhanced, "abcd"), "a packet block of 16 bytes"},
		{"short interface block", section(le) + block(le, blockInterface, "abcd"), "an interface block of 16 bytes"},
		{"section without byte order", strings.Replace(section(le), u32(le, byteOrderMagic), "abcd", 1), "without its byte order mark"},
		{"pcapng version 2", block(le, blockSection, u32(le, byteOrderMagic)+u16(le, 2)+u16(le, 0)+"........"), "pcapng version 2"},
		{"section of 16 bytes", block(le, blockSection, u32(le, byteOrderMagic)+u16(le, 1)+u16(le, 0)), "a section header of 20 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(t, []byte(c.file))
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an ErrFormat with %q", err, c.want)
			}
		})
	}
}

func TestReadErrorIsPassedOn(t *testing.T) {
	file := pcapFile(binary.LittleEndian, pcapMicro, Ethernet, "one", "two")
	broken := errors.New("input/output error")
	r, err := NewReader(io.MultiReader(bytes.NewReader(file[:50]), iotest.ErrReader(broken)))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = r.Next()
	}
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestWrittenFileReadsBack(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"one", "", strings.Repeat("x", 9000)} {
		if err := w.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	got, err := read(t, b.Bytes())
	if err != nil || len(got) != 3 || got[0] != "EN10MB one" || len(got[2]) != len("EN10MB ")+9000 {
		t.Errorf("got %d packets, %v", len(got), err)
	}
}
