// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/pkg/reconcile"
)

const vethConfig = `match:
  name: fs*
steer:
  - {name: raw, protocol: 253, l4data: 0x3/0xf, queue: 0}
`

// TestLinksComeGoAndAreRenamed runs the daemon in a network namespace of its
// own and is the other program that changes its links.
func TestLinksComeGoAndAreRenamed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a network namespace")
	}
	d := newTrial(t)
	d.configure(vethConfig)
	d.startWith(&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET})
	d.until("READY=1")
	links := inNamespaceOf(t, d.cmd.Process.Pid)

	const n = 40
	for i := range n {
		must(t, links.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("fs%d", i)}, PeerName: fmt.Sprintf("peer%d", i)}))
	}
	for i := range n / 2 {
		must(t, links.LinkSetName(link(t, links, fmt.Sprintf("fs%d", i)), fmt.Sprintf("other%d", i)))
	}
	for i := n / 2; i < 3*n/4; i++ {
		must(t, links.LinkDel(link(t, links, fmt.Sprintf("fs%d", i))))
	}
	d.eventually("10 links blocked", func(s reconcile.Status) bool { return count(s, reconcile.Blocked) == n/4 })

	log := d.log()
	for i := 3 * n / 4; i < n; i++ {
		line := fmt.Sprintf("fs%d: this driver takes no rules", i)
		if got := strings.Count(log, line); got != 1 {
			t.Errorf("%q is logged %d times, want once", line, got)
		}
	}
	if !d.comesToRest() {
		t.Error("never two quiet seconds with fewer than 20 wake-ups: something spins")
	}
	if d.log() != log {
		t.Errorf("a quiet daemon logs:\n%s", strings.TrimPrefix(d.log(), log))
	}
	if code := d.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// TestReadyComesBehindTheLinksThatAreThere: what is started after the daemon
// finds the rules in place.
func TestReadyComesBehindTheLinksThatAreThere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a network namespace")
	}
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	if _, err := netns.New(); err != nil {
		t.Skip("no network namespace: ", err)
	}
	const n = 400
	for i := range n {
		must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("fs%d", i)}, PeerName: fmt.Sprintf("peer%d", i)}))
	}
	d := newTrial(t)
	d.configure(vethConfig)
	d.start()
	if got, want := d.until("READY=1"), fmt.Sprintf("READY=1\nSTATUS=%d links blocked", n); !strings.HasPrefix(got, want) {
		t.Errorf("datagram %q, want %q", got, want)
	}
	d.stop()
}

// comesToRest waits for two seconds in which next to nothing wakes the daemon;
// the kernel's last events may come late on a busy machine.
func (d *trial) comesToRest() bool {
	for range 10 {
		before := d.voluntarySwitches()
		time.Sleep(2 * time.Second)
		if d.voluntarySwitches()-before < 20 {
			return true
		}
	}
	return false
}

// inNamespaceOf is a netlink handle in the network namespace of a process.
func inNamespaceOf(t *testing.T, pid int) *netlink.Handle {
	t.Helper()
	ns, err := netns.GetFromPid(pid)
	must(t, err)
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	must(t, err)
	t.Cleanup(h.Close)
	return h
}

func link(t *testing.T, h *netlink.Handle, name string) netlink.Link {
	t.Helper()
	l, err := h.LinkByName(name)
	must(t, err)
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func count(s reconcile.Status, state reconcile.State) (n int) {
	for _, l := range s.Links {
		if l.State == state {
			n++
		}
	}
	return n
}

// eventually waits for a status that is good.
func (d *trial) eventually(what string, good func(reconcile.Status) bool) {
	d.t.Helper()
	for range 100 {
		if good(d.status()) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	d.t.Fatalf("no %s; status %+v\n%s", what, d.status(), d.log())
}
