// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// worlds is how many random worlds each law looks at, over all precedences:
// FLEXSTEER_WORLDS, or enough for a quick check.
var worlds = func() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("FLEXSTEER_WORLDS"), 10, 32); err == nil {
		return n
	}
	return 2100
}()

// lawBudget is small enough that some worlds do not fit.
const lawBudget = 200

func world(seed uint64) (*rand.Rand, []Entry, Precedence) {
	r := rand.New(rand.NewPCG(seed, 7))
	entries := make([]Entry, 1+r.IntN(6))
	for i := range entries {
		entries[i] = randomEntry(r, i)
	}
	return r, entries, precedences[seed%3]
}

// applied is the entries that Compile did not leave out.
func applied(entries []Entry, problems []Problem) (kept []Entry, inexact map[string]bool) {
	inexact = map[string]bool{}
	kept = slices.Clone(entries)
	for _, p := range problems {
		i := slices.IndexFunc(kept, func(e Entry) bool { return e.Name == p.Entry })
		switch {
		case p.Severity == Notice && strings.Contains(p.Text, "fragments"):
			inexact[p.Entry] = true
		case p.Severity == Notice:
		case strings.Contains(p.Text, "needs at least"), strings.Contains(p.Text, "in too many ways"): // and all after it
			kept = kept[:i]
		default:
			kept = slices.Delete(kept, i, i+1)
		}
	}
	return kept, inexact
}

func TestRulesDecideEveryPacketAsReadingTheEntriesFromTheTop(t *testing.T) {
	t.Parallel()
	refused, rulesMade := 0, 0
	for seed := range worlds {
		r, entries, p := world(seed)
		wanted, _, problems := Compile(entries, p, lawBudget)
		kept, inexact := applied(entries, problems)
		refused += len(entries) - len(kept)
		rules := rulesOf(wanted)
		rulesMade += len(rules)
		if len(rules) > lawBudget {
			t.Fatalf("seed %d, %v: %d rules for %d locations", seed, p, len(rules), lawBudget)
		}
		c := NewClassifier(tableOf(rules), p, DefaultRSS(16, HashInput{}))
		for range 60 {
			pkt := randomPacket(r)
			want, some := read(kept, &pkt)
			got := decide(rules, p, &pkt)
			if !pkt.HasL4 && pkt.Family != 0 && len(inexact) > 0 && len(got) == 0 {
				continue // a fragment on the default path, as the Notice says
			}
			if some != (len(got) == 1) || some && got[0] != want {
				t.Fatalf("seed %d, %v: packet %+v: want %v (%v), rules say %v\nentries %+v\nrules %v\nproblems %v",
					seed, p, pkt, want, some, got, entries, rules, problems)
			}
			v := c.Classify(&pkt)
			if v.Matched != some || some && (v.Drop != want.Drop || !v.Drop && v.Queue != want.Queue) {
				t.Fatalf("seed %d, %v: Classify(%+v) = %+v, want %v", seed, p, pkt, v, want)
			}
		}
	}
	t.Logf("laws: %d worlds, %d rules, %d entries refused", worlds, rulesMade, refused)
}

func rulesOf(wanted []Wanted) (rules []Rule) {
	for _, w := range wanted {
		rules = append(rules, w.Rule)
	}
	return rules
}

func tableOf(rules []Rule) Table {
	t := Table{}
	for i, r := range rules {
		t[Loc(i)] = r
	}
	return t
}

func TestNoRuleCouldBeDroppedWithoutChangingADecision(t *testing.T) {
	t.Parallel()
	for seed := range worlds {
		_, entries, p := world(seed)
		wanted, _, _ := Compile(entries, p, lawBudget)
		rules := rulesOf(wanted)
		for i := range rules {
			if !matters(rules, p, i) {
				t.Fatalf("seed %d, %v: rule %v is superfluous in %v", seed, p, rules[i], rules)
			}
		}
	}
	t.Logf("laws: %d worlds", worlds)
}

// matters looks for a packet that goes another way without rule i. Cubes only
// propose packets, in the corners that other rules cut out of the rule; the slow
// NIC decides.
func matters(rules []Rule, p Precedence, i int) bool {
	without := slices.Clone(rules)
	without[i].Match = Match{Flow: Ether, SourceMAC: MACBits{[6]byte{9}, [6]byte{0xff}}} // keeps the locations of the others
	own, _ := cubeOf(&rules[i].Match)
	var others []cube
	for j := range rules {
		if other, _ := cubeOf(&rules[j].Match); j != i && own.overlaps(&other) {
			others = append(others, other)
		}
	}
	return corner(own, others, func(pkt Packet) bool {
		return !slices.Equal(decide(rules, p, &pkt), decide(without, p, &pkt))
	})
}

