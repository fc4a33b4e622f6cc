// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ethtool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// Ioctl is the kernel's side: one SIOCETHTOOL call on the interface name. The
// first 4 bytes of request, host byte order, are the command, and the answer
// replaces request in place. The error is a unix.Errno.
type Ioctl interface {
	Ethtool(name string, request []byte) error
}

// Client asks and changes the receive steering of interfaces by name. Errors
// wrap the kernel's unix.Errno. Reading needs no privilege, changing needs
// CAP_NET_ADMIN in the user namespace of the network namespace.
//
// Names change: a caller that means one device looks at its ifindex before and
// after. A Client may be used from several goroutines if its Ioctl may.
type Client struct{ kernel Ioctl }

// New is a client of the given kernel.
func New(kernel Ioctl) *Client { return &Client{kernel: kernel} }

// Open is a client of the running kernel, in the network namespace of the
// calling thread.
func Open() (*Client, error) {
	s, err := openSocket()
	if err != nil {
		return nil, err
	}
	return New(s), nil
}

// Close releases the socket that Open made.
func (c *Client) Close() error {
	if s, ok := c.kernel.(*socket); ok {
		return s.Close()
	}
	return nil
}

// enotsupp is the kernel's own ENOTSUPP, which has no name in user space and
// which drivers up to Linux 6.12 let out where they mean EOPNOTSUPP.
const enotsupp = unix.Errno(524)

// tries bounds the loops that start again when the answer changed meanwhile.
const tries = 8

func (c *Client) call(name string, cmd uint32, request []byte) error {
	binary.NativeEndian.PutUint32(request, cmd)
	for {
		err := c.kernel.Ethtool(name, request)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, enotsupp):
			return unix.EOPNOTSUPP
		default:
			return err
		}
	}
}

// Insert puts r at loc. mlx5 first removes a rule that is there already, so
// that after an error loc may be empty. Errors are the kernel's (EINVAL,
// ENOSPC, EOPNOTSUPP, EPERM, ...), or say that ethtool has no form for r.
func (c *Client) Insert(name string, loc steer.Loc, r steer.Rule) error {
	x, err := Encode(loc, r)
	if err != nil {
		return err
	}
	return c.call(name, unix.ETHTOOL_SRXCLSRLINS, x[:])
}

// Remove takes away the rule at loc; ENOENT (or EINVAL, by driver) if there is none.
func (c *Client) Remove(name string, loc steer.Loc) error {
	var x rxnfc
	binary.NativeEndian.PutUint32(x[offLocation:], uint32(loc))
	return c.call(name, unix.ETHTOOL_SRXCLSRLDEL, x[:])
}

// Queues is the number of receive queues. Drivers without a say about it give
// EOPNOTSUPP.
func (c *Client) Queues(name string) (uint32, error) {
	var x rxnfc
	if err := c.call(name, unix.ETHTOOL_GRXRINGS, x[:]); err != nil {
		return 0, fmt.Errorf("count receive queues: %w", err)
	}
	return uint32(min(binary.NativeEndian.Uint64(x[offData:]), 1<<32-1)), nil
}

// struct ethtool_channels: nine 32-bit words.
const (
	channelsSize   = 36
	offMaxCombined = 16
	offCombined    = 32
)

// Channels is the combined channel count and its limit; EOPNOTSUPP from
// drivers that have no channels.
func (c *Client) Channels(name string) (steer.Channels, error) {
	b, err := c.channels(name)
	if err != nil {
		return steer.Channels{}, err
	}
	return steer.Channels{
		Combined: binary.NativeEndian.Uint32(b[offCombined:]),
		Max:      binary.NativeEndian.Uint32(b[offMaxCombined:]),
	}, nil
}

func (c *Client) channels(name string) ([]byte, error) {
	b := make([]byte, channelsSize)
	if err := c.call(name, unix.ETHTOOL_GCHANNELS, b); err != nil {
		return nil, fmt.Errorf("read channels: %w", err)
	}
	return b, nil
}

// SetChannels sets the combined channel count and leaves the other counts as
// they are. Traffic stops for the time it takes, some milliseconds to seconds.
func (c *Client) SetChannels(name string, combined uint32) error {
	b, err := c.channels(name)
	if err != nil {
		return err
	}
	binary.NativeEndian.PutUint32(b[offCombined:], combined)
	return c.call(name, unix.ETHTOOL_SCHANNELS, b)
}

