// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"testing"
)

// An object whose destroy command has only its number.
type made struct {
	name    string
	destroy int
	number  uint64
}

// everything is a network with rules, in an order in which it can be destroyed.
func (n *network) everything() []made {
	n.Helper()
	rqt := n.id(words(cmd(0x916, 0, 0x110, set{0x1b0, 16, 4}, set{0x1d0, 16, 2}), n.rq[0], n.rq[1]))
	tir := n.id(cmd(0x900, 0, 272, set{0x120, 4, 1}, set{0x208, 24, rqt}, set{0x220, 4, 1}, set{0x228, 24, n.domain}))
	direct := n.tir(0)
	objects := []made{{"TIR", 0x902, tir}, {"direct TIR", 0x902, direct}, {"RQT", 0x918, rqt}, {"SQ", 0x906, n.sq}, {"CQ of the SQ", 0x401, n.sqCQ}}
	for i := range n.rq {
		objects = append(objects, made{"RQ", 0x90a, n.rq[i]}, made{"CQ", 0x401, n.cq[i]})
	}
	return append(objects, made{"TIS", 0x914, n.tis}, made{"memory key", 0x202, n.key}, made{"transport domain", 0x817, n.domain}, made{"PD", 0x801, n.pd})
}

func words(b []byte, values ...uint64) []byte {
	for _, v := range values {
		b = be.AppendUint32(b, uint32(v))
	}
	return b
}

func TestNothingGoesWhileOthersNeedItAndNothingGoesTwice(t *testing.T) {
	g := newGuest(t, card()).initialize()
	n := g.up(2)
	objects := n.everything()
	used := map[string]bool{"RQT": true, "RQ": true, "CQ": true, "CQ of the SQ": true, "TIS": true, "transport domain": true, "PD": true}
	for _, o := range objects {
		if used[o.name] {
			g.refused(cmd(o.destroy, 0, 16, set{0x48, 24, o.number}), 16, BadResourceState, ObjectInUse)
		}
	}
	g.refused(cmd(0x803, 0, 16, set{0x48, 24, n.uar}), 16, BadResourceState, ObjectInUse)
	g.refused(cmd(0x302, 0, 16, set{0x58, 8, n.eq}), 16, BadResourceState, ObjectInUse)
	g.refused(cmd(0x772, 0, 16, set{0x58, 8, n.counters}), 16, BadResourceState, ObjectInUse)
	for _, o := range objects {
		g.destroyPlain(o.destroy, o.number)
		g.refused(cmd(o.destroy, 0, 16, set{0x48, 24, o.number}), 16, BadResource, NoSuchObject)
	}
	g.must(cmd(0x772, 0, 16, set{0x58, 8, n.counters}), 16)
	for _, eq := range []uint64{n.eq, n.asyncEQ, n.commandEQ} {
		g.must(cmd(0x302, 0, 16, set{0x58, 8, eq}), 16)
	}
	g.must(cmd(0x803, 0, 16, set{0x48, 24, n.uar}), 16)
	if alive := g.Report().Alive; len(alive) != 0 {
		t.Error(alive)
	}
}

