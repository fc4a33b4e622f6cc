// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// seeds is a frame of every kind.
func seeds() (frames [][]byte) {
	extended := to6(17, udp(1, 53))
	extended.extensions = []extension{{0, 1}, {43, 0}, {44, 0}, {60, 2}}
	tagged := to6(6, tcp(80, 1, 0x12, 4))
	tagged.tags = []vlan{{0x88a8, 5}, {0x8100, 6}}
	for _, w := range []wire{to4(17, udp(1, 53)), to4(253, udp(1, 3)), to6(253, udp(1, 3)), to6(254, udp(1, 3)), extended, tagged,
		to4(47, []byte{0xb0, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), to4(50, udp(1, 2)), to6(51, make([]byte, 24)),
		to4(1, make([]byte, 8)), to6(58, make([]byte, 8)), {}} {
		frames = append(frames, w.bytes())
	}
	return frames
}

// crowded is a card with rules of every kind.
func crowded(t testing.TB) *card {
	c := newCard(t, 16)
	for i, name := range compared {
		ones := 1<<layout[name].width - 1
		if layout[name].width > 16 {
			c.rule(i%11, match(name, ones), match(name, ones&0x12345678), i%16)
			continue
		}
		c.rule(i%11, match(name, ones, "dmac", 0xff), match(name, ones&0x5a5a, "dmac", 1), i%16)
	}
	for _, proto := range []uint8{253, 254} {
		c.flexRule(0x0800, int(proto), c.node(proto), 3, 0xf, 3)
	}
	return c
}

func FuzzAnyFrameHasAVerdict(f *testing.F) {
	for _, frame := range seeds() {
		f.Add(frame)
	}
	c := crowded(f)
	f.Fuzz(func(t *testing.T, frame []byte) {
		before := slices.Clone(frame)
		v := c.Steer(frame)
		if !bytes.Equal(frame, before) {
			t.Fatal("the frame was changed")
		}
		if len(frame) >= 14 && len(v.Path) == 0 {
			t.Fatal("no path")
		}
		level := -1
		for _, s := range v.Path {
			if s.String() == "" || int(s.Level) <= level {
				t.Fatalf("%s after level %d", s, level)
			}
			level = int(s.Level)
		}
		for _, q := range v.Queues {
			if !slices.Contains(c.queues, q) {
				t.Fatalf("queue %#x", q)
			}
		}
	})
}

func FuzzAnyCriteriaAreRefusedOrCompared(f *testing.F) {
	for _, frame := range seeds() {
		f.Add(EnableOuter, []byte{16, 0xff, 18, 0xde}, frame)
		f.Add(EnableMisc4|EnableMisc, []byte{64, 0x80, 66, 0xff, 80, 0xff, 64 + 20, 1}, frame)
		f.Add(EnableMisc4, []byte{64 + 15, 0xff, 64 + 19, 7}, frame)
	}
	f.Fuzz(func(t *testing.T, enable uint8, ones, frame []byte) {
		c := newCard(t, 1)
		c.node(253)
		g := Group{Table: c.anchor, Enable: enable}
		for i := 0; i+1 < len(ones); i += 2 { // from the sections that matter
			section := []int{0, 64, 256, 320}[ones[i]>>6&3]
			g.Criteria[section+int(ones[i]&63)] |= ones[i+1]
		}
		var p packet
		if len(frame) >= ethernetBytes {
			c.parse(&p, frame)
		}
		if err := c.CreateGroup(c.next(), g); err != nil {
			if k := kindOf(err); k != BadParam && k != NotFound {
				t.Fatal(err)
			}
			return
		}
		e := Entry{Group: c.last, Action: Forward, Destinations: []Destination{toTIR(c.tirs[0])}}
		for i := range e.Value {
			e.Value[i] = p.match[i] & g.Criteria[i]
		}
		for _, s := range sampleFields {
			if s.value.Get(g.Criteria[:]) != 0 {
				s.id.Set(e.Value[:], s.id.Get(g.Criteria[:]))
				s.value.Set(e.Value[:], s.value.Get(g.Criteria[:])&uint64(p.sample(uint32(s.id.Get(g.Criteria[:])))))
			}
		}
		for _, bits := range vlanTags { // an S-tag under the C-tag's bit alone is not untagged
			if bits[0].Get(g.Criteria[:]) != bits[1].Get(g.Criteria[:]) {
				return
			}
		}
		c.must(c.SetEntry(c.anchor, 0, e))
		c.must(c.SetRoot(c.anchor))
		if len(frame) < ethernetBytes {
			c.Steer(frame)
			return
		}
		matches := true // but for fields of a header that the frame does not have
		for _, f := range fields {
			if h := headerOf[f.name]; h&^p.has != 0 && f.Get(g.Criteria[:]) != 0 {
				matches = false
			}
		}
		if v := c.Steer(frame); (len(v.Queues) == 1) != matches {
			t.Fatalf("an entry of the frame's own values: matches %t, want %t\n%s\n%s", !matches, matches, v.Path, c.Text())
		}
	})
}

// FuzzRequests does what bytes say with few numbers, so that requests meet each
// other's objects. Whatever comes, no reference dangles and everything can go.
func FuzzRequests(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		b := make([]byte, 400)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	frames := seeds()
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 4000 {
			return
		}
		s := New(Limits{LogTableSize: 3, Levels: 4, LogTables: 2, LogDestinations: 2, LogCounters: 1, LogRQTSize: 2,
			Nodes: 2, Samples: 3, SamplesPerNode: 2, ArcsIn: 2, HeaderBytes: 16})
		for len(script) >= 10 {
			if err := request(s, [10]byte(script)); err != nil && kindOf(err) == 0 {
				t.Fatalf("%v has no kind", err)
			}
			script = script[10:]
			consistent(t, s)
		}
		for _, frame := range frames {
			_ = s.Steer(frame)
		}
		takeApart(t, s, rand.New(rand.NewPCG(uint64(len(script)), 1)))
	})
}

