// SPDX-License-Identifier: Apache-2.0

package nv

import (
	"encoding/binary"
	"fmt"

	"github.com/flexsteer/flexsteer/sim/prm"
)

var be = binary.BigEndian

// at is the field of width bits at a bit of its structure.
func at(bit, width int) prm.Field { return prm.Field{Bit: bit, Width: width} }

const mailboxSize = 0x340 // bytes

// mailbox is where commands to the firmware are left, and picked up.
type mailbox struct {
	control uint32 // bit 0 busy, 15:8 status, 31:16 opcode
	data    [mailboxSize]byte
}

const icmdBusy = 1 << 0

// ICMD opcodes.
const (
	icmdRegister     = 0x9001
	icmdCapabilities = 0x8400
)

// What ICMD commands answer (mtcr_ul_icmd_cif.c, translate_status).
const (
	icmdOK            = 0
	icmdInvalidOpcode = 1
	icmdBadParameter  = 4
)

// control is a write to the mailbox's control dword, which may start a command.
func (f *Firmware) control(v uint32) {
	if f.mailbox.control&icmdBusy != 0 {
		f.violate("write of %#x to the mailbox's control while it is busy", v)
		return
	}
	f.mailbox.control = v
	if v&icmdBusy == 0 {
		return
	}
	if f.semaphores[semaphoreICMD] == 0 {
		f.violate("a command through the mailbox by one that does not hold its semaphore")
	}
	if !f.faults.MailboxStuck {
		f.finish()
	}
}

// finish does the command in the mailbox.
func (f *Firmware) finish() {
	status := f.faults.ICMDStatus
	if status == icmdOK {
		status = f.command(uint16(f.mailbox.control >> 16))
	}
	f.mailbox.control = f.mailbox.control&^(0xff<<8|icmdBusy) | uint32(status)<<8
}

func (f *Firmware) command(opcode uint16) uint8 {
	switch opcode {
	case icmdRegister:
		return f.registerCommand()
	case icmdCapabilities: // of these only: settings, and register MCAM
		clear(f.mailbox.data[:8])
		at(0, 1).Set(f.mailbox.data[:], 1)
		at(5, 1).Set(f.mailbox.data[:], 1)
		return icmdOK
	}
	f.violate("ICMD opcode %#x, which the model does not know", opcode)
	return icmdInvalidOpcode
}

// The operation TLV and the header of the register TLV, which begin the mailbox.
var (
	opType     = at(0, 5)
	opLength   = at(5, 11) // dwords
	opStatus   = at(17, 7)
	opRegister = at(32, 16)
	opResponse = at(48, 1)
	opMethod   = at(49, 7)
	opClass    = at(56, 8)
	regType    = at(128, 5)
	regLength  = at(133, 11) // dwords, with its header
)

const (
	registerStart = 20 // bytes into the mailbox

	tlvOperation   = 1
	tlvRegister    = 3
	operationWords = 4
	classRegister  = 1
)

// method is what is done to a register.
type method uint8

const (
	methodGet method = 1
	methodSet method = 2
)

func (m method) String() string {
	switch m {
	case methodGet:
		return "get"
	case methodSet:
		return "set"
	}
	return fmt.Sprintf("method %d", uint8(m))
}

// registerCommand reads or writes a register; what the register has to say is in
// the operation TLV.
func (f *Firmware) registerCommand() uint8 {
	m := f.mailbox.data[:]
	n := 4*int(regLength.Get(m)) - 4
	well := opType.Get(m) == tlvOperation && opLength.Get(m) == operationWords && opClass.Get(m) == classRegister &&
		opResponse.Get(m) == 0 && regType.Get(m) == tlvRegister
	if !well || n < 4 || registerStart+n > len(m) {
		f.violate("a register command with the headers %x", m[:registerStart])
		return icmdBadParameter
	}
	id, how := uint16(opRegister.Get(m)), method(opMethod.Get(m))
	status := f.register(id, how, m[registerStart:registerStart+n])
	opStatus.Set(m, uint64(status))
	opResponse.Set(m, 1)
	f.report.register(f.uptime(), id, how, status, m[registerStart:registerStart+min(n, 24)])
	return icmdOK
}
