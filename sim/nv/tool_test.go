// SPDX-License-Identifier: Apache-2.0

package nv

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"
)

// tool speaks to the gateway as mstflint's library does, dword by dword.
type tool struct {
	*Firmware
	pid uint32
}

// Errors as the library has them, with the same reasons.
var (
	errSemaphore = errors.New("the gateway's semaphore is held")
	errSpace     = errors.New("no such space")
	errTimeout   = errors.New("no end of an access")
	errICMDHeld  = errors.New("the mailbox's semaphore is held")
	errNotReady  = errors.New("the firmware is not ready")
	errBusy      = errors.New("the mailbox is busy for ever")
)

const tries = 50 // the library has 2048 and waits between them

func (t *tool) lock() error {
	for range tries {
		if t.ReadDword(0xc) != 0 {
			continue
		}
		ticket := t.ReadDword(0x8)
		t.WriteDword(0xc, ticket)
		if t.ReadDword(0xc) == ticket {
			return nil
		}
	}
	return errSemaphore
}

func (t *tool) enter(s uint32) error {
	t.WriteDword(0x4, t.ReadDword(0x4)&^0xffff|s)
	if t.ReadDword(0x4)>>29 == 0 {
		return errSpace
	}
	return nil
}

// dword reads (write: writes) a dword of a space.
func (t *tool) dword(s, address uint32, v *uint32, write bool) error {
	if err := t.lock(); err != nil {
		return err
	}
	defer t.WriteDword(0xc, 0)
	if err := t.enter(s); err != nil {
		return err
	}
	over := uint32(1)
	if write {
		t.WriteDword(0x14, *v)
		t.WriteDword(0x10, address|1<<31)
		over = 0
	} else {
		t.WriteDword(0x10, address)
	}
	for range tries {
		if t.ReadDword(0x10)>>31 == over {
			*v = t.ReadDword(0x14)
			return nil
		}
	}
	return errTimeout
}

func (t *tool) read(s, address uint32) (v uint32, err error) {
	return v, t.dword(s, address, &v, false)
}
func (t *tool) write(s, address, v uint32) error { return t.dword(s, address, &v, true) }

func (t *tool) lockICMD() error {
	for range tries {
		if err := t.write(0xa, 0, t.pid); err != nil {
			return err
		}
		if got, err := t.read(0xa, 0); err != nil || got == t.pid {
			return err
		}
	}
	return errICMDHeld
}

// icmd runs a command on the mailbox's bytes; its status is an error.
func (t *tool) icmd(opcode uint32, data []byte) error {
	switch v, err := t.read(2, 0xb5f04); {
	case err != nil:
		return err
	case v>>31 != 0:
		return errNotReady
	}
	if err := t.lockICMD(); err != nil {
		return err
	}
	defer t.write(0xa, 0, 0)
	for i := 0; i < len(data); i += 4 {
		if err := t.write(3, 0x100000+uint32(i), be.Uint32(data[i:])); err != nil {
			return err
		}
	}
	switch v, err := t.read(3, 0); {
	case err != nil:
		return err
	case v&1 != 0:
		return errBusy
	}
	if err := t.write(3, 0, opcode<<16|1); err != nil {
		return err
	}
	for range tries {
		v, err := t.read(3, 0)
		if err != nil {
			return err
		}
		if v&1 != 0 {
			continue
		}
		for i := 0; i < len(data); i += 4 {
			w, err := t.read(3, 0x100000+uint32(i))
			if err != nil {
				return err
			}
			be.PutUint32(data[i:], w)
		}
		if status := v >> 8 & 0xff; status != 0 {
			return fmt.Errorf("ICMD status %d", status)
		}
		return nil
	}
	return errBusy
}

// register reads or writes a register; a status that is not OK is an error.
func (t *tool) register(id uint16, how method, data []byte) error {
	m := make([]byte, 20+len(data))
	be.PutUint32(m, 1<<27|4<<16)
	be.PutUint16(m[4:], id)
	m[6], m[7] = byte(how), 1
	be.PutUint32(m[16:], 3<<27|uint32(len(data)+4)/4<<16)
	copy(m[20:], data)
	if err := t.icmd(0x9001, m); err != nil {
		return err
	}
	copy(data, m[20:])
	if status := Status(m[2] & 0x7f); status != OK {
		return statusError(status)
	}
	if m[6]&0x80 == 0 {
		return errors.New("the answer is no response")
	}
	return nil
}

type statusError Status

func (e statusError) Error() string { return Status(e).String() }

// The three values of a group in NVDA, by bits of its first dword.
const (
	nextBoot = 0
	current  = 1 << 22
	usually  = 1 << 23
)

// settings reads a group of n bytes.
func (t *tool) settings(group uint32, which uint32, n int) ([]byte, error) {
	b := make([]byte, 12+256)
	be.PutUint32(b, 1<<25|9<<16|which|256)
	be.PutUint32(b[4:], group)
	if err := t.register(0x9024, methodGet, b); err != nil {
		return nil, err
	}
	if got := int(be.Uint32(b) & 0x1ff); got != n {
		return nil, fmt.Errorf("%d bytes, not %d", got, n)
	}
	return b[12 : 12+n], nil
}

// store writes a group.
func (t *tool) store(group uint32, data []byte) error {
	b := make([]byte, 12, 12+len(data))
	be.PutUint32(b, 1<<25|9<<16|uint32(len(data)))
	be.PutUint32(b[4:], group)
	return t.register(0x9024, methodSet, append(b, data...))
}

// first is the first dword of a group's three values: default, current, next.
func (t *tool) first(group uint32, n int) (values [3]uint32, err error) {
	for i, which := range []uint32{usually, current, nextBoot} {
		b, err := t.settings(group, which, n)
		if err != nil {
			return values, err
		}
		values[i] = be.Uint32(b)
	}
	return values, nil
}

// bluefield is the card of the tests, as delivered unless stored says otherwise.
func bluefield(t testing.TB, stored map[string]uint64) *tool {
	t.Helper()
	f, err := New(Card{
		Personality: Personality{HardwareID: 0x1021c, Part: "900-9D3B6-00CV-A_Ax", Description: "A DPU; 200GbE; two ports", Ports: 2, DPU: true,
			ParseGraph: true, Profiles: 5, Stored: stored},
		PCIDevice: 0xa2dc, Version: [3]uint32{32, 43, 2566}, PSID: "MT_0000000884", MAC: net.HardwareAddr{2, 0xf1, 0xe5, 0, 0, 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &tool{f, 4711}
}

// clean fails if the model saw a violation.
func (t *tool) clean(tb testing.TB) {
	tb.Helper()
	if list := t.Report().List(); list != nil {
		tb.Errorf("violations: %q", list)
	}
}

// violated fails unless there was exactly this violation, once.
func (t *tool) violated(tb testing.TB, text string) {
	tb.Helper()
	if got := t.Report().List(); !slices.Equal(got, []string{text + " (1 times)"}) {
		tb.Errorf("violations %q, not %q", got, text)
	}
}

// later moves the firmware's clock.
func (t *tool) later(d time.Duration) {
	old := t.Firmware.now
	t.Firmware.now = func() time.Time { return old().Add(d) }
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
