// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"errors"
	"strings"
	"testing"
)

func kindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return 0
}

// bench is a State with one of everything, by these numbers.
const (
	lowTable, highTable  = 1, 2
	aGroup, aTIR, aRQT   = 3, 4, 5
	aCounter, aNode      = 6, 7
	theSample, directTIR = 7, 8 // the sample's id is the card's
)

func bench(t *testing.T) *State {
	d := newDevice(t)
	d.must(d.CreateTable(highTable, Table{Level: 5, LogSize: 4}))
	d.must(d.CreateTable(lowTable, Table{Level: 3, LogSize: 4, Miss: Miss{MissForward, highTable}}))
	d.must(d.SetRoot(lowTable))
	d.must(d.CreateRQT(aRQT, RQT{4, []uint32{1, 2}}))
	d.must(d.CreateTIR(aTIR, TIR{Indirect: true, RQT: aRQT, Hash: Hash{Function: HashToeplitz, Fields: 3}}))
	d.must(d.CreateTIR(directTIR, TIR{Queue: 9}))
	d.must(d.CreateCounter(aCounter))
	d.must(d.CreateNode(aNode, Node{4, []Sample{{}}, []Arc{{ArcIP, 253}}}))
	d.must(d.CreateGroup(aGroup, groupOf(lowTable, 2, 5, benchCriteria)))
	d.must(d.SetEntry(lowTable, 2, benchEntry))
	return d.State
}

var (
	benchCriteria = match("ip_protocol", 255, "cvlan_tag", 1, "svlan_tag", 1, "value_1", 0xffff, "id_1", theSample)
	benchEntry    = Entry{Group: aGroup, Action: Forward | Count, Value: match("ip_protocol", 253, "value_1", 1, "id_1", theSample),
		Destinations: []Destination{toTIR(aTIR), toTable(highTable)}, Counters: []uint32{aCounter}}
)

