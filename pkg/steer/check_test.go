// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func homa(name string, queues int) Entry {
	e := Entry{Name: name, Families: []Family{IPv4, IPv6}, Protocol: Bits8{146, 0xff},
		At: Origin{File: "10-homa.yaml", Line: 3, Column: 5}, SteeringAt: Origin{File: "10-homa.yaml", Line: 14, Column: 17}}
	e.Steering = Steering{Kind: SteerSpread, Spread: Spread{Mask: 0xffff}}
	for q := range queues {
		e.Steering.Spread.Over = append(e.Steering.Spread.Over, Weight{uint32(q), 1})
	}
	return e
}

func udp(name string, port uint16, queue uint32) Entry {
	return Entry{Name: name, At: Origin{File: "20-udp.yaml", Line: 2, Column: 5}, Families: []Family{IPv4},
		Protocol: Bits8{17, 0xff}, DestinationPorts: []Ports{{port, port}}, Steering: Steering{Kind: SteerQueue, Queue: queue}}
}

func raw(name string, protocol uint8) Entry {
	return Entry{Name: name, Families: []Family{IPv4}, Protocol: Bits8{protocol, 0xff}, L4Data: Bits32{3, 0xf},
		Steering: Steering{Kind: SteerQueue, Queue: 1}}
}

func mlx5(change func(o *Observed)) Observed {
	o := Observed{
		NIC:      NIC{Precedence: ByFields, Queues: 16, Capacity: 1024, RawProtocols: 1},
		Channels: Channels{Combined: 16, Max: 32}, Rules: Table{},
	}
	if change != nil {
		change(&o)
	}
	return o
}

func wants(entries ...Entry) Desired {
	return Desired{Link: Link{Name: "ens1f1np1"}, Own: DefaultOwn, Entries: entries}
}

