// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Groups of NETLINK_KOBJECT_UEVENT: the kernel's own events, and those that
// udevd sends again when its rules have run (systemd's sd-device, monitor).
const (
	groupKernel = 1
	groupUdev   = 2
)

// Watch calls wake when something happened to any link: rtnetlink (come, gone,
// renamed, up, down), the ethtool monitor group (channels, rings, features) or
// a uevent of a network device. It calls wake once as soon as it listens, so
// that nothing falls between the caller's first look and then. It tells no
// more than that: events get lost (ENOBUFS, which also wakes) and rule changes
// have none, so the caller looks at everything each time.
//
// Watch returns nil when ctx ends, with every socket closed; an error means
// that it could not begin. wake must not block.
func Watch(ctx context.Context, wake func()) error {
	return watch(ctx, os.DirFS("/"), 0, wake)
}

// source is one thing to listen to; events tells whether a datagram of it is
// about a link.
type source struct {
	open   func() (*nl.NetlinkSocket, error)
	events func(datagram []byte) bool
	socket *nl.NetlinkSocket // nil: closed, to be opened again
}

func watch(ctx context.Context, fsys fs.FS, buffer int, wake func()) (err error) {
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("watch links: %w", err)
	}
	defer unix.Close(stop)
	sources, err := openSources(sourcesOf(fsys, buffer))
	defer closeAll(sources)
	if err != nil {
		return fmt.Errorf("watch links: %w", err)
	}
	stopped := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(stopped)
		unix.Write(stop, binary.NativeEndian.AppendUint64(nil, 1))
	})
	defer func() {
		if !cancel() {
			<-stopped // it still holds the descriptor
		}
	}()
	wake()
	for ctx.Err() == nil {
		if waitFor(stop, sources) {
			wake()
		}
	}
	return nil
}

func sourcesOf(fsys fs.FS, buffer int) []*source {
	uevents := uint32(groupKernel)
	if udevRuns(fsys) {
		uevents = groupUdev
	}
	return []*source{
		{events: always, open: func() (*nl.NetlinkSocket, error) {
			return listen(unix.NETLINK_ROUTE, buffer, unix.RTNLGRP_LINK)
		}},
		{events: ofNet, open: func() (*nl.NetlinkSocket, error) {
			return listen(unix.NETLINK_KOBJECT_UEVENT, buffer, uevents)
		}},
		{events: always, open: func() (*nl.NetlinkSocket, error) {
			group, err := monitorGroup()
			if err != nil {
				return nil, err
			}
			return listen(unix.NETLINK_GENERIC, buffer, group)
		}},
	}
}

// openSources opens all; a kernel without the ethtool family, or a sandbox
// without uevents, leaves that source out. rtnetlink, the first, must be there.
func openSources(all []*source) (open []*source, err error) {
	for i, s := range all {
		if s.socket, err = s.open(); err == nil {
			open = append(open, s)
		} else if i == 0 {
			return nil, err
		}
	}
	return open, nil
}

func closeAll(sources []*source) {
	for _, s := range sources {
		if s.socket != nil {
			s.socket.Close()
		}
	}
}

// reopenAfter is the pause before a source that broke is opened again.
const reopenAfter = time.Second

// waitFor blocks until something comes and reports whether to wake. It never
// returns at once twice for the same cause: what is readable is read empty,
// and what is broken is closed.
func waitFor(stop int, sources []*source) (awake bool) {
	fds := []unix.PollFd{{Fd: int32(stop), Events: unix.POLLIN}}
	timeout := -1
	for _, s := range sources {
		fd := -1 // poll passes it over
		if s.socket != nil {
			fd = s.socket.GetFd()
		} else {
			timeout = int(reopenAfter.Milliseconds())
		}
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	n, err := unix.Poll(fds, timeout)
	if err != nil { // EINTR: Go's own signals
		return false
	}
	for i, s := range sources {
		switch {
		case s.socket == nil && n == 0:
			awake = s.reopen() || awake
		case fds[i+1].Revents != 0:
			awake = s.read() || awake
		}
	}
	return awake
}

// reopen wakes when it worked, as events went by unheard.
func (s *source) reopen() bool {
	var err error
	s.socket, err = s.open()
	return err == nil
}

// read takes what is there and reports whether to wake. After ENOBUFS the
// socket goes on, with a hole in what it told; after any other error it is
// closed.
func (s *source) read() (awake bool) {
	var b [8192]byte
	for {
		n, _, err := unix.Recvfrom(s.socket.GetFd(), b[:], 0)
		switch {
		case err == nil:
			awake = awake || s.events(b[:n])
		case err == unix.ENOBUFS:
			awake = true
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return awake
		default:
			s.socket.Close()
			s.socket = nil
			return true
		}
	}
}

func always([]byte) bool { return true }

// ofNet tells a uevent of a network device. Both forms, the kernel's and
// udevd's, hold the properties as KEY=value with a NUL behind each.
func ofNet(uevent []byte) bool { return bytes.Contains(uevent, []byte("SUBSYSTEM=net\x00")) }

var errNoMonitor = errors.New("the kernel has no ethtool monitor group")

// monitorGroup finds the multicast group that reports changes of ethtool
// settings; its number is the kernel's choice.
func monitorGroup() (uint32, error) {
	family, err := netlink.GenlFamilyGet(unix.ETHTOOL_GENL_NAME)
	if err != nil {
		return 0, err
	}
	for _, g := range family.Groups {
		if g.Name == unix.ETHTOOL_MCGRP_MONITOR_NAME {
			return g.ID, nil
		}
	}
	return 0, errNoMonitor
}
