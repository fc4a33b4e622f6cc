// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ethtool

import (
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// card is a NIC behind the ioctl, as strict about counts as the kernel.
type card struct {
	table    map[uint32]rxnfc
	channels [9]uint32
	names    []string
	values   []uint64
	driver   []byte

	calls  []uint32                          // commands in the order they came
	before func(n int, cmd uint32) error     // called with the number of the call, from 0
	after  func(n int, cmd uint32, b []byte) // may spoil the answer
}

func newCard() *card { return &card{table: map[uint32]rxnfc{}} }

func (c *card) Ethtool(name string, b []byte) error {
	cmd := binary.NativeEndian.Uint32(b)
	n := len(c.calls)
	c.calls = append(c.calls, cmd)
	if c.before != nil {
		if err := c.before(n, cmd); err != nil {
			return err
		}
	}
	if name != "eth0" {
		return unix.ENODEV
	}
	err := c.answer(cmd, b)
	if c.after != nil {
		c.after(n, cmd, b)
	}
	return err
}

func (c *card) answer(cmd uint32, b []byte) error {
	switch cmd {
	case unix.ETHTOOL_GRXRINGS:
		binary.NativeEndian.PutUint64(b[offData:], 32)
		return nil
	case unix.ETHTOOL_GRXCLSRLCNT:
		binary.NativeEndian.PutUint32(b[offRuleCount:], uint32(len(c.table)))
		return nil
	case unix.ETHTOOL_GRXCLSRLALL:
		return c.list(b)
	case unix.ETHTOOL_GRXCLSRULE, unix.ETHTOOL_SRXCLSRLINS, unix.ETHTOOL_SRXCLSRLDEL:
		return c.rule(cmd, (*rxnfc)(b))
	case unix.ETHTOOL_GCHANNELS:
		for i, v := range c.channels[1:] {
			binary.NativeEndian.PutUint32(b[4+4*i:], v)
		}
		return nil
	case unix.ETHTOOL_SCHANNELS:
		for i := range c.channels[1:] {
			c.channels[1+i] = binary.NativeEndian.Uint32(b[4+4*i:])
		}
		return nil
	case unix.ETHTOOL_GDRVINFO:
		copy(b[4:], c.driver)
		return nil
	}
	return c.statistics(cmd, b)
}

func (c *card) list(b []byte) error {
	n := int(binary.NativeEndian.Uint32(b[offRuleCount:]))
	if n > len(c.table) {
		return unix.EINVAL
	}
	for i, loc := range slices.Sorted(maps.Keys(c.table))[:n] {
		binary.NativeEndian.PutUint32(b[offLocations+4*i:], loc)
	}
	binary.NativeEndian.PutUint64(b[offData:], 1024)
	return nil
}

func (c *card) rule(cmd uint32, x *rxnfc) error {
	loc := binary.NativeEndian.Uint32(x[offLocation:])
	found, ok := c.table[loc]
	switch {
	case cmd == unix.ETHTOOL_SRXCLSRLINS:
		c.table[loc] = *x
	case !ok:
		return unix.ENOENT
	case cmd == unix.ETHTOOL_SRXCLSRLDEL:
		delete(c.table, loc)
	default:
		*x = found
	}
	return nil
}

func (c *card) statistics(cmd uint32, b []byte) error {
	switch cmd {
	case unix.ETHTOOL_GSSET_INFO:
		binary.NativeEndian.PutUint32(b[16:], uint32(len(c.names)))
	case unix.ETHTOOL_GSTRINGS:
		binary.NativeEndian.PutUint32(b[8:], uint32(len(c.names)))
		for i, name := range c.names {
			if 12+(i+1)*stringSize > len(b) {
				return unix.EFAULT // where the guard page begins
			}
			copy(b[12+i*stringSize:], name)
		}
	case unix.ETHTOOL_GSTATS:
		binary.NativeEndian.PutUint32(b[4:], uint32(len(c.values)))
		for i, v := range c.values[:min(len(c.values), (len(b)-8)/8)] {
			binary.NativeEndian.PutUint64(b[8+8*i:], v)
		}
	default:
		return unix.EOPNOTSUPP
	}
	return nil
}

func TestEachInsertAndRemoveIsOneCall(t *testing.T) {
	c := newCard()
	client := New(c)
	want := steer.Table{}
	for i := range steer.Loc(64) {
		want[i] = homaRule(uint32(i % 16))
		if err := client.Insert("eth0", i, want[i]); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.calls) != 64 {
		t.Errorf("64 inserts took %d calls", len(c.calls))
	}
	c.calls = nil
	got, capacity, err := client.Rules("eth0")
	if err != nil || capacity != 1024 || !maps.Equal(got, want) {
		t.Errorf("capacity %d, error %v: %s", capacity, err, cmp.Diff(want, got))
	}
	if len(c.calls) != 64+3 {
		t.Errorf("reading 64 rules took %d calls", len(c.calls))
	}
	c.calls = nil
	for i := range steer.Loc(64) {
		if err := client.Remove("eth0", i); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.calls) != 64 || len(c.table) != 0 {
		t.Errorf("64 removals took %d calls and left %d rules", len(c.calls), len(c.table))
	}
}

func TestReadingRulesStartsAgainWhenOthersChangeThem(t *testing.T) {
	other := steer.Loc(1000)
	rows := map[string]func(client *Client, n int) error{
		"one comes after the count": func(client *Client, n int) error {
			if n == 1 {
				return client.Insert("eth0", other, homaRule(1))
			}
			return nil
		},
		"one goes after the count": func(client *Client, n int) error {
			if n == 1 {
				return client.Remove("eth0", 3)
			}
			return nil
		},
		"one goes after the list": func(client *Client, n int) error {
			if n == 4 {
				return client.Remove("eth0", 3)
			}
			return nil
		},
	}
	for name, change := range rows {
		t.Run(name, func(t *testing.T) {
			c := newCard()
			client, rival := New(c), New(c)
			for i := range steer.Loc(4) {
				if err := client.Insert("eth0", i, homaRule(uint32(i))); err != nil {
					t.Fatal(err)
				}
			}
			c.calls = nil
			busy := false
			c.before = func(n int, _ uint32) error {
				if busy {
					return nil
				}
				busy = true
				defer func() { busy = false }()
				return change(rival, n)
			}
			got, _, err := client.Rules("eth0")
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(c.table) {
				t.Errorf("read %d rules of %d", len(got), len(c.table))
			}
		})
	}
}

func TestATableThatNeverRestsIsEAGAIN(t *testing.T) {
	c := newCard()
	next := uint32(0)
	c.before = func(int, uint32) error {
		x, err := Encode(steer.Loc(next), homaRule(1))
		c.table[next] = x
		next++
		return err
	}
	if _, _, err := New(c).Rules("eth0"); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("error %v", err)
	}
	if len(c.calls) > 100 {
		t.Errorf("%d calls before it gave up", len(c.calls))
	}
}

