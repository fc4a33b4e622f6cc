// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"strings"
	"testing"
	"time"
)

func (g *guest) fault(f Fault) {
	g.Helper()
	if err := g.InjectFault(f); err != nil {
		g.Fatal(err)
	}
}

func TestTheNthMatchingCommandFails(t *testing.T) {
	g := newGuest(t, card()).initialize()
	g.fault(Fault{Command: "ALLOC_PD", Nth: 2, Count: 2, Status: NoResources, Syndrome: 0x1234})
	var got []Status
	for range 5 {
		g.must(cmd(0x816, 0, 16), 16) // another command counts for nothing
		out := g.exec(cmd(0x800, 0, 16), 16)
		if got = append(got, Status(out[0])); Status(out[0]) != OK && be.Uint32(out[4:]) != 0x1234 {
			t.Errorf("syndrome %#x", be.Uint32(out[4:]))
		}
	}
	if want := []Status{OK, NoResources, NoResources, OK, OK}; !equalStatuses(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	g.clean()
	if r := g.Report(); r.Alive["PD"] != 3 {
		t.Errorf("a command that failed on purpose did something: %v", r.Alive)
	}
}

func equalStatuses(a, b []Status) bool {
	for i := range a {
		if len(a) != len(b) || a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestFaultsGoByModifierObjectTypeAndRegister(t *testing.T) {
	g := newGuest(t, card()).initialize()
	current, node, mtu := uint16(1), uint16(0x22), uint16(0x5003)
	g.fault(Fault{Command: "QUERY_HCA_CAP", Modifier: &current, Count: -1, Status: InternalError})
	g.fault(Fault{Modifier: &node, Status: LimitExceeded})
	g.fault(Fault{Register: &mtu, Status: BadIndex})
	read := func(register uint64) []byte {
		return append(cmd(0x805, 1, 16, set{0x50, 16, register}), 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	for _, c := range []struct {
		in   []byte
		room int
		want Status
	}{
		{cmd(0x100, 0, 16), 16 + 4096, OK}, {cmd(0x100, 1, 16), 16 + 4096, InternalError}, {cmd(0x100, 1, 16), 16 + 4096, InternalError},
		{nodeCommand(253, 0), 16, LimitExceeded}, {nodeCommand(253, 0), 16, OK},
		{read(0x5006), 32, OK}, {read(0x5003), 32, BadIndex}, {read(0x5003), 32, OK},
	} {
		if out := g.exec(c.in, c.room); Status(out[0]) != c.want {
			t.Errorf("%s op_mod %#x: %v, want %v", commandName(be.Uint16(c.in)), be.Uint16(c.in[6:]), Status(out[0]), c.want)
		}
	}
	g.ClearFaults()
	g.must(cmd(0x100, 1, 16), 16+4096)
	g.clean()
}

func TestADelayedCommandIsAnsweredLater(t *testing.T) {
	g := newGuest(t, card()).initialize()
	g.fault(Fault{Command: "ALLOC_PD", Delay: 30 * time.Millisecond})
	g.give(5, g.entry(cmd(0x800, 0, 16), 16))
	if g.read(g.queue+5*64+0x3f, 1)[0] != 1 || g.Report().Alive["PD"] != 0 {
		t.Error("answered at once")
	}
	g.give(6, g.entry(cmd(0x816, 0, 16), 16)) // others overtake it
	if out, _ := g.taken(6); Status(out[0]) != OK {
		t.Errorf("%x", out)
	}
	g.until(func() bool { return g.read(g.queue+5*64+0x3f, 1)[0] == 0 })
	if out, _ := g.taken(5); Status(out[0]) != OK || g.Report().Alive["PD"] != 1 {
		t.Errorf("%x", out)
	}
	g.clean()
}

// until polls with a generous deadline.
func (g *guest) until(done func() bool) {
	g.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			g.Fatal("it did not happen")
		}
	}
}

func TestAResetForgetsADelayedCommand(t *testing.T) {
	g := newGuest(t, card()).initialize()
	g.fault(Fault{Command: "ALLOC_PD", Delay: 20 * time.Millisecond})
	g.fault(Fault{Command: "ALLOC_TRANSPORT_DOMAIN", Delay: 20 * time.Millisecond})
	g.give(5, g.entry(cmd(0x800, 0, 16), 16))
	g.Reset()
	old := g.queue
	g.initialize()
	g.give(6, g.entry(cmd(0x816, 0, 16), 16))
	g.until(func() bool { return g.read(g.queue+6*64+0x3f, 1)[0] == 0 }) // given later, with the same delay
	if g.read(old+5*64+0x3f, 1)[0] != 1 || g.Report().Alive["PD"] != 0 {
		t.Error("the command from before the reset was done")
	}
}

func TestADroppedCompletionIsDoneButNeverTold(t *testing.T) {
	g := newGuest(t, card()).initialize()
	g.fault(Fault{Command: "ALLOC_PD", DropCompletion: true})
	g.give(5, g.entry(cmd(0x800, 0, 16), 16))
	if g.read(g.queue+5*64+0x3f, 1)[0] != 1 || g.Report().Alive["PD"] != 1 {
		t.Error(g.Report().Alive)
	}
	g.must(cmd(0x800, 0, 16), 16)
}

func TestAFaultThatMakesNoSenseIsAnError(t *testing.T) {
	g := newGuest(t, card())
	if err := g.InjectFault(Fault{Command: "SET_FTE"}); err == nil || !strings.Contains(err.Error(), "SET_FLOW_TABLE_ENTRY") {
		t.Error(err)
	}
	for _, f := range []Fault{{Nth: -1}, {Delay: -1}} {
		if g.InjectFault(f) == nil {
			t.Errorf("%+v", f)
		}
	}
}
