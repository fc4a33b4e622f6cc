// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"maps"
	"slices"
	"testing"
)

// see is a frame as the tables of a State without nodes see it.
func see(frame []byte) (p packet) {
	New(limits()).parse(&p, frame)
	return p
}

func (m *Match) get(name string) (v uint64) {
	f := layout[name]
	for bit := f.bit; bit < f.bit+f.width; bit++ {
		v = v<<1 | uint64(m[bit/8]>>(7-bit%8)&1)
	}
	return v
}

// compared is every field but the VLAN tags' qualifiers and the samples.
var compared = slices.DeleteFunc(slices.Sorted(maps.Keys(layout)), func(name string) bool {
	switch name {
	case "cvlan_tag", "svlan_tag", "outer_second_cvlan_tag", "outer_second_svlan_tag":
		return true
	}
	return layout[name].bit >= misc4
})

func TestTheFieldsAreWhereTheDriversHeaderHasThem(t *testing.T) {
	found := map[string]bool{}
	for _, f := range fields {
		if f.manner == address {
			continue // four dwords in layout
		}
		if want, ok := layout[f.name]; !ok || want.bit != f.Bit || want.width != f.Width {
			t.Errorf("%s is at %#x+%d, want %#x+%d", f.name, f.Bit, f.Width, want.bit, want.width)
		}
		found[f.name] = true
	}
	var all Match
	for name, f := range layout {
		all.set(name, 1<<f.width-1)
		if f.bit < misc4 && f.width != 32 && !found[name] {
			t.Errorf("%s is not modelled", name)
		}
	}
	if all != modelled {
		t.Error("the modelled bits are not those of the layout")
	}
}

func TestTheParserFindsEveryField(t *testing.T) {
	gre := func(flags byte, rest ...byte) []byte { return append([]byte{flags, 0, 0x65, 0x58}, rest...) }
	icmp := []byte{8, 3, 0, 0, 1, 2, 3, 4}
	options := to4(17, udp(4791, 53))
	options.options = make([]byte, 12)
	first, last := to4(17, udp(1, 2)), to4(17, udp(1, 2))
	first.more, last.offset = true, 185
	tagged := to4(6, tcp(0x1234, 0x5678, 0xff, 3))
	tagged.tags, tagged.tos = []vlan{{0x8100, 0xffff}}, 0xb9
	twice := to6(6, tcp(80, 443, 0x12, 0))
	twice.tags, twice.label, twice.tos = []vlan{{0x88a8, 0x2001}, {0x8100, 0xb002}}, 0xabcde, 0xff
	extended := to6(17, udp(1, 2))
	extended.extensions = []extension{{0, 1}, {43, 2}, {60, 0}}
	fragment6, atomic := to6(17, udp(3, 4)), to6(6, tcp(1, 2, 0, 0))
	fragment6.extensions, fragment6.offset, fragment6.more = []extension{{0, 0}, {44, 0}}, 9, true
	atomic.extensions = []extension{{44, 0}}
	thrice := wire{tags: twice.tags, etherType: 0x8100, l4: append([]byte{0, 3}, to4(17, udp(1, 2)).bytes()[12:]...)}
	padded := to4(17, []byte{1, 2, 3, 4})
	padded.padding = 30
	for name, w := range map[string]wire{
		"UDP": to4(17, udp(1000, 2000)), "UDP over IPv6": to6(17, udp(1000, 2000)), "options": options,
		"first fragment": first, "last fragment": last, "tag, TCP, all flags": tagged, "two tags": twice,
		"extension headers": extended, "fragment of IPv6": fragment6, "fragment header without fragments": atomic,
		"ICMP": to4(1, icmp), "ICMPv6": to6(58, icmp), "ICMP over IPv6": to6(1, icmp), "ICMPv6 over IPv4": to4(58, icmp),
		"GRE": to4(47, gre(0)), "GRE with key": to6(47, gre(0x20, 1, 2, 3, 4)),
		"GRE with all": to4(47, gre(0xb0, 9, 9, 9, 9, 1, 2, 3, 4, 5, 5, 5, 5)), "GRE cut short": to4(47, gre(0xa0, 9, 9, 9, 9, 1)),
		"ESP": to4(50, []byte{0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 1}), "AH": to6(51, make([]byte, 24)),
		"no IP": {dmac: hostMAC, smac: peerMAC, l4: []byte{1, 2, 3}}, "unknown protocol": to4(253, []byte{1, 2, 3, 4}),
		"UDP cut short": to4(17, []byte{1, 2, 3, 4, 0, 7, 0}), "TCP cut short": to6(6, make([]byte, 19)), "padding is no UDP": padded,
		"no payload": to4(6, nil), "three tags": thrice,
	} {
		p := see(w.bytes())
		for _, f := range compared {
			if got, want := p.match.get(f), w.value(f); got != want {
				t.Errorf("%s: %s is %#x, want %#x", name, f, got, want)
			}
		}
	}
}

func TestWhatSaysItIsIPAndIsNot(t *testing.T) {
	good := to4(17, udp(1, 2)).bytes()
	change := func(at int, v byte) []byte {
		b := slices.Clone(good)
		b[at] = v
		return b
	}
	for name, frame := range map[string][]byte{
		"version 6": change(14, 0x65), "header of 16 bytes": change(14, 0x44), "header behind the end": change(14, 0x4f)[:45],
		"cut short": good[:33], "nothing": good[:14], "IPv6 cut short": to6(17, nil).bytes()[:53],
	} {
		p := see(frame)
		if p.version != 0 || p.match.get("ip_version") != 0 || p.match.get("ip_protocol") != 0 || p.match.get("ethertype") == 0 {
			t.Errorf("%s: version %d, %v", name, p.version, p.match)
		}
	}
}

func TestATagThatIsCutShortIsNone(t *testing.T) {
	w := wire{tags: []vlan{{0x8100, 1}, {0x8100, 2}}}.bytes()
	for n, tags := range map[int]int{14: 0, 17: 0, 18: 1, 21: 1, 22: 2} {
		if p := see(w[:n]); p.tags != tags {
			t.Errorf("%d bytes: %d tags, want %d", n, p.tags, tags)
		}
	}
}

func TestAPayloadLengthOf0IsAJumbogram(t *testing.T) {
	frame := to6(17, udp(1, 53)).bytes()
	frame[18], frame[19] = 0, 0
	if p := see(frame); p.match.get("udp_dport") != 53 {
		t.Errorf("UDP port %d", p.match.get("udp_dport"))
	}
}