func TestCheck(t *testing.T) {
	noModule := Problem{Severity: Blocked, Needs: NeedL4Data, Text: "patched module not loaded", Fix: "modprobe"}
	noSettings := Problem{Severity: Blocked, Needs: NeedL4Data, Text: "settings not made"}
	notKnown := Problem{Severity: Notice, Needs: NeedL4Data, Text: "settings not known"}
	noRules := Problem{Severity: Blocked, Text: "this driver takes no rules"}
	foreign, _, _ := Compile([]Entry{raw("theirs", 253)}, ByFields, 10)
	for _, c := range []struct {
		name     string
		want     Desired
		have     Observed
		rules    int
		problems []string // each: severity and a part of the text or the fix
	}{
		{"everything fits", wants(homa("homa", 16), udp("dns", 53, 2)), mlx5(nil), 33, nil},
		{"a queue too high leaves the other entries alone", wants(udp("far", 1, 64), udp("dns", 53, 2)), mlx5(nil), 1,
			[]string{"blocked queue 64: ens1f1np1 has 16 receive queues"}},
		{"a queue that more channels would bring", wants(udp("far", 1, 20)), mlx5(nil), 0, []string{"blocked write `channels: 21`"}},
		{"channels that the policy sets count", func() Desired { d := wants(homa("homa", 32)); d.Channels = 32; return d }(), mlx5(nil), 64, nil},
		{"more channels than there are", func() Desired { d := wants(homa("homa", 16)); d.Channels = 64; return d }(), mlx5(nil), 32,
			[]string{"blocked channels 64: ens1f1np1 has at most 32"}},
		{"a driver without channels", func() Desired { d := wants(); d.Channels = 4; return d }(), mlx5(func(o *Observed) { o.Channels = Channels{} }), 0,
			[]string{"blocked has no combined channels"}},
		{"fewer channels than a foreign rule needs", func() Desired { d := wants(udp("dns", 53, 2)); d.Channels = 8; return d }(),
			mlx5(func(o *Observed) { o.Rules[1000] = Rule{foreign[0].Rule.Match, ToQueue(12)} }), 1,
			[]string{"blocked channels 8: ens1f1np1: location 1000: a rule that is not ours uses queue 12\nethtool -N ens1f1np1 delete 1000, or write `channels: 13`"}},
		{"unknown queue count is no limit", wants(udp("far", 1, 640)), mlx5(func(o *Observed) { o.NIC.Queues = 0 }), 1, nil},
		{"a second raw protocol names the one applied", wants(raw("first", 146), raw("second", 253), udp("dns", 53, 2)), mlx5(nil), 2,
			[]string{"blocked protocol 253: the driver of ens1f1np1 looks behind the IP header of 1 protocol at a time, and protocol 146 is applied"}},
		{"a driver that takes two", wants(raw("first", 146), raw("second", 253)), mlx5(func(o *Observed) { o.NIC.RawProtocols = 2 }), 2, nil},
		{"a spread over one queue looks at no bits", wants(raw("first", 146), func() Entry { e := homa("one", 1); e.Protocol.Value = 253; return e }()), mlx5(nil), 3, nil},
		{"a spread by bits that do not vary", wants(func() Entry {
			e := homa("few", 4)
			e.DestinationPorts = []Ports{{4000, 4000}, {4016, 4016}, {4033, 4033}}
			return e
		}()), mlx5(nil), 4, []string{"notice the busiest queue gets 167 % more"}},
		{"a foreign rule holds the parser", wants(raw("mine", 146)), mlx5(func(o *Observed) { o.Rules[1000] = foreign[0].Rule }), 0,
			[]string{"blocked protocol 253 is applied"}},
		{"a foreign rule with our match", wants(raw("mine", 253)), mlx5(func(o *Observed) { o.Rules[1000] = foreign[0].Rule }), 0,
			[]string{"blocked ethtool -N ens1f1np1 delete 1000"}},
		{"no module: only raw rules wait", wants(homa("homa", 16), udp("dns", 53, 2)),
			mlx5(func(o *Observed) { o.Prerequisites = []Problem{noModule} }), 1, []string{"blocked patched module not loaded"}},
		{"no module, nothing needs it", wants(udp("dns", 53, 2)), mlx5(func(o *Observed) { o.Prerequisites = []Problem{noModule} }), 1, nil},
		{"what works is not taken away", wants(raw("mine", 253)),
			mlx5(func(o *Observed) { o.Prerequisites, o.Rules[5] = []Problem{noModule}, foreign[0].Rule }), 1, nil},
		{"all that is missing is told", wants(homa("homa", 16)), mlx5(func(o *Observed) { o.Prerequisites = []Problem{noModule, noSettings} }), 0,
			[]string{"blocked patched module not loaded", "blocked settings not made"}},
		{"what is only worth knowing holds nothing back", wants(homa("homa", 16), udp("dns", 53, 2)),
			mlx5(func(o *Observed) { o.Prerequisites = []Problem{notKnown} }), 33, []string{"notice settings not known"}},
		{"what is only worth knowing is told where it matters", wants(udp("dns", 53, 2)),
			mlx5(func(o *Observed) { o.Prerequisites = []Problem{notKnown} }), 1, nil},
		{"a driver that takes no rules says only that", wants(homa("homa", 32)),
			mlx5(func(o *Observed) { o.Prerequisites, o.NIC.Queues = []Problem{noRules}, 1 }), 0, []string{"blocked this driver takes no rules"}},
		{"an uneven spread", wants(func() Entry { e := homa("homa", 3); e.Steering.Spread.Buckets = 4; return e }()), mlx5(nil), 6,
			[]string{"notice the busiest queue gets 50 % more"}},
		{"an entry behind a wider one", wants(homa("all", 4), func() Entry {
			e := homa("some", 4)
			e.Sources = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
			return e
		}()), mlx5(nil), 8, []string{"notice entry \"some\" decides for no packet: those before it, such as entry \"all\" (10-homa.yaml:3:5)"}},
		{"too many rules", func() Desired {
			d := wants(homa("first", 16), homa("second", 16), udp("dns", 53, 2))
			d.Entries[1].Protocol.Value, d.Own = 253, Range{0, 40}
			return d
		}(), mlx5(func(o *Observed) { o.NIC.RawProtocols = 2 }), 32,
			[]string{"failed entry \"second\" needs at least 32 locations, 9 of 41 are left; it and the 1 after it are left out"}},
		{"a range past the table", func() Desired { d := wants(homa("homa", 16)); d.Own = Range{1000, 4095}; return d }(), mlx5(nil), 0,
			[]string{"notice the table of ens1f1np1 ends at 1023", "failed needs at least"}},
		{"no part of the range is there", func() Desired { d := wants(udp("dns", 53, 2)); d.Own = Range{2000, 4095}; return d }(), mlx5(nil), 0,
			[]string{"notice write `locations: 0-1023`", "failed needs at least 1 location, 0 of 0 are left"}},
		{"the default range on a small table is no news", wants(udp("dns", 53, 2)), mlx5(func(o *Observed) { o.NIC.Capacity = 64 }), 1, nil},
		{"no ntuple rule says untagged", wants(
			Entry{Name: "vlan", At: Origin{File: "a.yaml", Line: 1, Column: 1}, VLAN: Bits16{10, 0xfff}, Steering: Steering{Kind: SteerQueue, Queue: 1}}, udp("dns", 53, 2)),
			mlx5(func(o *Observed) { o.NIC.Precedence = UnknownPrecedence }), 1, []string{"failed \"dns\" overlaps entry \"vlan\" (a.yaml:1:1)"}},
		{"fragments are told of", wants(udp("dns", 53, 2), func() Entry { e := udp("rest", 0, 3); e.DestinationPorts = nil; return e }()),
			mlx5(func(o *Observed) { o.NIC.Precedence = UnknownPrecedence }), 17, []string{"notice fragments of the packets of \"rest\" take the default path"}},
		{"problems of the configuration come along", func() Desired {
			d := wants()
			d.Problems = []Problem{{Severity: Notice, Text: "two policies"}}
			return d
		}(),
			mlx5(nil), 0, []string{"notice two policies"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			goal, problems := Check(c.want, c.have)
			if len(goal.Rules) != c.rules {
				t.Errorf("%d rules, want %d", len(goal.Rules), c.rules)
			}
			if len(problems) != len(c.problems) {
				t.Fatalf("problems %v, want %q", problems, c.problems)
			}
			for i, p := range problems {
				severity, part, _ := strings.Cut(c.problems[i], " ")
				if p.Severity.String() != severity || !strings.Contains(p.Text+"\n"+p.Fix, part) {
					t.Errorf("problem %v %v, want %q", p.Severity, p, c.problems[i])
				}
			}
		})
	}
}

