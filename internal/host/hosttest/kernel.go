// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"fmt"
	"slices"
	"sync"
	"syscall"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// Kernel is a machine whose links are in memory. Its methods may be called from
// several goroutines; the fields of its ports may not be changed meanwhile.
type Kernel struct {
	mu        sync.Mutex
	ports     []*Port
	lastIndex int
	faults    []*Fault
	calls     []Call
	killAfter int // 0: never

	Unprivileged bool // changes are refused with EPERM: no CAP_NET_ADMIN
}

// Port is one link and the NIC behind it.
type Port struct {
	Link     steer.Link
	Channels steer.Channels
	Rules    steer.Table
	Capacity int // locations: mlx5 has 1024

	TakesNoRules bool // as veth and most drivers
	Patched      bool // l4data is matched; else EINVAL, as the stock mlx5_core
	NoParser     bool // the firmware settings of the flex parser are missing: EOPNOTSUPP
	RawProtocols int  // flex_l4_max_nodes
	Samples      int  // of the device, one for each protocol; 0: enough
	LooseRings   bool // channels below a used ring are accepted, as in Linux 6.1; else EINVAL as in 6.12
	Gone         bool // still listed, but ENODEV: the first milliseconds of a removal or reset

	// Firmware refuses a rule (with EINVAL) for which it returns true, after the driver has freed the old one.
	Firmware func(steer.Rule) bool
	// Keeps is what the driver keeps of a rule, when that is something else.
	Keeps func(steer.Rule) steer.Rule
}

// AddMLX5 adds a ConnectX port with the patched driver, ready, with as many
// channels as it can have.
func (k *Kernel) AddMLX5(name string, channels uint32) *Port {
	return k.add(&Port{
		Link:     steer.Link{Name: name, Driver: "mlx5_core", Path: "pci-0000:03:00.0", PCI: "15b3:a2dc"},
		Channels: steer.Channels{Combined: channels, Max: channels}, Capacity: 1024, Patched: true, RawProtocols: 1,
	})
}

// AddVeth adds a link whose driver takes no rules.
func (k *Kernel) AddVeth(name string) *Port {
	return k.add(&Port{
		Link: steer.Link{Name: name, Driver: "veth"}, Channels: steer.Channels{Combined: 1, Max: 1}, TakesNoRules: true,
		RawProtocols: steer.AnyProtocols,
	})
}

func (k *Kernel) add(p *Port) *Port {
	k.mu.Lock()
	defer k.mu.Unlock()
	p.Link.Index, p.Link.Kind, p.Link.Ready = k.nextIndex(), steer.Physical, true
	p.Rules = steer.Table{}
	k.ports = append(k.ports, p)
	return p
}

func (k *Kernel) nextIndex() int {
	k.lastIndex++
	return k.lastIndex
}

// Port is the port of that name, or nil.
func (k *Kernel) Port(name string) *Port {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.ports {
		if p.Link.Name == name {
			return p
		}
	}
	return nil
}

// Delete removes the link: a driver's unbind, a card pulled out.
func (k *Kernel) Delete(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ports = slices.DeleteFunc(k.ports, func(p *Port) bool { return p.Link.Name == name })
}

// Reload is `devlink dev reload`: all rules are lost and the link comes back
// with a new ifindex (seen on Linux 6.12).
func (k *Kernel) Reload(name string) {
	p := k.Port(name)
	k.mu.Lock()
	defer k.mu.Unlock()
	p.Link.Index, p.Rules = k.nextIndex(), steer.Table{}
}

// Reset is a firmware reset or health recovery: all rules are lost, and nothing
// tells.
func (k *Kernel) Reset(name string) { k.Port(name).Rules = steer.Table{} }

