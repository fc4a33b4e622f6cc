// SPDX-License-Identifier: Apache-2.0

// Package bus is what a PCI device is lent of the machine that it sits in:
// guest memory and interrupts. A device that knows no more than this runs under
// QEMU, in unit tests and under fuzzing without a change.
package bus

import "fmt"

// Bus is one device's access to its machine. All methods may be called by
// several goroutines at once.
type Bus interface {
	// Read fills b from guest memory at addr, or fails and may have filled a part.
	Read(addr uint64, b []byte) error
	// Write puts b into guest memory at addr, or fails and may have put a part.
	Write(addr uint64, b []byte) error
	// Publish stores the four bytes w at addr, a multiple of four, at once and
	// after all earlier writes: the last word of a ring entry, which holds the
	// bit by which the driver knows that the entry is new.
	Publish(addr uint64, w [4]byte) error
	// Interrupt raises an MSI-X vector. It reports whether the machine has one there.
	Interrupt(vector int) bool
}

// NotMapped is the error of an access outside the memory that the device may use.
type NotMapped struct {
	Addr   uint64
	Length int // bytes
}

func (e NotMapped) Error() string {
	return fmt.Sprintf("no guest memory for %d bytes at %#x", e.Length, e.Addr)
}
