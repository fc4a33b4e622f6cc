// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// hashed is where RSS puts a frame on c.
func (c *card) hashed(w wire) uint32 {
	c.t.Helper()
	v := c.Steer(w.bytes())
	if len(v.Queues) != 1 {
		c.t.Fatalf("queues %v: %s", v.Queues, v.Path)
	}
	return v.Queues[0]
}

// goes checks that a frame comes to one queue, or with none to nobody.
func (c *card) goes(name string, w wire, queue ...uint32) {
	c.t.Helper()
	if v := c.Steer(w.bytes()); !slices.Equal(v.Queues, queue) || v.Dropped {
		c.t.Errorf("%s: queues %#x, dropped %t, want %#x\n%s", name, v.Queues, v.Dropped, queue, v.Path)
	}
}

func (c *card) drops(name string, w wire) {
	c.t.Helper()
	if v := c.Steer(w.bytes()); len(v.Queues) != 0 || !v.Dropped {
		c.t.Errorf("%s: queues %#x, dropped %t\n%s", name, v.Queues, v.Dropped, v.Path)
	}
}

func TestAddressesDecideWhoIsReceived(t *testing.T) {
	c := newCard(t, 16)
	arp := wire{dmac: hostMAC, smac: peerMAC, etherType: 0x0806, l4: make([]byte, 46)}
	other, multi, broadcast := arp, arp, arp
	other.dmac, multi.dmac, broadcast.dmac = [6]byte{2, 9, 9, 9, 9, 9}, [6]byte{1, 0, 0x5e, 1, 2, 3}, [6]byte{255, 255, 255, 255, 255, 255}
	c.goes("own address, no IP: the first channel", arp, c.queues[0])
	c.goes("broadcast", broadcast, c.queues[0])
	c.goes("another host's", other)
	c.goes("a multicast group that nobody joined", multi)

	c.entry(c.l2, c.l2Groups[1], 1<<15, match("dmac", 1<<40), toTable(c.ttc))
	c.goes("all multicast", multi, c.queues[0])
	c.goes("all multicast is not promiscuous", other)

	c.promisc = c.table(20, 0, c.vlan)
	c.must(c.SetRoot(c.promisc))
	c.entry(c.promisc, c.group(c.promisc, 0, 0, Match{}), 0, Match{}, toTable(c.ttc))
	c.goes("promiscuous", other, c.queues[0])
}

func TestVLANsDecideWhoIsReceived(t *testing.T) {
	c := newCard(t, 16)
	tagged := func(tags ...vlan) wire {
		w := to4(17, udp(1, 2))
		w.tags = tags
		return w
	}
	to := c.hashed(tagged())
	c.goes("VLAN 0 is in the table from the start", tagged(vlan{0x8100, 0x4000}), to)
	c.goes("a C-VLAN that is not", tagged(vlan{0x8100, 5}))
	c.goes("an S-tag is not untagged, although its cvlan_tag is 0", tagged(vlan{0x88a8, 5}))

	c.entry(c.vlan, c.vlanGroups[0], 1, match("cvlan_tag", 1, "first_vid", 5), toTable(c.l2))
	c.goes("a C-VLAN that is", tagged(vlan{0x8100, 0xe005}), to)
	c.goes("the same number in an S-tag", tagged(vlan{0x88a8, 5}))
	c.entry(c.vlan, c.vlanGroups[1], 4096, match("svlan_tag", 1, "first_vid", 5), toTable(c.l2))
	c.goes("an S-VLAN that is", tagged(vlan{0x88a8, 5}, vlan{0x8100, 7}), to)
	c.goes("the outer tag counts", tagged(vlan{0x8100, 7}, vlan{0x8100, 5}))

	c.entry(c.vlan, c.vlanGroups[2], 8193, match("cvlan_tag", 1), toTable(c.l2))
	c.goes("any C-VLAN", tagged(vlan{0x8100, 7}), to)
	c.goes("any C-VLAN is no S-VLAN", tagged(vlan{0x88a8, 7}))
	c.entry(c.vlan, c.vlanGroups[3], 8194, match("svlan_tag", 1), toTable(c.l2))
	c.goes("any S-VLAN", tagged(vlan{0x88a8, 7}), to)
}

