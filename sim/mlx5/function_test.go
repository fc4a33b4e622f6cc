// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"maps"
	"testing"
)

func TestEachCommandHasItsTime(t *testing.T) {
	stages := map[state]func(*guest) *guest{
		disabled: (*guest).attach, enabled: (*guest).enable, running: (*guest).initialize,
	}
	for _, c := range commands {
		for now, bring := range stages {
			if c.when&now != 0 {
				continue
			}
			g := bring(newGuest(t, card()))
			modifier := 0
			if c.modifiers != nil {
				modifier = int(c.modifiers[0])
			}
			g.refused(cmd(int(c.opcode), modifier, c.in.size), c.reply, BadSysState, WrongState)
			if got := g.Report().State; got != now.String() {
				t.Errorf("%s while %v: now it is %s", c.name, now, got)
			}
		}
	}
}

func TestInitWantsTheInterfaceAndThePages(t *testing.T) {
	g := newGuest(t, card()).attach()
	g.must(cmd(0x104, 0, 16), 12)
	initialize := cmd(0x102, 0, 32)
	g.refused(initialize, 16, BadSysState, WrongState) // no ISSI
	g.must(cmd(0x10b, 0, 16, set{0x50, 16, 1}), 16)
	g.refused(initialize, 16, BadSysState, WrongState) // no pages
	g.givePages(1)
	g.refused(initialize, 16, BadSysState, WrongState) // too few
	g.givePages(2)
	g.must(initialize, 16)
}

func TestOtherFunctionsAreNotThere(t *testing.T) {
	g := newGuest(t, card()).attach()
	g.refused(cmd(0x104, 0, 16, set{0x50, 16, 1}), 12, BadParam, BadValue)
	g.refused(cmd(0x104, 0, 16, set{0x40, 1, 1}), 12, BadParam, UnknownBits)
	g.must(cmd(0x104, 0, 16), 12)
	g.refused(cmd(0x107, 1, 16, set{0x50, 16, 2}), 16, BadParam, BadValue)
	g.refused(cmd(0x105, 0, 16, set{0x50, 16, 3}), 12, BadParam, BadValue)
	g.refused(cmd(0x10b, 0, 16, set{0x50, 16, 2}), 16, BadParam, BadValue)
}

