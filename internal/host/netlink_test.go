// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// newLink is an RTM_NEWLINK body of an interface with these attributes.
func newLink(hardware uint16, index int32, flags uint32, attributes ...[]byte) []byte {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint16(b[2:], hardware)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	binary.NativeEndian.PutUint32(b[8:], flags)
	return append(b, slices.Concat(attributes...)...)
}

func TestALinkMessageIsRead(t *testing.T) {
	name := attribute(unix.IFLA_IFNAME, []byte("ens1f1np1\x00"))
	full := newLink(unix.ARPHRD_ETHER, 7, unix.IFF_UP, name,
		attribute(unix.IFLA_PERM_ADDRESS, []byte{2, 0, 0, 0, 0, 1}),
		attribute(unix.IFLA_PHYS_PORT_NAME, []byte("p1\x00")),
		attribute(unix.IFLA_PHYS_SWITCH_ID, []byte{0xab, 0x12}),
		attribute(unix.IFLA_PROP_LIST|unix.NLA_F_NESTED, slices.Concat(
			attribute(unix.IFLA_ALT_IFNAME, []byte("one\x00")), attribute(unix.IFLA_ALT_IFNAME, []byte("two\x00")))))
	rows := map[string]struct {
		kind uint16
		body []byte
		want facts
		ok   bool
	}{
		"in full": {unix.RTM_NEWLINK, full, facts{7, "ens1f1np1", []string{"one", "two"}, true, "02:00:00:00:00:01", "p1", "ab12"}, true},
		"loopback": {unix.RTM_NEWLINK, newLink(unix.ARPHRD_LOOPBACK, 1, unix.IFF_LOOPBACK, name),
			facts{index: 1, name: "ens1f1np1"}, true},
		"InfiniBand, address of 20 bytes": {unix.RTM_NEWLINK, newLink(unix.ARPHRD_INFINIBAND, 2, 0, name,
			attribute(unix.IFLA_PERM_ADDRESS, make([]byte, 20))), facts{index: 2, name: "ens1f1np1"}, true},
		"address of zeroes": {unix.RTM_NEWLINK, newLink(unix.ARPHRD_ETHER, 3, 0, name,
			attribute(unix.IFLA_PERM_ADDRESS, make([]byte, 6))), facts{index: 3, name: "ens1f1np1", ethernet: true}, true},
		"no name":       {unix.RTM_NEWLINK, newLink(unix.ARPHRD_ETHER, 4, 0), facts{index: 4, ethernet: true}, false},
		"gone":          {unix.RTM_DELLINK, full, facts{}, false},
		"cut short":     {unix.RTM_NEWLINK, full[:10], facts{}, false},
		"attribute cut": {unix.RTM_NEWLINK, full[:unix.SizeofIfInfomsg+6], facts{index: 7, ethernet: true}, false},
	}
	for what, row := range rows {
		got, ok := parseLink(message{row.kind, row.body})
		if diff := cmp.Diff(row.want, got, cmp.AllowUnexported(facts{})); diff != "" || ok != row.ok {
			t.Errorf("%s: %v: %s", what, ok, diff)
		}
	}
}

func TestTheMonitorGroupIsFoundAmongOthers(t *testing.T) {
	group := func(n uint16, id uint32, name string) []byte {
		return attribute(n, slices.Concat(
			attribute(unix.CTRL_ATTR_MCAST_GRP_ID, binary.NativeEndian.AppendUint32(nil, id)),
			attribute(unix.CTRL_ATTR_MCAST_GRP_NAME, []byte(name+"\x00"))))
	}
	family := slices.Concat(make([]byte, genlHeader), attribute(unix.CTRL_ATTR_FAMILY_NAME, []byte("ethtool\x00")),
		attribute(unix.CTRL_ATTR_MCAST_GROUPS, slices.Concat(group(1, 5, "other"), group(2, 6, "monitor"), group(3, 7, "more"))))
	if id, ok := groupNamed(family, "monitor"); id != 6 || !ok {
		t.Errorf("group %d, %v", id, ok)
	}
	for n := range family {
		groupNamed(family[:n], "monitor")
	}
	if _, ok := groupNamed(family, "absent"); ok {
		t.Error("found a group that is not there")
	}
}

func TestAskGivesTheKernelsError(t *testing.T) {
	body := append([]byte{unix.CTRL_CMD_GETFAMILY, genlVersion, 0, 0}, attribute(unix.CTRL_ATTR_FAMILY_NAME, []byte("no-such\x00"))...)
	if _, err := ask(unix.NETLINK_GENERIC, unix.GENL_ID_CTRL, 0, body); !errors.Is(err, unix.ENOENT) {
		t.Errorf("error %v", err)
	}
}

func FuzzMessages(f *testing.F) {
	body := newLink(unix.ARPHRD_ETHER, 7, 0, attribute(unix.IFLA_IFNAME, []byte("eth0\x00")),
		attribute(unix.IFLA_PROP_LIST, attribute(unix.IFLA_ALT_IFNAME, []byte("one\x00"))))
	head := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	head = binary.NativeEndian.AppendUint16(head, unix.RTM_NEWLINK)
	f.Add(slices.Concat(head, make([]byte, unix.SizeofNlMsghdr-len(head)), body))
	f.Add([]byte{})
	f.Add(body)
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		for m := range messages(b) {
			parseLink(m)
			groupNamed(m.body, "monitor")
			n += unix.SizeofNlMsghdr + len(m.body)
		}
		if n > len(b) {
			t.Fatalf("read %d bytes of %d", n, len(b))
		}
	})
}
