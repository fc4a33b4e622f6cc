// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"
)

// worlds is how many random worlds a law is tried in.
func worlds(t *testing.T) uint64 {
	n, err := strconv.ParseUint(os.Getenv("FLEXSTEER_WORLDS"), 10, 32)
	if err != nil {
		return 400
	}
	t.Logf("%d worlds", n)
	return n
}

// The naive model: rows in the order of their indexes, each compared field by
// field with what the frame's parts say.
type naive struct {
	tables []naiveTable
	nodes  []naiveNode
}

type naiveTable struct {
	id   uint32
	rows []naiveRow
	miss int // in tables; -1: nobody
}

type naiveRow struct {
	index      uint32
	conditions []naiveCondition
	queues     []uint32
	next       int // in tables; -1: none
	drop       bool
	tag        uint32
}

type naiveCondition struct {
	name        string // a field, "first tag", "second tag" or "sample"
	mask, value uint64 // of tags: 0 none, 1 C, 2 S
	sample      uint32
	pair        string // of misc4
}

type naiveNode struct {
	protos  []uint8
	header  int
	samples map[uint32]int // offset by id
}

type naiveStep struct {
	table        uint32
	index, rival int
}

type naiveVerdict struct {
	path    []naiveStep
	queues  []uint32
	dropped bool
	tag     uint32
}

func (n *naive) steer(w wire) (v naiveVerdict) {
	for at := 0; at >= 0; {
		t := n.tables[at]
		i := slices.IndexFunc(t.rows, func(r naiveRow) bool { return n.matches(r, w) })
		if i < 0 {
			v.path = append(v.path, naiveStep{t.id, -1, -1})
			at = t.miss
			continue
		}
		r := t.rows[i]
		rival := slices.IndexFunc(t.rows[i+1:], func(o naiveRow) bool { return slices.Equal(o.conditions, r.conditions) })
		if rival >= 0 {
			rival = int(t.rows[i+1+rival].index)
		}
		v.path = append(v.path, naiveStep{t.id, int(r.index), rival})
		v.queues = append(v.queues, r.queues...)
		v.dropped = r.drop
		if r.tag != 0 {
			v.tag = r.tag
		}
		at = r.next
	}
	return v
}

func (n *naive) matches(r naiveRow, w wire) bool {
	for _, c := range r.conditions {
		if n.value(c, w)&c.mask != c.value || !w.hasHeaderOf(c.name) {
			return false
		}
	}
	return true
}

func (n *naive) value(c naiveCondition, w wire) uint64 {
	switch c.name {
	case "first tag":
		return tagKind(w, 0)
	case "second tag":
		return tagKind(w, 1)
	case "sample":
		return n.sample(c.sample, w)
	}
	return w.value(c.name)
}

func tagKind(w wire, i int) uint64 {
	if len(w.tags) <= i {
		return 0
	}
	return map[uint16]uint64{0x8100: 1, 0x88a8: 2}[w.tags[i].tpid]
}

func (n *naive) sample(id uint32, w wire) uint64 {
	for _, node := range n.nodes {
		at, ok := node.samples[id]
		if ok && w.src.IsValid() && slices.Contains(node.protos, w.proto) && len(w.l4) >= node.header {
			return uint64(binary.BigEndian.Uint32(w.l4[at:]))
		}
	}
	return 0
}

// world is a State and the naive model with the same tables.
type world struct {
	*device
	naive
	r      *rand.Rand
	frames []wire
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{device: newDevice(t), r: rand.New(rand.NewPCG(seed, 77))}
	for range 40 {
		w.frames = append(w.frames, w.frame())
	}
	w.makeNodes()
	n := 1 + w.r.IntN(5)
	levels := w.r.Perm(64)[:n]
	slices.Sort(levels)
	w.tables = make([]naiveTable, n)
	for i := n - 1; i >= 0; i-- { // misses lead to tables that are there
		w.makeTable(i, uint8(levels[i]))
	}
	w.must(w.SetRoot(w.tables[0].id))
	return w
}