func TestUsageCountsWhatIsInTheGoal(t *testing.T) {
	goal, _ := Check(wants(homa("homa", 16), udp("dns", 53, 2)), mlx5(func(o *Observed) {
		o.Prerequisites = []Problem{{Severity: Blocked, Needs: NeedL4Data}}
	}))
	if len(goal.Usage) != 1 || goal.Usage[0] != (Usage{Entry: 1, Rules: 1}) {
		t.Errorf("%+v", goal.Usage)
	}
}

func TestAnEntryFarTooLargeIsRefusedWithoutMuchWork(t *testing.T) {
	var ports []Ports
	for p := uint16(0); p < 60000; p += 3 {
		ports = append(ports, Ports{p, p})
	}
	e := udp("all", 0, 1)
	e.SourcePorts, e.DestinationPorts = ports, ports
	for i := range 3000 {
		e.Sources = append(e.Sources, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 7), byte(i << 1), 0}), 32))
	}
	e.Destinations = e.Sources
	if n := testing.AllocsPerRun(1, func() { Compile([]Entry{e}, ByFields, 896) }); n > 20000 {
		t.Errorf("%v allocations", n)
	}
	rules, _, problems := Compile([]Entry{e, udp("dns", 53, 2)}, ByFields, 896)
	if len(rules) != 0 || len(problems) != 1 || !strings.Contains(problems[0].Text, "it and the 1 after it are left out") {
		t.Errorf("%d rules, %v", len(rules), problems)
	}
}