func TestTrafficTypesAreSpreadByWhatTheyHave(t *testing.T) {
	c := newCard(t, 16)
	const ip = 1 | 1<<2
	fragment := to4(17, udp(1, 2))
	fragment.more = true
	for name, x := range map[string]struct {
		w    wire
		kind uint8
	}{
		"TCP": {to4(6, tcp(1, 2, 16, 0)), ip | 1<<4 | 1<<6}, "UDP": {to4(17, udp(1, 2)), ip | 2<<4 | 2<<6}, "fragment": {fragment, ip},
		"ESP": {to4(50, udp(1, 2)), ip | 3<<4 | 3<<6}, "AH": {to4(51, make([]byte, 24)), ip | 3<<4 | 3<<6}, "ICMP": {to4(1, make([]byte, 8)), ip},
		"GRE": {to4(47, make([]byte, 60)), ip}, "TCP over IPv6": {to6(6, tcp(1, 2, 16, 0)), 2 | 2<<2 | 1<<4 | 1<<6},
		"unknown over IPv6": {to6(253, udp(1, 2)), 2 | 2<<2}, "no IP": {wire{dmac: hostMAC}, 0},
	} {
		if v := c.Steer(x.w.bytes()); v.HashType != x.kind {
			t.Errorf("%s: hash type %#x, want %#x: %s", name, v.HashType, x.kind, v.Path)
		}
	}
	used := map[uint32]bool{}
	for port := range 200 {
		used[c.hashed(to4(17, udp(uint16(port*7919), 53)))] = true
	}
	if len(used) != 16 {
		t.Errorf("200 ports came to %d of 16 queues", len(used))
	}
}

func TestRulesGoBeforeEverythingElse(t *testing.T) {
	c := newCard(t, 16)
	udp4 := match("ethertype", 0xffff, "ip_protocol", 255, "udp_dport", 0xffff)
	c.rule(5, udp4, match("ethertype", 0x800, "ip_protocol", 17, "udp_dport", 53), 7)
	c.rule(5, udp4, match("ethertype", 0x800, "ip_protocol", 17, "udp_dport", 54))
	c.goes("a rule", to4(17, udp(9, 53)), c.queues[7])
	c.drops("a rule without a queue", to4(17, udp(9, 54)))
	c.goes("another port", to4(17, udp(9, 55)), c.hashed(to4(17, udp(9, 55))))
	c.goes("TCP", to4(6, tcp(9, 53, 2, 0)), c.hashed(to4(6, tcp(9, 53, 2, 0))))
	stranger := to4(17, udp(9, 53))
	stranger.dmac, stranger.tags = [6]byte{2, 9, 9, 9, 9, 9}, []vlan{{0x8100, 77}}
	c.goes("rules know nothing of the host's addresses and VLANs", stranger, c.queues[7])

	c.rule(3, match("ethertype", 0xffff, "ip_protocol", 255, "udp_dport", 0xffff, "src3", 0xffffffff, "dst3", 0xffffffff),
		match("ethertype", 0x800, "ip_protocol", 17, "udp_dport", 53, "src3", 0x0a000002, "dst3", 0x0a000001), 9)
	c.goes("more tuples go first, though they came later", to4(17, udp(9, 53)), c.queues[9])
	c.rule(10, match("smac", 0xffffffffffff), match("smac", int(mac48(peerMAC))), 3)
	c.goes("ether rules go last", to4(17, udp(9, 53)), c.queues[9])
	c.goes("ether rules go before RSS", to4(17, udp(9, 99)), c.queues[3])
	c.rule(6, match("ethertype", 0xffff), match("ethertype", 0x86dd), 4)
	c.goes("a table between two others", to6(17, udp(9, 99)), c.queues[4])
}

func TestInATableTheLowerIndexDecides(t *testing.T) {
	c := newCard(t, 16)
	wide, narrow := match("ethertype", 0xffff, "src3", 0xffff0000), match("ethertype", 0xffff, "src3", 0xffffffff)
	c.rule(5, wide, match("ethertype", 0x800, "src3", 0x0a000000), 1)
	c.rule(5, narrow, match("ethertype", 0x800, "src3", 0x0a000002), 2)
	c.goes("the group that is there first, although the other compares more", to4(17, udp(1, 2)), c.queues[1])

	// Where a group goes away, the next new one gets its indexes.
	table, g := c.ethtool[5], c.ethtoolGroups[ethtoolGroup{5, wide}]
	c.must(c.DeleteEntry(table, 0))
	c.must(c.DestroyGroup(table, g))
	c.goes("the other one", to4(17, udp(1, 2)), c.queues[2])
	again := c.group(table, 0, 5817, wide)
	c.entry(table, again, 5, match("ethertype", 0x800, "src3", 0x0a000000), toTIR(c.tirs[3]))
	c.goes("a younger group at lower indexes", to4(17, udp(1, 2)), c.queues[3])

	c.entry(table, again, 4, match("ethertype", 0x800, "src3", 0x0a000000), toTIR(c.tirs[4]))
	c.goes("the same value twice", to4(17, udp(1, 2)), c.queues[4])
	if v := c.Steer(to4(17, udp(1, 2)).bytes()); v.Path[0].Entry != 4 || v.Path[0].Rival != 5 {
		t.Errorf("entry %d, rival %d", v.Path[0].Entry, v.Path[0].Rival)
	}
	c.must(c.DeleteEntry(table, 4))
	c.goes("until the lower one goes", to4(17, udp(1, 2)), c.queues[3])
}

