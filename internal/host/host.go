// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package host is the running Linux machine behind reconcile.Kernel: its
// links, what is true of one link, and how to change it. Watch tells when to
// look again.
//
// Everything is keyed on ifindex, because names change. Facts come from
// rtnetlink, sysfs, udev's database and the ethtool ioctl; deciding what they
// mean is left to pure functions over an fs.FS.
package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/internal/ethtool"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// Host is the machine, in the network namespace it was opened in. It holds
// three sockets and no other state than names.
type Host struct {
	fsys  fs.FS
	eth   *ethtool.Client
	names *names
}

// Open gets ready to ask the kernel. fsys is rooted at / and has sys and
// run/udev; nil means the machine's own. Nothing here needs a privilege.
func Open(fsys fs.FS) (*Host, error) {
	if fsys == nil {
		fsys = os.DirFS("/")
	}
	names, err := openNames()
	if err != nil {
		return nil, err
	}
	eth, err := ethtool.Open()
	if err != nil {
		return nil, errors.Join(err, names.close())
	}
	return &Host{fsys: fsys, eth: eth, names: names}, nil
}

// Close releases the sockets.
func (h *Host) Close() error { return errors.Join(h.eth.Close(), h.names.close()) }

// attempts bounds how often reading starts again because a link was renamed,
// came or went meanwhile.
const attempts = 4

// Links lists the Ethernet interfaces of the network namespace, by ifindex in
// the kernel's order. Loopback and links that are not Ethernet are left out;
// virtual ones (veth, bond, ...) are in and count as physical.
func (h *Host) Links() (links []steer.Link, err error) {
	for range attempts {
		age := h.names.now()
		if links, err = h.links(); err != nil {
			return nil, err
		}
		// A name from before a rename must not meet udev's word from after it.
		if h.names.now() == age {
			break
		}
	}
	return links, nil
}

func (h *Host) links() ([]steer.Link, error) {
	all, err := dumpLinks()
	if err != nil {
		return nil, err
	}
	links := make([]steer.Link, 0, len(all))
	for _, f := range all {
		if f.ethernet {
			d, _ := readDevice(h.fsys, f.name, f.index)
			links = append(links, describe(f, d, readUdev(h.fsys, f.index), func() string { return h.driver(f.name) }))
		}
	}
	return links, nil
}

func (h *Host) driver(name string) string {
	info, err := h.eth.Driver(name)
	if err != nil {
		return ""
	}
	return info.Driver
}

// Observe reads what is true of the link now. A driver that takes no rules is
// a prerequisite found missing, not an error. Errors wrap the kernel's: ENODEV
// when the link is gone or its device resets, EAGAIN when it kept changing.
func (h *Host) Observe(l steer.Link) (steer.Observed, error) {
	for range attempts {
		name, age, err := h.names.of(l.Index)
		if err != nil {
			return steer.Observed{}, err
		}
		o, err := h.observe(name, l.Driver)
		if h.names.still(l.Index, name, age) {
			return o, err
		}
	}
	return steer.Observed{}, fmt.Errorf("its name keeps changing: %w", unix.EAGAIN)
}

func (h *Host) observe(name, driver string) (o steer.Observed, err error) {
	o.NIC, o.Prerequisites = cardOf(h.fsys, driver)
	if o.NIC.Queues, err = h.eth.Queues(name); unexpected(err) {
		return steer.Observed{}, err
	}
	if o.Channels, err = h.eth.Channels(name); unexpected(err) {
		return steer.Observed{}, err
	}
	o.Rules, o.NIC.Capacity, err = h.eth.Rules(name)
	if errors.Is(err, unix.EOPNOTSUPP) {
		o.Rules, o.Prerequisites = steer.Table{}, []steer.Problem{takesNoRules}
		return o, nil
	}
	if err != nil {
		return steer.Observed{}, err
	}
	return o, nil
}

// unexpected is false for "the driver has no such thing", which leaves a zero.
func unexpected(err error) bool { return err != nil && !errors.Is(err, unix.EOPNOTSUPP) }

// Apply takes one step. Errors wrap the kernel's and do not repeat the link or
// the step. After any error the caller observes again: mlx5 frees the old rule
// of a location before it tries the new one, so an error may leave a hole. One
// step is one ioctl, but for SetChannels, which reads the other counts first.
func (h *Host) Apply(l steer.Link, s steer.Step) error {
	name, age, err := h.names.of(l.Index)
	if err != nil {
		return err
	}
	err = h.apply(name, s)
	if h.names.still(l.Index, name, age) {
		return err
	}
	if err == nil {
		err = unix.EAGAIN
	}
	return fmt.Errorf("the name %s became another link's meanwhile: %w", name, err)
}

func (h *Host) apply(name string, s steer.Step) error {
	switch s.Kind {
	case steer.SetChannels:
		return h.eth.SetChannels(name, s.Channels)
	case steer.Remove:
		return h.eth.Remove(name, s.Loc)
	case steer.Replace, steer.Insert:
		return h.eth.Insert(name, s.Loc, s.Rule)
	}
	return fmt.Errorf("unknown step %d: %w", s.Kind, unix.EINVAL)
}

// QueueCounters is the packets received on each queue of the link, or nil if
// its driver counts none by queue.
func (h *Host) QueueCounters(l steer.Link) ([]uint64, error) {
	name, _, err := h.names.of(l.Index)
	if err != nil {
		return nil, err
	}
	return h.eth.QueueCounters(name)
}