// request is one request of ten bytes; ids are 0 to 3.
func request(s *State, b [10]byte) error {
	id, other := uint32(b[1]&3), uint32(b[2]&3)
	to := []Destination{{DestinationType(b[5] & 3), uint32(b[6] & 3)}, {DestinationType(b[5] >> 2 & 3), uint32(b[7] & 3)}}[:b[5]>>4&3%3]
	criteria := []Match{{}, match("ip_protocol", 255), match("value_0", 1, "id_0", 7), match("ip_protocol", 255, "value_1", 255, "id_1", 6)}[b[3]&3]
	var value Match
	if b[3]&0x40 != 0 {
		value = criteria
	}
	e := Entry{Group: other, Action: Action(b[4] & 0xf), Tag: uint32(b[8]), Value: value, Destinations: to, Counters: []uint32{uint32(b[9] & 3)}[:b[9]>>2&1]}
	index := uint32(b[8] & 7)
	queues := []uint32{1, 2, 3, 4}[:b[3]%5]
	h := Hash{Function: HashFunction(b[3] & 3), Fields: uint32(b[4] & 31), L4: b[5] & 1}
	switch b[0] % 21 {
	case 0:
		return s.CreateTable(id, Table{Level: b[3] & 3, LogSize: 3, Miss: Miss{MissAction(b[4] & 1), other}})
	case 1:
		return s.ModifyTable(id, Miss{MissAction(b[4] & 1), other})
	case 2:
		return s.DestroyTable(id)
	case 3:
		return s.SetRoot(id)
	case 4:
		return s.ClearRoot()
	case 5, 6:
		return s.CreateGroup(id, groupOf(other, index, index+uint32(b[9]&3), criteria))
	case 7:
		return s.DestroyGroup(other, id)
	case 8, 9, 10:
		return s.SetEntry(id, index, e)
	case 11:
		return s.ModifyEntry(id, index, Change(b[9]>>3), e)
	case 12:
		return s.DeleteEntry(id, index)
	case 13:
		return s.CreateRQT(id, RQT{4, queues})
	case 14:
		return s.ModifyRQT(id, queues)
	case 15:
		return s.DestroyRQT(id)
	case 16:
		return s.CreateTIR(id, TIR{Indirect: b[6]&1 != 0, RQT: other, Hash: h})
	case 17:
		return s.ModifyTIR(id, h)
	case 18:
		return s.DestroyTIR(id)
	case 19:
		if b[3]&1 != 0 {
			return s.DestroyNode(id)
		}
		return s.CreateNode(id, Node{int(b[4] & 31), []Sample{{Offset: int(b[5] & 7)}}, []Arc{{ArcIP, binary.BigEndian.Uint16(b[6:]) & 0x1ff}}})
	}
	if b[3]&1 != 0 {
		return s.DestroyCounter(id)
	}
	return s.CreateCounter(id)
}

// consistent looks for references to what is not there, and for entries that are
// not found where they should be.
func consistent(t *testing.T, s *State) {
	t.Helper()
	broken := func(what string) { t.Fatalf("%s:\n%s", what, s.Text()) }
	if s.root != nil && s.tables[s.root.id] != s.root {
		broken("the root is gone")
	}
	for id, tbl := range s.tables {
		if tbl.next != nil && (s.tables[tbl.next.id] != tbl.next || tbl.next.Level <= tbl.Level) {
			broken("a miss leads nowhere")
		}
		used, end := 0, -1
		for _, g := range tbl.groups {
			if s.groups[g.id] != g || int(g.Start) <= end {
				broken("groups")
			}
			end, used = int(g.End), used+g.used
			for key, same := range g.byValue {
				if len(same) == 0 || same[0].key != key {
					broken("entries by value")
				}
			}
			for _, m := range g.compare.samples {
				if !s.samples[m.id] {
					broken("a sample is gone")
				}
			}
			twin := slices.IndexFunc(tbl.groups, func(o *group) bool { return o.Start > g.Start && o.Criteria == g.Criteria })
			if (twin < 0) != (g.twin == nil) || twin >= 0 && tbl.groups[twin] != g.twin {
				broken("twins")
			}
		}
		if used != len(tbl.entries) {
			broken("entries are not counted well")
		}
		for index, e := range tbl.entries {
			if e.index != index || e.group.table.id != id || !slices.Contains(e.group.byValue[e.key], e) {
				broken("an entry is lost")
			}
			if e.next != nil && s.tables[e.next.id] != e.next || slices.ContainsFunc(e.tirs, func(to *tir) bool { return s.tirs[to.id] != to }) {
				broken("an entry leads nowhere")
			}
		}
	}
	for _, to := range s.tirs {
		if to.Indirect && s.rqts[to.rqt.id] != to.rqt {
			broken("a TIR leads nowhere")
		}
	}
}