// corner reports whether found holds for a packet of some corner of part.
func corner(part cube, others []cube, found func(Packet) bool) bool {
	if found(packetIn(&part)) {
		return true
	}
	for i := range others {
		if !part.overlaps(&others[i]) || others[i].covers(&part) {
			continue
		}
		for _, piece := range append(part.subtract(&others[i], nil), part.intersect(&others[i])) {
			if corner(piece, others[i+1:], found) {
				return true
			}
		}
		return false
	}
	return false
}

// packetIn is the packet of a cube whose free bits are 0, but for the four bytes
// behind the IP header being there.
func packetIn(c *cube) (p Packet) {
	k := c.v
	if c.m[0]&flagL4 == 0 {
		k[0] |= flagL4
	}
	p.EtherType, p.TagType, p.VLAN = uint16(k[0]>>etherTypeShift), uint16(k[1]>>tagTypeShift), uint16(k[0]>>tciShift)
	if k[0]&flagTagged != 0 {
		p.Tagged, p.TagType = true, 0x8100
	}
	p.HasL4, p.L4 = k[0]&flagL4 != 0, uint32(k[1])
	p.DestinationMAC, p.SourceMAC = mac48(k[2]), mac48(k[3])
	p.Protocol = uint8(k[0] >> protocolShift)
	var m Match
	c.matchIP(&m, IPv4)
	p.Source, p.Destination = m.Source.Value, m.Destination.Value
	switch p.EtherType {
	case etherTypeIPv4:
		p.Family = IPv4
	case etherTypeIPv6:
		p.Family = IPv6
	}
	return p
}

func TestAPlanReachesItsGoalAndTouchesNothingElse(t *testing.T) {
	t.Parallel()
	for seed := range worlds {
		want, have := planWorld(seed)
		checkPlan(t, seed, want, have)
	}
	t.Logf("laws: %d worlds", worlds)
}

// planWorld is a link with entries for it: tables that end within our range or
// that our rules fill, few raw protocols, more or fewer channels.
func planWorld(seed uint64) (Desired, Observed) {
	r, entries, p := world(seed)
	want := Desired{Link: Link{Name: "eth0"}, Own: Range{Loc(r.IntN(3)), Loc(100 + r.IntN(900))}, Entries: entries}
	have := Observed{NIC: NIC{Precedence: p, Queues: 8, Capacity: choose(r, 1024, 1024, 64+r.IntN(960)), RawProtocols: choose(r, AnyProtocols, 1, 2)}}
	if goal, _ := Check(want, have); r.IntN(3) == 0 && len(goal.Rules) > 0 {
		want.Own.Last = want.Own.First + Loc(len(goal.Rules)) - 1
	}
	have.Rules = randomTable(r, entries, p, want.Own, have.NIC)
	if r.IntN(3) == 0 {
		have.Channels, want.Channels = Channels{Combined: 8, Max: 16}, uint32(1+r.IntN(11))
	}
	if r.IntN(6) == 0 {
		have.Prerequisites = []Problem{{Severity: Blocked, Needs: choose(r, NeedL4Data, NeedNothing), Text: "missing"}}
	}
	return want, have
}

// randomTable is what some earlier configuration, its accidents and other people
// have left behind: mostly in our range, some of it twice, no more raw protocols
// than the driver takes.
func randomTable(r *rand.Rand, entries []Entry, p Precedence, own Range, nic NIC) Table {
	t := Table{}
	old := slices.Clone(entries)
	if r.IntN(2) == 0 {
		old = slices.Insert(old, r.IntN(len(old)+1), randomEntry(r, 9))
		old = slices.Delete(old, 0, r.IntN(2))
	}
	wanted, _, _ := Compile(old, p, lawBudget)
	first, inOrder := int(own.First), r.IntN(2) == 0
	for _, w := range wanted {
		for range choose(r, 0, 1, 1, 1, 1, 1, 1, 2) {
			loc := r.IntN(nic.Capacity)
			if inOrder {
				first += 1 + r.IntN(2)
				loc = min(first, nic.Capacity-1)
			}
			if r.IntN(10) == 0 {
				w.Rule.Action = ToQueue(uint32(r.IntN(8)))
			}
			before, there := t[Loc(loc)]
			t[Loc(loc)] = w.Rule
			if nic.RawProtocols > 0 && len(rawProtocols(t)) > nic.RawProtocols {
				delete(t, Loc(loc))
				if there {
					t[Loc(loc)] = before
				}
			}
		}
	}
	return t
}

