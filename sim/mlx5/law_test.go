// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// thing is an object in a world: the driver's own idea of what needs what.
type thing struct {
	ref   ref
	needs []*thing
	index uint64 // of a flow group: its only entry
}

// world makes and destroys objects at random and knows what the device must say.
type world struct {
	*guest
	random *rand.Rand
	things []*thing
	page   uint64
	record uint64
}

func (w *world) any(k kind) *thing {
	var found []*thing
	for _, x := range w.things {
		if x.ref.kind == k {
			found = append(found, x)
		}
	}
	if found == nil {
		return nil
	}
	return found[w.random.IntN(len(found))]
}

// pick is one thing of each kind, or false if there is none of one.
func (w *world) pick(kinds ...kind) (picked []*thing, ok bool) {
	for _, k := range kinds {
		x := w.any(k)
		if x == nil {
			return nil, false
		}
		picked = append(picked, x)
	}
	return picked, true
}

type maker struct {
	needs   []kind
	command func(w *world, of []*thing) []byte
	number  set // where in the reply; the value is not used
}

var number24 = set{0x48, 24, 0}

var makers = map[kind]maker{
	uar:             {nil, func(*world, []*thing) []byte { return cmd(0x802, 0, 16) }, number24},
	pd:              {nil, func(*world, []*thing) []byte { return cmd(0x800, 0, 16) }, number24},
	transportDomain: {nil, func(*world, []*thing) []byte { return cmd(0x816, 0, 16) }, number24},
	qCounter:        {nil, func(*world, []*thing) []byte { return cmd(0x771, 0, 16) }, set{0x58, 8, 0}},
	flowCounter:     {nil, func(*world, []*thing) []byte { return cmd(0x939, 0, 16) }, set{0x40, 32, 0}},
	mkey: {[]kind{pd}, func(_ *world, of []*thing) []byte {
		return cmd(0x200, 0, 272, set{0x94, 2, 3}, set{0xe8, 24, of[0].ref.id}, set{0xe0, 1, 1}, set{0xa0, 24, 0xffffff})
	}, number24},
	tis: {[]kind{transportDomain}, func(_ *world, of []*thing) []byte { return cmd(0x912, 0, 192, set{0x228, 24, of[0].ref.id}) }, number24},
	eq: {[]kind{uar}, func(w *world, of []*thing) []byte {
		return list(cmd(0x301, 0, 272, set{0xe3, 5, 6}, set{0xe8, 24, of[0].ref.id}), w.page)
	}, set{0x58, 8, 0}},
	cq: {[]kind{eq, uar}, func(w *world, of []*thing) []byte {
		return list(cmd(0x400, 0, 272, set{0xe3, 5, 6}, set{0xe8, 24, of[1].ref.id}, set{0x120, 32, of[0].ref.id}, set{0x240, 64, w.record}), w.page)
	}, number24},
	rq: {[]kind{cq, pd, qCounter}, func(w *world, of []*thing) []byte {
		return list(cmd(0x908, 0, 272, set{0x148, 24, of[0].ref.id}, set{0x160, 8, of[2].ref.id}, set{0x280, 4, 1}, set{0x2c8, 24, of[1].ref.id},
			set{0x300, 64, w.record}, set{0x38c, 4, 4}, set{0x39b, 5, 4}), w.page)
	}, number24},
	sq: {[]kind{cq, pd, uar, tis}, func(w *world, of []*thing) []byte {
		return list(cmd(0x904, 0, 272, set{0x148, 24, of[0].ref.id}, set{0x200, 16, 1}, set{0x268, 24, of[3].ref.id}, set{0x280, 4, 1},
			set{0x2c8, 24, of[1].ref.id}, set{0x2e8, 24, of[2].ref.id}, set{0x300, 64, w.record}, set{0x38c, 4, 6}, set{0x39b, 5, 4}), w.page)
	}, number24},
	rqt: {[]kind{rq, rq}, func(_ *world, of []*thing) []byte {
		return words(cmd(0x916, 0, 0x110, set{0x1b0, 16, 2}, set{0x1d0, 16, 2}), of[0].ref.id, of[1].ref.id)
	}, number24},
	tir: {[]kind{rqt, transportDomain}, func(_ *world, of []*thing) []byte {
		return cmd(0x900, 0, 272, set{0x120, 4, 1}, set{0x208, 24, of[0].ref.id}, set{0x220, 4, 1}, set{0x228, 24, of[1].ref.id})
	}, number24},
	flowTable: {nil, func(w *world, _ []*thing) []byte {
		return cmd(0x930, 0, 64, set{0xc8, 8, uint64(w.random.IntN(90))}, set{0xd8, 8, 2})
	}, number24},
	flowGroup: {[]kind{flowTable}, func(w *world, of []*thing) []byte {
		at := uint64(w.random.IntN(4))
		return cmd(0x933, 0, 1024, set{0xa8, 24, of[0].ref.id}, set{0xe0, 32, at}, set{0x120, 32, at})
	}, number24},
	flowEntry: {[]kind{flowGroup, tir}, func(_ *world, of []*thing) []byte {
		return list(cmd(0x936, 0, 0x340, set{0xa8, 24, of[0].needs[0].ref.id}, set{0x100, 32, of[0].index}, set{0x220, 32, of[0].ref.id},
			set{0x270, 16, 4}, set{0x288, 24, 1}), 2<<56|of[1].ref.id<<32)
	}, set{}},
	parseNode: {nil, func(w *world, _ []*thing) []byte { return nodeCommand(uint64(200+w.random.IntN(5)), 0) }, set{0x40, 32, 0}},
}