// operations is every call of a client, on a card that has one rule.
var operations = map[string]func(c *Client) error{
	"Rules":         func(c *Client) error { _, _, err := c.Rules("eth0"); return err },
	"Insert":        func(c *Client) error { return c.Insert("eth0", 1, homaRule(2)) },
	"Remove":        func(c *Client) error { return c.Remove("eth0", 0) },
	"Queues":        func(c *Client) error { _, err := c.Queues("eth0"); return err },
	"Channels":      func(c *Client) error { _, err := c.Channels("eth0"); return err },
	"SetChannels":   func(c *Client) error { return c.SetChannels("eth0", 4) },
	"Driver":        func(c *Client) error { _, err := c.Driver("eth0"); return err },
	"QueueCounters": func(c *Client) error { _, err := c.QueueCounters("eth0"); return err },
}

func cardWithOneRule(t *testing.T) *card {
	t.Helper()
	c := newCard()
	c.names, c.values = []string{"rx0_packets"}, []uint64{7}
	if err := New(c).Insert("eth0", 0, homaRule(0)); err != nil {
		t.Fatal(err)
	}
	c.calls = nil
	return c
}

func TestEveryErrorOfEveryCallComesThrough(t *testing.T) {
	cases := 0
	for name, run := range operations {
		clean := cardWithOneRule(t)
		if err := run(New(clean)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for at := range clean.calls {
			for _, errno := range []unix.Errno{unix.EINVAL, unix.EOPNOTSUPP, unix.EBUSY, unix.ENOSPC, unix.ENODEV, unix.EPERM} {
				c := cardWithOneRule(t)
				c.before = func(n int, _ uint32) error {
					if n == at {
						return errno
					}
					return nil
				}
				cases++
				if err := run(New(c)); !errors.Is(err, errno) {
					t.Errorf("%s: call %d failed with %v, got %v", name, at, errno, err)
				}
			}
		}
	}
	t.Logf("%d cases", cases)
}

func TestInterruptedCallsAreMadeAgain(t *testing.T) {
	for name, run := range operations {
		c := cardWithOneRule(t)
		c.before = func(n int, _ uint32) error {
			if n%3 != 2 {
				return unix.EINTR
			}
			return nil
		}
		if err := run(New(c)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheKernelsOwnENOTSUPPIsEOPNOTSUPP(t *testing.T) {
	for name, run := range operations {
		c := cardWithOneRule(t)
		c.before = func(int, uint32) error { return unix.Errno(524) }
		if err := run(New(c)); !errors.Is(err, unix.EOPNOTSUPP) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefusedChangesSayOnlyTheKernelsWords(t *testing.T) {
	c := cardWithOneRule(t)
	c.before = func(int, uint32) error { return unix.ENOSPC }
	client := New(c)
	for _, err := range []error{client.Insert("eth0", 5000, homaRule(1)), client.Remove("eth0", 1)} {
		if err == nil || err.Error() != "no space left on device" {
			t.Errorf("error %q", err)
		}
	}
}

func TestWildAnswersAreErrorsNotCrashes(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		for name, run := range operations {
			c := cardWithOneRule(t)
			c.after = func(_ int, _ uint32, b []byte) {
				for i := range b {
					if rng.IntN(8) == 0 {
						b[i] = byte(rng.Uint32())
					}
				}
			}
			if err := run(New(c)); err != nil && err.Error() == "" {
				t.Errorf("%s: an error without words", name)
			}
		}
	}
}

func TestChannelsKeepTheOtherCounts(t *testing.T) {
	c := newCard()
	c.channels = [9]uint32{0, 1, 2, 3, 64, 5, 6, 7, 16} // max rx, tx, other, combined; then the counts
	client := New(c)
	got, err := client.Channels("eth0")
	if want := (steer.Channels{Combined: 16, Max: 64}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if err := client.SetChannels("eth0", 8); err != nil {
		t.Fatal(err)
	}
	if want := [9]uint32{0, 1, 2, 3, 64, 5, 6, 7, 8}; c.channels != want {
		t.Errorf("channels are %v", c.channels)
	}
}

func TestQueuesAndDriver(t *testing.T) {
	c := newCard()
	c.driver = make([]byte, 192)
	copy(c.driver, "mlx5_core")
	copy(c.driver[32:], "6.18.44")
	copy(c.driver[64:], "32.43.1014 (MT_0000000884)")
	copy(c.driver[96:], "0000:03:00.1")
	client := New(c)
	queues, err := client.Queues("eth0")
	if queues != 32 || err != nil {
		t.Errorf("%d queues, %v", queues, err)
	}
	got, err := client.Driver("eth0")
	want := DriverInfo{"mlx5_core", "6.18.44", "32.43.1014 (MT_0000000884)", "0000:03:00.1"}
	if got != want || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestALongNameIsAnError(t *testing.T) {
	client, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Queues("a-name-of-16-byte"); !errors.Is(err, unix.EINVAL) {
		t.Errorf("error %v", err)
	}
}

func BenchmarkRules1024(b *testing.B) {
	c := newCard()
	client := New(c)
	for i := range steer.Loc(1024) {
		if err := client.Insert("eth0", i, homaRule(uint32(i%16))); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		c.calls = c.calls[:0]
		if _, _, err := client.Rules("eth0"); err != nil {
			b.Fatal(err)
		}
	}
}
