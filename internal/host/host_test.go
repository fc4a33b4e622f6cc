// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/internal/ethtool"
	"github.com/flexsteer/flexsteer/pkg/reconcile"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

var _ reconcile.Kernel = (*Host)(nil)

var insertOne = steer.Step{
	Kind: steer.Insert, Loc: 17,
	Rule: steer.Rule{Match: steer.Match{Flow: steer.IP4}, Action: steer.ToQueue(0)},
}

func find(t *testing.T, links []steer.Link, index int) steer.Link {
	t.Helper()
	i := slices.IndexFunc(links, func(l steer.Link) bool { return l.Index == index })
	if i < 0 {
		t.Fatalf("no link %d in %+v", index, links)
	}
	return links[i]
}

// withVeth is a host with the link veth0.
func withVeth(t *testing.T) (*Host, steer.Link) {
	t.Helper()
	h := openHost(t)
	index := addVeth(t, "veth0", "veth1")
	return h, find(t, linksOf(t, h), index)
}

func linksOf(t *testing.T, h *Host) []steer.Link {
	t.Helper()
	links, err := h.Links()
	must(t, err)
	return links
}

func TestLinksAreTheEthernetOnes(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	h := openHost(t)
	index := addVeth(t, "veth0", "veth1")
	must(t, netlink.LinkAddAltName(byName(t, "veth0"), "the-port-with-a-long-name"))
	links := linksOf(t, h)
	if len(links) != 2 {
		t.Errorf("%d links: %+v", len(links), links)
	}
	got := find(t, links, index)
	if got.Name != "veth0" || got.Driver != "veth" || got.Kind != steer.Physical ||
		!slices.Equal(got.AltNames, []string{"the-port-with-a-long-name"}) || !got.Ready || got.MAC != "" || got.PCI != "" {
		t.Errorf("%+v", got)
	}
}

func TestADriverWithoutRulesIsOnePrerequisite(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	h, link := withVeth(t)
	for range 3 {
		o, err := h.Observe(link)
		must(t, err)
		if len(o.Prerequisites) != 1 || o.Prerequisites[0] != takesNoRules || len(o.Rules) != 0 || o.Rules == nil {
			t.Fatalf("%d prerequisites, %d rules", len(o.Prerequisites), len(o.Rules))
		}
	}
	for _, kind := range []steer.StepKind{steer.Insert, steer.Replace, steer.Remove} {
		step := insertOne
		step.Kind = kind
		if err := h.Apply(link, step); !errors.Is(err, unix.EOPNOTSUPP) || err.Error() != "operation not supported" {
			t.Errorf("step %d: %v", kind, err)
		}
	}
	if err := h.Apply(link, steer.Step{}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("no step at all: %v", err)
	}
}

func TestALinkIsFoundUnderItsNewName(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	h, link := withVeth(t)
	_, err := h.Observe(link)
	must(t, err)
	rename(t, link.Index, "port0")
	addVeth(t, "veth0", "veth2") // the old name is another link's now
	name, _, err := h.names.of(link.Index)
	if name != "port0" || err != nil {
		t.Errorf("name %q, %v", name, err)
	}
	_, err = h.Observe(link)
	must(t, err)
	if err := h.Apply(link, insertOne); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("error %v", err)
	}
}

func TestALinkThatWentIsENODEV(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	h, link := withVeth(t)
	_, err := h.Observe(link)
	must(t, err)
	must(t, netlink.LinkDel(byName(t, "veth0")))
	addVeth(t, "veth0", "veth1") // the same name, another ifindex
	if _, err := h.Observe(link); !errors.Is(err, unix.ENODEV) {
		t.Errorf("Observe: %v", err)
	}
	if err := h.Apply(link, insertOne); !errors.Is(err, unix.ENODEV) {
		t.Errorf("Apply: %v", err)
	}
	if _, err := h.QueueCounters(link); !errors.Is(err, unix.ENODEV) {
		t.Errorf("QueueCounters: %v", err)
	}
}

func TestARenameDuringACallIsNoticed(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	h := openHost(t)
	index := addVeth(t, "veth0", "veth1")
	name, age, err := h.names.of(index)
	must(t, err)
	if !h.names.still(index, name, age) {
		t.Error("nothing happened, but it was noticed")
	}
	addVeth(t, "other0", "other1")
	if !h.names.still(index, name, age) {
		t.Error("another link's event counts as a rename")
	}
	rename(t, index, "port0")
	if h.names.still(index, name, age) {
		t.Error("a rename went by unnoticed")
	}
	name, age, err = h.names.of(index)
	must(t, err)
	for i := range 200 { // more than the socket holds
		rename(t, index, fmt.Sprintf("port%d", i+1))
	}
	if h.names.still(index, name, age) {
		t.Error("renames went by unnoticed in an overrun socket")
	}
}