func TestAnEntryFitsOnceLaterPartsOfItMakeOthersSuperfluous(t *testing.T) {
	var entries []Entry
	for port := range uint16(10) {
		entries = append(entries, udp(fmt.Sprint("p", port), 4096+10*port, 1))
	}
	rest := udp("rest", 0, 1)
	rest.DestinationPorts = []Ports{{2000, 2000}, {4096, 5119}}
	entries = append(entries, rest)
	rules, _, problems := Compile(entries, ByFields, 10)
	if len(rules) != 2 || len(problems) != 0 {
		t.Errorf("%v, %v", rules, problems)
	}
}

func TestARefusalCountsWhatIsLeftAfterPruning(t *testing.T) {
	wide := udp("wide", 0, 1)
	wide.DestinationPorts = nil
	entries := []Entry{udp("a", 1, 1), udp("b", 2, 1), wide, homa("homa", 16), udp("last", 3, 1)}
	rules, _, problems := Compile(entries, ByLocation, 8)
	if len(rules) != 1 || len(problems) != 1 || !strings.Contains(problems[0].Text,
		"\"homa\" needs at least 32 locations, 7 of 8 are left; it and the 1 after it are left out") {
		t.Errorf("%v, %v", rules, problems)
	}
}

// between is the entries for packets from one prefix.
func between(prefix string, entries ...Entry) (from []Entry) {
	p := netip.MustParsePrefix(prefix)
	for _, e := range entries {
		e.Sources, e.Families = []netip.Prefix{p}, []Family{IPv4}
		if p.Addr().Is6() {
			e.Families = []Family{IPv6}
		}
		from = append(from, e)
	}
	return from
}

func TestFewRulesKeepTheOrder(t *testing.T) {
	exact := Entry{Name: "server", Families: []Family{IPv4}, Protocol: Bits8{146, 0xff},
		DestinationPorts: []Ports{{4000, 4015}}, Steering: Steering{Kind: SteerQueues}}
	for q := range uint32(16) {
		exact.Steering.Queues = append(exact.Steering.Queues, 15-q)
	}
	spread := homa("rest", 16)
	spread.Families = []Family{IPv4}
	from := udp("from", 0, 1)
	from.DestinationPorts, from.Sources = nil, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	for _, c := range []struct {
		name    string
		p       Precedence
		entries []Entry
		want    int
	}{
		{"the driver keeps it: more fields first", ByFields, []Entry{udp("dns", 53, 2), func() Entry { e := udp("rest", 0, 3); e.DestinationPorts = nil; return e }()}, 2},
		{"a rule for the overlap wins", ByFields, []Entry{from, udp("dns", 53, 2)}, 3},
		{"exact ports before a spread: each split once, to compare one field more", ByFields, []Entry{exact, spread}, 16*2 + 16},
		{"so also between IPv6 prefixes", ByFields, between("2001:db8::/32", exact, spread), 16*2 + 16},
		{"so also between IPv4 prefixes", ByFields, between("192.0.2.0/24", exact, spread), 16*2 + 16},
		{"by location nothing is added", ByLocation, []Entry{exact, spread}, 32},
		{"unknown: disjoint", UnknownPrecedence, []Entry{exact, spread}, 16 + 16*12},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules, _, problems := Compile(c.entries, c.p, 896)
			if len(rules) != c.want || len(problems) != 0 {
				t.Errorf("%d rules, want %d; problems %v", len(rules), c.want, problems)
			}
		})
	}
}

