// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
)

func frame(t *testing.T, parts ...string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(strings.Join(parts, ""), " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	macs   = "020000000001 020000000002 "
	ipv4   = "45 10 0018 0000 0000 40 fd 0000 c0000207 c6336401 "
	ipv6   = "6 12 34567 0004 fd 40 20010db8000000000000000000000007 20010db8000000000000000000000008 "
	ports  = "0fa0 0003"
	l4     = 0x0fa00003
	afFrag = "45 00 0018 0000 2000 40 fd 0000 c0000207 c6336401 "
	lastFr = "45 00 0018 0000 0010 40 fd 0000 c0000207 c6336401 "
	option = "46 00 001c 0000 0000 40 fd 0000 c0000207 c6336401 01010101 "
	dontFr = "45 00 0018 0000 4000 40 fd 0000 c0000207 c6336401 "
)

var fragment6 = long6("2c")

// long4 and long6 are headers of packets of another protocol, with 12 bytes behind
// the header.
func long4(protocol string) string {
	return strings.NewReplacer("0018", "0020", "40 fd", "40 "+protocol).Replace(ipv4)
}

func long6(protocol string) string { return strings.Replace(ipv6, "0004 fd", "000c "+protocol, 1) }

// What comes behind the end of an IP packet is padding, whatever it looks like.
func TestPaddingIsNoPartOfThePacket(t *testing.T) {
	const behind = "01020304 05060708 090a0b0c 0d0e0f10"
	inIPv4 := func(length, protocol string) string {
		return "0800" + strings.NewReplacer("0018", length, "40 fd", "40 "+protocol).Replace(ipv4)
	}
	inIPv6 := func(length, protocol string) string {
		return "86dd" + strings.Replace(ipv6, "0004 fd", length+" "+protocol, 1)
	}
	for _, c := range []struct {
		name, headers string
		l4, spi       bool
	}{
		{"IPv4 without payload", inIPv4("0014", "11"), false, false},
		{"IPv4 that ends in the ports", inIPv4("0017", "06"), false, false},
		{"IPv4 with ports", inIPv4("0018", "11"), true, false},
		{"IPv4 with options, and nothing behind them", "0800" + strings.Replace(option, "001c", "0018", 1), false, false},
		{"IPv4 that says it is shorter than its header", inIPv4("0013", "fd"), false, false},
		{"IPv4 with a protocol that is not parsed", inIPv4("0016", "fd"), false, false},
		{"IPv4 of a segmentation offload", inIPv4("0000", "06"), true, false},
		{"ESP that ends before its second word", inIPv4("001b", "32"), true, false},
		{"ESP", inIPv4("001c", "32"), true, true},
		{"AH that ends in its third word", inIPv4("001f", "33"), true, false},
		{"AH", inIPv4("0020", "33"), true, true},
		{"IPv6 that ends in the ports", inIPv6("0003", "11"), false, false},
		{"IPv6 with ports", inIPv6("0004", "06"), true, false},
		{"IPv6 with a protocol that is not parsed", inIPv6("0001", "fd"), false, false},
		{"a jumbogram", inIPv6("0000", "11"), true, false},
		{"ESP in IPv6 that ends before its second word", inIPv6("0007", "32"), true, false},
		{"ESP in IPv6", inIPv6("0008", "32"), true, true},
		{"AH in IPv6 that ends in its third word", inIPv6("000b", "33"), true, false},
		{"AH in IPv6", inIPv6("000c", "33"), true, true},
	} {
		p, q := ParseEthernet(frame(t, macs, c.headers, behind)), ParseIP(frame(t, c.headers[4:], behind))
		if p.HasL4 != c.l4 || p.HasSPI != c.spi || p.Family == 0 || p.HasL4 != (p.L4 != 0) {
			t.Errorf("%s: %+v", c.name, p)
		}
		if q.HasL4 != c.l4 || q.HasSPI != c.spi {
			t.Errorf("%s, without Ethernet: %+v", c.name, q)
		}
	}
	if p := ParseEthernet(frame(t, macs, inIPv6("0007", "2c"), "fd 00 0001 00000001", ports)); p.Protocol != 44 || p.HasL4 {
		t.Errorf("a fragment header in padding: %+v", p)
	}
}

func TestWhatANICSeesOfAFrame(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []byte
		want func(p *Packet) bool
	}{
		{"IPv4", frame(t, macs, "0800", ipv4, ports), func(p *Packet) bool {
			return p.Family == IPv4 && p.Protocol == 253 && p.TOS == 0x10 && p.HasL4 && p.L4 == l4 &&
				[4]byte(p.Source[:4]) == [4]byte{192, 0, 2, 7} && [4]byte(p.Destination[:4]) == [4]byte{198, 51, 100, 1} &&
				p.DestinationMAC == [6]byte{2, 0, 0, 0, 0, 1} && p.SourceMAC == [6]byte{2, 0, 0, 0, 0, 2}
		}},
		{"IPv6", frame(t, macs, "86dd", ipv6, ports), func(p *Packet) bool {
			return p.Family == IPv6 && p.Protocol == 253 && p.TOS == 0x12 && p.HasL4 && p.L4 == l4 && p.Destination[15] == 8
		}},
		{"options are skipped", frame(t, macs, "0800", option, ports), func(p *Packet) bool { return p.HasL4 && p.L4 == l4 }},
		{"a VLAN tag", frame(t, macs, "8100 200a 0800", ipv4, ports), func(p *Packet) bool {
			return p.Tagged && p.TagType == 0x8100 && p.VLAN == 0x200a && p.EtherType == 0x0800 && p.L4 == l4
		}},
		{"the outer of two tags counts", frame(t, macs, "88a8 000a 8100 0014 0800", ipv4, ports), func(p *Packet) bool {
			return p.TagType == 0x88a8 && p.VLAN == 10 && p.L4 == l4
		}},
		{"a third tag is not IP", frame(t, macs, "8100 0001 8100 0002 8100 0003 0800", ipv4, ports), func(p *Packet) bool {
			return p.Family == 0 && p.EtherType == 0x8100
		}},
		{"a first fragment has no ports", frame(t, macs, "0800", afFrag, ports), func(p *Packet) bool { return p.Family == IPv4 && !p.HasL4 }},
		{"a later fragment has no ports", frame(t, macs, "0800", lastFr, ports), func(p *Packet) bool { return p.Family == IPv4 && !p.HasL4 }},
		{"don't fragment is no fragment", frame(t, macs, "0800", dontFr, ports), func(p *Packet) bool { return p.HasL4 }},
		{"an IPv6 fragment is of the protocol behind its header, and has no ports", frame(t, macs, "86dd", fragment6, "fd 00 0001 00000001", ports),
			func(p *Packet) bool { return p.Family == IPv6 && p.Protocol == 253 && !p.HasL4 }},
		{"a fragment header that is cut", frame(t, macs, "86dd", fragment6, "fd 00 0001 000000"),
			func(p *Packet) bool { return p.Family == IPv6 && p.Protocol == 44 && !p.HasL4 }},
		{"cut in the ports", frame(t, macs, "0800", ipv4, "0fa0 00"), func(p *Packet) bool { return p.Family == IPv4 && !p.HasL4 }},
		{"cut in the IP header", frame(t, macs, "0800", "4500"), func(p *Packet) bool { return p.Family == 0 && p.EtherType == 0 }},
		{"version does not fit the EtherType", frame(t, macs, "0800", ipv6, ports), func(p *Packet) bool { return p.Family == 0 && p.EtherType == 0 }},
		{"header length below 20", frame(t, macs, "0800", strings.Replace(ipv4, "45", "44", 1), ports),
			func(p *Packet) bool { return p.Family == IPv4 && !p.HasL4 }},
		{"the SPI of ESP", frame(t, macs, "0800", long4("32"), "01020304 00000001"), func(p *Packet) bool {
			return p.HasSPI && p.SPI == 0x01020304 && p.HasL4
		}},
		{"the SPI of AH", frame(t, macs, "86dd", long6("33"), "06040000 01020304 00000001"), func(p *Packet) bool {
			return p.HasSPI && p.SPI == 0x01020304 && p.L4 == 0x06040000
		}},
		{"ESP that is cut short", frame(t, macs, "0800", long4("32"), "01020304 000000"), func(p *Packet) bool { return !p.HasSPI }},
		{"AH that is cut short", frame(t, macs, "0800", long4("33"), "06040000 01020304 000000"), func(p *Packet) bool { return !p.HasSPI }},
		{"a fragment of ESP", frame(t, macs, "0800", strings.Replace(afFrag, "fd", "32", 1), "01020304 00000001"), func(p *Packet) bool { return !p.HasSPI }},
		{"no SPI in other protocols", frame(t, macs, "0800", long4("fd"), "06040000 01020304 00000001"), func(p *Packet) bool { return !p.HasSPI }},
		{"ARP", frame(t, macs, "0806", "0001"), func(p *Packet) bool { return p.Family == 0 && p.EtherType == 0x0806 }},
		{"empty", nil, func(p *Packet) bool { return *p == Packet{} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if p := ParseEthernet(c.in); !c.want(&p) {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestAPacketWithoutEthernet(t *testing.T) {
	for _, c := range []struct {
		in        string
		family    Family
		etherType uint16
	}{{ipv4 + ports, IPv4, 0x0800}, {ipv6 + ports, IPv6, 0x86dd}, {"00", 0, 0}, {"", 0, 0}} {
		if p := ParseIP(frame(t, c.in)); p.Family != c.family || p.EtherType != c.etherType || p.HasL4 != (c.family != 0) {
			t.Errorf("%q: %+v", c.in, p)
		}
	}
}

// The published vectors of "Verifying the RSS hash calculation" (the same that
// DPDK's and FreeBSD's tests use).
func TestRSSHashesAsThePublishedVectors(t *testing.T) {
	r := DefaultRSS(1, HashInput{})
	for _, c := range []struct {
		dst, src         string
		withPorts, noTCP uint32
		dstPort, srcPort uint16
	}{
		{"161.142.100.80", "66.9.149.187", 0x51ccc178, 0x323e8fc2, 1766, 2794},
		{"65.69.140.83", "199.92.111.2", 0xc626b0ea, 0xd718262a, 4739, 14230},
		{"12.22.207.184", "24.19.198.95", 0x5c2b394a, 0xd2d0a5de, 38024, 12898},
		{"209.142.163.6", "38.27.205.30", 0xafc7327f, 0x82989176, 2217, 48228},
		{"202.188.127.2", "153.39.163.191", 0x10e828a2, 0x5d1809c5, 1303, 44251},
		{"3ffe:2501:200:3::1", "3ffe:2501:200:1fff::7", 0x40207d3d, 0x2cc18cd5, 1766, 2794},
		{"ff02::1", "3ffe:501:8::260:97ff:fe40:efab", 0xdde51bbf, 0x0f0c461c, 4739, 14230},
		{"fe80::200:f8ff:fe21:67cf", "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 0x02d1feef, 0x4b61e985, 38024, 44251},
	} {
		p := Packet{Family: IPv4, Protocol: 6, HasL4: true, L4: uint32(c.srcPort)<<16 | uint32(c.dstPort)}
		src, dst := netip.MustParseAddr(c.src), netip.MustParseAddr(c.dst)
		if src.Is6() {
			p.Family = IPv6
		}
		copy(p.Source[:], src.AsSlice())
		copy(p.Destination[:], dst.AsSlice())
		if got := r.Hash(&p); got != c.withPorts {
			t.Errorf("%s: %#x with ports, want %#x", c.dst, got, c.withPorts)
		}
		p.Protocol = 146
		if got := r.Hash(&p); got != c.noTCP {
			t.Errorf("%s: %#x addresses only, want %#x", c.dst, got, c.noTCP)
		}
	}
}

func FuzzClassify(f *testing.F) {
	for _, s := range []string{macs + "0800" + ipv4 + ports, macs + "86dd" + ipv6 + ports, macs + "8100 200a 0800" + lastFr} {
		b, _ := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
		f.Add(b, uint64(1))
	}
	f.Fuzz(func(t *testing.T, frame []byte, seed uint64) {
		_, entries, p := world(seed)
		wanted, _, _ := Compile(entries[:1], p, lawBudget)
		rules := rulesOf(wanted)
		c := NewClassifier(tableOf(rules), p, DefaultRSS(16, HashInput{}))
		for _, pkt := range []Packet{ParseEthernet(frame), ParseIP(frame)} {
			v := c.Classify(&pkt)
			if want := decide(rules, p, &pkt); v.Matched != (len(want) > 0) {
				t.Fatalf("%+v: %+v, want %v", pkt, v, want)
			}
		}
	})
}

func FuzzPlan(f *testing.F) {
	for seed := range uint64(30) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		want, have := planWorld(seed)
		checkPlan(t, seed, want, have)
	})
}
