// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// facts is what rtnetlink says of one interface.
type facts struct {
	index     int
	name      string
	altNames  []string
	ethernet  bool   // ARPHRD_ETHER and not a loopback
	permanent string // permanent address, "" if the driver tells none
	portName  string // IFLA_PHYS_PORT_NAME: p0, pf0vf0, ... or ""
	switchID  string // IFLA_PHYS_SWITCH_ID in hexadecimal, or ""
}

// skipStatistics is RTEXT_FILTER_SKIP_STATS (linux/rtnetlink.h): counters are
// most of a link's message, and nobody here reads them.
const skipStatistics = 1 << 3

// dumpLinks lists the interfaces of the network namespace; EAGAIN if they kept
// changing. It is no netlink.LinkList, which has no port names, asks for every
// virtual function and counter, and panics at a switch id of under 4 bytes.
func dumpLinks() ([]facts, error) {
	answers, err := uninterrupted(askLinks)
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	links := make([]facts, len(answers))
	for i, body := range answers {
		if links[i], err = parseLink(body); err != nil {
			return nil, fmt.Errorf("list links: %w", err)
		}
	}
	return links, nil
}

func askLinks() ([][]byte, error) {
	request := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_DUMP)
	request.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	request.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(skipStatistics)))
	return request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
}

// uninterrupted asks again while links come and go, but not for ever.
func uninterrupted(ask func() ([][]byte, error)) ([][]byte, error) {
	for range 8 {
		answers, err := ask()
		if !errors.Is(err, nl.ErrDumpInterrupted) {
			return answers, err
		}
	}
	return nil, unix.EAGAIN
}

var errNotALink = errors.New("the kernel's message about a link is not understood")

// parseLink reads the body of an RTM_NEWLINK message.
func parseLink(body []byte) (f facts, err error) {
	if len(body) < unix.SizeofIfInfomsg {
		return f, errNotALink
	}
	head := nl.DeserializeIfInfomsg(body)
	f.index = int(head.Index)
	f.ethernet = head.Type == unix.ARPHRD_ETHER && head.Flags&unix.IFF_LOOPBACK == 0
	all, err := attributes(body[unix.SizeofIfInfomsg:])
	if err != nil {
		return facts{}, errNotALink
	}
	for _, a := range all {
		f.take(a.Attr.Type, a.Value)
	}
	if f.name == "" {
		return facts{}, errNotALink
	}
	return f, nil
}

func (f *facts) take(kind uint16, value []byte) {
	switch kind {
	case unix.IFLA_IFNAME:
		f.name = unix.ByteSliceToString(value)
	case unix.IFLA_PERM_ADDRESS:
		f.permanent = address(value)
	case unix.IFLA_PHYS_PORT_NAME:
		f.portName = unix.ByteSliceToString(value)
	case unix.IFLA_PHYS_SWITCH_ID:
		f.switchID = hex.EncodeToString(value)
	case unix.IFLA_PROP_LIST:
		names, _ := attributes(value)
		for _, n := range names {
			if n.Attr.Type == unix.IFLA_ALT_IFNAME {
				f.altNames = append(f.altNames, unix.ByteSliceToString(n.Value))
			}
		}
	}
}

// address is an Ethernet address in text, "" for none or all zeroes.
func address(b []byte) string {
	if len(b) != 6 || bytes.Equal(b, make([]byte, 6)) {
		return ""
	}
	return net.HardwareAddr(b).String()
}