func TestWhatIsRefused(t *testing.T) {
	criteria := func(pairs ...any) func(*State) error {
		return func(s *State) error { return s.CreateGroup(20, groupOf(highTable, 0, 1, match(pairs...))) }
	}
	group := func(table, start, end uint32) func(*State) error {
		return func(s *State) error { return s.CreateGroup(20, groupOf(table, start, end, Match{})) }
	}
	bits := func(enable uint8, at int, b byte) func(*State) error {
		return func(s *State) error {
			g := Group{Table: highTable, Enable: enable}
			g.Criteria[at] = b
			return s.CreateGroup(20, g)
		}
	}
	entry := func(index uint32, change func(*Entry)) func(*State) error {
		return func(s *State) error {
			e := benchEntry
			change(&e)
			return s.SetEntry(lowTable, index, e)
		}
	}
	modify := func(which Change, change func(*Entry)) func(*State) error {
		return func(s *State) error {
			e := benchEntry
			change(&e)
			return s.ModifyEntry(lowTable, 2, which, e)
		}
	}
	tableOf := func(id uint32, tbl Table) func(*State) error {
		return func(s *State) error { return s.CreateTable(id, tbl) }
	}
	rqtOf := func(id uint32, max int, queues ...uint32) func(*State) error {
		return func(s *State) error { return s.CreateRQT(id, RQT{max, queues}) }
	}
	tirOf := func(tir TIR) func(*State) error {
		return func(s *State) error { return s.CreateTIR(20, tir) }
	}
	hashOf := func(h Hash) func(*State) error { return tirOf(TIR{Indirect: true, RQT: aRQT, Hash: h}) }
	nodeOf := func(header int, samples []Sample, arcs ...Arc) func(*State) error {
		return func(s *State) error { return s.CreateNode(20, Node{header, samples, arcs}) }
	}
	arcs := func(protos ...uint16) func(*State) error {
		var a []Arc
		for _, p := range protos {
			a = append(a, Arc{ArcIP, p})
		}
		return nodeOf(4, []Sample{{}}, a...)
	}
	same := func(*Entry) {}
	for _, c := range []struct {
		try  func(*State) error
		kind Kind
		text string
	}{
		{tableOf(lowTable, Table{}), BadState, "table 1 exists already"},
		{tableOf(20, Table{Level: 64}), BadParam, "levels 0 to 63"},
		{tableOf(20, Table{LogSize: 23}), BadParam, "the largest table has 2^22"},
		{tableOf(20, Table{Miss: Miss{2, 0}}), BadParam, "miss action 2"},
		{tableOf(20, Table{Miss: Miss{MissDefault, 1}}), BadParam, "miss table 1 with the default miss action"},
		{tableOf(20, Table{Miss: Miss{MissForward, 9}}), NotFound, "leads to table 9, which does not exist"},
		{tableOf(20, Table{Level: 5, Miss: Miss{MissForward, highTable}}), BadParam, "table 2 of level 5, which is not higher"},
		{func(s *State) error { return s.ModifyTable(highTable, Miss{MissForward, highTable}) }, BadParam, "not higher"},
		{func(s *State) error { return s.ModifyTable(highTable, Miss{MissForward, lowTable}) }, BadParam, "not higher"},
		{func(s *State) error { return s.ModifyTable(9, Miss{}) }, NotFound, "table 9 does not exist"},
		{func(s *State) error { return s.SetRoot(9) }, NotFound, "table 9 does not exist"},
		{func(s *State) error { return errors.Join(s.ClearRoot(), s.ClearRoot()) }, BadState, "no root table"},
		{func(s *State) error { return s.DestroyTable(9) }, NotFound, "table 9 does not exist"},
		{func(s *State) error { return s.DestroyTable(lowTable) }, InUse, "table 1 has group 3"},
		{func(s *State) error { return s.DestroyTable(highTable) }, InUse, "the miss of table 1 leads to it"},
		{func(s *State) error {
			return errors.Join(s.ModifyTable(lowTable, Miss{}), s.DestroyTable(highTable))
		}, InUse, "entry 2 of table 1 leads to it"},

		{func(s *State) error { return s.CreateGroup(aGroup, groupOf(highTable, 0, 1, Match{})) }, BadState, "group 3 exists already"},
		{group(9, 0, 1), NotFound, "table 9 does not exist"},
		{group(highTable, 2, 1), BadParam, "entries 2 to 1"},
		{group(highTable, 0, 16), BadParam, "table 2 has 0 to 15"},
		{group(highTable, 0, 1<<32-1), BadParam, "table 2 has 0 to 15"},
		{group(lowTable, 5, 5), BadParam, "overlap group 3, which has 2 to 5"},
		{group(lowTable, 0, 2), BadParam, "overlap group 3"},
		{group(lowTable, 0, 15), BadParam, "overlap group 3"},
		{bits(EnableInner, 0, 0), BadParam, "match_criteria_enable 0x4"},
		{bits(EnableMisc2|EnableOuter, 0, 0), BadParam, "match_criteria_enable 0x9"},
		{bits(0, 16, 255), BadParam, "criteria in outer headers without its bit"},
		{bits(EnableMisc, 16, 255), BadParam, "criteria in outer headers without its bit"},
		{bits(EnableOuter, 330, 1), BadParam, "criteria in misc4 without its bit"},
		{bits(EnableOuter, 25, 1), BadParam, "criteria 0x1 in byte 25 of outer headers are not modelled"},
		{bits(EnableMisc, 64+20, 0xff), BadParam, "criteria 0xff in byte 20 of misc"},
		{bits(EnableOuter, 128, 1), BadParam, "byte 0 of inner headers"},
		{bits(EnableOuter, 192+5, 1), BadParam, "byte 5 of misc2"},
		{bits(EnableOuter, 384, 1), BadParam, "byte 0 of misc5"},
		{bits(EnableOuter, 511, 1), BadParam, "byte 63 of reserved"},
		{bits(EnableMisc4, 352, 1), BadParam, "byte 32 of misc4"},
		{criteria("value_0", 1, "id_0", 3), NotFound, "sample 3, which no parse graph node has"},
		{criteria("value_0", 1), NotFound, "sample 0, which no parse graph node has"},
		{criteria("id_0", theSample), BadParam, "names sample 7 and compares nothing of it"},
		{criteria("id_0", theSample, "value_0", 1, "id_3", theSample, "value_3", 2), BadParam, "pairs 0 and 3 of misc4 both name sample 7"},
		{func(s *State) error { return s.DestroyGroup(lowTable, aGroup) }, InUse, "group 3 of table 1 has 1 entries"},
		{func(s *State) error { return s.DestroyGroup(highTable, aGroup) }, NotFound, "table 2 has no group 3"},
		{func(s *State) error { return s.DestroyGroup(lowTable, 9) }, NotFound, "table 1 has no group 9"},

		{entry(2, same), BadState, "entry 2 of table 1 exists already"},
		{entry(6, same), BadParam, "group 3 has the entries 2 to 5"},
		{entry(1, same), BadParam, "group 3 has the entries 2 to 5"},
		{entry(3, func(e *Entry) { e.Group = 9 }), NotFound, "table 1 has no group 9"},
		{entry(3, func(e *Entry) { e.Action |= 0x10 }), BadParam, "action 0x1c; only 0xe is modelled"},
		{entry(3, func(e *Entry) { e.Action |= 1 }), BadParam, "only 0xe is modelled"},
		{entry(3, func(e *Entry) { e.Action |= Drop }), BadParam, "either drop or forward"},
		{entry(3, func(e *Entry) { e.Action = Count }), BadParam, "either drop or forward"},
		{entry(3, func(e *Entry) { e.Action = Drop | Count }), BadParam, "2 destinations with action 0xa"},
		{entry(3, func(e *Entry) { e.Destinations = nil }), BadParam, "0 destinations with action 0xc"},
		{entry(3, func(e *Entry) { e.Destinations = []Destination{toTIR(aTIR), toTIR(directTIR), toTIR(aTIR)} }), BadParam, "leads to TIR 0x4 twice"},
		{entry(3, func(e *Entry) { e.Action = Forward }), BadParam, "1 counters with action 0x4"},
		{entry(3, func(e *Entry) { e.Counters = nil }), BadParam, "0 counters with action 0xc"},
		{entry(3, func(e *Entry) { e.Counters = []uint32{aCounter, aCounter} }), BadParam, "2 counters; an entry may have 2^0"},
		{entry(3, func(e *Entry) { e.Counters = []uint32{9} }), NotFound, "flow counter 0x9 does not exist"},
		{entry(3, func(e *Entry) { e.Tag = 1 << 24 }), BadParam, "more than 24 bits"},
		{entry(3, func(e *Entry) { e.Value.set("ip_version", 4) }), BadParam, "value bits 0x8 in byte 18 of outer headers are outside"},
		{entry(3, func(e *Entry) { e.Value.set("value_1", 1<<16) }), BadParam, "outside of the criteria of group 3"},
		{entry(3, func(e *Entry) { e.Value.set("id_1", 0) }), BadParam, "the sample id 0; group 3 has 7"},
		{entry(3, func(e *Entry) { e.Value.set("cvlan_tag", 1); e.Value.set("svlan_tag", 1) }), BadParam, "a C-tag and an S-tag"},
		{entry(3, func(e *Entry) { e.Destinations = []Destination{{0, 1}} }), BadParam, "destination type 0"},
		{entry(3, func(e *Entry) { e.Destinations = []Destination{toTIR(9)} }), NotFound, "TIR 0x9 does not exist"},
		{entry(3, func(e *Entry) { e.Destinations = []Destination{toTable(9)} }), NotFound, "leads to table 9, which does not exist"},
		{entry(3, func(e *Entry) { e.Destinations = []Destination{toTable(lowTable)} }), BadParam, "not higher"},
		{entry(3, func(e *Entry) { e.Destinations = []Destination{toTable(highTable), toTable(highTable)} }), BadParam, "leads to tables 2 and 2"},
		{entry(3, func(e *Entry) { e.Destinations = make([]Destination, 2049) }), BadParam, "2049 destinations"},
		{modify(0, same), BadParam, "modify_enable_mask 0x0"},
		{modify(1<<4, same), BadParam, "modify_enable_mask 0x10"},
		{modify(ChangeTag, func(e *Entry) { e.Group = 9 }), BadParam, "is in group 3, not in 9"},
		{modify(ChangeTag, func(e *Entry) { e.Value.set("ip_protocol", 1) }), BadParam, "cannot be changed"},
		{modify(ChangeAction, func(e *Entry) { e.Action = Drop }), BadParam, "2 destinations with action 0x2"},
		{modify(ChangeDestinations, func(e *Entry) { e.Destinations = []Destination{toTIR(9)} }), NotFound, "TIR 0x9 does not exist"},
		{func(s *State) error { return s.ModifyEntry(lowTable, 3, ChangeTag, benchEntry) }, NotFound, "table 1 has no entry 3"},
		{func(s *State) error { return s.DeleteEntry(lowTable, 3) }, NotFound, "table 1 has no entry 3"},
		{func(s *State) error { return s.DeleteEntry(9, 2) }, NotFound, "table 9 does not exist"},
		{func(s *State) error { return s.CreateCounter(aCounter) }, BadState, "exists already"},
		{func(s *State) error { return s.DestroyCounter(9) }, NotFound, "does not exist"},
		{func(s *State) error { return s.DestroyCounter(aCounter) }, InUse, "entry 2 of table 1 counts in it"},

		{rqtOf(aRQT, 1, 1), BadState, "RQT 0x5 exists already"},
		{rqtOf(20, 3, 1), BadParam, "a maximum of 3 queues"},
		{rqtOf(20, 0), BadParam, "a maximum of 0 queues"},
		{rqtOf(20, 4096, 1), BadParam, "a power of two up to 2^11"},
		{rqtOf(20, 4, 1, 2, 3), BadParam, "3 queues; it must be a power of two up to 4"},
		{rqtOf(20, 1, 1, 2), BadParam, "2 queues; it must be a power of two up to 1"},
		{rqtOf(20, 4), BadParam, "0 queues"},
		{rqtOf(20, 2, 1, 1<<24), BadParam, "place 1: RQ 0x1000000 has more than 24 bits"},
		{func(s *State) error { return s.ModifyRQT(aRQT, make([]uint32, 8)) }, BadParam, "8 queues; it must be a power of two up to 4"},
		{func(s *State) error { return s.ModifyRQT(9, []uint32{1}) }, NotFound, "RQT 0x9 does not exist"},
		{func(s *State) error { return s.DestroyRQT(9) }, NotFound, "RQT 0x9 does not exist"},
		{func(s *State) error { return s.DestroyRQT(aRQT) }, InUse, "TIR 0x4 spreads over it"},
		{func(s *State) error { return s.CreateTIR(aTIR, TIR{}) }, BadState, "TIR 0x4 exists already"},
		{tirOf(TIR{Indirect: true, RQT: 9}), NotFound, "RQT 0x9 does not exist"},
		{tirOf(TIR{Indirect: true, RQT: aRQT, Queue: 1}), BadParam, "RQ 0x1 in an indirect TIR"},
		{tirOf(TIR{RQT: aRQT}), BadParam, "RQT 0x5 in a direct TIR"},
		{tirOf(TIR{Hash: Hash{Fields: 1}}), BadParam, "a hash in a direct TIR"},
		{tirOf(TIR{Queue: 1 << 24}), BadParam, "more than 24 bits"},
		{hashOf(Hash{}), BadParam, "hash function 0 of an indirect TIR"},
		{hashOf(Hash{Function: 3}), BadParam, "hash function 3"},
		{hashOf(Hash{Function: HashToeplitz, L3: 2}), BadParam, "layer 3 type 2"},
		{hashOf(Hash{Function: HashToeplitz, L4: 2}), BadParam, "layer 4 type 2"},
		{hashOf(Hash{Function: HashToeplitz, Fields: 1 << 5}), BadParam, "selected fields 0x20; only 0x1f are modelled"},
		{hashOf(Hash{Function: HashToeplitz, Fields: HashSPI | HashDstPort}), BadParam, "ports and an SPI"},
		{func(s *State) error { return s.ModifyTIR(9, Hash{}) }, NotFound, "TIR 0x9 does not exist"},
		{func(s *State) error { return s.ModifyTIR(aTIR, Hash{}) }, BadParam, "hash function 0"},
		{func(s *State) error { return s.ModifyTIR(directTIR, Hash{Function: HashToeplitz}) }, BadState, "TIR 0x8 is direct"},
		{func(s *State) error { return s.DestroyTIR(9) }, NotFound, "TIR 0x9 does not exist"},
		{func(s *State) error { return s.DestroyTIR(aTIR) }, InUse, "entry 2 of table 1 leads to it"},

		{func(s *State) error { return s.CreateNode(aNode, Node{}) }, BadState, "node 0x7 exists already"},
		{nodeOf(0, nil, Arc{ArcIP, 254}), BadParam, "a header of 0 bytes"},
		{nodeOf(65, nil, Arc{ArcIP, 254}), BadParam, "1 to 64"},
		{nodeOf(4, make([]Sample, 9), Arc{ArcIP, 254}), BadParam, "9 samples; a node may have 8"},
		{nodeOf(4, make([]Sample, 8), Arc{ArcIP, 254}), NoResources, "8 samples; 7 of 8 are free"},
		{nodeOf(4, []Sample{{Offset: 1}}, Arc{ArcIP, 254}), BadParam, "four bytes at 1 of a header of 4 bytes"},
		{nodeOf(3, []Sample{{}}, Arc{ArcIP, 254}), BadParam, "four bytes at 0 of a header of 3 bytes"},
		{nodeOf(4, []Sample{{Offset: -1}}, Arc{ArcIP, 254}), BadParam, "four bytes at -1"},
		{nodeOf(4, []Sample{{ID: 1}}, Arc{ArcIP, 254}), BadParam, "ids are the card's to give"},
		{nodeOf(4, nil), BadParam, "0 input arcs"},
		{arcs(1, 2, 3, 4, 5, 6, 7, 8, 9), BadParam, "9 input arcs"},
		{nodeOf(4, nil, Arc{5, 254}), BadParam, "an arc from node type 5"},
		{arcs(256), BadParam, "IP protocol 256"},
		{arcs(254, 6), BadParam, "the fixed parser follows IP protocol 6 (TCP)"},
		{arcs(47), BadParam, "(GRE)"},
		{arcs(44), BadParam, "(fragment)"},
		{arcs(254, 254), BadParam, "two arcs for IP protocol 254"},
		{arcs(253), InUse, "node 0x7 follows IP protocol 253 already"},
		{func(s *State) error { return s.DestroyNode(9) }, NotFound, "node 0x9 does not exist"},
		{func(s *State) error { return s.DestroyNode(aNode) }, InUse, "group 3 of table 1 compares sample 7"},
		{func(s *State) error { _, err := s.Node(9); return err }, NotFound, "node 0x9 does not exist"},
	} {
		s := bench(t)
		before := s.Text()
		err := c.try(s)
		if err == nil || kindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
			t.Errorf("want %q (%s), got: %v", c.text, c.kind, err)
		}
		// Joined tries changed something first.
		if _, joined := err.(interface{ Unwrap() []error }); !joined && s.Text() != before {
			t.Errorf("%v: and yet something changed:\n%s", err, s.Text())
		}
	}
}

