// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"errors"
	"syscall"
	"testing"

	"github.com/flexsteer/flexsteer/pkg/reconcile"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// Machine is a kernel and the means to change its links from outside, as other
// programs do.
type Machine struct {
	Kernel reconcile.Kernel
	Add    func(name string) // a new link whose driver takes no rules
	Rename func(from, to string)
	Delete func(name string)

	// NIC is a link whose driver takes rules, with an empty table, two receive
	// queues or more and 1024 locations, as mlx5 has; "": none.
	NIC string
}

// Suite is what loops may rely on, of the fake and of the real machine. start
// is called by each test in its own goroutine.
func Suite(t *testing.T, start func(t *testing.T) Machine) {
	for name, test := range map[string]func(*testing.T, Machine){
		"a new link is listed":                                  newLinkIsListed,
		"a renamed link is the same link":                       renamedLinkIsTheSame,
		"a link is acted on under its new name":                 oldNameStillReaches,
		"a deleted link is ENODEV":                              deletedLink,
		"another link that takes over the name is not acted on": nameTakenOver,
		"links that swap their names stay apart":                swappedNames,
		"a driver without rules is a prerequisite, no error":    takesNoRules,
	} {
		t.Run(name, func(t *testing.T) { test(t, start(t)) })
	}
	for name, test := range map[string]func(*testing.T, Machine, steer.Link){
		"an inserted rule is read back":             insertedRule,
		"a rule is replaced in place":               replacedRule,
		"a removed rule is gone, and then ENOENT":   removedRule,
		"a location past the table is ENOSPC":       pastTheTable,
		"a queue too high is EINVAL and no loss":    queueTooHigh,
		"what was observed is the caller's to keep": observedIsACopy,
	} {
		t.Run(name, func(t *testing.T) {
			m := start(t)
			if m.NIC == "" {
				t.Skip("no NIC here takes rules")
			}
			test(t, m, m.link(t, m.NIC))
		})
	}
}

// link finds a link by its name.
func (m Machine) link(t *testing.T, name string) steer.Link {
	t.Helper()
	l, ok := m.find(t, name)
	if !ok {
		t.Fatalf("no link %s is listed", name)
	}
	return l
}

func (m Machine) find(t *testing.T, name string) (steer.Link, bool) {
	t.Helper()
	links, err := m.Kernel.Links()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if l.Name == name {
			return l, true
		}
	}
	return steer.Link{}, false
}

