// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

func attribute(kind int, value []byte) []byte { return nl.NewRtAttr(kind, value).Serialize() }

// newLink is an RTM_NEWLINK body of an interface with these attributes.
func newLink(hardware uint16, index int32, flags uint32, attributes ...[]byte) []byte {
	head := nl.NewIfInfomsg(unix.AF_UNSPEC)
	head.Type, head.Index, head.Flags = hardware, index, flags
	return append(head.Serialize(), slices.Concat(attributes...)...)
}

// fullLink has every attribute that is read.
var fullLink = newLink(unix.ARPHRD_ETHER, 7, unix.IFF_UP,
	attribute(unix.IFLA_IFNAME, []byte("ens1f1np1\x00")),
	attribute(unix.IFLA_PERM_ADDRESS, []byte{2, 0, 0, 0, 0, 1}),
	attribute(unix.IFLA_PHYS_PORT_NAME, []byte("p1\x00")),
	attribute(unix.IFLA_PHYS_SWITCH_ID, []byte{0xab, 0x12}),
	attribute(unix.IFLA_PROP_LIST|unix.NLA_F_NESTED, slices.Concat(
		attribute(unix.IFLA_ALT_IFNAME, []byte("one\x00")), attribute(unix.IFLA_ALT_IFNAME, []byte("two\x00")))))

func TestALinkMessageIsRead(t *testing.T) {
	name := attribute(unix.IFLA_IFNAME, []byte("ens1f1np1\x00"))
	rows := map[string]struct {
		body []byte
		want facts
		ok   bool
	}{
		"in full":  {fullLink, facts{7, "ens1f1np1", []string{"one", "two"}, true, "02:00:00:00:00:01", "p1", "ab12"}, true},
		"loopback": {newLink(unix.ARPHRD_LOOPBACK, 1, unix.IFF_LOOPBACK, name), facts{index: 1, name: "ens1f1np1"}, true},
		"InfiniBand, address of 20 bytes": {newLink(unix.ARPHRD_INFINIBAND, 2, 0, name,
			attribute(unix.IFLA_PERM_ADDRESS, make([]byte, 20))), facts{index: 2, name: "ens1f1np1"}, true},
		"address of zeroes": {newLink(unix.ARPHRD_ETHER, 3, 0, name,
			attribute(unix.IFLA_PERM_ADDRESS, make([]byte, 6))), facts{index: 3, name: "ens1f1np1", ethernet: true}, true},
		"padding cut": {newLink(unix.ARPHRD_ETHER, 5, 0, name)[:unix.SizeofIfInfomsg+14],
			facts{index: 5, name: "ens1f1np1", ethernet: true}, true},
		"no name":       {newLink(unix.ARPHRD_ETHER, 4, 0), facts{}, false},
		"cut short":     {fullLink[:10], facts{}, false},
		"attribute cut": {fullLink[:unix.SizeofIfInfomsg+6], facts{}, false},
	}
	for what, row := range rows {
		got, err := parseLink(row.body)
		if diff := cmp.Diff(row.want, got, cmp.AllowUnexported(facts{})); diff != "" || (err == nil) != row.ok {
			t.Errorf("%s: %v: %s", what, err, diff)
		}
	}
}

func TestAnInterruptedListIsAskedForAgainButNotForEver(t *testing.T) {
	rows := map[string]struct {
		interruptions int
		then, want    error
		asked         int
	}{
		"never":         {0, nil, nil, 1},
		"twice":         {2, nil, nil, 3},
		"always":        {1000, nil, unix.EAGAIN, 8},
		"another error": {0, unix.EPERM, unix.EPERM, 1},
		"error at last": {1, unix.ENOBUFS, unix.ENOBUFS, 2},
	}
	for what, row := range rows {
		asked := 0
		answers, err := uninterrupted(func() ([][]byte, error) {
			if asked++; asked <= row.interruptions {
				return [][]byte{{1}}, nl.ErrDumpInterrupted
			}
			return [][]byte{{1}, {2}}, row.then
		})
		if !errors.Is(err, row.want) || asked != row.asked || err == nil && len(answers) != 2 {
			t.Errorf("%s: %d answers, %v, asked %d times", what, len(answers), err, asked)
		}
	}
}

func TestAGroupAbove32IsJoined(t *testing.T) {
	groups := []uint32{unix.RTNLGRP_LINK, unix.RTNLGRP_TUNNEL} // 1 and 35
	s, err := listen(unix.NETLINK_ROUTE, 0, groups...)
	must(t, err)
	defer s.Close()
	joined, err := unix.GetsockoptUint64(s.GetFd(), unix.SOL_NETLINK, unix.NETLINK_LIST_MEMBERSHIPS)
	must(t, err)
	var want uint64
	for _, g := range groups {
		want |= 1 << (g - 1)
	}
	if joined != want {
		t.Errorf("groups %#x, not %#x", joined, want)
	}
}

func FuzzLink(f *testing.F) {
	f.Add(fullLink)
	f.Add(fullLink[:len(fullLink)-1])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		before := slices.Clone(b)
		if l, err := parseLink(b); err == nil && l.name == "" {
			t.Error("a link without a name")
		}
		if !slices.Equal(before, b) {
			t.Error("the message was changed")
		}
	})
}