func TestARivalMayBeInATwinGroup(t *testing.T) {
	c := newCard(t, 2)
	criteria, value := match("ip_protocol", 255), match("ip_protocol", 253)
	table := c.table(1, 7, c.vlan)
	c.must(c.SetRoot(table))
	c.group(table, 30, 39, match("ip_protocol", 15))
	last := c.group(table, 40, 49, criteria)
	first := c.group(table, 0, 9, criteria)
	middle := c.group(table, 10, 19, criteria)
	rival := func() int { return c.Steer(to4(253, nil).bytes()).Path[0].Rival }
	c.entry(table, first, 3, value)
	if got := rival(); got != -1 {
		t.Errorf("rival %d of a single entry", got)
	}
	c.entry(table, last, 44, value)
	if got := rival(); got != 44 {
		t.Errorf("rival %d, want 44", got)
	}
	c.entry(table, middle, 14, value)
	if got := rival(); got != 14 {
		t.Errorf("rival %d, want 14", got)
	}
	c.must(c.DeleteEntry(table, 14))
	c.must(c.DestroyGroup(table, middle))
	if got := rival(); got != 44 {
		t.Errorf("rival %d after the middle group went, want 44", got)
	}
}

func TestAParseGraphNodeLetsRulesSeeBehindIP(t *testing.T) {
	c := newCard(t, 16)
	sample := c.node(253)
	for q := range 16 {
		c.flexRule(0x0800, 253, sample, q, 0xf, q)
		c.flexRule(0x86dd, 253, sample, q, 0xf, q)
	}
	for port := range uint16(64) {
		c.goes("IPv4", to4(253, ports(9, port, 4)), c.queues[port%16])
		c.goes("IPv6", to6(253, ports(9, port, 40)), c.queues[port%16])
	}
	extended := to6(253, ports(9, 3, 4))
	extended.extensions = []extension{{0, 0}, {60, 1}}
	c.goes("behind extension headers", extended, c.queues[3])
	fragment := to4(253, ports(9, 3, 4))
	fragment.offset = 7
	c.goes("a fragment: the rules say frag 0", fragment, c.hashed(fragment))
	other := to4(254, ports(9, 3, 4))
	c.goes("another protocol", other, c.hashed(other))

	exact := c.node(254)
	c.rule(4, match("ethertype", 0xffff, "ip_protocol", 255, "value_3", 0xffff0000, "id_3", exact),
		match("ethertype", 0x800, "ip_protocol", 254, "value_3", 0x00090000, "id_3", exact), 11)
	c.goes("any of misc4's four pairs", other, c.queues[11])
	fragment.proto = 254
	c.goes("without frag 0 in the rule a later fragment's payload is taken for the header", fragment, c.queues[11])
}

