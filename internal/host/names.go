// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"fmt"
	"sync"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// names knows the present name of an ifindex. The ethtool ioctl goes by name
// while everything else here goes by ifindex; a rename in between would change
// another card.
//
// It listens to the kernel's link events but reads them only when asked: an
// empty socket means that no link was renamed, added or removed since. That is
// one cheap system call before and after each change, and no ioctl.
type names struct {
	mu     sync.Mutex
	events *nl.NetlinkSocket
	lookup int // any socket, for SIOCGIFNAME
	known  map[int]string
	age    uint64 // counts the times that known was forgotten
}

// smallBuffer is enough: of any number of events, one has to arrive, or the
// ENOBUFS that says that one did not.
const smallBuffer = 4096

func openNames() (*names, error) {
	events, err := listen(unix.NETLINK_ROUTE, smallBuffer, unix.RTNLGRP_LINK)
	if err != nil {
		return nil, err
	}
	lookup, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		events.Close()
		return nil, fmt.Errorf("open a socket for interface names: %w", err)
	}
	return &names{events: events, lookup: lookup, known: map[int]string{}}, nil
}

func (n *names) close() error {
	n.events.Close()
	return unix.Close(n.lookup)
}

// of is the name of the interface now, and the age of that knowledge for
// still. ENODEV: it is gone.
func (n *names) of(index int) (name string, age uint64, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.catchUp()
	name, ok := n.known[index]
	if !ok {
		if name, err = ifName(n.lookup, index); err != nil {
			return "", 0, fmt.Errorf("find the name of interface %d: %w", index, err)
		}
		n.known[index] = name
	}
	return name, n.age, nil
}

// now is the age of what is known now, for unchanged.
func (n *names) now() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.catchUp()
	return n.age
}

// still reports whether index has the name that it had at that age. The kernel
// queues a rename's event before another ethtool ioctl can run, as both hold
// the rtnl lock, so no rename before or during a call goes unnoticed; only one
// that was undone within the call does.
func (n *names) still(index int, name string, age uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.catchUp()
	if n.age == age {
		return true
	}
	now, err := ifName(n.lookup, index)
	return err == nil && now == name
}

// catchUp forgets all names if anything happened to any link.
func (n *names) catchUp() {
	if drain(n.events.GetFd()) {
		clear(n.known)
		n.age++
	}
}

// drain reads a non-blocking socket empty and reports whether there was
// anything, be it an error.
func drain(fd int) (any bool) {
	var b [64]byte // the kernel cuts the rest of a message off
	for {
		_, _, err := unix.Recvfrom(fd, b[:], 0)
		switch err {
		case unix.EAGAIN:
			return any
		case nil, unix.EINTR, unix.ENOBUFS:
			any = true
		default:
			return true
		}
	}
}

// ifName is SIOCGIFNAME.
func ifName(fd, index int) (string, error) {
	r, err := unix.NewIfreq("")
	if err != nil {
		return "", err
	}
	r.SetUint32(uint32(index))
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFNAME, r); err != nil {
		return "", err
	}
	return r.Name(), nil
}