// Links implements reconcile.Kernel.
func (k *Kernel) Links() (links []steer.Link, err error) {
	err = k.call(Call{Kind: "links"}, func() error {
		for _, p := range k.ports {
			links = append(links, p.Link)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return links, nil
}

// Observe implements reconcile.Kernel.
func (k *Kernel) Observe(l steer.Link) (o steer.Observed, err error) {
	err = k.call(Call{Kind: "observe", Link: l.Name}, func() error {
		p, err := k.present(l)
		if err == nil {
			o = p.observe()
		}
		return err
	})
	if err != nil {
		return steer.Observed{}, err
	}
	return o, nil
}

// Apply implements reconcile.Kernel.
func (k *Kernel) Apply(l steer.Link, s steer.Step) error {
	return k.call(Call{Kind: stepWords[s.Kind], Link: l.Name, Loc: s.Loc}, func() error {
		p, err := k.present(l)
		switch {
		case err != nil:
			return err
		case k.Unprivileged:
			return syscall.EPERM
		case s.Kind == steer.SetChannels:
			return p.setChannels(s.Channels)
		case p.TakesNoRules:
			return syscall.EOPNOTSUPP
		case s.Kind == steer.Remove:
			return p.remove(s.Loc)
		}
		return p.insert(s.Loc, s.Rule)
	})
}

var stepWords = map[steer.StepKind]string{
	steer.SetChannels: "channels", steer.Remove: "remove", steer.Replace: "replace", steer.Insert: "insert",
}

// present is the port with the ifindex of l, whatever its name is now.
func (k *Kernel) present(l steer.Link) (*Port, error) {
	for _, p := range k.ports {
		if p.Link.Index == l.Index && !p.Gone {
			return p, nil
		}
	}
	return nil, syscall.ENODEV
}

func (p *Port) observe() steer.Observed {
	o := steer.Observed{
		NIC:      steer.NIC{Queues: p.Channels.Combined, RawProtocols: p.RawProtocols},
		Channels: p.Channels, Rules: steer.Table{},
	}
	if p.TakesNoRules {
		o.Prerequisites = []steer.Problem{{Severity: steer.Blocked, Text: "this driver takes no rules"}}
		return o
	}
	o.NIC.Precedence, o.NIC.Capacity = steer.ByFields, p.Capacity
	for loc, r := range p.Rules {
		o.Rules[loc] = r
	}
	if !p.Patched {
		o.NIC.RawProtocols = steer.AnyProtocols
		o.Prerequisites = []steer.Problem{{Severity: steer.Blocked, Needs: steer.NeedL4Data,
			Text: "patched module not loaded", Fix: "modprobe -r mlx5_ib mlx5_core && modprobe mlx5_core"}}
	}
	return o
}

// setChannels: mlx5 of 6.12 refuses fewer channels than a rule uses; 6.1 accepts
// them and the rule's traffic is lost.
func (p *Port) setChannels(n uint32) error {
	switch {
	case p.Channels.Max == 0:
		return syscall.EOPNOTSUPP
	case n == 0 || n > p.Channels.Max:
		return syscall.EINVAL
	}
	for _, r := range p.Rules {
		if !r.Action.Drop && r.Action.Queue >= n && !p.LooseRings {
			return fmt.Errorf("requested channel counts are too low for existing ntuple filter settings: %w", syscall.EINVAL)
		}
	}
	p.Channels.Combined = n
	return nil
}

func (p *Port) remove(loc steer.Loc) error {
	if _, ok := p.Rules[loc]; !ok {
		return syscall.ENOENT
	}
	delete(p.Rules, loc)
	return nil
}

// insert takes the same way through its checks as mlx5: what the driver refuses
// leaves the old rule, what the firmware refuses leaves a hole. One match at two
// locations is accepted.
func (p *Port) insert(loc steer.Loc, r steer.Rule) error {
	if int(loc) >= p.Capacity {
		return syscall.ENOSPC
	}
	if err := p.driverChecks(r); err != nil {
		return err
	}
	delete(p.Rules, loc)
	if p.Firmware != nil && p.Firmware(r) {
		return syscall.EINVAL
	}
	if p.Keeps != nil {
		r = p.Keeps(r)
	}
	p.Rules[loc] = r
	return nil
}

func (p *Port) driverChecks(r steer.Rule) error {
	raw := r.Match.L4Data.Mask != 0
	switch {
	case !r.Action.Drop && r.Action.Queue >= p.Channels.Combined:
		return syscall.EINVAL
	case r.Match != r.Match.Canonical(): // value bits outside the mask
		return syscall.EINVAL
	case raw && (!p.Patched || r.Match.Protocol.Mask != 0xff || steer.Parsed(r.Match.Protocol.Value)):
		return syscall.EINVAL
	case raw && p.NoParser:
		return syscall.EOPNOTSUPP
	case raw && !p.parserFor(r.Match.Protocol.Value):
		return syscall.EBUSY
	}
	return nil
}

// parserFor reports whether there is a parser node for protocol, or room for
// one. The node is taken before that of the old rule at the location is given
// back, so a replacement by another protocol needs both.
func (p *Port) parserFor(protocol uint8) bool {
	if p.RawProtocols == steer.AnyProtocols {
		return true
	}
	others := map[uint8]bool{}
	for _, r := range p.Rules {
		switch {
		case r.Match.L4Data.Mask == 0:
		case r.Match.Protocol.Value == protocol:
			return true
		default:
			others[r.Match.Protocol.Value] = true
		}
	}
	return len(others) < p.RawProtocols && (p.Samples == 0 || len(others) < p.Samples)
}
