// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

func protocols(name string) (uint8, bool) {
	n, ok := map[string]uint8{"tcp": 6, "udp": 17, "sctp": 132, "homa": 146}[name]
	return n, ok
}

func parse(t *testing.T, text string) Flow {
	t.Helper()
	f, err := ParseFlow(text, protocols)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return f
}

// made is every packet of the flows as text: the fields that they vary.
func made(t *testing.T, flows ...Flow) (packets []string) {
	t.Helper()
	m := NewMaker(flows)
	for {
		frame, outgoing, err := m.Next()
		if err == io.EOF {
			return packets
		}
		if err != nil || outgoing {
			t.Fatal(outgoing, err)
		}
		p := steer.ParseEthernet(frame)
		if p.Family == 0 {
			packets = append(packets, fmt.Sprintf("ether-type 0x%04x", p.EtherType))
			continue
		}
		source, destination := netip.AddrFrom16(p.Source), netip.AddrFrom16(p.Destination)
		if p.Family == steer.IPv4 {
			source, destination = netip.AddrFrom4([4]byte(p.Source[:4])), netip.AddrFrom4([4]byte(p.Destination[:4]))
		}
		packets = append(packets, fmt.Sprintf("%d %s:%d %s:%d", p.Protocol, source, p.L4>>16, destination, p.L4&0xffff))
	}
}

func TestValuesAreTakenInTurn(t *testing.T) {
	for _, c := range []struct {
		flow string
		want []string
	}{
		{"protocol=146 family=ipv4 source-port=7 destination-port=0-2 packets=4",
			[]string{"146 198.51.100.1:7 192.0.2.1:0", "146 198.51.100.1:7 192.0.2.1:1", "146 198.51.100.1:7 192.0.2.1:2", "146 198.51.100.1:7 192.0.2.1:0"}},
		{"protocol=homa source-port=1,9 destination-port=5,6 packets=5",
			[]string{"146 198.51.100.1:1 192.0.2.1:5", "146 2001:db8:1::1:1 2001:db8:2::1:5", "146 198.51.100.1:1 192.0.2.1:6", "146 2001:db8:1::1:1 2001:db8:2::1:6", "146 198.51.100.1:9 192.0.2.1:5"}},
		{"protocol=udp source=10.0.0.0/31,10.0.1.9 destination=10.2.0.1 source-port=1 destination-port=2-3 packets=7",
			[]string{"17 10.0.0.0:1 10.2.0.1:2", "17 10.0.0.0:1 10.2.0.1:3", "17 10.0.0.1:1 10.2.0.1:2", "17 10.0.0.1:1 10.2.0.1:3", "17 10.0.1.9:1 10.2.0.1:2", "17 10.0.1.9:1 10.2.0.1:3", "17 10.0.0.0:1 10.2.0.1:2"}},
		{"protocol=253 destination=fd00::/127 l4data=0x00010002 packets=3",
			[]string{"253 2001:db8:1::1:1 fd00:::2", "253 2001:db8:1::1:1 fd00::1:2", "253 2001:db8:1::1:1 fd00:::2"}},
		{"ether-type=0x88f7 packets=2", []string{"ether-type 0x88f7", "ether-type 0x88f7"}},
	} {
		got := made(t, parse(t, c.flow))
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s\ngot  %q\nwant %q", c.flow, got, c.want)
		}
	}
}

func TestEveryPortComesEquallyOften(t *testing.T) {
	counts := map[string]int{}
	for _, p := range made(t, parse(t, "protocol=homa destination-port=0-15 packets=1600")) {
		counts[p[strings.LastIndex(p, ":"):]]++
	}
	for port, n := range counts {
		if n != 100 || len(counts) != 16 {
			t.Errorf("port %s: %d packets of %d ports, want 100 of 16", port, n, len(counts))
		}
	}
}

func TestRandomValuesStayInTheirRangeAndRepeat(t *testing.T) {
	flow := parse(t, "protocol=udp source=random:192.0.2.0/24 destination=random:2001:db8::/32,198.51.100.0/30 source-port=random:1024-1100,9 destination-port=53 packets=2000 family=ipv4")
	first, second := made(t, flow), made(t, flow)
	if strings.Join(first, "\n") != strings.Join(second, "\n") {
		t.Error("the same flow makes other packets the second time")
	}
	seen := map[string]bool{}
	for _, p := range first {
		fields := strings.Fields(p)
		source := netip.MustParseAddrPort(fields[1])
		destination := netip.MustParseAddrPort(fields[2])
		seen[fields[1]] = true
		port := source.Port()
		if !netip.MustParsePrefix("192.0.2.0/24").Contains(source.Addr()) || !netip.MustParsePrefix("198.51.100.0/30").Contains(destination.Addr()) ||
			port != 9 && (port < 1024 || port > 1100) || destination.Port() != 53 {
			t.Fatal(p)
		}
	}
	if len(seen) < 1000 {
		t.Errorf("%d different sources of 2000", len(seen))
	}
}

