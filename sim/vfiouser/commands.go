// SPDX-License-Identifier: Apache-2.0

package vfiouser

import (
	"bytes"
	"encoding/json"
	"fmt"

	"golang.org/x/sys/unix"
)

const cmdVersion = 1

// accessSize is the size of what stands before the data of a read or write:
// offset (8), region (4), count (4).
const accessSize = 16

// maxMessageFDs is what one message may carry; QEMU takes no server that says more.
const maxMessageFDs = 16

type command struct {
	name     string
	min, max int // bytes of the body
	fds      int // most file descriptors
	do       func(*session, *message) error
}

// commands are those that a client may send. Commands 11 and 12 are for a server
// to send, 6 and 14 to 18 for what we do not offer.
var commands = map[uint16]command{
	cmdVersion: {"VERSION", 4, 64 << 10, 0, (*session).version},
	2:          {"DMA_MAP", 32, 32, 1, (*session).dmaMap},
	3:          {"DMA_UNMAP", 24, 24, 0, (*session).dmaUnmap},
	4:          {"DEVICE_GET_INFO", 16, 16, 0, (*session).deviceInfo},
	5:          {"DEVICE_GET_REGION_INFO", 32, 32, 0, (*session).regionInfo},
	7:          {"DEVICE_GET_IRQ_INFO", 16, 16, 0, (*session).irqInfo},
	8:          {"DEVICE_SET_IRQS", 20, 4096, maxMessageFDs, (*session).setIRQs},
	9:          {"REGION_READ", accessSize, accessSize, 0, (*session).regionRead},
	10:         {"REGION_WRITE", accessSize, accessSize + maxData, 0, (*session).regionWrite},
	13:         {"DEVICE_RESET", 0, 0, 0, (*session).reset},
}

func name(cmd uint16) string {
	if c, ok := commands[cmd]; ok {
		return c.name
	}
	return fmt.Sprintf("command %d", cmd)
}

// put32 and put64 append to the reply's body.
func (t *session) put32(v ...uint32) {
	for _, v := range v {
		t.out = le.AppendUint32(t.out, v)
	}
}

func (t *session) put64(v ...uint64) {
	for _, v := range v {
		t.out = le.AppendUint64(t.out, v)
	}
}

// capabilities are what we say of ours, as far as the client has spoken of the same.
// Without write_multiple every write comes by itself and is answered.
var capabilities = map[string]any{
	"max_msg_fds":        maxMessageFDs,
	"max_data_xfer_size": maxData,
	"max_dma_maps":       maxRegions,
	"pgsizes":            pageSize,
}

// version: major (2), minor (2), JSON text that ends with a NUL and may be missing.
func (t *session) version(m *message) error {
	if major := le.Uint16(m.body); major != 0 {
		return fmt.Errorf("version %d.%d; we speak 0.0: %w", major, le.Uint16(m.body[2:]), unix.EINVAL)
	}
	offer := struct {
		Capabilities map[string]json.RawMessage `json:"capabilities"`
	}{}
	if text := m.body[4:]; len(text) > 0 {
		text, ended := bytes.CutSuffix(text, []byte{0})
		if !ended {
			return fmt.Errorf("version data do not end with a NUL: %w", unix.EINVAL)
		}
		if err := json.Unmarshal(text, &offer); err != nil {
			return fmt.Errorf("version data: %v: %w", err, unix.EINVAL)
		}
	}
	agreed := map[string]any{}
	for name, value := range capabilities {
		if _, offered := offer.Capabilities[name]; offered {
			agreed[name] = value
		}
	}
	text, err := json.Marshal(map[string]any{"capabilities": agreed})
	if err != nil {
		return err
	}
	t.put32(0) // version 0.0
	t.out = append(append(t.out, text...), 0)
	t.negotiated = true
	return nil
}

// dmaMap: argsz (4), flags (4), offset in the file (8), address (8), size (8).
func (t *session) dmaMap(m *message) error {
	b := m.body
	f := file{-1, le.Uint64(b[8:])}
	if len(m.fds) > 0 {
		f.fd = m.fds[0]
	}
	return t.add(le.Uint64(b[16:]), le.Uint64(b[24:]), access(le.Uint32(b[4:])), f)
}

// dmaUnmap: argsz (4), flags (4), address (8), size (8); the reply is the same.
func (t *session) dmaUnmap(m *message) error {
	const all = 1 << 1 // VFIO_DMA_UNMAP_FLAG_ALL
	flags, addr, size := le.Uint32(m.body[4:]), le.Uint64(m.body[8:]), le.Uint64(m.body[16:])
	t.out = append(t.out, m.body...)
	switch {
	case flags == all && addr == 0 && size == 0:
		t.removeAll()
		return nil
	case flags != 0:
		return fmt.Errorf("flags %#x with %#x bytes at %#x: %w", flags, size, addr, unix.EINVAL)
	}
	return t.remove(addr, size)
}

// argsz is what a query begins with: how many bytes the client takes in reply.
func argsz(m *message, need uint32) error {
	if have := le.Uint32(m.body); have < need {
		return fmt.Errorf("argsz is %d; the reply has %d bytes: %w", have, need, unix.EINVAL)
	}
	return nil
}

// The regions and interrupts of a PCI device have fixed numbers in <linux/vfio.h>.
const (
	regionBAR0   = 0
	regionConfig = 7
	regions      = 9
	irqMSIX      = 2
	irqs         = 5
)

// deviceInfo answers argsz, flags (reset, PCI), number of regions, of interrupt types.
func (t *session) deviceInfo(m *message) error {
	t.put32(16, 1<<0|1<<1, regions, irqs)
	return argsz(m, 16)
}