func TestObjectsThatNeedWhatIsNotThere(t *testing.T) {
	g := newGuest(t, card()).initialize()
	n := g.up(1)
	const none = 0x777
	page := g.alloc(pageSize)
	for name, in := range map[string][]byte{
		"EQ without UAR":        list(cmd(0x301, 0, 272, set{0xe8, 24, none}), page),
		"CQ without EQ":         list(cmd(0x400, 0, 272, set{0xe8, 24, n.uar}, set{0x120, 32, none}), page),
		"CQ without UAR":        list(cmd(0x400, 0, 272, set{0xe8, 24, none}, set{0x120, 32, n.eq}), page),
		"RQ without CQ":         list(cmd(0x908, 0, 272, set{0x148, 24, none}, set{0x280, 4, 1}, set{0x38c, 4, 4}), page),
		"RQ without PD":         list(cmd(0x908, 0, 272, set{0x148, 24, n.cq[0]}, set{0x280, 4, 1}, set{0x2c8, 24, none}, set{0x38c, 4, 4}), page),
		"RQ without Q counter":  list(cmd(0x908, 0, 272, set{0x148, 24, n.cq[0]}, set{0x160, 8, 99}, set{0x280, 4, 1}, set{0x38c, 4, 4}), page),
		"SQ without TIS":        list(cmd(0x904, 0, 272, set{0x148, 24, n.cq[0]}, set{0x200, 16, 1}, set{0x268, 24, none}, set{0x280, 4, 1}, set{0x2c8, 24, n.pd}, set{0x2e8, 24, n.uar}, set{0x38c, 4, 6}), page),
		"TIR without domain":    cmd(0x900, 0, 272, set{0x1e8, 24, n.rq[0]}, set{0x228, 24, none}),
		"TIR without RQ":        cmd(0x900, 0, 272, set{0x1e8, 24, none}, set{0x228, 24, n.domain}),
		"TIR without RQT":       cmd(0x900, 0, 272, set{0x120, 4, 1}, set{0x208, 24, none}, set{0x228, 24, n.domain}),
		"TIS without domain":    cmd(0x912, 0, 192, set{0x228, 24, none}),
		"RQT of no RQ":          words(cmd(0x916, 0, 0x110, set{0x1b0, 16, 1}, set{0x1d0, 16, 1}), none),
		"key without PD":        cmd(0x200, 0, 272, set{0x94, 2, 3}, set{0xe8, 24, none}, set{0xe0, 1, 1}, set{0xa0, 24, 0xffffff}),
		"group without table":   cmd(0x933, 0, 1024, set{0xa8, 24, none}),
		"miss to no table":      cmd(0x930, 0, 64, set{0xc4, 4, 1}, set{0xe8, 24, none}),
		"root of no table":      cmd(0x92f, 0, 64, set{0xa8, 24, none}),
		"change of no RQ":       cmd(0x909, 0, 272, set{0x48, 24, none}),
		"change of no SQ":       cmd(0x905, 0, 272, set{0x48, 24, none}),
		"change of no CQ":       cmd(0x403, 0, 272, set{0x48, 24, none}, set{0x60, 32, 1}),
		"change of no TIR":      cmd(0x901, 0, 272, set{0x48, 24, none}, set{0x80, 64, 4}),
		"change of no RQT":      words(cmd(0x917, 0, 0x110, set{0x48, 24, none}, set{0x80, 64, 1}, set{0x1d0, 16, 1}), n.rq[0]),
		"change of no table":    cmd(0x93c, 0, 64, set{0xa8, 24, none}, set{0x70, 16, 1}),
		"entry of no group":     cmd(0x936, 0, 0x340, set{0xa8, 24, none}, set{0x220, 32, none}, set{0x270, 16, 2}),
		"deleted entry":         cmd(0x938, 0, 64, set{0xa8, 24, none}),
		"Q counter read":        cmd(0x773, 0, 32, set{0xf8, 8, 77}),
		"flow counter read":     cmd(0x93b, 0, 32, set{0xe0, 32, none}),
		"flow counter given up": cmd(0x93a, 0, 16, set{0x40, 32, none}),
	} {
		before := g.Report()
		out := g.exec(in, 272)
		if Status(out[0]) != BadResource || Syndrome(be.Uint32(out[4:])) != NoSuchObject {
			t.Errorf("%s: %v, syndrome %#x; %s", name, Status(out[0]), be.Uint32(out[4:]), g.last())
		}
		if after := g.Report(); after.Total != before.Total+1 {
			t.Errorf("%s: no violation", name)
		}
	}
}

