// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"testing"
)

// node is a command that makes a node for an IP protocol, as our patch does, with samples at byte offsets.
func nodeCommand(protocol uint64, offsets ...uint64) []byte {
	in := cmd(0xa00, 0x22, 432, set{0x80 + 0x60, 16, 4}, set{0x580 + 0x08, 8, 3}, set{0x580 + 0x10, 16, protocol})
	for i, offset := range offsets {
		for _, f := range []set{{0, 1, 1}, {0x28, 8, offset}} {
			at(0x180+0x80*i+f.bit, f.width).Set(in, f.value)
		}
	}
	return in
}

func (g *guest) node(protocol uint64, offsets ...uint64) uint64 {
	g.Helper()
	return get(g.must(nodeCommand(protocol, offsets...), 16), 0x40, 32)
}

func TestTheCapabilityPageIsWhatThePersonalityHas(t *testing.T) {
	g := newGuest(t, card()).initialize()
	page := g.must(cmd(0x100, 0x39, 16), 16+4096)[16:]
	for _, c := range []struct {
		name       string
		bit, width int
		want       uint64
	}{
		{"node_in", 0, 32, 1 << 3}, {"header_length_mode", 0x40, 16, 1}, {"sample_offset_mode", 0x50, 16, 1},
		{"max_num_arc_in", 0x60, 8, 1}, {"max_num_sample", 0x70, 8, 2}, {"max_base_header_length", 0x80, 16, 64},
	} {
		if got := get(page, c.bit, c.width); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
	if types := get(g.must(cmd(0x100, 1, 16), 16+4096)[16:], 0x400, 64); types != 1<<0x22 {
		t.Errorf("general_obj_types %#x", types)
	}
}

func TestACardWithoutAParserOffersNone(t *testing.T) {
	p := card()
	p.ParseGraph = nil
	g := newGuest(t, p).initialize()
	if types := get(g.must(cmd(0x100, 1, 16), 16+4096)[16:], 0x400, 64); types != 0 {
		t.Errorf("general_obj_types %#x", types)
	}
	g.refused(cmd(0x100, 0x39, 16), 16+4096, BadParam, BadValue)
	g.refused(nodeCommand(253, 0), 16, BadParam, BadValue)
}

// The firmware's settings decide when it starts, and not before.
func TestAParserThatIsTurnedOff(t *testing.T) {
	offered := func(g *guest) bool { return get(g.general(maximum), 0x400, 64) != 0 }
	g := newGuest(t, card())
	for _, on := range []bool{true, false, true} {
		g.SetParser(on)
		g.Reset()
		if g.attach().initialize(); offered(g) != on {
			t.Errorf("turned on: %v, offered: %v", on, !on)
		}
		if g.SetParser(!on); offered(g) != on {
			t.Errorf("turned on: %v, changed since, offered: %v", on, !on)
		}
	}
}

func TestANodeTellsItsSamples(t *testing.T) {
	g := newGuest(t, card()).initialize()
	node := g.node(253, 0)
	out := g.must(cmd(0xa02, 0x22, 16, set{0x40, 32, node}), 432)
	id := be.Uint32(out[15*4:]) // dword 15: field_id of the first sample
	if get(out, 0x40, 32) != node || id == 0 {
		t.Errorf("object %#x, sample id %#x", get(out, 0x40, 32), id)
	}
	if be.Uint32(out[7*4:]) != 4<<16 || be.Uint32(out[12*4:]) != 1<<31 || be.Uint32(out[44*4:]) != 0x000300fd {
		t.Errorf("node %x", out)
	}
	g.must(cmd(0xa03, 0x22, 16, set{0x40, 32, node}), 16)
	g.refused(cmd(0xa02, 0x22, 16, set{0x40, 32, node}), 432, BadResource, NoSuchObject)
	g.refused(cmd(0xa03, 0x22, 16, set{0x40, 32, node}), 16, BadResource, NoSuchObject)
}

func TestNodesThatTheModelDoesNotKnow(t *testing.T) {
	g := newGuest(t, card()).initialize()
	with := func(fields ...set) []byte {
		in := nodeCommand(253, 0)
		for _, f := range fields {
			at(f.bit, f.width).Set(in, f.value)
		}
		return in
	}
	for name, in := range map[string][]byte{
		"header of variable length": with(set{0x80 + 0x7c, 4, 1}),
		"sample of variable offset": with(set{0x180 + 0x04, 4, 1}),
		"inner sample":              with(set{0x180 + 0x3d, 3, 1}),
		"arc from UDP":              with(set{0x580 + 0x08, 8, 5}),
		"two arcs":                  with(set{0x600 + 0x08, 8, 3}, set{0x600 + 0x10, 16, 252}),
		"no arc":                    with(set{0x580 + 0x08, 8, 0}),
		"a header too long":         with(set{0x80 + 0x60, 16, 65}),
		"a sample behind it":        with(set{0x180 + 0x28, 8, 4}),
		"an arc from nowhere":       with(set{0x600 + 0x10, 16, 252}),
		"a sample that is not on":   with(set{0x200 + 0x28, 8, 1}),
		"three samples":             nodeCommand(253, 0, 0, 0),
		"TCP":                       nodeCommand(6, 0),
	} {
		if out := g.exec(in, 16); Status(out[0]) != BadParam && Status(out[0]) != NoResources {
			t.Errorf("%s: %v", name, Status(out[0]))
		}
		if r := g.Report(); r.Samples != 3 || r.Alive["parse graph node"] != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	g.refused(with(set{0x980, 32, 1}), 16, BadParam, UnknownBits) // an output arc
	g.refused(with(set{0x40, 32, 1}), 16, BadParam, UnknownBits)  // an object id
	g.refused(cmd(0xa00, 0x23, 432), 16, BadParam, UnknownModifier)
}

func TestAPoolOfSamplesIsUsedUpAndComesBack(t *testing.T) {
	g := newGuest(t, card()).initialize()
	g.node(200, 0)
	second := g.node(201, 0)
	g.node(202, 0)
	g.refused(nodeCommand(203, 0), 16, NoResources, LimitReached)
	if n := g.Report().Samples; n != 0 {
		t.Errorf("%d samples are free", n)
	}
	g.must(cmd(0xa03, 0x22, 16, set{0x40, 32, second}), 16)
	g.node(203, 0)
	g.clean()
	if g.Reset(); g.Report().Samples != 3 {
		t.Errorf("%d samples after a reset", g.Report().Samples)
	}
}

func TestANodeIsInUseWhileAGroupComparesItsSample(t *testing.T) {
	g := newGuest(t, card()).initialize()
	node := g.node(253, 0)
	id := be.Uint32(g.must(cmd(0xa02, 0x22, 16, set{0x40, 32, node}), 432)[15*4:])
	table := g.id(cmd(0x930, 0, 64, set{0xd8, 8, 4}))
	group := cmd(0x933, 0, 1024, set{0xa8, 24, table}, set{0x120, 32, 3}, set{0x1f8, 8, 1 << 5})
	be.PutUint32(group[64+320:], 0xf) // misc4: value, then id
	be.PutUint32(group[64+324:], id)
	groupID := g.id(group)
	g.refused(cmd(0xa03, 0x22, 16, set{0x40, 32, node}), 16, BadResourceState, ObjectInUse)
	g.must(cmd(0x934, 0, 64, set{0xa8, 24, table}, set{0xc0, 32, groupID}), 16)
	g.must(cmd(0xa03, 0x22, 16, set{0x40, 32, node}), 16)
}
