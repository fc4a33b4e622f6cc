// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ethtool

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// goldenRules are the rules of testdata/golden.c, written again by hand.
func goldenRules() map[string]struct {
	loc  steer.Loc
	rule steer.Rule
} {
	type row = struct {
		loc  steer.Loc
		rule steer.Rule
	}
	from4, to4 := prefix("192.0.2.0/24"), prefix("198.51.100.7/32")
	from6, to6 := prefix("2001:db8::/32"), prefix("2001:db8::7/128")
	tos := steer.Bits8{Value: 0xb8, Mask: 0xfc}
	source := steer.Bits16{Value: 0x1230, Mask: 0xfff0}
	dns := steer.Bits16{Value: 53, Mask: 0xffff}
	mac := steer.MACBits{Value: [6]byte{2, 0, 0, 0, 0, 1}, Mask: [6]byte{255, 255, 255, 255, 255, 255}}
	raw := steer.Match{Flow: steer.IP4, Protocol: steer.Bits8{Value: 253, Mask: 0xff}, L4Data: steer.Bits32{Value: 3, Mask: 0xf}}
	with := func(m steer.Match, change func(*steer.Match)) steer.Match { change(&m); return m }
	ports4 := func(f steer.FlowType) steer.Match {
		return steer.Match{Flow: f, Source: from4, Destination: to4, TOS: tos, SourcePort: source, DestinationPort: dns}
	}
	ports6 := func(f steer.FlowType) steer.Match {
		return steer.Match{Flow: f, Source: from6, Destination: to6, TOS: tos, SourcePort: source, DestinationPort: dns}
	}
	queue := func(loc steer.Loc, q uint32, m steer.Match) row {
		return row{loc, steer.Rule{Match: m, Action: steer.ToQueue(q)}}
	}
	return map[string]row{
		"ip4-l4data":   queue(17, 3, raw),
		"ip4-anything": queue(0, 0, steer.Match{Flow: steer.IP4}),
		"ip4-all": queue(1023, 31, with(raw, func(m *steer.Match) {
			m.Source, m.Destination, m.TOS = from4, to4, tos
		})),
		"ip6-all": queue(1, 2, steer.Match{
			Flow: steer.IP6, Source: from6, Destination: to6, TOS: tos,
			Protocol: steer.Bits8{Value: 146, Mask: 0xff}, L4Data: steer.Bits32{Value: 4001 << 16, Mask: 0xffff0000},
		}),
		"tcp4":  queue(2, 4, ports4(steer.TCP4)),
		"udp4":  queue(3, 5, ports4(steer.UDP4)),
		"sctp4": queue(4, 6, ports4(steer.SCTP4)),
		"tcp6":  queue(5, 7, ports6(steer.TCP6)),
		"udp6":  queue(6, 8, ports6(steer.UDP6)),
		"sctp6": queue(7, 9, ports6(steer.SCTP6)),
		"ether": queue(8, 10, steer.Match{
			Flow: steer.Ether, DestinationMAC: mac, EtherType: steer.Bits16{Value: 0x88f7, Mask: 0xffff},
			SourceMAC: steer.MACBits{Value: [6]byte{2, 0, 0x5e}, Mask: [6]byte{255, 255, 255}},
		}),
		"ip4-ext": queue(9, 11, with(raw, func(m *steer.Match) {
			m.DestinationMAC = mac
			m.VLANEtherType, m.VLAN = steer.Bits16{Value: 0x8100, Mask: 0xffff}, steer.Bits16{Value: 100, Mask: 0xfff}
		})),
		"ether-vlan": queue(10, 12, steer.Match{Flow: steer.Ether, VLAN: steer.Bits16{Value: 100, Mask: 0xfff}}),
		"udp6-mac":   queue(11, 13, with(ports6(steer.UDP6), func(m *steer.Match) { m.DestinationMAC = mac })),
		"drop":       {12, steer.Rule{Match: raw, Action: steer.Drop}},
		"vf":         {13, steer.Rule{Match: raw, Action: steer.Action{Queue: 1, VF: 6}}},
		"rss":        {14, steer.Rule{Match: raw, Action: steer.Action{Context: 2}}},
	}
}