func TestValuesThatTheModelDoesNotOffer(t *testing.T) {
	g := newGuest(t, card()).initialize()
	n := g.up(1)
	page := g.alloc(pageSize)
	rq := []set{{0x148, 24, n.cq[0]}, {0x2c8, 24, n.pd}, {0x300, 64, page}}
	sq := append(rq, set{0x2e8, 24, n.uar})
	for name, in := range map[string][]byte{
		"striding RQ":              list(cmd(0x908, 0, 272, append(rq, set{0x280, 4, 3}, set{0x38c, 4, 4})...), page),
		"RQ ready at birth":        list(cmd(0x908, 0, 272, append(rq, set{0x280, 4, 1}, set{0x108, 4, 1}, set{0x38c, 4, 4})...), page),
		"RQ on an RMP":             list(cmd(0x908, 0, 272, append(rq, set{0x280, 4, 1}, set{0x104, 4, 1}, set{0x38c, 4, 4})...), page),
		"RQ of huge entries":       list(cmd(0x908, 0, 272, append(rq, set{0x280, 4, 1}, set{0x38c, 4, 15})...), page),
		"SQ with other entries":    list(cmd(0x904, 0, 272, append(sq, set{0x280, 4, 1}, set{0x38c, 4, 4})...), page),
		"SQ with two TISs":         list(cmd(0x904, 0, 272, append(sq, set{0x280, 4, 1}, set{0x200, 16, 2}, set{0x38c, 4, 6})...), page),
		"RQ without pages":         cmd(0x908, 0, 272, append(rq, set{0x280, 4, 1}, set{0x38c, 4, 4})...),
		"CQ compression":           cmd(0x403, 0, 272, set{0x48, 24, n.cq[0]}, set{0x60, 32, 1 << 3}),
		"RQ scatter FCS":           cmd(0x909, 0, 272, set{0x48, 24, n.rq[0]}, set{0x40, 4, 1}, set{0x108, 4, 1}, set{0x80, 64, 1 << 2}),
		"TIR of another kind":      cmd(0x900, 0, 272, set{0x120, 4, 2}, set{0x1e8, 24, n.rq[0]}, set{0x228, 24, n.domain}),
		"TIR with a hash unknown":  cmd(0x900, 0, 272, set{0x220, 4, 9}, set{0x1e8, 24, n.rq[0]}, set{0x228, 24, n.domain}),
		"key of a region":          cmd(0x200, 0, 272, set{0x94, 2, 3}, set{0x96, 2, 1}, set{0xe8, 24, n.pd}, set{0xe0, 1, 1}, set{0xa0, 24, 0xffffff}),
		"key for one queue pair":   cmd(0x200, 0, 272, set{0x94, 2, 3}, set{0xe8, 24, n.pd}, set{0xe0, 1, 1}),
		"miss table, not forward":  cmd(0x930, 0, 64, set{0xe8, 24, 5}),
		"table on a high level":    cmd(0x930, 0, 64, set{0xc8, 8, 200}),
		"table change of nothing":  cmd(0x93c, 0, 64, set{0xa8, 24, 5}),
		"root both ways":           cmd(0x92f, 1, 64, set{0xa8, 24, 5}),
		"new entry, with changes":  cmd(0x936, 0, 0x340, set{0xd8, 8, 1}),
		"vport list of no kind":    cmd(0x754, 0, 16, set{0x65, 3, 5}),
		"vport change of the MAC":  cmd(0x755, 0, 512, set{0x60, 32, 1 << 3}),
		"vport list too long":      cmd(0x755, 0, 512, set{0x60, 32, 1 << 2}, set{0xf94, 12, 2000}),
		"RQT change of nothing":    words(cmd(0x917, 0, 0x110, set{0x48, 24, 5}, set{0x1d0, 16, 1}), n.rq[0]),
		"capability that is fixed": append(cmd(0x100+9, 0, 16), make([]byte, 4096)...),
	} {
		before, alive := g.Report().Total, g.Report().Alive
		out := g.exec(in, 272)
		if s := Status(out[0]); s == OK || s == InternalError {
			t.Errorf("%s: %v", name, s)
		}
		if g.Report().Total != before+1 || len(g.Report().Alive) != len(alive) {
			t.Errorf("%s: %s", name, g.last())
		}
	}
}

func TestStatesOfQueues(t *testing.T) {
	g := newGuest(t, card()).initialize()
	n := g.up(1)
	for _, c := range []struct {
		name           string
		modify, query  int
		number         uint64
		from, to       uint64
		want           Status
		why            Syndrome
		stateAfterward uint64
	}{
		{"RQ ready to ready", 0x909, 0x90b, n.rq[0], 1, 1, OK, 0, 1},
		{"RQ from a state that it is not in", 0x909, 0x90b, n.rq[0], 0, 1, BadResourceState, WrongObjectState, 1},
		{"RQ to error", 0x909, 0x90b, n.rq[0], 1, 3, OK, 0, 3},
		{"RQ from error to ready", 0x909, 0x90b, n.rq[0], 3, 1, BadResourceState, WrongObjectState, 3},
		{"RQ to reset", 0x909, 0x90b, n.rq[0], 3, 0, OK, 0, 0},
		{"SQ to error", 0x905, 0x907, n.sq, 1, 3, OK, 0, 3},
		{"SQ to reset", 0x905, 0x907, n.sq, 3, 0, OK, 0, 0},
		{"SQ to no state", 0x905, 0x907, n.sq, 0, 2, BadResourceState, WrongObjectState, 0},
	} {
		in := cmd(c.modify, 0, 272, set{0x40, 4, c.from}, set{0x48, 24, c.number}, set{0x108, 4, c.to})
		if c.want == OK {
			g.must(in, 16)
		} else {
			g.refused(in, 16, c.want, c.why)
		}
		out := g.must(cmd(c.query, 0, 16, set{0x48, 24, c.number}), 272)
		if state := get(out, 0x108, 4); state != c.stateAfterward {
			t.Errorf("%s: now in state %d", c.name, state)
		}
	}
}