// regionInfo answers argsz, flags (readable, writable), region, offset of more, size (8), offset to mmap (8).
// None can be mapped: in BAR 0 that would lose the doorbells.
func (t *session) regionInfo(m *message) error {
	region := le.Uint32(m.body[8:])
	if region >= regions {
		return fmt.Errorf("region %d; there are %d: %w", region, regions, unix.EINVAL)
	}
	size, flags := t.size(region), uint32(0)
	if size > 0 {
		flags = 1<<0 | 1<<1
	}
	t.put32(32, flags, region, 0)
	t.put64(size, 0)
	return argsz(m, 32)
}

func (t *session) size(region uint32) uint64 {
	switch region {
	case regionBAR0:
		return t.layout.BAR0
	case regionConfig:
		return ConfigSize
	}
	return 0
}

// irqInfo answers argsz, flags (by eventfd), index, count.
func (t *session) irqInfo(m *message) error {
	index := le.Uint32(m.body[8:])
	switch {
	case index >= irqs:
		return fmt.Errorf("interrupt type %d; there are %d: %w", index, irqs, unix.EINVAL)
	case index == irqMSIX:
		t.put32(16, 1<<0, index, uint32(t.layout.Vectors))
	default:
		t.put32(16, 0, index, 0)
	}
	return argsz(m, 16)
}

// The flags of DEVICE_SET_IRQS: one says what data there are, one what to do.
const (
	dataNone      = 1 << 0
	dataBool      = 1 << 1
	dataEventfd   = 1 << 2
	actionTrigger = 1 << 5
)

// setIRQs: argsz (4), flags (4), index (4), first (4), count (4), bytes of bools. It
// says by which eventfds to raise vectors; without any, that those are not raised;
// with bools or no data, to raise them now. QEMU enables MSI-X by vector 0 without
// an eventfd, and then sends one vector at a time.
func (t *session) setIRQs(m *message) error {
	b := m.body
	flags, index, first, n := le.Uint32(b[4:]), le.Uint32(b[8:]), le.Uint32(b[12:]), le.Uint32(b[16:])
	data, fds := b[20:], len(m.fds)
	have := 0
	if index == irqMSIX {
		have = t.layout.Vectors
	}
	switch {
	case index >= irqs:
		return fmt.Errorf("interrupt type %d; there are %d: %w", index, irqs, unix.EINVAL)
	case le.Uint32(b) != uint32(len(b)):
		return fmt.Errorf("argsz is %d in a body of %d bytes: %w", le.Uint32(b), len(b), unix.EINVAL)
	case uint64(first)+uint64(n) > uint64(have):
		return fmt.Errorf("vectors %d to %d; interrupt type %d has %d: %w", first, uint64(first)+uint64(n)-1, index, have, unix.EINVAL)
	case flags != dataEventfd|actionTrigger && fds > 0:
		return fmt.Errorf("flags %#x with file descriptors: %w", flags, unix.EINVAL)
	case flags != dataBool|actionTrigger && len(data) > 0 || flags == dataBool|actionTrigger && len(data) != int(n):
		return fmt.Errorf("flags %#x with %d bytes of data for %d vectors: %w", flags, len(data), n, unix.EINVAL)
	}
	switch flags {
	case dataEventfd | actionTrigger:
		return t.setEventfds(m, int(first), int(n))
	case dataBool | actionTrigger:
		t.raise(int(first), int(n), func(i int) bool { return data[i] != 0 })
		return nil
	case dataNone | actionTrigger:
		if first == 0 && n == 0 {
			t.release(0, have)
			return nil
		}
		t.raise(int(first), int(n), func(int) bool { return true })
		return nil
	}
	return fmt.Errorf("flags %#x are not offered: %w", flags, unix.EINVAL)
}

func (t *session) setEventfds(m *message, first, n int) error {
	switch len(m.fds) {
	case n:
		if err := t.assign(first, m.fds); err != nil {
			return err
		}
		m.take()
		return nil
	case 0:
		t.release(first, n)
		return nil
	}
	return fmt.Errorf("%d file descriptors for %d vectors: %w", len(m.fds), n, unix.EINVAL)
}

func (t *session) raise(first, n int, want func(i int) bool) {
	for i := range n {
		if want(i) {
			t.Interrupt(first + i)
		}
	}
}

// span is where an access goes, checked against the region.
func (t *session) span(m *message) (region uint32, off uint64, n int, err error) {
	off, region, count := le.Uint64(m.body), le.Uint32(m.body[8:]), le.Uint32(m.body[12:])
	size := t.size(region)
	if count == 0 || count > maxData || off >= size || uint64(count) > size-off {
		return 0, 0, 0, fmt.Errorf("%d bytes at %#x of region %d, which has %#x: %w", count, off, region, size, unix.EINVAL)
	}
	return region, off, int(count), nil
}

func (t *session) regionRead(m *message) error {
	t.counts.reads.Add(1)
	region, off, n, err := t.span(m)
	if err != nil {
		return err
	}
	t.out = append(append(t.out, m.body...), make([]byte, n)...)
	if b := t.out[accessSize:]; region == regionConfig {
		t.device.ConfigRead(int(off), b)
	} else {
		t.device.BARRead(off, b)
	}
	return nil
}

func (t *session) regionWrite(m *message) error {
	t.counts.writes.Add(1)
	region, off, n, err := t.span(m)
	if err != nil {
		return err
	}
	data := m.body[accessSize:]
	if len(data) != n {
		return fmt.Errorf("count is %d with %d bytes of data: %w", n, len(data), unix.EINVAL)
	}
	t.out = append(t.out, m.body[:accessSize]...)
	if region == regionConfig {
		t.device.ConfigWrite(int(off), data)
	} else {
		t.device.BARWrite(off, data)
	}
	return nil
}

func (t *session) reset(*message) error {
	t.device.Reset()
	return nil
}