func TestNoFieldOfAHeaderThatIsNotThereMatches(t *testing.T) {
	c := newCard(t, 16)
	table := c.table(1, 8, c.vlan)
	c.must(c.SetRoot(table))
	for i, field := range []string{"tcp_sport", "tcp_dport", "tcp_flags", "udp_sport", "udp_dport", "icmp_type", "icmp_code", "icmp_header_data",
		"icmpv6_type", "icmpv6_code", "icmpv6_header_data", "gre_c_present", "gre_protocol", "gre_key", "outer_esp_spi"} {
		g := c.group(table, uint32(10*i), uint32(10*i+9), match(field, 1))
		c.entry(table, g, uint32(10*i), Match{}, toTIR(c.tirs[i]))
	}
	first, later := to4(17, udp(0, 0)), to6(6, tcp(0, 0, 0, 0))
	first.more = true
	later.extensions, later.offset = []extension{{44, 0}}, 9
	for name, w := range map[string]wire{"first fragment": first, "later fragment": later, "cut short": to4(17, make([]byte, 7)),
		"another protocol": to4(253, make([]byte, 40)), "ICMPv6 behind IPv4": to4(58, make([]byte, 8)), "no IP": {}} {
		if v := c.Steer(w.bytes()); v.Path[0].Entry >= 0 {
			t.Errorf("%s: %v", name, v.Path)
		}
	}
	for name, w := range map[string]wire{"TCP": to4(6, tcp(0, 0, 0, 0)), "UDP": to6(17, udp(0, 0)), "ICMP": to4(1, make([]byte, 8)),
		"ICMPv6": to6(58, make([]byte, 8)), "GRE": to4(47, make([]byte, 8)), "ESP": to4(50, make([]byte, 8))} {
		if v := c.Steer(w.bytes()); v.Path[0].Entry < 0 {
			t.Errorf("%s: %v", name, v.Path)
		}
	}
}

func TestASampleIsZeroWhereItsNodeIsNotPassed(t *testing.T) {
	c := newCard(t, 16)
	sample := c.node(253)
	table := c.table(1, 7, c.vlan)
	c.must(c.SetRoot(table))
	g := c.group(table, 0, 9, match("value_0", 0xff, "id_0", sample))
	c.entry(table, g, 0, match("id_0", sample), toTIR(c.tirs[9]))
	c.goes("its own", to4(253, ports(9, 0x100, 4)), c.queues[9])
	for name, w := range map[string]wire{"other protocol": to4(17, udp(1, 2)), "cut short": to4(253, []byte{0, 0, 9}), "no IP": {}} {
		c.goes(name, w, c.queues[9])
	}
	w := to4(253, ports(9, 0x101, 4))
	c.goes("another value", w, c.hashed(w))
}

func TestSeveralSamplesOfOneNode(t *testing.T) {
	c := newCard(t, 4)
	id := c.id(c.CreateNode(c.next(), Node{12, []Sample{{Offset: 8}, {Offset: 1}}, []Arc{{ArcIP, 253}, {ArcIP, 146}}}))
	n, err := c.Node(id)
	c.must(err)
	late, early := int(n.Samples[0].ID), int(n.Samples[1].ID)
	table := c.table(1, 7, c.vlan)
	c.must(c.SetRoot(table))
	g := c.group(table, 0, 9, match("value_0", 0xffffffff, "id_0", late, "value_1", 0xff0000, "id_1", early))
	c.entry(table, g, 0, match("value_0", 0x090a0b0c, "id_0", late, "value_1", 0x030000, "id_1", early), toTIR(c.tirs[3]))
	l4 := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	c.goes("both", to4(253, l4), c.queues[3])
	c.goes("by the other arc", to6(146, l4), c.queues[3])
	short := to4(253, l4[:11])
	c.goes("a header that is cut short", short, c.hashed(short))
}

func TestOneFrameToSeveralQueues(t *testing.T) {
	c := newCard(t, 4)
	counters := []uint32{0x8000, 0x8001}
	for _, n := range counters {
		c.must(c.CreateCounter(n))
	}
	table := c.table(1, 7, c.vlan)
	c.must(c.SetRoot(table))
	c.must(c.SetEntry(table, 0, Entry{Group: c.group(table, 0, 9, Match{}), Action: Forward | Count, Tag: 0xabc,
		Destinations: []Destination{toTIR(c.tirs[2]), toTable(c.vlan), toTIR(c.tirs[1])}, Counters: counters[1:]}))
	w := to4(17, udp(1, 2))
	v := c.Steer(w.bytes())
	if len(v.Queues) != 3 || v.Queues[0] != c.queues[2] || v.Queues[1] != c.queues[1] || v.Tag != 0xabc || !slices.Equal(v.Counters, counters[1:]) {
		t.Errorf("%+v", v)
	}
	if v.Hash == 0 || v.HashType == 0 {
		t.Errorf("the last queue's hash is %#x", v.Hash)
	}
}

func TestWithoutARootNobodyGetsAFrame(t *testing.T) {
	c := newCard(t, 2)
	c.must(c.ClearRoot())
	c.goes("no root", to4(17, udp(1, 2)))
	if v := c.Steer(to4(17, udp(1, 2)).bytes()); len(v.Path) != 0 {
		t.Error(v.Path)
	}
	if v := New(limits()).Steer(make([]byte, 13)); v.Queues != nil || v.Path != nil {
		t.Errorf("%+v", v)
	}
}

