// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"strings"
	"testing"
)

func TestEveryLinkTypeBecomesEthernet(t *testing.T) {
	none := strings.Repeat("\x00", 12)
	v4, v6 := "\x45 four", "\x60 six"
	var e Framer
	for _, c := range []struct {
		name     string
		frame    Frame
		want     string
		outgoing bool
	}{
		{"Ethernet as it is", Frame{Link: Ethernet, Data: []byte("frame")}, "frame", false},
		{"outgoing by its option", Frame{Link: Ethernet, Data: []byte("frame"), Outgoing: true}, "frame", true},
		{"raw IPv4", Frame{Link: Raw, Data: []byte(v4)}, none + "\x08\x00" + v4, false},
		{"raw IPv6", Frame{Link: IPv6, Data: []byte(v6)}, none + "\x86\xdd" + v6, false},
		{"raw nonsense", Frame{Link: Raw, Data: []byte("\x00abc")}, "", false},
		{"raw empty", Frame{Link: Raw}, "", false},
		{"loopback", Frame{Link: Null, Data: []byte("\x02\x00\x00\x00" + v4)}, none + "\x08\x00" + v4, false},
		{"loopback of OpenBSD", Frame{Link: Loop, Data: []byte("\x00\x00\x00\x18" + v6)}, none + "\x86\xdd" + v6, false},
		{"loopback cut short", Frame{Link: Null, Data: []byte("\x02\x00\x00\x00")}, "", false},
		{"SLL", Frame{Link: SLL, Data: []byte("\x00\x00\x00\x01\x00\x06sender..\x08\x00" + v4)}, none + "\x08\x00" + v4, false},
		{"SLL outgoing", Frame{Link: SLL, Data: []byte("\x00\x04\x00\x01\x00\x06sender..\x86\xdd" + v6)}, none + "\x86\xdd" + v6, true},
		{"SLL cut short", Frame{Link: SLL, Data: []byte("\x00\x04\x00\x01\x00\x06sender..\x86")}, "", false},
		{"SLL2", Frame{Link: SLL2, Data: []byte("\x86\xdd\x00\x00\x00\x00\x00\x07\x00\x01\x00\x06sender.." + v6)}, none + "\x86\xdd" + v6, false},
		{"SLL2 outgoing", Frame{Link: SLL2, Data: []byte("\x08\x00\x00\x00\x00\x00\x00\x07\x00\x01\x04\x06sender.." + v4)}, none + "\x08\x00" + v4, true},
		{"SLL2 cut short", Frame{Link: SLL2, Data: []byte("\x08\x00")}, "", false},
	} {
		got, outgoing, err := e.Ethernet(c.frame)
		if err != nil || string(got) != c.want || outgoing != c.outgoing {
			t.Errorf("%s: got %q, %v, %v; want %q, %v", c.name, got, outgoing, err, c.want, c.outgoing)
		}
	}
}

func TestLongPacketBehindAnotherHeaderKeepsItsHeaders(t *testing.T) {
	var e Framer
	got, _, err := e.Ethernet(Frame{Link: Raw, Data: []byte("\x45" + strings.Repeat("x", 65000))})
	if err != nil || len(got) != headroom+scratchData {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

func TestLinkTypeWithoutIPIsAnError(t *testing.T) {
	var e Framer
	for link, want := range map[LinkType]string{105: "IEEE802_11 (105)", 4000: "link type 4000 (4000)"} {
		_, _, err := e.Ethernet(Frame{Link: link, Data: []byte("abc")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: got %v", link, err)
		}
	}
}