func TestObserveStaysTrueWhileNamesSwap(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	h, link := withVeth(t)
	var storm sync.WaitGroup
	var calm atomic.Bool
	storm.Go(func() {
		defer calm.Store(true)
		for i := range 1000 {
			rename(t, link.Index, fmt.Sprintf("veth%d", 2+i%50))
		}
	})
	seen, again := 0, 0
	for ; !calm.Load(); seen++ {
		o, err := h.Observe(link)
		switch {
		case errors.Is(err, unix.EAGAIN):
			again++
		case err != nil:
			t.Errorf("error %v", err)
		case len(o.Prerequisites) != 1:
			t.Errorf("%d prerequisites", len(o.Prerequisites))
		}
	}
	storm.Wait()
	t.Logf("%d observations during 1000 renames, %d of them asked to try again", seen, again)
	_, err := h.Observe(link)
	must(t, err)
}

func TestReadingNeedsNoPrivilegeAndChangingOnlyNetAdmin(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	role := os.Getenv(inside)
	if role == "ready" {
		addVeth(t, "veth0", "veth1")
		asNobody(t, "nobody")
		asNobody(t, "netadmin", unix.CAP_NET_ADMIN)
		return
	}
	want, effective := unix.EPERM, uint64(0)
	if role == "netadmin" { // veth takes no rules, but says so only to those who may
		want, effective = unix.EOPNOTSUPP, 1<<unix.CAP_NET_ADMIN
	}
	status, err := os.ReadFile("/proc/self/status")
	must(t, err)
	if line := fmt.Sprintf("CapEff:\t%016x\n", effective); !strings.Contains(string(status), line) || os.Getuid() == 0 {
		t.Fatalf("not the privileges meant:\n%s", status)
	}
	h := openHost(t)
	links := linksOf(t, h)
	if len(links) != 2 {
		t.Fatalf("%d links", len(links))
	}
	_, err = h.Observe(links[0])
	must(t, err)
	_, err = h.QueueCounters(links[0])
	must(t, err)
	for _, kind := range []steer.StepKind{steer.Insert, steer.Remove} {
		step := insertOne
		step.Kind = kind
		if err := h.Apply(links[0], step); !errors.Is(err, want) {
			t.Errorf("%s: step %d: %v", role, kind, err)
		}
	}
}

// recorder is a driver that takes everything and counts the calls.
type recorder struct {
	commands []uint32
	rename   func() // done within the next call
}

func (r *recorder) Ethtool(name string, request []byte) error {
	if name != "lo" && name != "port0" {
		return unix.ENODEV
	}
	r.commands = append(r.commands, binary.NativeEndian.Uint32(request))
	if r.rename != nil {
		r.rename()
		r.rename = nil
	}
	return nil
}

func TestOneStepIsOneIoctl(t *testing.T) {
	var r recorder
	h := openHost(t)
	h.eth = ethtool.New(&r)
	loopback := steer.Link{Index: 1}
	for i := range steer.Loc(64) {
		step := insertOne
		step.Loc = i
		must(t, h.Apply(loopback, step))
	}
	for i := range steer.Loc(64) {
		must(t, h.Apply(loopback, steer.Step{Kind: steer.Remove, Loc: i}))
	}
	if len(r.commands) != 128 {
		t.Errorf("128 steps took %d ioctls", len(r.commands))
	}
	r.commands = nil
	_, err := h.Observe(loopback)
	must(t, err)
	want := []uint32{
		unix.ETHTOOL_GRXRINGS, unix.ETHTOOL_GCHANNELS,
		unix.ETHTOOL_GRXCLSRLCNT, unix.ETHTOOL_GRXCLSRLALL, unix.ETHTOOL_GRXCLSRLCNT,
	}
	if !slices.Equal(r.commands, want) {
		t.Errorf("observing an empty table took %#x", r.commands)
	}
}

func TestAStepDuringARenameSaysSo(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	h := openHost(t)
	index := addVeth(t, "port0", "port1")
	h.eth = ethtool.New(&recorder{rename: func() { rename(t, index, "port2") }})
	err := h.Apply(steer.Link{Index: index}, insertOne)
	if !errors.Is(err, unix.EAGAIN) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
}

func TestSetChannelsReachesTheDriver(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	h, link := withVeth(t)
	// veth has receive and transmit channels but no combined ones.
	if err := h.Apply(link, steer.Step{Kind: steer.SetChannels, Channels: 2}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("error %v", err)
	}
}

func BenchmarkLinks(b *testing.B) {
	h, err := Open(nil)
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Links(); err != nil {
			b.Fatal(err)
		}
	}
}
