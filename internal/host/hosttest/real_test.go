// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package hosttest_test

import (
	"os"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/internal/host"
	"github.com/flexsteer/flexsteer/internal/host/hosttest"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// TestRealHostPassesTheSuite runs in network namespaces of its own, with veth
// links. They take no rules: the rest of the suite is for a card.
func TestRealHostPassesTheSuite(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a network namespace")
	}
	hosttest.Suite(t, realMachine)
}

// TestRealCardPassesTheSuite runs where FLEXSTEER_NIC names a link whose driver
// takes rules, and whose table is empty and free to use: in the lab's guest.
func TestRealCardPassesTheSuite(t *testing.T) {
	nic := os.Getenv("FLEXSTEER_NIC")
	if nic == "" {
		t.Skip("FLEXSTEER_NIC names no link")
	}
	hosttest.Suite(t, func(t *testing.T) hosttest.Machine {
		machine, err := host.Open(os.DirFS("/"))
		must(t, err)
		t.Cleanup(func() { machine.Close() })
		t.Cleanup(func() { emptyTable(t, machine, nic) })
		m := withVeths(t, machine)
		m.NIC = nic
		return m
	})
}

func emptyTable(t *testing.T, machine *host.Host, nic string) {
	links, err := machine.Links()
	must(t, err)
	for _, l := range links {
		if l.Name != nic {
			continue
		}
		o, err := machine.Observe(l)
		must(t, err)
		for loc, rule := range o.Rules {
			must(t, machine.Apply(l, steer.Step{Kind: steer.Remove, Loc: loc, Rule: rule}))
		}
	}
}

func realMachine(t *testing.T) hosttest.Machine {
	// Never unlocked: the thread ends with the test, and the namespace with it.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip("no network namespace: ", err)
	}
	machine, err := host.Open(fstest.MapFS{}) // no udev: links are ready at once
	must(t, err)
	t.Cleanup(func() { machine.Close() })
	return withVeths(t, machine)
}

// withVeths makes, renames and deletes veth links. What a test leaves goes with it.
func withVeths(t *testing.T, machine *host.Host) hosttest.Machine {
	return hosttest.Machine{
		Kernel: machine,
		Add: func(name string) {
			must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "peer"}))
			index := byName(t, name).Attrs().Index
			t.Cleanup(func() { netlink.LinkDel(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Index: index}}) })
		},
		Rename: func(from, to string) { must(t, netlink.LinkSetName(byName(t, from), to)) },
		Delete: func(name string) { must(t, netlink.LinkDel(byName(t, name))) },
	}
}

func byName(t *testing.T, name string) netlink.Link {
	t.Helper()
	l, err := netlink.LinkByName(name)
	must(t, err)
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