func (w *world) makeNodes() {
	for _, protos := range [][]uint8{{253}, {146, 254}}[:w.r.IntN(3)] {
		n := Node{HeaderBytes: 4 + w.r.IntN(9)}
		for _, p := range protos {
			n.In = append(n.In, Arc{ArcIP, uint16(p)})
		}
		for range 1 + w.r.IntN(2) {
			n.Samples = append(n.Samples, Sample{Offset: w.r.IntN(n.HeaderBytes - 3)})
		}
		id := w.id(w.CreateNode(w.next(), n))
		made, err := w.Node(id)
		w.must(err)
		samples := map[uint32]int{}
		for _, s := range made.Samples {
			samples[s.ID] = s.Offset
		}
		w.naive.nodes = append(w.naive.nodes, naiveNode{protos, n.HeaderBytes, samples})
	}
}

// onward is a table behind i, or -1.
func (w *world) onward(i int) (next int, id uint32) {
	if i+1 == len(w.tables) || w.r.IntN(4) == 0 {
		return -1, 0
	}
	next = i + 1 + w.r.IntN(len(w.tables)-i-1)
	return next, w.tables[next].id
}

func (w *world) makeTable(i int, level uint8) {
	miss, missID := w.onward(i)
	t := &w.tables[i]
	t.id, t.miss = w.table(level, 10, missID), miss
	var criteria []naiveCondition
	for _, slot := range w.r.Perm(8)[:w.r.IntN(7)] {
		start := uint32(slot*128 + w.r.IntN(64))
		if w.r.IntN(3) > 0 { // else the same as another group's
			criteria = w.criteria()
		}
		g := w.device.group(t.id, start, start+uint32(w.r.IntN(64)), maskOf(criteria))
		for index := start; index <= w.groups[g].End && index < start+12; index++ {
			if w.r.IntN(3) > 0 {
				w.makeEntry(i, g, index, criteria)
			}
		}
	}
	slices.SortFunc(t.rows, func(a, b naiveRow) int { return int(a.index) - int(b.index) })
}

func (w *world) makeEntry(i int, g, index uint32, criteria []naiveCondition) {
	row := naiveRow{index: index, conditions: slices.Clone(criteria), next: -1}
	like := w.frames[w.r.IntN(len(w.frames))]
	for c := range row.conditions {
		row.conditions[c].value = w.value(row.conditions[c], like) & row.conditions[c].mask
	}
	e := Entry{Group: g, Action: Forward, Value: valueOf(row.conditions)}
	if w.r.IntN(3) == 0 {
		e.Tag = w.r.Uint32() >> 8
		row.tag = e.Tag
	}
	next, id := w.onward(i)
	if next >= 0 && w.r.IntN(2) == 0 {
		row.next = next
		e.Destinations = append(e.Destinations, toTable(id))
	}
	for range w.r.IntN(3) {
		q := w.r.Uint32N(1 << 24)
		row.queues = append(row.queues, q)
		e.Destinations = append(e.Destinations, toTIR(w.id(w.CreateTIR(w.next(), TIR{Queue: q}))))
	}
	if len(e.Destinations) == 0 {
		e.Action, row.drop = Drop, true
	}
	w.must(w.SetEntry(w.tables[i].id, index, e))
	w.tables[i].rows = append(w.tables[i].rows, row)
}