func TestAFullLifeLeavesNothing(t *testing.T) {
	g := newGuest(t, card())
	for range 3 {
		g.initialize()
		g.must(cmd(0x10d, 0, 80, set{0x80, 8, 'L'}, set{0x88, 8, 'x'}), 16)
		g.up(4).down()
		g.leave()
	}
	g.clean()
	r := g.Report()
	if r.Teardowns != 3 || r.Driver != "Lx" || r.State != "disabled" || len(r.Alive) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestWhatIsLeftAtTheEndIsALeakByKind(t *testing.T) {
	g := newGuest(t, card()).initialize()
	n := g.up(2)
	tir := n.tir(0)
	table := g.id(cmd(0x930, 0, 64, set{0xc8, 8, 3}, set{0xd8, 8, 4}))
	group := g.id(cmd(0x933, 0, 1024, set{0xa8, 24, table}, set{0x120, 32, 7}))
	g.must(list(cmd(0x936, 0, 0x340, set{0xa8, 24, table}, set{0x220, 32, group}, set{0x270, 16, 4}, set{0x288, 24, 1}), 2<<56|tir<<32), 16)
	g.node(200, 0)
	g.must(cmd(0x103, 0, 16), 16)
	g.must(cmd(0x105, 0, 16), 12)
	want := map[string]int{
		"UAR": 1, "PD": 1, "transport domain": 1, "memory key": 1, "Q counter": 1, "EQ": 3, "CQ": 3, "RQ": 2, "SQ": 1, "TIS": 1, "TIR": 1,
		"flow table": 1, "flow group": 1, "flow table entry": 1, "parse graph node": 1, "page": bootPages + initPages,
	}
	r := g.Report()
	if !maps.Equal(r.Leaks, want) {
		t.Errorf("leaks %v, want %v", r.Leaks, want)
	}
	if r.Samples != card().ParseGraph.Samples || len(r.Alive) != 0 {
		t.Errorf("the hardware keeps something: %+v", r)
	}
	if r.Clean() == nil {
		t.Error("that is not clean")
	}
	g.initialize().up(1)
}

func TestAForcedTeardownJudgesNothing(t *testing.T) {
	g := newGuest(t, card()).initialize()
	g.up(1)
	out := g.must(cmd(0x103, 0, 16, set{0x50, 16, 1}), 16)
	if state := get(out, 0x7f, 1); state != 0 {
		t.Errorf("force_state %d", state)
	}
	if r := g.Report(); r.State != "enabled" || len(r.Alive) != 0 || r.Teardowns != 0 {
		t.Errorf("%+v", r)
	}
	g.clean()
}

func TestAFastTeardownEndsWithTheInterface(t *testing.T) {
	g := newGuest(t, card()).initialize()
	g.up(1)
	g.must(cmd(0x103, 0, 16, set{0x50, 16, 2}), 16)
	if r := g.Report(); r.State != "initialized" || len(r.Alive) == 0 {
		t.Errorf("before nic_interface: %+v", r)
	}
	g.write32(0x14, uint32(g.queue)|1<<8)
	if r := g.Report(); r.State != "disabled" || len(r.Alive) != 0 || g.read32(0x14)>>8&7 != 1 {
		t.Errorf("after: %+v", r)
	}
	g.initialize()
	g.refused(cmd(0x103, 0, 16, set{0x50, 16, 3}), 16, BadParam, BadValue)
}

func TestPagesAreLentAndComeBackAsTheyWere(t *testing.T) {
	g := newGuest(t, card()).attach()
	g.must(cmd(0x104, 0, 16), 12)
	given := g.givePages(1)
	if again := get(g.must(cmd(0x107, 1, 16), 16), 0x60, 32); again != 0 {
		t.Errorf("asks for %d more", again)
	}
	if back := int32(get(g.must(cmd(0x107, 3, 16), 16), 0x60, 32)); back != -bootPages {
		t.Errorf("regular pages: %d", back)
	}
	page := g.alloc(pageSize)
	manage := func(n uint64, pages ...uint64) []byte { return list(cmd(0x108, 1, 16, set{0x60, 32, n}), pages...) }
	g.refused(manage(1, given[3]), 16, BadParam, BadValue)
	g.refused(manage(2, page, page), 16, BadParam, BadValue)
	g.refused(manage(1, page+512), 16, BadParam, BadValue)
	g.refused(manage(1, 0), 16, BadParam, BadValue)
	g.refused(manage(1, 1<<44), 16, BadParam, BadMemory)
	g.refused(manage(2, page), 16, BadInputLength, WrongLength)
	g.refused(manage(1, page)[:20], 16, BadInputLength, WrongLength)
	g.must(cmd(0x108, 0, 16), 16) // cannot give
	g.refused(list(cmd(0x108, 0, 16), page), 16, BadInputLength, WrongLength)
	g.refused(list(cmd(0x108, 2, 16, set{0x60, 32, 1}), page), 16+8, BadInputLength, WrongLength)
	g.refused(cmd(0x108, 2, 16, set{0x60, 32, 5}), 16+8*4, BadOutputLength, WrongLength)

	out := g.must(cmd(0x108, 2, 16, set{0x60, 32, 500}), 16+8*500)
	back := map[uint64]bool{}
	for i := range get(out, 0x40, 32) {
		back[be.Uint64(out[16+8*i:])] = true
	}
	if len(back) != len(given) {
		t.Errorf("%d of %d pages came back", len(back), len(given))
	}
	for _, p := range given {
		if !back[p] {
			t.Errorf("page %#x is missing", p)
		}
	}
	g.must(cmd(0x105, 0, 16), 12)
	if leaks := g.Report().Leaks; len(leaks) != 0 {
		t.Errorf("leaks %v", leaks)
	}
}

func TestAnInitializedFunctionKeepsThePagesItAskedFor(t *testing.T) {
	g := newGuest(t, card()).initialize()
	extra := g.alloc(pageSize)
	g.must(list(cmd(0x108, 1, 16, set{0x60, 32, 1}), extra), 16)
	out := g.must(cmd(0x108, 2, 16, set{0x60, 32, 10}), 16+80)
	if n := get(out, 0x40, 32); n != 1 || be.Uint64(out[16:]) != extra {
		t.Errorf("%d pages, the first %#x", n, be.Uint64(out[16:]))
	}
	g.leave()
	g.clean()
}
