// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// listen is a non-blocking netlink socket in the given groups (numbers, not a
// mask). buffer is SO_RCVBUF in bytes, 0 for the system's own. Read it through
// its descriptor: Receive takes any datagram for a netlink message, which
// uevents are not, and needs 64 KiB for each.
func listen(protocol int, buffer int, groups ...uint32) (*nl.NetlinkSocket, error) {
	s, err := nl.Subscribe(protocol)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	if err := join(s, buffer, groups); err != nil {
		s.Close()
		return nil, fmt.Errorf("listen to netlink protocol %d: %w", protocol, err)
	}
	return s, nil
}

// join does not leave the groups to nl.Subscribe, which passes over those above
// 32: the kernel numbers the groups of generic netlink as families load.
func join(s *nl.NetlinkSocket, buffer int, groups []uint32) error {
	if buffer > 0 {
		if err := s.SetReceiveBufferSize(buffer, false); err != nil {
			return err
		}
	}
	for _, g := range groups {
		if err := unix.SetsockoptInt(s.GetFd(), unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, int(g)); err != nil {
			return err
		}
	}
	return nil
}

// attributes are the netlink attributes in b, their types without flags; EINVAL
// if one does not fit.
func attributes(b []byte) ([]syscall.NetlinkRouteAttr, error) {
	// The parser steps over the padding of the last one, there or not.
	padded := append(slices.Clip(b), make([]byte, -len(b)&3)...)
	all, err := nl.ParseRouteAttr(padded)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Attr.Type &^= unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER
	}
	return all, nil
}