// criteria are conditions whose values do not count yet.
func (w *world) criteria() (cs []naiveCondition) {
	for _, i := range w.r.Perm(len(compared))[:w.r.IntN(4)] {
		name := compared[i]
		c := naiveCondition{name: name, mask: 1<<layout[name].width - 1}
		switch w.r.IntN(3) {
		case 0:
			c.mask &= w.r.Uint64() | 1
		case 1:
			c.mask &= 3
		}
		cs = append(cs, c)
	}
	for _, name := range []string{"first tag", "second tag"} {
		if w.r.IntN(5) == 0 {
			cs = append(cs, naiveCondition{name: name, mask: 3})
		}
	}
	for _, n := range w.naive.nodes {
		for _, id := range sortedKeys(n.samples) {
			if w.r.IntN(3) == 0 {
				cs = append(cs, naiveCondition{name: "sample", mask: uint64(w.r.Uint32()&w.r.Uint32() | 1), sample: id})
			}
		}
	}
	pairs := w.r.Perm(4)
	for i := range cs {
		if cs[i].name == "sample" {
			cs[i].pair = strconv.Itoa(pairs[0])
			pairs = pairs[1:]
		}
	}
	slices.SortFunc(cs, func(a, b naiveCondition) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.sample, b.sample))
	})
	return cs
}

var tagBits = map[string][2]string{"first tag": {"cvlan_tag", "svlan_tag"}, "second tag": {"outer_second_cvlan_tag", "outer_second_svlan_tag"}}

// maskOf sets both bits of a tag's pair, since an entry may want either; one
// alone is what the driver's tables test.
func maskOf(cs []naiveCondition) (m Match) {
	for _, c := range cs {
		switch c.name {
		case "first tag", "second tag":
			m.set(tagBits[c.name][0], 1)
			m.set(tagBits[c.name][1], 1)
		case "sample":
			m.set("value_"+c.pair, c.mask)
			m.set("id_"+c.pair, uint64(c.sample))
		default:
			m.set(c.name, c.mask)
		}
	}
	return m
}

func valueOf(cs []naiveCondition) (m Match) {
	for _, c := range cs {
		switch c.name {
		case "first tag", "second tag":
			m.set(tagBits[c.name][0], c.value&1)
			m.set(tagBits[c.name][1], c.value>>1)
		case "sample":
			m.set("value_"+c.pair, c.value)
			m.set("id_"+c.pair, uint64(c.sample))
		default:
			m.set(c.name, c.value)
		}
	}
	return m
}

// frame is one of few values in each part, so that many frames have much in common.
func (w *world) frame() wire {
	f := wire{dmac: [6]byte{2, 0, 0, 0, 0, w.small()}, smac: [6]byte{w.small(), 1}, ttl: w.small(), tos: w.small() << 1}
	for range w.r.IntN(3) {
		f.tags = append(f.tags, vlan{[2]uint16{0x8100, 0x88a8}[w.r.IntN(2)], uint16(w.small()) << 11 & 0xf000})
	}
	f.l4 = make([]byte, w.r.IntN(30))
	for i := range f.l4 {
		f.l4[i] = w.small() << (w.r.IntN(2) * 4)
	}
	f.proto = []uint8{6, 17, 1, 58, 47, 50, 51, 253, 254, 146}[w.r.IntN(10)]
	switch w.r.IntN(5) {
	case 0:
		f.etherType = [3]uint16{0x0806, 0x88cc, 0x22f0}[w.r.IntN(3)]
	case 1, 2:
		f.src, f.dst = w.address(4), w.address(4)
		f.options = make([]byte, 4*(w.r.IntN(4)/2))
	default:
		f.src, f.dst, f.label = w.address(16), w.address(16), uint32(w.small())
		f.extensions = []extension{{0, w.small() & 1}, {43, 1}, {44, 0}, {60, 0}}[:w.r.IntN(8)%5]
	}
	if w.r.IntN(4) == 0 {
		f.offset, f.more = w.r.IntN(3), w.r.IntN(2) == 0
	}
	f.padding = w.r.IntN(3)
	return f
}

func (w *world) small() uint8 { return uint8(w.r.IntN(4)) }