// rawProtocols is the protocols that rules of t match by L4Data.
func rawProtocols(t Table) map[uint8]bool {
	raw := map[uint8]bool{}
	for _, r := range t {
		if r.Match.L4Data.Mask != 0 {
			raw[r.Match.Protocol.Value] = true
		}
	}
	return raw
}

func checkPlan(t *testing.T, seed uint64, want Desired, have Observed) {
	t.Helper()
	goal, _ := Check(want, have)
	plan := Diff(goal, have, want.Own)
	now := apply(t, seed, plan, have, want.Own)
	for loc, r := range have.Rules {
		if !want.Own.Contains(loc) && now.Rules[loc] != r {
			t.Fatalf("seed %d: foreign rule at %d changed", seed, loc)
		}
	}
	ours := owned(now.Rules, want.Own)
	if len(ours) != len(goal.Rules) {
		t.Fatalf("seed %d: %d rules in place, goal has %d", seed, len(ours), len(goal.Rules))
	}
	inOrder := locations(ours, goal)
	if have.NIC.Precedence == ByLocation && !slices.IsSorted(inOrder) {
		t.Fatalf("seed %d: locations out of order: %v", seed, inOrder)
	}
	if again := Diff(goal, now, want.Own); len(again.Steps) > 0 {
		t.Fatalf("seed %d: second plan is not empty: %v", seed, again)
	}
	goal2, _ := Check(want, now)
	if again := Diff(goal2, now, want.Own); len(again.Steps) > 0 {
		t.Fatalf("seed %d: second pass is not empty: %v", seed, again)
	}
}

// owned is the rules of t in our locations.
func owned(t Table, own Range) Table {
	ours := maps.Clone(t)
	maps.DeleteFunc(ours, func(loc Loc, _ Rule) bool { return !own.Contains(loc) })
	return ours
}

func locations(ours Table, goal Goal) (locs []Loc) {
	for _, w := range goal.Rules {
		for loc, r := range ours {
			if r == w.Rule {
				locs = append(locs, loc)
			}
		}
	}
	return locs
}

// apply takes the steps of a plan, each of which must be what it says.
func apply(t *testing.T, seed uint64, plan Plan, have Observed, own Range) Observed {
	t.Helper()
	now := have
	now.Rules = Table{}
	for loc, r := range have.Rules {
		now.Rules[loc] = r
	}
	order := map[StepKind]int{Remove: 0, SetChannels: 1, Replace: 2, Insert: 3}
	last := 0
	for _, s := range plan.Steps {
		old, there := now.Rules[s.Loc]
		ok := order[s.Kind] >= last
		if m := s.Rule.Match; s.Kind > Remove && m.L4Data.Mask != 0 && have.NIC.RawProtocols > 0 {
			raw := rawProtocols(now.Rules) // the driver takes the new one before it lets the old one go
			raw[m.Protocol.Value] = true
			ok = ok && len(raw) <= have.NIC.RawProtocols
		}
		last = order[s.Kind]
		switch s.Kind {
		case SetChannels:
			for loc, r := range now.Rules {
				ok = ok && (!own.Contains(loc) || r.Action.Drop || r.Action.Queue < s.Channels)
			}
			now.Channels.Combined, now.NIC.Queues = s.Channels, s.Channels
			if !ok {
				t.Fatalf("seed %d: bad step %+v of %+v", seed, s, plan)
			}
			continue
		case Remove:
			ok = ok && there && old == s.Rule
			delete(now.Rules, s.Loc)
		case Replace:
			ok = ok && there && old == s.Old && old != s.Rule
			now.Rules[s.Loc] = s.Rule
		case Insert:
			ok = ok && !there
			now.Rules[s.Loc] = s.Rule
		}
		if !ok || !own.Contains(s.Loc) {
			t.Fatalf("seed %d: bad step %+v of %+v", seed, s, plan)
		}
		if s.Kind != Remove && coexist(now.Rules, s.Rule.Match) {
			t.Fatalf("seed %d: two rules with one match after %+v", seed, s)
		}
	}
	return now
}

func coexist(t Table, m Match) bool {
	n := 0
	for _, r := range t {
		if r.Match == m {
			n++
		}
	}
	return n > 1
}