func TestDiffMovesNothingThatIsInPlace(t *testing.T) {
	a, b, c := udp("a", 1, 1), udp("b", 2, 2), udp("c", 3, 3)
	for _, p := range precedences {
		have := mlx5(func(o *Observed) { o.NIC.Precedence = p })
		goal, _ := Check(wants(a, c), have)
		for _, s := range Diff(goal, have, DefaultOwn).Steps {
			have.Rules[2*s.Loc] = s.Rule // room between them
		}
		goal, _ = Check(wants(a, b, c), have)
		plan := Diff(goal, have, DefaultOwn)
		if len(plan.Steps) != 1 || plan.Steps[0].Kind != Insert {
			t.Errorf("%v: %v", p, plan)
		}
		goal, _ = Check(wants(c), have)
		plan = Diff(goal, have, DefaultOwn)
		if len(plan.Steps) != 1 || plan.Steps[0].Kind != Remove {
			t.Errorf("%v: %v", p, plan)
		}
	}
}

func TestWhereTheLocationDecidesAnEntryCanComeBetweenOthers(t *testing.T) {
	have := mlx5(func(o *Observed) { o.NIC.Precedence = ByLocation })
	entries := []Entry{udp("a", 1, 1), homa("homa", 16), udp("z", 2, 2)}
	step := func(entries ...Entry) (steps []Step) {
		goal, _ := Check(wants(entries...), have)
		steps = Diff(goal, have, DefaultOwn).Steps
		for _, s := range steps {
			have.Rules[s.Loc] = s.Rule
		}
		return steps
	}
	step(entries...)
	for i, e := range []Entry{udp("top", 3, 3), udp("second", 4, 4)} {
		entries = slices.Insert(entries, i, e)
		if steps := step(entries...); len(steps) != 1 || steps[0].Kind != Insert {
			t.Errorf("%s: %v", e.Name, steps)
		}
	}
}

func TestAFullTableIsReplacedAsAWhole(t *testing.T) {
	for _, p := range precedences {
		have := mlx5(func(o *Observed) { o.NIC.Precedence = p })
		own := Range{100, 131}
		full := func(ports func(i uint16) uint16) Desired {
			d := wants()
			d.Own = own
			for i := range uint16(32) {
				d.Entries = append(d.Entries, udp(fmt.Sprint("e", i), ports(i), uint32(i%16)))
			}
			return d
		}
		for _, d := range []Desired{
			full(func(i uint16) uint16 { return i }),
			full(func(i uint16) uint16 { return 1000 + i }), // all others
			full(func(i uint16) uint16 { return 1031 - i }), // in another order
			full(func(i uint16) uint16 { return 1030 - i }), // one place on
		} {
			checkPlan(t, 0, d, have)
			goal, problems := Check(d, have)
			if len(goal.Rules) != 32 || len(problems) != 0 {
				t.Fatalf("%v: %d rules, %v", p, len(goal.Rules), problems)
			}
			have = apply(t, 0, Diff(goal, have, own), have, own)
		}
	}
}

func TestOneOfTwoRulesOfOursWithTheSameMatchGoes(t *testing.T) {
	for _, p := range precedences {
		have := mlx5(func(o *Observed) { o.NIC.Precedence = p })
		goal, _ := Check(wants(udp("a", 1, 1)), have)
		other := goal.Rules[0].Rule
		other.Action = ToQueue(2)
		have.Rules = Table{3: other, 8: goal.Rules[0].Rule, 9: goal.Rules[0].Rule}
		plan := Diff(goal, have, DefaultOwn)
		for _, s := range plan.Steps {
			if s.Kind != Remove {
				t.Errorf("%v: %v", p, plan)
			}
		}
		if len(plan.Steps) != 2 {
			t.Errorf("%v: %v", p, plan)
		}
	}
}

func TestAnotherActionReplacesInPlace(t *testing.T) {
	have := mlx5(nil)
	goal, _ := Check(wants(udp("a", 1, 1)), have)
	have.Rules[7] = goal.Rules[0].Rule
	goal, _ = Check(wants(udp("a", 1, 5)), have)
	plan := Diff(goal, have, DefaultOwn)
	if len(plan.Steps) != 1 || plan.Steps[0].Kind != Replace || plan.Steps[0].Loc != 7 {
		t.Errorf("%v", plan)
	}
}

