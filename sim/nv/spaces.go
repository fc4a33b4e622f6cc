// SPDX-License-Identifier: Apache-2.0

package nv

import "fmt"

// space is an address space behind the gateway.
type space uint16

const (
	spaceICMDExtended space = 0x1 // only asked for
	spaceCR           space = 0x2 // the card's own registers
	spaceICMD         space = 0x3 // the mailbox
	spaceSemaphore    space = 0xa
)

var spaceNames = map[space]string{
	spaceICMDExtended: "the extended ICMD space", spaceCR: "CR space", spaceICMD: "ICMD space", spaceSemaphore: "semaphore space",
}

func (s space) String() string {
	if name := spaceNames[s]; name != "" {
		return name
	}
	return fmt.Sprintf("space %#x", uint16(s))
}

// What is read of CR space.
const (
	crHardwareID = 0xf0014
	crNotReady   = 0xb5f04 // bit 31: the static configuration is not done
)

// Semaphores of their space. Who writes to a free one has it; writing 0 frees it.
const (
	semaphoreICMD  = 0x0
	semaphoreReset = 0x20 // the driver's, while it resets a card that failed
)

// What is where in ICMD space.
const (
	icmdControl = 0x0
	icmdSize    = 0x1000 // of the mailbox, in bytes
	icmdMailbox = 0x100000
)

func (f *Firmware) offers(s space) bool {
	return spaceNames[s] != "" && !f.faults.lacks(s)
}

func (f *Firmware) get(s space, address uint32) uint32 {
	switch {
	case s == spaceCR && address == crHardwareID:
		return uint32(f.card.HardwareID)
	case s == spaceCR && address == crNotReady:
		return bit(f.faults.NotReady, 31)
	case s == spaceSemaphore && isSemaphore(address):
		return f.semaphores[address]
	case s == spaceICMD && address == icmdControl:
		return f.mailbox.control
	case s == spaceICMD && address == icmdSize:
		return mailboxSize
	case s == spaceICMD && inMailbox(address):
		return be.Uint32(f.mailbox.data[address-icmdMailbox:])
	}
	f.violate("read of %v at %#x, which the model does not know", s, address)
	return 0
}

func (f *Firmware) put(s space, address, v uint32) {
	switch {
	case s == spaceSemaphore && address == semaphoreICMD:
		f.semaphores[address] = f.faults.ICMDSemaphore.write(f.semaphores[address], v)
	case s == spaceSemaphore && isSemaphore(address):
		f.semaphores[address] = NotHeld.write(f.semaphores[address], v)
	case s == spaceICMD && address == icmdControl:
		f.control(v)
	case s == spaceICMD && inMailbox(address):
		be.PutUint32(f.mailbox.data[address-icmdMailbox:], v)
	default:
		f.violate("write of %#x to %v at %#x, where nothing may be written", v, s, address)
	}
}

func isSemaphore(address uint32) bool { return address == semaphoreICMD || address == semaphoreReset }

func inMailbox(address uint32) bool {
	return address%4 == 0 && address >= icmdMailbox && address < icmdMailbox+mailboxSize
}

func bit(set bool, n int) uint32 {
	if set {
		return 1 << n
	}
	return 0
}
