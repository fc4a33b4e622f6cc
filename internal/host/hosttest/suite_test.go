// SPDX-License-Identifier: Apache-2.0

package hosttest_test

import (
	"syscall"
	"testing"

	"github.com/flexsteer/flexsteer/internal/host/hosttest"
	"github.com/flexsteer/flexsteer/pkg/reconcile"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

func TestFakePassesTheSuite(t *testing.T) {
	hosttest.Suite(t, func(*testing.T) hosttest.Machine {
		k := new(hosttest.Kernel)
		k.AddMLX5("nic0", 8)
		return hosttest.Machine{
			Kernel: k, NIC: "nic0", Delete: k.Delete,
			Add:    func(name string) { k.AddVeth(name) },
			Rename: func(from, to string) { k.Port(from).Link.Name = to },
		}
	})
}

func raw(protocol uint8, value, queue uint32) steer.Rule {
	return steer.Rule{
		Match:  steer.Match{Flow: steer.IP4, Protocol: steer.Bits8{Value: protocol, Mask: 0xff}, L4Data: steer.Bits32{Value: value, Mask: 0xffff}},
		Action: steer.ToQueue(queue),
	}
}

// TestQuirksOfMLX5 has a row for each place where the fake is wrong as the
// driver is: rules put in before, one insertion, its errno and what is there after.
func TestQuirksOfMLX5(t *testing.T) {
	plain := func(*hosttest.Port) {}
	refuse := func(p *hosttest.Port) { p.Firmware = func(steer.Rule) bool { return true } }
	outside := raw(253, 0x10001, 1)
	for name, row := range map[string]struct {
		nic    func(*hosttest.Port)
		before steer.Table
		loc    steer.Loc
		rule   steer.Rule
		errno  syscall.Errno // 0: accepted
		after  steer.Table
	}{
		"firmware refuses a replacement: a hole": {refuse, steer.Table{3: raw(253, 1, 1)}, 3, raw(253, 1, 2), syscall.EINVAL, steer.Table{}},
		"queue too high: the old rule stays":     {plain, steer.Table{3: raw(253, 1, 1)}, 3, raw(253, 1, 8), syscall.EINVAL, steer.Table{3: raw(253, 1, 1)}},
		"another protocol: the old rule stays":   {plain, steer.Table{3: raw(253, 1, 1)}, 3, raw(254, 1, 1), syscall.EBUSY, steer.Table{3: raw(253, 1, 1)}},
		"two protocols where two may be": {func(p *hosttest.Port) { p.RawProtocols = 2 }, steer.Table{3: raw(253, 1, 1)}, 4, raw(254, 1, 1), 0,
			steer.Table{3: raw(253, 1, 1), 4: raw(254, 1, 1)}},
		"one match at two locations is accepted": {plain, steer.Table{3: raw(253, 1, 1)}, 4, raw(253, 1, 2), 0, steer.Table{3: raw(253, 1, 1), 4: raw(253, 1, 2)}},
		"stock driver and l4data":                {func(p *hosttest.Port) { p.Patched = false }, nil, 0, raw(253, 1, 1), syscall.EINVAL, steer.Table{}},
		"no parser in the firmware":              {func(p *hosttest.Port) { p.NoParser = true }, nil, 0, raw(253, 1, 1), syscall.EOPNOTSUPP, steer.Table{}},
		"a protocol the NIC parses":              {plain, nil, 0, raw(17, 1, 1), syscall.EINVAL, steer.Table{}},
		"value bits outside the mask":            {plain, nil, 0, outside, syscall.EINVAL, steer.Table{}},
		"past the table":                         {plain, nil, 1024, raw(253, 1, 1), syscall.ENOSPC, steer.Table{}},
	} {
		t.Run(name, func(t *testing.T) {
			var k hosttest.Kernel
			p := k.AddMLX5("nic0", 8)
			row.nic(p)
			for loc, r := range row.before {
				p.Rules[loc] = r
			}
			err := k.Apply(p.Link, steer.Step{Kind: steer.Insert, Loc: row.loc, Rule: row.rule})
			if (row.errno == 0 && err != nil) || (row.errno != 0 && err != row.errno) {
				t.Errorf("insert: %v, want %v", err, row.errno)
			}
			if got, want := p.String(), (&hosttest.Port{Rules: row.after}).String(); got != want {
				t.Errorf("then there is\n%swant\n%s", got, want)
			}
		})
	}
}

func TestChannelsBelowAUsedRing(t *testing.T) {
	for name, row := range map[string]struct {
		loose bool
		want  error
	}{"6.12 refuses": {false, syscall.EINVAL}, "6.1 accepts": {true, nil}} {
		t.Run(name, func(t *testing.T) {
			var k hosttest.Kernel
			p := k.AddMLX5("nic0", 8)
			p.LooseRings, p.Rules[3] = row.loose, raw(253, 1, 7)
			err := k.Apply(p.Link, steer.Step{Kind: steer.SetChannels, Channels: 4})
			if (err == nil) != (row.want == nil) {
				t.Errorf("%v, want %v", err, row.want)
			}
		})
	}
}

func TestReloadTakesRulesAndIfindex(t *testing.T) {
	var k hosttest.Kernel
	p := k.AddMLX5("nic0", 8)
	old := p.Link
	p.Rules[3] = raw(253, 1, 1)
	k.Reload("nic0")
	if _, err := k.Observe(old); err != syscall.ENODEV {
		t.Errorf("the old ifindex: %v, want ENODEV", err)
	}
	if o, err := k.Observe(p.Link); err != nil || len(o.Rules) > 0 {
		t.Errorf("%d rules, %v; want none and no error", len(o.Rules), err)
	}
}

func TestAFaultHitsTheCallItNames(t *testing.T) {
	var k hosttest.Kernel
	p := k.AddMLX5("nic0", 8)
	loc := steer.Loc(1)
	k.Fail(hosttest.Fault{Kind: "insert", Loc: &loc, Errno: syscall.EIO, After: true})
	for i, want := range []error{nil, syscall.EIO, nil} {
		if err := k.Apply(p.Link, steer.Step{Kind: steer.Insert, Loc: steer.Loc(i), Rule: raw(253, uint32(i), 1)}); err != want {
			t.Errorf("insert at %d: %v, want %v", i, err, want)
		}
	}
	if len(p.Rules) != 3 {
		t.Errorf("%d rules: a fault after its effect must leave the effect", len(p.Rules))
	}
}

var _ reconcile.Kernel = (*hosttest.Kernel)(nil)
