// SPDX-License-Identifier: Apache-2.0

// Package pci is a PCI function: the configuration space of a ConnectX card, and
// what follows of it. It stands between the machine and the device and lets
// through what a function lets through: accesses to BAR 0 while memory space is
// enabled, and the device's own accesses and interrupts while it is bus master.
package pci

import (
	"errors"
	"sync"

	"github.com/flexsteer/flexsteer/sim/bus"
)

// What the function has.
const (
	BAR0    = 32 << 20 // size in bytes
	Vectors = 64       // of MSI-X

	// The pages of BAR 0 for MSI-X. They lie before the device's first UAR page,
	// 0x10000. The table is in QEMU and never asked for; pending bits are.
	msixTable   = 0x2000
	msixPending = 0x3000
	msixEnd     = 0x4000
)

// Device is what is behind the function. Accesses have 1, 2, 4 or 8 bytes, lie at
// a multiple of their length, inside of BAR 0 and outside of MSI-X.
type Device interface {
	BARRead(off uint64, b []byte)
	BARWrite(off uint64, b []byte)
	Reset()
}

// Function is the function of one device. Methods may be called by several
// goroutines at once. It is the bus.Bus for its device to use.
type Function struct {
	machine bus.Bus
	device  Device

	mu    sync.RWMutex
	space *space
	gone  bool
}

// New makes a function with that device id in a machine. More capabilities come
// behind MSI-X. Plug in its device before anything else.
func New(machine bus.Bus, device uint16, more ...Capability) (*Function, error) {
	list := append([]Capability{expressCapability, msixCapability}, more...)
	s, err := lay(device, append(list, powerCapability))
	if err != nil {
		return nil, err
	}
	return &Function{machine: machine, space: s}, nil
}

// Plug says what the device is.
func (f *Function) Plug(d Device) { f.device = d }

// ConfigRead fills b from byte off of configuration space on.
func (f *Function) ConfigRead(off int, b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		ones(b)
		return
	}
	f.space.read(off, b)
}

// ones is what a read finds where nothing answers.
func ones(b []byte) {
	for i := range b {
		b[i] = 0xff
	}
}

// ConfigWrite writes b from byte off of configuration space on.
func (f *Function) ConfigWrite(off int, b []byte) {
	if f.write(off, b) {
		f.Reset()
	}
}

// write also tells whether b asks for a function level reset.
func (f *Function) write(off int, b []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		return false
	}
	f.space.write(off, b)
	i := deviceControl + 1 - off
	return i >= 0 && i < len(b) && b[i]&(resetBit>>8) != 0
}

// Reset resets the device and configuration space, as the machine's reset and a
// function level reset do. A function that has vanished is there again.
func (f *Function) Reset() {
	f.deafen()
	f.device.Reset() // as bus master still: that a frame or a command is on its way is no fault of the driver
	f.mu.Lock()
	defer f.mu.Unlock()
	f.space.reset()
	f.gone = false
}

// deafen keeps accesses to BAR 0 from the device.
func (f *Function) deafen() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.space.now[command] &^= memoryEnable
}

// Vanish takes the function off its bus, as if the card were pulled out: reads
// give ones, and nothing else is done, until Reset.
func (f *Function) Vanish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = true
}

// Vanished tells whether the function is off its bus.
func (f *Function) Vanished() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.gone
}

// Master tells whether the driver has made the function bus master.
func (f *Function) Master() bool { return f.enabled(masterEnable) }

// enabled says whether all bits of mask are set in the command register.
func (f *Function) enabled(mask uint16) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return !f.gone && f.space.word(command)&mask == mask
}

// BARRead reads BAR 0; ones while memory space is disabled.
func (f *Function) BARRead(off uint64, b []byte) {
	if !f.enabled(memoryEnable) {
		ones(b)
		return
	}
	split(off, b, f.device.BARRead, func(_ uint64, b []byte) { clear(b) })
}

// BARWrite writes to BAR 0; to nothing while memory space is disabled.
func (f *Function) BARWrite(off uint64, b []byte) {
	if f.enabled(memoryEnable) {
		split(off, b, f.device.BARWrite, func(uint64, []byte) {})
	}
}

// split gives an access to the device piece by piece, less what is for MSI-X.
func split(off uint64, b []byte, device, msix func(off uint64, b []byte)) {
	for len(b) > 0 {
		n := uint64(8)
		for off%n != 0 || n > uint64(len(b)) {
			n /= 2
		}
		if off >= msixTable && off < msixEnd {
			msix(off, b[:n])
		} else {
			device(off, b[:n])
		}
		off, b = off+n, b[n:]
	}
}

// ErrNotMaster is the error of a device's access while the driver has not made it
// bus master (bit 2 of the command register).
var ErrNotMaster = errors.New("the driver has not enabled bus mastering")

// Read implements bus.Bus.
func (f *Function) Read(addr uint64, b []byte) error {
	if !f.enabled(masterEnable) {
		return ErrNotMaster
	}
	return f.machine.Read(addr, b)
}

// Write implements bus.Bus.
func (f *Function) Write(addr uint64, b []byte) error {
	if !f.enabled(masterEnable) {
		return ErrNotMaster
	}
	return f.machine.Write(addr, b)
}

// Publish implements bus.Bus.
func (f *Function) Publish(addr uint64, w [4]byte) error {
	if !f.enabled(masterEnable) {
		return ErrNotMaster
	}
	return f.machine.Publish(addr, w)
}

// Interrupt implements bus.Bus: a message that is a write needs a bus master too.
func (f *Function) Interrupt(vector int) bool {
	return f.enabled(masterEnable) && f.machine.Interrupt(vector)
}
