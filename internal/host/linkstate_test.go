// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"errors"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

func TestTheStateOfALinkIsRead(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	h, link := withVeth(t)
	before := openFiles(t)
	got, err := h.LinkState(link)
	if want := (LinkState{Speed: 10000, Duplex: "full"}); err != nil || got != want {
		t.Errorf("down: %+v, %v", got, err)
	}
	must(t, netlink.LinkSetUp(byName(t, "veth0")))
	must(t, netlink.LinkSetUp(byName(t, "veth1")))
	rename(t, link.Index, "port0") // it goes by ifindex
	eventually(t, "a veth pair that is up has a carrier of 10 Gb/s, full duplex", func() bool {
		got, err = h.LinkState(link)
		return err == nil && got == LinkState{Carrier: true, Speed: 10000, Duplex: "full"}
	})
	if after := openFiles(t); after != before {
		t.Errorf("%d open files before, %d after", before, after)
	}
}

func TestWhatADriverDoesNotTellIsUnknownOrAnError(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	h := openHost(t)
	must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "bridge0"}}))
	must(t, netlink.LinkAdd(&netlink.Ifb{LinkAttrs: netlink.LinkAttrs{Name: "ifb0"}}))
	must(t, netlink.LinkSetUp(byName(t, "lo")))
	rows := map[string]struct {
		index int
		want  LinkState
		err   error
	}{
		"speed and duplex unknown (bridge)": {byName(t, "bridge0").Attrs().Index, LinkState{}, nil},
		"a carrier but no modes (loopback)": {byName(t, "lo").Attrs().Index, LinkState{Carrier: true}, nil},
		"no ethtool operations (ifb)":       {byName(t, "ifb0").Attrs().Index, LinkState{}, unix.EOPNOTSUPP},
		"gone":                              {4711, LinkState{}, unix.ENODEV},
	}
	for what, row := range rows {
		got, err := h.LinkState(steer.Link{Index: row.index})
		if got != row.want || !errors.Is(err, row.err) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
}

func TestALinkStateInWords(t *testing.T) {
	for want, s := range map[string]LinkState{
		"down":                      {Speed: 10000, Duplex: "full"},
		"up":                        {Carrier: true},
		"up, 100 Gb/s, full duplex": {Carrier: true, Speed: 100000, Duplex: "full"},
		"up, 2.5 Gb/s, full duplex": {Carrier: true, Speed: 2500, Duplex: "full"},
		"up, 100 Mb/s, half duplex": {Carrier: true, Speed: 100, Duplex: "half"},
		"up, 40 Gb/s":               {Carrier: true, Speed: 40000},
	} {
		if got := s.String(); got != want {
			t.Errorf("%+v: %q, not %q", s, got, want)
		}
	}
}