func (m Machine) observe(t *testing.T, l steer.Link) steer.Observed {
	t.Helper()
	o, err := m.Kernel.Observe(l)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (m Machine) apply(t *testing.T, l steer.Link, s steer.Step) {
	t.Helper()
	if err := m.Kernel.Apply(l, s); err != nil {
		t.Fatal(err)
	}
}

func wantErrno(t *testing.T, what string, err error, want syscall.Errno) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// tcp is a rule that every NIC with rules can hold.
func tcp(port uint16, queue uint32) steer.Rule {
	return steer.Rule{
		Match:  steer.Match{Flow: steer.TCP4, DestinationPort: steer.Bits16{Value: port, Mask: 0xffff}},
		Action: steer.ToQueue(queue),
	}
}

func insert(loc steer.Loc, r steer.Rule) steer.Step {
	return steer.Step{Kind: steer.Insert, Loc: loc, Rule: r}
}

func newLinkIsListed(t *testing.T, m Machine) {
	if _, ok := m.find(t, "new0"); ok {
		t.Fatal("listed before it was there")
	}
	m.Add("new0")
	if l := m.link(t, "new0"); l.Index <= 0 || !l.Ready || l.Kind != steer.Physical {
		t.Errorf("%+v: want an ifindex, ready, physical", l)
	}
}

func renamedLinkIsTheSame(t *testing.T, m Machine) {
	m.Add("old0")
	before := m.link(t, "old0").Index
	m.Rename("old0", "new0")
	if after := m.link(t, "new0").Index; after != before {
		t.Errorf("ifindex %d, was %d", after, before)
	}
	if _, ok := m.find(t, "old0"); ok {
		t.Error("still listed by its old name")
	}
}

func oldNameStillReaches(t *testing.T, m Machine) {
	m.Add("old0")
	l := m.link(t, "old0")
	m.Rename("old0", "new0")
	if _, err := m.Kernel.Observe(l); err != nil {
		t.Errorf("observe by the ifindex: %v", err)
	}
}

func deletedLink(t *testing.T, m Machine) {
	m.Add("gone0")
	l := m.link(t, "gone0")
	m.Delete("gone0")
	_, err := m.Kernel.Observe(l)
	wantErrno(t, "observe", err, syscall.ENODEV)
	wantErrno(t, "insert", m.Kernel.Apply(l, insert(0, tcp(1, 0))), syscall.ENODEV)
	wantErrno(t, "set channels", m.Kernel.Apply(l, steer.Step{Kind: steer.SetChannels, Channels: 1}), syscall.ENODEV)
}

func nameTakenOver(t *testing.T, m Machine) {
	m.Add("a0")
	m.Add("b0")
	l := m.link(t, "a0")
	m.Delete("a0")
	m.Rename("b0", "a0")
	_, err := m.Kernel.Observe(l)
	wantErrno(t, "observe", err, syscall.ENODEV)
	wantErrno(t, "insert", m.Kernel.Apply(l, insert(0, tcp(1, 0))), syscall.ENODEV)
}

func swappedNames(t *testing.T, m Machine) {
	m.Add("a0")
	m.Add("b0")
	a, b := m.link(t, "a0").Index, m.link(t, "b0").Index
	m.Rename("a0", "c0")
	m.Rename("b0", "a0")
	m.Rename("c0", "b0")
	if m.link(t, "a0").Index != b || m.link(t, "b0").Index != a {
		t.Error("the names did not move with the ifindexes")
	}
}

func takesNoRules(t *testing.T, m Machine) {
	m.Add("plain0")
	l := m.link(t, "plain0")
	o := m.observe(t, l)
	if len(o.Rules) != 0 || len(o.Prerequisites) != 1 {
		t.Fatalf("%d rules and prerequisites %v, want none and one", len(o.Rules), o.Prerequisites)
	}
	if p := o.Prerequisites[0]; p.Severity != steer.Blocked || p.Needs != steer.NeedNothing || p.Text != "this driver takes no rules" {
		t.Errorf("prerequisite %+v", p)
	}
	wantErrno(t, "insert", m.Kernel.Apply(l, insert(0, tcp(1, 0))), syscall.EOPNOTSUPP)
}

func insertedRule(t *testing.T, m Machine, l steer.Link) {
	m.apply(t, l, insert(3, tcp(80, 1)))
	m.apply(t, l, insert(700, tcp(81, 0)))
	o := m.observe(t, l)
	if len(o.Rules) != 2 || o.Rules[3] != tcp(80, 1) || o.Rules[700] != tcp(81, 0) {
		t.Errorf("read back %v", o.Rules)
	}
	if o.NIC.Capacity != 1024 || o.NIC.Queues < 2 {
		t.Errorf("capacity %d and %d queues, want 1024 and 2 or more", o.NIC.Capacity, o.NIC.Queues)
	}
}

func replacedRule(t *testing.T, m Machine, l steer.Link) {
	m.apply(t, l, insert(3, tcp(80, 1)))
	m.apply(t, l, steer.Step{Kind: steer.Replace, Loc: 3, Rule: tcp(80, 0), Old: tcp(80, 1)})
	if o := m.observe(t, l); len(o.Rules) != 1 || o.Rules[3] != tcp(80, 0) {
		t.Errorf("read back %v", o.Rules)
	}
}

func removedRule(t *testing.T, m Machine, l steer.Link) {
	remove := steer.Step{Kind: steer.Remove, Loc: 3, Rule: tcp(80, 1)}
	m.apply(t, l, insert(3, tcp(80, 1)))
	m.apply(t, l, remove)
	if o := m.observe(t, l); len(o.Rules) != 0 {
		t.Errorf("read back %v", o.Rules)
	}
	wantErrno(t, "remove again", m.Kernel.Apply(l, remove), syscall.ENOENT)
}

func pastTheTable(t *testing.T, m Machine, l steer.Link) {
	m.apply(t, l, insert(1023, tcp(80, 1)))
	wantErrno(t, "insert at 1024", m.Kernel.Apply(l, insert(1024, tcp(81, 1))), syscall.ENOSPC)
}

func queueTooHigh(t *testing.T, m Machine, l steer.Link) {
	queues := m.observe(t, l).NIC.Queues
	m.apply(t, l, insert(3, tcp(80, 1)))
	err := m.Kernel.Apply(l, steer.Step{Kind: steer.Replace, Loc: 3, Rule: tcp(80, queues), Old: tcp(80, 1)})
	wantErrno(t, "replace", err, syscall.EINVAL)
	if o := m.observe(t, l); o.Rules[3] != tcp(80, 1) {
		t.Errorf("the old rule is now %v", o.Rules[3])
	}
}

func observedIsACopy(t *testing.T, m Machine, l steer.Link) {
	m.apply(t, l, insert(3, tcp(80, 1)))
	delete(m.observe(t, l).Rules, 3)
	if o := m.observe(t, l); len(o.Rules) != 1 {
		t.Error("a change of what was observed changed the machine")
	}
}