func TestLimitsOfNumbers(t *testing.T) {
	s := New(Limits{LogTables: 1, Levels: 2, Nodes: 2, Samples: 3, SamplesPerNode: 2, ArcsIn: 1, HeaderBytes: 4})
	arc := func(p uint16) []Arc { return []Arc{{ArcIP, p}} }
	for i, want := range []Kind{0, 0, NoResources} {
		if err := s.CreateTable(uint32(i), Table{}); kindOf(err) != want {
			t.Errorf("table %d: %v", i, err)
		}
	}
	for i, c := range []struct {
		samples int
		want    Kind
	}{{2, 0}, {2, NoResources}, {1, 0}, {0, NoResources}} {
		if err := s.CreateNode(uint32(i), Node{4, make([]Sample, c.samples), arc(uint16(200 + i))}); kindOf(err) != c.want {
			t.Errorf("node %d: %v", i, err)
		}
	}
}

func TestAFailedModifyKeepsTheEntry(t *testing.T) {
	e := benchEntry
	e.Tag, e.Destinations, e.Action, e.Counters = 0x123456, []Destination{toTIR(directTIR)}, Forward, nil
	for which, want := range map[Change]string{
		ChangeTag:                     "counted in 0x6, tag 0x123456 -> TIR 0x4 -> table 2",
		ChangeDestinations:            "counted in 0x6 -> TIR 0x8",
		ChangeAction | ChangeCounters: "sample 7 = 0x1/0xffff -> TIR 0x4 -> table 2",
		ChangeAction:                  "counted in 0x6 -> TIR 0x4 -> table 2", // refused: counters without Count
	} {
		s := bench(t)
		err := s.ModifyEntry(lowTable, 2, which, e)
		if (err != nil) != (which == ChangeAction) || !strings.Contains(s.Text(), want) {
			t.Errorf("change %#x: %v; want %q in\n%s", which, err, want, s.Text())
		}
	}
}