func TestNumbersComeAroundLate(t *testing.T) {
	r := newRegistry()
	seen := map[uint32]bool{}
	for range 3 * maxEQs {
		n, why := r.number(eq)
		if why != nil {
			t.Fatal(why)
		}
		o := ref{eq, uint64(n)}
		r.add(o)
		r.remove(o)
		if len(seen) < maxEQs && seen[n] {
			t.Fatalf("number %d again after %d others", n, len(seen))
		}
		seen[n] = true
	}
	for range maxEQs {
		n, _ := r.number(eq)
		r.add(ref{eq, uint64(n)})
	}
	if _, why := r.number(eq); why == nil || !why.legal() {
		t.Errorf("one more than there can be: %v", why)
	}
}

func TestALimitIsNoFaultOfTheDriver(t *testing.T) {
	g := newGuest(t, card()).initialize()
	g.up(1)
	for range 255 - 1 {
		g.must(cmd(0x771, 0, 16), 16)
	}
	g.refused(cmd(0x771, 0, 16), 16, NoResources, LimitReached)
	g.clean()
}

// Lists of what objects need are as long as a command.
func TestWhatAllObjectsNeedIsBounded(t *testing.T) {
	g := newGuest(t, card()).initialize()
	n := g.up(2)
	r := g.function.objects
	had := r.uses
	r.uses = maxUses - 2 // as if they were there
	three := words(cmd(0x916, 0, 0x110, set{0x1b0, 16, 4}, set{0x1d0, 16, 4}), n.rq[0], n.rq[1], n.rq[0], n.rq[1])
	g.refused(three, 16, NoResources, LimitReached)
	two := n.id(words(cmd(0x916, 0, 0x110, set{0x1b0, 16, 2}, set{0x1d0, 16, 2}), n.rq[0], n.rq[1]))
	g.refused(cmd(0x912, 0, 192, set{0x228, 24, n.domain}), 16, NoResources, LimitReached)
	g.destroyPlain(0x918, two)
	n.id(cmd(0x912, 0, 192, set{0x228, 24, n.domain}))
	if r.uses -= maxUses - 2 - had; r.uses != had+1 {
		t.Errorf("%d uses, %d before", r.uses, had)
	}
	g.invariants()
}

func TestAModifiedRQTLeavesItsOldQueues(t *testing.T) {
	g := newGuest(t, card()).initialize()
	n := g.up(3)
	rqt := n.id(words(cmd(0x916, 0, 0x110, set{0x1b0, 16, 4}, set{0x1d0, 16, 4}), n.rq[0], n.rq[1], n.rq[0], n.rq[1]))
	change := func(queues ...uint64) []byte {
		return words(cmd(0x917, 0, 0x110, set{0x48, 24, rqt}, set{0x80, 64, 1}, set{0x1d0, 16, uint64(len(queues))}), queues...)
	}
	g.refused(cmd(0x90a, 0, 16, set{0x48, 24, n.rq[0]}), 16, BadResourceState, ObjectInUse)
	g.must(change(n.rq[2], n.rq[1]), 16)
	g.destroyPlain(0x90a, n.rq[0])
	g.refused(change(n.rq[0]), 16, BadResource, NoSuchObject)
	g.refused(change(n.rq[1])[:0x110], 16, BadInputLength, WrongLength)
	longer := change(n.rq[1])
	at(0x1b0, 16).Set(longer, 8) // the maximum, which is for good
	g.refused(longer, 16, BadParam, UnknownBits)
	g.refused(cmd(0x90a, 0, 16, set{0x48, 24, n.rq[2]}), 16, BadResourceState, ObjectInUse)
	g.destroyPlain(0x918, rqt)
	g.destroyPlain(0x90a, n.rq[2])
}

func TestAChangedQCounterIsTheOneThatIsNeeded(t *testing.T) {
	g := newGuest(t, card()).initialize()
	n := g.up(1)
	other := get(g.must(cmd(0x771, 0, 16), 16), 0x58, 8)
	g.must(cmd(0x909, 0, 272, set{0x40, 4, 1}, set{0x48, 24, n.rq[0]}, set{0x80, 64, 1 << 3}, set{0x108, 4, 1}, set{0x160, 8, other}), 16)
	g.must(cmd(0x772, 0, 16, set{0x58, 8, n.counters}), 16)
	g.refused(cmd(0x772, 0, 16, set{0x58, 8, other}), 16, BadResourceState, ObjectInUse)
}
