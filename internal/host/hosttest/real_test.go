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
)

// TestRealHostPassesTheSuite runs in network namespaces of its own, with veth
// links. They take no rules: the rest of the suite is for a card.
func TestRealHostPassesTheSuite(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a network namespace")
	}
	hosttest.Suite(t, realMachine)
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
	return hosttest.Machine{
		Kernel: machine,
		Add: func(name string) {
			must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "peer"}))
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
