// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"sync"
	"time"

	"github.com/flexsteer/flexsteer/sim/bus"
	"github.com/flexsteer/flexsteer/sim/queue"
	"github.com/flexsteer/flexsteer/sim/steering"
)

const pageSize = 4096

// BARSize is the size of BAR 0 in bytes. Its first pages are the
// initialization segment, pages 2 and 3 are free for an MSI-X table and its
// pending bits, and all from page firstUAR on are UAR pages.
const BARSize = 32 << 20

const firstUAR = 0x10

// Device is one PCI function. All methods may be called by several goroutines.
type Device struct {
	bus         bus.Bus
	card        Personality // all that it can
	personality Personality // what it offers since the last reset
	parserOff   bool        // from the next reset on
	out         func(frame []byte)
	rings       *queue.Datapath
	now         func() time.Duration // since the device was made

	// access is held by who runs a command or rings a doorbell, and taken first.
	// A frame that is sent may come back as one that is received, so a doorbell
	// must not hold mu; and yet no command and no reset may come in between.
	access sync.Mutex
	// mu is held for reading by a frame that is received, for writing by commands and all else.
	mu       sync.RWMutex
	function *function
	segment  segment
	queue    commandQueue
	port     port
	faults   faults
	report   recorder
	frames   frameCounters
}

// New is a function of a card with the personality p, powered on, on the bus b.
// out gets each frame that the guest sends while the link is up; it may call
// Receive, and must copy what it keeps.
func New(b bus.Bus, p Personality, out func(frame []byte)) *Device {
	start := time.Now()
	d := &Device{bus: b, card: p, personality: p, out: out, now: func() time.Duration { return time.Since(start) }}
	d.rings = queue.New(b, d.ticks, d.transmit)
	d.port = newPort(p)
	d.reset()
	return d
}

// ticks is the internal timer at 1 GHz, as device_frequency says.
func (d *Device) ticks() uint64 { return uint64(d.now()) }

// Reset is a function level reset, or power off and on: all that the driver made is gone, and a fault of the health buffer too.
// It comes behind a doorbell that is under way, so out must not call it.
func (d *Device) Reset() {
	d.access.Lock()
	defer d.access.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.report.resets++
	d.reset()
}

// SetParser says whether the firmware's settings let drivers program the parser,
// if the card has one. It holds from the next reset on; at first they do.
func (d *Device) SetParser(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parserOff = !on
}

func (d *Device) reset() {
	d.personality = d.card
	if d.parserOff {
		d.personality.ParseGraph = nil
	}
	d.rings.Clear()
	d.segment = segment{since: d.now(), queueLow: interfaceDisabled << 8}
	d.queue.forget()
	d.port.reset()
	d.function = newFunction(d)
}

// Vanish takes the device off its bus: from now on reads give ones and nothing is done, until Reset.
// It comes behind a doorbell that is under way, so out must not call it.
func (d *Device) Vanish() {
	d.access.Lock()
	defer d.access.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.segment.vanished = true
}

// BARRead fills b from BAR 0.
func (d *Device) BARRead(off uint64, b []byte) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	d.readSegment(off, b)
}

// BARWrite writes b to BAR 0: a command may run, an event queue be armed, frames may be sent.
func (d *Device) BARWrite(off uint64, b []byte) {
	d.access.Lock()
	defer d.access.Unlock()
	if off >= firstUAR*pageSize {
		d.ring(uint32(off/pageSize), int(off%pageSize), b)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writeSegment(off, b)
}

// ring is a write to a UAR page.
func (d *Device) ring(page uint32, off int, b []byte) {
	if d.mayRing(page) {
		d.rings.Doorbell(page, off, b) // its error is among the rings' violations
	}
}

func (d *Device) mayRing(page uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	// A forced teardown comes in the middle of everything, doorbells too.
	if !d.segment.listens() || d.function.state != running {
		return false
	}
	if d.function.objects.need(ref{uar, uint64(page)}) != nil {
		d.report.violate("doorbell on UAR page %#x, which is not allocated", page)
		return false
	}
	return true
}

// Steer is what the tables would do with a frame (Ethernet without its checksum); nothing is delivered or counted.
func (d *Device) Steer(frame []byte) steering.Verdict {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.function.steering.Steer(frame)
}

// Tables is the receive steering in words.
func (d *Device) Tables() string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.function.steering.Text()
}
