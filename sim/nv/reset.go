// SPDX-License-Identifier: Apache-2.0

package nv

import "github.com/flexsteer/flexsteer/sim/prm"

func inOrder(fields ...prm.Field) []prm.Field { return fields }

// MFRL: which resets there are, and getting ready for one.
var (
	mfrlStart   = at(0x22, 1) // with the driver
	mfrlType    = at(0x25, 3)
	mfrlTypes   = at(0x30, 8)
	mfrlTrigger = at(0x38, 8)
	mfrlFields  = inOrder(mfrlStart, mfrlType, mfrlTrigger)
)

// trigger is what a reset of the firmware waits for, as bits of MFRL.
type trigger uint8

const (
	notArmed    trigger = 0
	onLinkReset trigger = 1 << 3 // level 3: the PCI link goes down and up
	onReboot    trigger = 1 << 6 // a warm reboot of the machine
)

// A live patch (level 0) is for a new image only, and nobody burns one here.
const triggers = onLinkReset | onReboot

const fullChip = 1 << 0 // in mfrlTypes

func (f *Firmware) resetLevels(b []byte) Status {
	clear(b[:8])
	mfrlTrigger.Set(b, uint64(triggers))
	mfrlTypes.Set(b, fullChip)
	return OK
}

func (f *Firmware) armReset(b []byte) Status {
	t := trigger(mfrlTrigger.Get(b))
	if t != onLinkReset && t != onReboot || mfrlType.Get(b) != 0 || mfrlStart.Get(b) != 0 {
		return BadParameter
	}
	f.armed |= t
	return OK
}

// MROQ: the ways of a reset.
var (
	mroqMethods = at(0x00, 8)
	mroqSync    = at(0x0b, 4)
	mroqValid   = at(0x0f, 1)
	mroqType    = at(0x10, 8)
	mroqTrigger = at(0x18, 8)
)

func (f *Firmware) resetOptions(b []byte) Status {
	const linkToggle, byTool = 1 << 0, 1 << 0
	mroqMethods.Set(b, linkToggle)
	mroqSync.Set(b, byTool)
	mroqValid.Set(b, 1)
	return OK
}

// MPCIR: getting ready for a reset that leaves ports up.
var (
	mpcirPorts  = at(0x3e, 2)
	mpcirStatus = at(0x7e, 2)
)

func (f *Firmware) prepareReset(b []byte) Status {
	const idle = 0
	mpcirStatus.Set(b, idle)
	return OK
}
