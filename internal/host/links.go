// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

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

// dumpLinks lists the interfaces of the network namespace.
func dumpLinks() ([]facts, error) {
	filter := binary.NativeEndian.AppendUint32(nil, skipStatistics)
	body := append(make([]byte, unix.SizeofIfInfomsg), attribute(unix.IFLA_EXT_MASK, filter)...)
	var answers []message
	var err error
	for range 8 { // interrupted while links come and go
		if answers, err = ask(unix.NETLINK_ROUTE, unix.RTM_GETLINK, unix.NLM_F_DUMP, body); !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	var links []facts
	for _, m := range answers {
		if f, ok := parseLink(m); ok {
			links = append(links, f)
		}
	}
	return links, nil
}

// parseLink reads an RTM_NEWLINK message; ok is false for any other.
func parseLink(m message) (f facts, ok bool) {
	if m.kind != unix.RTM_NEWLINK || len(m.body) < unix.SizeofIfInfomsg {
		return f, false
	}
	hardware := binary.NativeEndian.Uint16(m.body[2:])
	f.index = int(int32(binary.NativeEndian.Uint32(m.body[4:])))
	flags := binary.NativeEndian.Uint32(m.body[8:])
	f.ethernet = hardware == unix.ARPHRD_ETHER && flags&unix.IFF_LOOPBACK == 0
	for kind, payload := range attributes(m.body[unix.SizeofIfInfomsg:]) {
		f.take(kind, payload)
	}
	return f, f.name != ""
}

func (f *facts) take(kind uint16, payload []byte) {
	switch kind {
	case unix.IFLA_IFNAME:
		f.name = text(payload)
	case unix.IFLA_PERM_ADDRESS:
		f.permanent = address(payload)
	case unix.IFLA_PHYS_PORT_NAME:
		f.portName = text(payload)
	case unix.IFLA_PHYS_SWITCH_ID:
		f.switchID = hex.EncodeToString(payload)
	case unix.IFLA_PROP_LIST:
		for kind, name := range attributes(payload) {
			if kind == unix.IFLA_ALT_IFNAME {
				f.altNames = append(f.altNames, text(name))
			}
		}
	}
}

func text(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}

// address is an Ethernet address in text, "" for none or all zeroes.
func address(b []byte) string {
	if len(b) != 6 || bytes.Equal(b, make([]byte, 6)) {
		return ""
	}
	return strings.ReplaceAll(fmt.Sprintf("% x", b), " ", ":")
}