func TestSampleIDs(t *testing.T) {
	s := New(limits())
	var ids []uint32
	for p := range uint32(8) {
		if err := s.CreateNode(p, Node{4, []Sample{{}}, []Arc{{ArcIP, uint16(200 + p)}}}); err != nil {
			t.Fatal(err)
		}
		n, _ := s.Node(p)
		ids = append(ids, n.Samples[0].ID)
	}
	for i, id := range ids {
		if id != uint32(7-i) {
			t.Errorf("ids %v: 0 must come last", ids)
		}
	}
	if err := s.CreateNode(99, Node{4, []Sample{{}}, []Arc{{ArcIP, 99}}}); kindOf(err) != NoResources {
		t.Errorf("a ninth node: %v", err)
	}
	if err := s.DestroyNode(5); err != nil {
		t.Fatal(err)
	}
	if err := s.CreateNode(99, Node{4, []Sample{{}}, []Arc{{ArcIP, 99}}}); err != nil {
		t.Fatal(err)
	}
	if n, _ := s.Node(99); n.Samples[0].ID != ids[5] {
		t.Errorf("the free id is %d, given was %d", ids[5], n.Samples[0].ID)
	}
}

func TestTheRootMayGo(t *testing.T) {
	s := bench(t)
	for _, err := range []error{s.DeleteEntry(lowTable, 2), s.DestroyGroup(lowTable, aGroup), s.DestroyTable(lowTable)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.ClearRoot(); kindOf(err) != BadState {
		t.Errorf("the root is still there: %v", err)
	}
}

func TestTablesReadWell(t *testing.T) {
	want := `root: table 1
table 1 (level 3): 1 of 2^4 entries, misses -> table 2
  group 3, entries 2 to 5: compares cvlan_tag, svlan_tag, ip_protocol, sample 7
    entry 2: untagged, ip_protocol 253, sample 7 = 0x1/0xffff, counted in 0x6 -> TIR 0x4 -> table 2
table 2 (level 5): 0 of 2^4 entries, misses -> nobody
TIR 0x4: Toeplitz of IPv4 source, IPv4 destination -> RQT 0x5
TIR 0x8: -> RQ 0x9
RQT 0x5: 2 of at most 4 places: 0x1 0x2
parse graph node 0x7: 4 bytes behind IP protocol 253, sample 7 at byte 0
`
	if got := bench(t).Text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAnRQTIsWrittenOnce(t *testing.T) {
	for want, queues := range map[string][]uint32{
		"0x7": {7}, "0x7, and again": {7, 7, 7, 7}, "0x1 0x2 0x3, and again": {1, 2, 3, 1, 2, 3, 1, 2},
		"0x1 0x1 0x1 0x2": {1, 1, 1, 2}, "0x1 0x2 0x1 0x3": {1, 2, 1, 3}, "0x1 0x1 0x2, and again": {1, 1, 2, 1},
	} {
		r := rqt{RQT: RQT{8, queues}}
		if got := r.text(); !strings.HasSuffix(got, "places: "+want) {
			t.Errorf("%v: %q", queues, got)
		}
	}
}