func TestFreeBitsOfL4DataAreRandom(t *testing.T) {
	seen := map[uint32]bool{}
	m := NewMaker([]Flow{parse(t, "protocol=253 l4data=0x3/0xf packets=1000")})
	for range 1000 {
		frame, _, _ := m.Next()
		p := steer.ParseEthernet(frame)
		if seen[p.L4] = true; p.L4&0xf != 3 {
			t.Fatalf("l4data 0x%x", p.L4)
		}
	}
	if len(seen) < 990 {
		t.Errorf("%d different values of 1000", len(seen))
	}
}

func TestFlowsFollowEachOther(t *testing.T) {
	flows := []Flow{parse(t, "ether-type=0x88f7 packets=1"), parse(t, "protocol=6 family=ipv6 source-port=1 destination-port=2 packets=1")}
	got := made(t, flows...)
	if len(got) != 2 || got[0] != "ether-type 0x88f7" || got[1] != "6 2001:db8:1::1:1 2001:db8:2::1:2" {
		t.Error(got)
	}
	if Total(flows) != 2 {
		t.Error(Total(flows))
	}
}

func TestTagAndDestinationMACAreInTheFrame(t *testing.T) {
	m := NewMaker([]Flow{parse(t, "protocol=udp vlan=42 destination-mac=02:aa:bb:cc:dd:ee family=ipv4")})
	frame, _, _ := m.Next()
	p := steer.ParseEthernet(frame)
	if !p.Tagged || p.VLAN != 42 || p.DestinationMAC != [6]byte{2, 0xaa, 0xbb, 0xcc, 0xdd, 0xee} || p.Family != steer.IPv4 {
		t.Errorf("%+v", p)
	}
}

func TestMistakesInADescriptionAreExplained(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "say which protocol=",
		"packets=5":                           "say which protocol=",
		"protocol":                            `"protocol": write KEY=VALUE`,
		"protocol=udp, family=ipv4":           "a protocol is a number from 0 to 255 or a name",
		"protocol=udp port=5":                 `"port": there is no such key; the keys are destination, destination-mac,`,
		"protocol=udp protocol=tcp":           `"protocol" is given twice`,
		"protocol=256":                        "0 to 255",
		"protocol=udp packets=0":              "whole number from 1",
		"protocol=udp packets=1k":             "whole number from 1",
		"protocol=udp family=ipv5":            `"ipv5": a family is ipv4 or ipv6`,
		"protocol=udp source=300.0.0.1":       `"300.0.0.1": write an address or a prefix`,
		"protocol=udp source=fe80::1%eth0":    "write an address or a prefix",
		"protocol=udp source=::ffff:10.0.0.1": "write the IPv4 address itself",
		"protocol=udp source=10.0.0.1 destination=fd00::1": "no family has both",
		"protocol=udp source=10.0.0.1 family=ipv6":         "IPv6 packets need a source and a destination of that family",
		"protocol=udp destination-port=15-0":               `"15-0": ports are`,
		"protocol=udp destination-port=65536":              "from 0 to 65535",
		"protocol=udp destination-port=":                   `"": ports are`,
		"protocol=udp source-port=random:":                 `"": ports are`,
		"protocol=253 l4data=017":                          "write four bytes and a mask",
		"protocol=253 l4data=0x1/":                         "write four bytes and a mask",
		"protocol=253 l4data=1 source-port=1":              "the same four bytes",
		"protocol=udp vlan=0":                              "from 1 to 4094",
		"protocol=udp destination-mac=02":                  "write the address as",
		"ether-type=0x88f7 protocol=udp":                   "does not go with protocol",
		"ether-type=0x0800":                                "described by family and protocol",
		"ether-type=0x8100":                                "described by vlan=",
		"ether-type=5":                                     "from 0x0600",
	} {
		_, err := ParseFlow(text, protocols)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// FuzzParseFlow: any text is an error or makes as many packets as it says.
func FuzzParseFlow(f *testing.F) {
	f.Add("protocol=homa destination-port=0-15 family=ipv4 packets=16")
	f.Add("protocol=udp source=random:10.0.0.0/8,::/0 destination=::/0,0.0.0.0/0 source-port=1,2-5 vlan=5")
	f.Add("protocol=253 l4data=0x3/0xf destination-mac=02:00:00:00:00:01")
	f.Add("ether-type=0x88f7 packets=3")
	f.Fuzz(func(t *testing.T, text string) {
		flow, err := ParseFlow(text, protocols)
		if err != nil {
			return
		}
		flow.Packets = min(flow.Packets, 300)
		m := NewMaker([]Flow{flow})
		for range flow.Packets {
			frame, _, err := m.Next()
			if err != nil {
				t.Fatal(err)
			}
			p := steer.ParseEthernet(frame)
			if flow.EtherType == 0 && (p.Protocol != flow.Protocol || !p.HasL4 && steer.Parsed(flow.Protocol)) {
				t.Fatalf("%q makes %+v", text, p)
			}
			if flow.EtherType != 0 && (p.Family != 0 || binary.BigEndian.Uint16(frame[len(frame)-2:]) != 0) {
				t.Fatalf("%q makes %+v", text, p)
			}
		}
		if _, _, err := m.Next(); err != io.EOF {
			t.Fatalf("%q makes more than %d packets", text, flow.Packets)
		}
	})
}