func prefix(s string) steer.AddrBits { return steer.AddrFromPrefix(netip.MustParsePrefix(s)) }

func TestRulesAreByteForByteWhatTheSystemHeaderSays(t *testing.T) {
	want := goldenLines(t, "rule")
	rules := goldenRules()
	for name, row := range rules {
		x, err := Encode(row.loc, row.rule)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := hex.EncodeToString(x[:]); got != want[name] {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want[name])
		}
	}
	for name, text := range want {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		row, known := rules[name]
		if loc, rule := Decode(b); !known || loc != row.loc || rule != row.rule {
			t.Errorf("%s: decoded to location %d, %+v", name, loc, rule)
		}
	}
}

func TestLayoutIsThatOfTheSystemHeader(t *testing.T) {
	sizes, offsets, constants := goldenLines(t, "size"), goldenLines(t, "offset"), goldenLines(t, "constant")
	for name, size := range map[string]int{
		"ethtool_rxnfc": Size, "ethtool_channels": channelsSize, "ethtool_drvinfo": 196,
		"ethtool_sset_info": 16, "ethtool_gstrings": 12, "ethtool_stats": 8,
	} {
		expect(t, "size of "+name, fmt.Sprint(size), sizes[name])
	}
	for name, offset := range map[string]int{
		"cmd": offCmd, "data": offData, "fs.flow_type": offFlow, "fs.h_u": offMatch, "fs.h_ext": offExt,
		"fs.h_ext.h_dest": offMAC, "fs.h_ext.vlan_etype": offVLANEther, "fs.h_ext.vlan_tci": offVLAN,
		"fs.m_u": offMatch + maskAfter, "fs.m_ext": offExt + maskAfter, "fs.ring_cookie": offCookie,
		"fs.location": offLocation, "rule_cnt": offRuleCount, "rss_context": offRSSContext, "rule_locs": offLocations,
	} {
		expect(t, "offset of "+name, fmt.Sprint(offset), offsets[name])
	}
	for name, value := range map[string]uint32{
		"ETHTOOL_GRXRINGS": unix.ETHTOOL_GRXRINGS, "ETHTOOL_GRXCLSRLCNT": unix.ETHTOOL_GRXCLSRLCNT,
		"ETHTOOL_GRXCLSRULE": unix.ETHTOOL_GRXCLSRULE, "ETHTOOL_GRXCLSRLALL": unix.ETHTOOL_GRXCLSRLALL,
		"ETHTOOL_SRXCLSRLDEL": unix.ETHTOOL_SRXCLSRLDEL, "ETHTOOL_SRXCLSRLINS": unix.ETHTOOL_SRXCLSRLINS,
		"ETHTOOL_GCHANNELS": unix.ETHTOOL_GCHANNELS, "ETHTOOL_SCHANNELS": unix.ETHTOOL_SCHANNELS,
		"ETH_SS_STATS": statsSet, "ETH_GSTRING_LEN": stringSize, "RX_CLS_LOC_SPECIAL": locSpecial,
	} {
		expect(t, name, fmt.Sprintf("%#x", value), constants[name])
	}
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %s here and %q in linux/ethtool.h", what, got, want)
	}
}

// goldenLines runs testdata/golden.c and gives its lines of one kind, by name.
func goldenLines(t *testing.T, kind string) map[string]string {
	t.Helper()
	out, err := exec.Command(compile(t, "golden.c")).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == kind {
			lines[f[1]] = f[2]
		}
	}
	if len(lines) == 0 {
		t.Fatalf("golden.c printed no %s", kind)
	}
	return lines
}

// compile builds a C file of testdata. Without a compiler the test is skipped,
// but not in CI, which must have one.
func compile(t *testing.T, name string, flags ...string) string {
	t.Helper()
	needTool(t, "cc")
	out := filepath.Join(t.TempDir(), strings.TrimSuffix(name, ".c"))
	args := append([]string{"-Wall", "-Wextra", "-Werror", "-O1", "-o", out, filepath.Join("testdata", name)}, flags...)
	if text, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, text)
	}
	return out
}

func needTool(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing", name)
	}
	t.Skipf("%s is missing", name)
}