func (w *world) make(k kind) {
	m := makers[k]
	of, ok := w.pick(m.needs...)
	if !ok {
		return
	}
	in := m.command(w, of)
	out := w.exec(in, 16)
	switch status := Status(out[0]); {
	case status == OK:
		x := &thing{ref{k, get(out, m.number.bit, m.number.width)}, of, get(in, 0xe0, 32)}
		if k == flowEntry {
			x.ref = entryRef(uint32(get(in, 0xa8, 24)), uint32(get(in, 0x100, 32)))
		}
		w.things = append(w.things, x)
	case k == flowGroup && status == BadParam, k == flowEntry && status == BadResourceState: // taken
	case k == parseNode || k == flowTable || k == eq: // limits
	default:
		w.Fatalf("%v of %v: %v; %s", k, of, status, w.last())
	}
}

func (w *world) destroy() {
	i := w.random.IntN(len(w.things))
	x := w.things[i]
	used := slices.ContainsFunc(w.things, func(user *thing) bool { return slices.Contains(user.needs, x) })
	out := w.exec(w.destroyer(x.ref), 16)
	switch status := Status(out[0]); {
	case used && status != BadResourceState, !used && status != OK:
		w.Fatalf("destroy of %v, in use %v: %v; %s", x.ref, used, status, w.last())
	case !used:
		w.things = slices.Delete(w.things, i, i+1)
		if out := w.exec(w.destroyerOf(x), 16); Status(out[0]) != BadResource {
			w.Fatalf("destroy of %v, again: %v", x.ref, Status(out[0]))
		}
	}
}

// destroyerOf is the command for a thing that may be gone.
func (w *world) destroyerOf(x *thing) []byte {
	if x.ref.kind == flowGroup {
		return cmd(0x934, 0, 64, set{0xa8, 24, x.needs[0].ref.id}, set{0xc0, 32, x.ref.id})
	}
	return destroyers[x.ref.kind](x.ref)
}

func TestInAnyOrderExactlyWhatNobodyNeedsCanGo(t *testing.T) {
	for seed := range uint64(20) {
		g := newGuest(t, card()).initialize()
		w := &world{guest: g, random: rand.New(rand.NewPCG(seed, 1)), page: g.alloc(pageSize), record: g.alloc(64)}
		for range 400 {
			if len(w.things) > 0 && w.random.IntN(5) < 2 {
				w.destroy()
			} else {
				w.make(kind(w.random.IntN(int(kinds))))
			}
			w.invariants()
		}
		alive := map[kind]int{}
		for _, x := range w.things {
			alive[x.ref.kind]++
		}
		for k, n := range alive {
			if got := g.Report().Alive[k.String()]; got != n {
				t.Errorf("seed %d: %d of kind %v are alive, want %d", seed, got, k, n)
			}
		}
		w.emptied()
		g.leave()
		if leaks := g.Report().Leaks; len(leaks) != 0 {
			t.Errorf("seed %d: %v", seed, leaks)
		}
	}
}