func TestFewerChannelsWaitForTheRulesThatUseThem(t *testing.T) {
	have := mlx5(nil)
	goal, _ := Check(wants(udp("a", 1, 15)), have)
	have.Rules[0] = goal.Rules[0].Rule
	d := wants(udp("a", 1, 3))
	d.Channels = 8
	goal, _ = Check(d, have)
	var kinds []StepKind
	for _, s := range Diff(goal, have, d.Own).Steps {
		kinds = append(kinds, s.Kind)
	}
	if !slices.Equal(kinds, []StepKind{Remove, SetChannels, Insert}) {
		t.Errorf("%v", kinds)
	}
}

func TestTheOldRawProtocolGoesBeforeTheNewOneComes(t *testing.T) {
	have := mlx5(nil)
	goal, _ := Check(wants(raw("old", 253)), have)
	have.Rules[0] = goal.Rules[0].Rule
	goal, _ = Check(wants(raw("new", 146)), have)
	plan := Diff(goal, have, DefaultOwn)
	if len(plan.Steps) != 2 || plan.Steps[0].Kind != Remove || plan.Steps[1].Kind != Insert {
		t.Errorf("%v", plan)
	}
}

func TestWords(t *testing.T) {
	v6, _, _ := Compile([]Entry{{Families: []Family{IPv6}, Sources: []netip.Prefix{netip.MustParsePrefix("2001:db8::/32")}, Protocol: Bits8{253, 0xff},
		L4Data: Bits32{3, 0xf}, VLAN: Bits16{10, 0xfff}, Steering: Steering{Kind: SteerDrop}}}, ByFields, 10)
	odd := Rule{Match{Flow: TCP4, Source: AddrBits{Value: [16]byte{10, 0, 0, 1}, Mask: [16]byte{255, 0, 0, 255}},
		DestinationPort: Bits16{80, 0xfff0}, TOS: Bits8{4, 0xfc}, DestinationMAC: MACBits{[6]byte{2}, [6]byte{0xff}}}, Action{Queue: 3, VF: 2}}
	for _, c := range []struct{ rule, want string }{
		{v6[0].Rule.String(), "ip6 src 2001:db8::/32 proto 253 l4data 0x3/0xf vlan 10 -> drop"},
		{strings.Join(v6[0].Rule.Ethtool(), " "),
			"flow-type ip6 src-ip 2001:db8:: m ::ffff:ffff:ffff:ffff:ffff:ffff l4proto 253 l4data 0x3 m 0xfffffff0 vlan 0xa m 0xf000 action -1"},
		{odd.String(), "tcp4 src 10.0.0.1/255.0.0.255 dst-port 80/0xfff0 tos 0x4/0xfc dst-mac 02:00:00:00:00:00/ff:00:00:00:00:00 -> vf 1 queue 3"},
		{strings.Join(odd.Ethtool(), " "),
			"flow-type tcp4 src-ip 10.0.0.1 m 0.255.255.0 dst-mac 02:00:00:00:00:00 m 00:ff:ff:ff:ff:ff dst-port 80 m 0xf tos 0x4 m 0x3 vf 1 queue 3"},
		{Rule{Match: Match{Flow: Other, Opaque: "\x01\x02"}, Action: Drop}.String(), "other 0102 -> drop"},
		{fmt.Sprint(Action{Queue: 1, Context: 2}), "rss context 2 from queue 1"},
		{Origin{File: "a.yaml"}.String(), "a.yaml"},
		{Problem{Severity: Blocked, At: Origin{"10-homa.yaml", 14, 4, "\tä: 64"}, Text: "queue 64: x has 32", Fix: "use less"}.String(),
			"10-homa.yaml:14:4: queue 64: x has 32\n    \tä: 64\n    \t  ^\n  Fix: use less"},
	} {
		if c.rule != c.want {
			t.Errorf("%q\nwant %q", c.rule, c.want)
		}
	}
}