func (w *world) address(n int) netip.Addr {
	b := make([]byte, n)
	for i := range b {
		b[i] = w.small() & 1
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func TestTheLowestRowThatMatchesDecides(t *testing.T) {
	hits, steps := 0, 0
	for seed := range worlds(t) {
		w := newWorld(t, seed)
		consistent(t, w.State)
		for _, f := range w.frames {
			// A later fragment's extension headers are not followed: its parts say otherwise.
			if n := len(f.extensions); n == 4 && f.offset != 0 {
				f.extensions = f.extensions[:3]
			}
			got, want := w.Steer(f.bytes()), w.steer(f)
			var path []naiveStep
			for _, s := range got.Path {
				path = append(path, naiveStep{s.Table, s.Entry, s.Rival})
				if s.Entry >= 0 {
					hits++
				}
			}
			steps += len(path)
			if !slices.Equal(path, want.path) || !slices.Equal(got.Queues, want.queues) || got.Dropped != want.dropped || got.Tag != want.tag {
				t.Fatalf("world %d, frame %+v\nsteered %v to %#x, dropped %t, tag %#x\n   want %v to %#x, dropped %t, tag %#x\n%s",
					seed, f, path, got.Queues, got.Dropped, got.Tag, want.path, want.queues, want.dropped, want.tag, w.Text())
			}
		}
	}
	if hits*10 < steps || hits*10 > steps*9 {
		t.Errorf("%d of %d tables matched: these worlds show nothing", hits, steps)
	}
}

func TestEveryEntryOfAWorldReadsDifferentlyFromItsValue(t *testing.T) {
	// Two entries of one group that want different packets must not read alike.
	for seed := range worlds(t) / 4 {
		w := newWorld(t, seed)
		type reading struct {
			group *group
			text  string
		}
		read := map[reading]string{}
		for _, id := range sortedKeys(w.State.tables) {
			for _, e := range w.State.tables[id].entries {
				r := reading{e.group, e.matchText()}
				if key, ok := read[r]; ok && key != e.key {
					t.Fatalf("world %d: two entries of group %d read %q", seed, e.Group, r.text)
				}
				read[r] = e.key
			}
		}
	}
}

func TestAWorldCanBeTakenApartAndLeavesNothing(t *testing.T) {
	for seed := range worlds(t) / 4 {
		w := newWorld(t, seed)
		takeApart(t, w.State, w.r)
	}
}

// takeApart destroys everything in any order that is allowed: whatever is left
// there is always something that may go, and at the end nothing is there.
func takeApart(t *testing.T, s *State, r *rand.Rand) {
	t.Helper()
	for {
		var tries []func() error
		for _, id := range sortedKeys(s.tables) {
			tries = append(tries, func() error { return s.DestroyTable(id) })
			for _, index := range sortedKeys(s.tables[id].entries) {
				tries = append(tries, func() error { return s.DeleteEntry(id, index) })
			}
		}
		for _, id := range sortedKeys(s.groups) {
			table := s.groups[id].table.id
			tries = append(tries, func() error { return s.DestroyGroup(table, id) })
		}
		for _, id := range sortedKeys(s.tirs) {
			tries = append(tries, func() error { return s.DestroyTIR(id) })
		}
		for _, id := range sortedKeys(s.rqts) {
			tries = append(tries, func() error { return s.DestroyRQT(id) })
		}
		for _, id := range sortedKeys(s.nodes) {
			tries = append(tries, func() error { return s.DestroyNode(id) })
		}
		for _, id := range sortedKeys(s.counters) {
			tries = append(tries, func() error { return s.DestroyCounter(id) })
		}
		if len(tries) == 0 {
			break
		}
		r.Shuffle(len(tries), func(i, j int) { tries[i], tries[j] = tries[j], tries[i] })
		done := 0
		for _, try := range tries {
			if err := try(); err == nil {
				done++
			} else if kindOf(err) != InUse {
				t.Fatal(err)
			}
		}
		consistent(t, s)
		if done == 0 {
			t.Fatalf("nothing may go:\n%s", s.Text())
		}
	}
	if s.Text() != "no root table\n" || len(s.samples) != 0 || s.byProto != [256]*node{} {
		t.Fatalf("left:\n%s", s.Text())
	}
}