func TestAModifiedHashAndTableCountAtOnce(t *testing.T) {
	c := newCard(t, 4)
	w := to4(17, udp(1, 2))
	c.must(c.ModifyRQT(c.rqt, []uint32{0x99}))
	c.goes("one queue", w, 0x99)
	c.must(c.ModifyRQT(c.rqt, []uint32{0x98, 0x97}))
	before := c.Steer(w.bytes())
	udpTIR := uint32(0)
	for id, tir := range c.State.tirs {
		if tir.Hash.L3 == 0 && tir.Hash.L4 == 1 && tir.Hash.Fields == 15 {
			udpTIR = id
		}
	}
	c.must(c.ModifyTIR(udpTIR, Hash{Function: HashInvertedXor8, L4: 1, Fields: HashDstPort}))
	if v := c.Steer(w.bytes()); v.Hash != 0x40 || before.Hash == 0x40 {
		t.Errorf("hash %#x, before %#x", v.Hash, before.Hash)
	}
}

func TestThePathReadsWell(t *testing.T) {
	c := newCard(t, 16)
	sample := c.node(253)
	c.flexRule(0x0800, 253, sample, 3, 0xf, 12)
	for _, want := range []struct {
		w    wire
		path []string
	}{
		{to4(253, ports(9, 0x33, 4)), []string{
			"table 60 (level 6) entry 0: ethertype 0x800, ip_protocol 253, frag 0, sample 7 = 0x3/0xf -> TIR 0x1b -> RQ 0x1c"}},
		{to4(17, udp(1000, 53)), []string{
			"table 60 (level 6): no entry matches -> table 53",
			"table 53 (level 21) entry 8192: untagged -> table 49",
			"table 49 (level 22) entry 0: dmac 02:aa:bb:cc:dd:01 -> table 35",
			"table 35 (level 24) entry 2: ip_version 4, ip_protocol 17 -> TIR 0x29 (hash 0xeb75df8e) -> RQT 0x22 place 142 of 256 -> RQ 0x1e"}},
		{wire{dmac: [6]byte{2}}, []string{
			"table 60 (level 6): no entry matches -> table 53",
			"table 53 (level 21) entry 8192: untagged -> table 49",
			"table 49 (level 22): no entry matches -> table 1",
			"table 1 (level 36): no entry matches -> nobody"}},
	} {
		v := c.Steer(want.w.bytes())
		var got []string
		for _, s := range v.Path {
			got = append(got, s.String())
		}
		if !slices.Equal(got, want.path) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want.path, "\n"))
		}
	}
}

func TestStepsSayWhatIsUnusual(t *testing.T) {
	c := newCard(t, 2)
	c.must(c.CreateCounter(0x8000))
	queue := c.id(c.CreateTIR(c.next(), TIR{Queue: 0x77}))
	table := c.table(1, 7, c.vlan)
	c.must(c.SetRoot(table))
	g := c.group(table, 0, 9, match("dst0", 0xffff0000, "src0", 0xff, "dmac", 1<<40, "svlan_tag", 1, "ip_protocol", 0xfe))
	value := match("dst0", 0xfd000000, "dmac", 1<<40, "svlan_tag", 1, "ip_protocol", 16)
	for _, index := range []uint32{3, 2} {
		c.must(c.SetEntry(table, index, Entry{Group: g, Action: Forward | Count, Tag: 5, Value: value, Counters: []uint32{0x8000},
			Destinations: []Destination{toTIR(queue), toTable(c.anchor)}}))
	}
	w := to6(17, udp(1, 2))
	w.tags, w.dmac = []vlan{{0x88a8, 1}}, [6]byte{1}
	want := "table 32 (level 1) entry 2: S-tag, dmac 01:00:00:00:00:00/01:00:00:00:00:00, src_ip ::/0:ff::, dst_ip fd00::/16, " +
		"ip_protocol 0x10/0xfe (entry 3 has the same value; the lower index decides), counted in 0x8000, tag 0x5 -> TIR 0x1f -> RQ 0x77 -> table 1"
	if got := c.Steer(w.bytes()).Path[0].String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	out, err := json.Marshal(c.Steer(make([]byte, 60)))
	if err != nil || !strings.Contains(string(out), `"Path":["table 32 (level 1): no entry matches -\u003e table 25"`) {
		t.Errorf("%s %v", out, err)
	}
}
