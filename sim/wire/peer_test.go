// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

// unhex reads hex digits; spaces are left out.
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	arpRequest = `ffffffffffff 02aabbccdd01 0806
		0001 0800 0604 0001  02aabbccdd01 0a000001  000000000000 0a000002`
	arpReply = `02aabbccdd01 020000000002 0806
		0001 0800 0604 0002  020000000002 0a000002  02aabbccdd01 0a000001
		000000000000000000000000000000000000`
)

// onesComplement is the checksum sum, written for the test alone.
func onesComplement(parts ...[]byte) uint16 {
	var s uint64
	for _, p := range parts {
		for i, v := range p {
			if i%2 == 0 {
				s += uint64(v) << 8
			} else {
				s += uint64(v)
			}
		}
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// fix puts the right checksum at byte at of message, with what is summed besides.
func fix(message []byte, at int, besides ...[]byte) {
	message[at], message[at+1] = 0, 0
	be.PutUint16(message[at:], ^onesComplement(append(besides, message)...))
}

func pseudoHeader(packet []byte, n int) []byte {
	return append(bytes.Clone(packet[8:40]), 0, 0, byte(n>>8), byte(n), 0, 0, 0, 58)
}

// echo4 is an echo request with that many bytes of data.
func echo4(t testing.TB, n int) []byte {
	f := unhex(t, `020000000002 02aabbccdd01 0800  4500 0000 1234 4000 4001 0000 0a000001 0a000002  0800 0000 0007 0001`)
	for i := range n {
		f = append(f, byte(i))
	}
	be.PutUint16(f[16:], uint16(28+n))
	fix(f[14:34], 10)
	fix(f[34:], 2)
	return f
}

func echo6(t testing.TB, n int) []byte {
	f := unhex(t, `020000000002 02aabbccdd01 86dd  60012345 0000 3a 40
		fd000000000000000000000000000001 fd000000000000000000000000000002  8000 0000 0007 0001`)
	for i := range n {
		f = append(f, byte(i))
	}
	be.PutUint16(f[18:], uint16(8+n))
	fix(f[54:], 2, pseudoHeader(f[14:], 8+n))
	return f
}

func solicit(t testing.TB, source string) []byte {
	f := unhex(t, `3333ff000002 02aabbccdd01 86dd  60000000 0020 3a ff `+source+` ff0200000000000000000001ff000002
		8700 0000 00000000 fd000000000000000000000000000002 0101 02aabbccdd01`)
	fix(f[54:], 2, pseudoHeader(f[14:], 32))
	return f
}

func TestThePeerAnswersARP(t *testing.T) {
	if got, want := DefaultPeer.Answer(unhex(t, arpRequest)), unhex(t, arpReply); !bytes.Equal(got, want) {
		t.Errorf("%x, not\n%x", got, want)
	}
}

func TestThePeerAnswersPings(t *testing.T) {
	for _, n := range []int{0, 1, 2, 56, 1472, 9000, 65507} {
		request := echo4(t, n)
		got := DefaultPeer.Answer(request)
		if len(got) != max(60, len(request)) {
			t.Fatalf("%d bytes of data: answer of %d bytes to %d", n, len(got), len(request))
		}
		packet := got[14 : 14+28+n]
		head := unhex(t, `02aabbccdd01 020000000002 0800`)
		if !bytes.HasPrefix(got, head) || !bytes.Equal(packet[12:20], []byte{10, 0, 0, 2, 10, 0, 0, 1}) || packet[20] != 0 ||
			!bytes.Equal(packet[24:], request[38:]) {
			t.Errorf("%d bytes of data: %x", n, got[:42])
		}
		if a, b := onesComplement(packet[:20]), onesComplement(packet[20:]); a != 0xffff || b != 0xffff {
			t.Errorf("%d bytes of data: checksums %x %x", n, a, b)
		}
	}
}

func TestThePeerAnswersPingsOfIPv6(t *testing.T) {
	for _, n := range []int{0, 1, 56, 1452, 9001, 65527} {
		request := echo6(t, n)
		got := DefaultPeer.Answer(request)
		if len(got) != max(60, len(request)) {
			t.Fatalf("%d bytes of data: answer of %d bytes", n, len(got))
		}
		packet := got[14 : 14+48+n]
		if !bytes.Equal(packet[8:24], request[38:54]) || !bytes.Equal(packet[24:40], request[22:38]) ||
			!bytes.Equal(packet[40:42], []byte{129, 0}) || !bytes.Equal(packet[44:], request[58:]) {
			t.Errorf("%d bytes of data: %x", n, got[:62])
		}
		if s := onesComplement(pseudoHeader(packet, 8+n), packet[40:]); s != 0xffff {
			t.Errorf("%d bytes of data: checksum %x", n, s)
		}
	}
}

func TestThePeerAnswersNeighbourSolicitations(t *testing.T) {
	const advertisement = `fd000000000000000000000000000002 0201 020000000002`
	for _, c := range []struct{ name, source, to, flags string }{
		{"a neighbour", "fd000000000000000000000000000001", "fd000000000000000000000000000001", "60"},
		{"duplicate detection", "00000000000000000000000000000000", "ff020000000000000000000000000001", "20"},
	} {
		got := DefaultPeer.Answer(solicit(t, c.source))
		if len(got) != 14+40+32 {
			t.Fatalf("%s: %x", c.name, got)
		}
		want := unhex(t, `02aabbccdd01 020000000002 86dd 60000000 0020 3a ff fd000000000000000000000000000002 `+c.to+`
			8800 0000 `+c.flags+`000000 `+advertisement)
		fix(want[54:], 2, pseudoHeader(want[14:], 32))
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %x, not\n%x", c.name, got, want)
		}
	}
}

func TestTagsComeBack(t *testing.T) {
	tagged := func(f []byte, tags ...byte) []byte {
		return bytes.Join([][]byte{f[:12], tags, f[12:]}, nil)
	}
	for _, tags := range [][]byte{{0x81, 0, 0, 5}, {0x88, 0xa8, 0, 7, 0x81, 0, 0x20, 5}} {
		got := DefaultPeer.Answer(tagged(echo4(t, 56), tags...))
		want := tagged(DefaultPeer.Answer(echo4(t, 56)), tags...)
		if !bytes.Equal(got, want) {
			t.Errorf("tags %x: %x, not\n%x", tags, got, want)
		}
	}
}

func TestThePeerKeepsStill(t *testing.T) {
	change := func(f []byte, at int, v ...byte) []byte {
		copy(f[at:], v)
		return f
	}
	head := func(f []byte) []byte { fix(f[14:34], 10); return f }
	for name, f := range map[string][]byte{
		"nothing":                   nil,
		"half a header":             echo4(t, 0)[:13],
		"an unknown type":           change(echo4(t, 0), 12, 0x88, 0xcc),
		"tags and no more":          unhex(t, "020000000002 02aabbccdd01 8100 0005 8100"),
		"ARP for another":           change(unhex(t, arpRequest), 41, 3),
		"an ARP reply":              change(unhex(t, arpRequest), 21, 2),
		"half of ARP":               unhex(t, arpRequest)[:41],
		"ping of another":           head(change(echo4(t, 56), 33, 3)),
		"an echo reply":             change(echo4(t, 56), 34, 0, 0, 0, 0),
		"a wrong header checksum":   change(echo4(t, 56), 24, 0, 0),
		"a wrong checksum":          change(echo4(t, 56), 36, 0, 0),
		"a first fragment":          head(change(echo4(t, 56), 20, 0x20, 0)),
		"a last fragment":           head(change(echo4(t, 56), 20, 0, 9)),
		"UDP":                       head(change(echo4(t, 56), 23, 17)),
		"a packet cut off":          echo4(t, 56)[:97],
		"a header of 16 bytes":      head(change(echo4(t, 56), 14, 0x44)),
		"version 5":                 head(change(echo4(t, 56), 14, 0x55)),
		"a packet without ICMP":     head(change(echo4(t, 56), 16, 0, 20)),
		"ICMPv6, wrong checksum":    change(echo6(t, 56), 56, 0, 0),
		"ICMPv6, cut off":           echo6(t, 56)[:100],
		"an echo reply of ICMPv6":   change(echo6(t, 56), 54, 129),
		"IPv6, UDP":                 change(echo6(t, 56), 20, 17),
		"solicitation from afar":    change(solicit(t, "fd000000000000000000000000000001"), 21, 64),
		"solicitation for another":  change(solicit(t, "fd000000000000000000000000000001"), 77, 3),
		"half of IPv6":              echo6(t, 0)[:61],
		"IPv6 of 4 bytes of ICMPv6": change(echo6(t, 0), 18, 0, 4),
	} {
		if got := DefaultPeer.Answer(f); got != nil {
			t.Errorf("%s is answered with %x", name, got)
		}
	}
}

// FuzzPeer: no frame makes the peer panic, and no answer makes it answer again.
func FuzzPeer(f *testing.F) {
	f.Add(unhex(f, arpRequest))
	f.Add(echo4(f, 9))
	f.Add(echo6(f, 9))
	f.Add(solicit(f, "fd000000000000000000000000000001"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		before := bytes.Clone(frame)
		answer := DefaultPeer.Answer(frame)
		if !bytes.Equal(frame, before) {
			t.Error("the frame was changed")
		}
		if answer == nil {
			return
		}
		if len(answer) < 60 || !bytes.Equal(answer[:6], frame[6:12]) {
			t.Errorf("answer %x", answer)
		}
		if again := DefaultPeer.Answer(answer); again != nil {
			t.Errorf("an answer is answered: %x", again)
		}
	})
}