// DriverInfo is what the driver says of itself, as `ethtool -i` prints it.
type DriverInfo struct {
	Driver   string // mlx5_core
	Version  string // of the driver; today that of the kernel
	Firmware string
	Bus      string // address on the bus, such as 0000:03:00.1
}

// Driver asks who drives the interface.
func (c *Client) Driver(name string) (DriverInfo, error) {
	var b [196]byte // struct ethtool_drvinfo
	if err := c.call(name, unix.ETHTOOL_GDRVINFO, b[:]); err != nil {
		return DriverInfo{}, fmt.Errorf("read driver information: %w", err)
	}
	return DriverInfo{
		Driver:   cString(b[4:36]),
		Version:  cString(b[36:68]),
		Firmware: cString(b[68:100]),
		Bus:      cString(b[100:132]),
	}, nil
}

func cString(b []byte) string {
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(text)
}

// Rules reads every rule of the interface, ours and foreign, and the number of
// locations its table has (0: the driver does not say). A driver that takes no
// rules gives EOPNOTSUPP; EAGAIN means that the table changed at each of some
// attempts to read it.
//
// n rules take n+3 ioctls when nobody else changes them.
func (c *Client) Rules(name string) (steer.Table, int, error) {
	for range tries {
		locations, capacity, err := c.locations(name)
		if err != nil {
			return nil, 0, err
		}
		table, err := c.rulesAt(name, locations)
		if !errors.Is(err, unix.ENOENT) { // ENOENT: it was removed meanwhile
			return table, capacity, err
		}
	}
	return nil, 0, fmt.Errorf("read rules: they keep changing: %w", unix.EAGAIN)
}

// locations counts, lists and counts again. The kernel wants the exact count:
// one too large is EINVAL, and one too small cuts the list without a word.
func (c *Client) locations(name string) (locations []steer.Loc, capacity int, err error) {
	n, size, err := c.ruleCount(name)
	for range tries {
		if err != nil {
			return nil, 0, err
		}
		var listErr error
		locations, capacity, listErr = c.list(name, n)
		var again uint32
		if again, _, err = c.ruleCount(name); err == nil && again == n {
			return locations, max(capacity, size), listErr
		}
		n = again
	}
	return nil, 0, fmt.Errorf("list rules: their number keeps changing: %w", unix.EAGAIN)
}

func (c *Client) ruleCount(name string) (n uint32, capacity int, err error) {
	var x rxnfc
	if err := c.call(name, unix.ETHTOOL_GRXCLSRLCNT, x[:]); err != nil {
		return 0, 0, fmt.Errorf("count rules: %w", err)
	}
	n = binary.NativeEndian.Uint32(x[offRuleCount:])
	if n > maxRules {
		return 0, 0, fmt.Errorf("count rules: the driver says %d: %w", n, unix.EOVERFLOW)
	}
	return n, x.capacity(), nil
}

// maxRules is more than any table has, so that a driver's slip does not make
// us allocate gigabytes.
const maxRules = 1 << 20

func (c *Client) list(name string, n uint32) ([]steer.Loc, int, error) {
	b := make([]byte, max(Size, offLocations+4*int(n)))
	binary.NativeEndian.PutUint32(b[offRuleCount:], n)
	if err := c.call(name, unix.ETHTOOL_GRXCLSRLALL, b); err != nil {
		return nil, 0, fmt.Errorf("list rules: %w", err)
	}
	n = min(n, binary.NativeEndian.Uint32(b[offRuleCount:]))
	locations := make([]steer.Loc, n)
	for i := range locations {
		locations[i] = steer.Loc(binary.NativeEndian.Uint32(b[offLocations+4*i:]))
	}
	slices.Sort(locations)
	return slices.Compact(locations), (*rxnfc)(b).capacity(), nil
}

// locSpecial is RX_CLS_LOC_SPECIAL: the driver can choose locations itself.
const locSpecial = 1 << 31

// capacity is the table size in data of a count or list.
func (x *rxnfc) capacity() int {
	return int(binary.NativeEndian.Uint64(x[offData:]) & (locSpecial - 1))
}

func (c *Client) rulesAt(name string, locations []steer.Loc) (steer.Table, error) {
	table := make(steer.Table, len(locations))
	for _, loc := range locations {
		var x rxnfc
		binary.NativeEndian.PutUint32(x[offLocation:], uint32(loc))
		if err := c.call(name, unix.ETHTOOL_GRXCLSRULE, x[:]); err != nil {
			return nil, fmt.Errorf("read the rule at location %d: %w", loc, err)
		}
		_, table[loc] = Decode(x[:])
	}
	return table, nil
}
