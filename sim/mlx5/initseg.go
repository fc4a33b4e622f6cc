// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"encoding/binary"
	"time"
)

// What is where in the initialization segment, in bytes.
const (
	segFirmware    = 0x0
	segInterface   = 0x4
	segQueueHigh   = 0x10
	segQueueLow    = 0x14
	segDoorbell    = 0x18
	segInitialize  = 0x1fc
	segHealth      = 0x200
	segTimerHigh   = 0x1000
	segTimerLow    = 0x1004
	segCounter     = 0x1010
	healthVersion  = segHealth + 0x30
	healthSeverity = segHealth + 0x38
	healthSyndrome = segHealth + 0x3c
)

// The values of nic_interface, three bits of segQueueLow.
const (
	interfaceFull     = 0
	interfaceDisabled = 1
	interfaceReset    = 7
)

const (
	commandInterfaceRevision = 5
	logQueueSize             = 5 // 32 commands
	logQueueStride           = 6 // of 64 bytes
	// How long the firmware takes after a reset until it clears "initializing".
	bootTime = 3 * time.Millisecond
	// The health counter counts at this pace; the driver looks every two seconds.
	healthTick = 10 * time.Millisecond
)

// segment is the state of the initialization segment. After a reset the driver
// finds nic_interface disabled, and so knows of one that it did not ask for.
type segment struct {
	since     time.Duration // of the reset
	queueHigh uint32
	queueLow  uint32 // the address's low part, and nic_interface
	health    Health
	vanished  bool
}

func (s *segment) nicInterface() uint32 { return s.queueLow >> 8 & 7 }

// listens tells whether doorbells mean something. A driver that is told late of
// a reset, or that is on its way out, may ring and is not heard.
func (s *segment) listens() bool {
	return !s.vanished && s.nicInterface() == interfaceFull
}

func (s *segment) queueAddress() uint64 {
	return uint64(s.queueHigh)<<32 | uint64(s.queueLow&^0xfff)
}

// Health is what the health buffer reports.
type Health struct {
	Syndrome uint8 `json:"syndrome"` // 0: well; 1: firmware internal error, 7: dead processor, ...
	// RequestReset makes the driver reset the function and start over, if the syndrome is not 0.
	RequestReset bool `json:"request_reset"`
}

// SetHealth changes what the health buffer says, until a reset.
func (d *Device) SetHealth(h Health) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.segment.health = h
}

func (d *Device) readSegment(off uint64, b []byte) {
	word := [4]byte{0xff, 0xff, 0xff, 0xff}
	for i := range b {
		o := off + uint64(i)
		if !d.segment.vanished && (i == 0 || o%4 == 0) {
			binary.BigEndian.PutUint32(word[:], d.segmentWord(o&^3))
		}
		b[i] = word[o%4]
	}
}

func (d *Device) segmentWord(off uint64) uint32 {
	s := &d.segment
	major, minor, sub := d.personality.Firmware.Parts()
	up := d.now() - s.since
	switch off {
	case segFirmware:
		return minor<<16 | major
	case segInterface:
		return commandInterfaceRevision<<16 | sub
	case segQueueHigh:
		return s.queueHigh
	case segQueueLow:
		return s.queueLow&0x700 | logQueueSize<<4 | logQueueStride
	case segInitialize:
		const resetSupported = 1 << 30
		if up < bootTime {
			return 1<<31 | resetSupported
		}
		return resetSupported
	case healthVersion:
		return major<<24 | minor<<16&0xff0000 | sub&0xffff
	case healthSeverity:
		return boolBit(s.health.RequestReset, 31)
	case healthSyndrome:
		return uint32(s.health.Syndrome) << 16
	case segTimerHigh:
		return uint32(d.ticks() >> 32)
	case segTimerLow:
		return uint32(d.ticks())
	case segCounter:
		return uint32(up/healthTick) & 0xffffff
	}
	return 0
}

func boolBit(set bool, bit int) uint32 {
	if set {
		return 1 << bit
	}
	return 0
}

func (d *Device) writeSegment(off uint64, b []byte) {
	if d.segment.vanished {
		return
	}
	if len(b) != 4 {
		d.report.violate("write of %d bytes at %#x of BAR 0", len(b), off)
		return
	}
	switch v := binary.BigEndian.Uint32(b); off {
	case segQueueHigh:
		d.segment.queueHigh = v
	case segQueueLow:
		d.setQueueLow(v)
	case segDoorbell:
		d.doorbell(v)
	default:
		d.report.violate("write of %#x at %#x of BAR 0, where nothing may be written", v, off)
	}
}

// setQueueLow changes nic_interface, and where the command queue is.
func (d *Device) setQueueLow(v uint32) {
	before := d.segment
	d.segment.queueLow = v &^ 0xff
	switch d.segment.nicInterface() {
	case interfaceFull:
		moved := before.listens() && before.queueAddress() != d.segment.queueAddress()
		if moved && d.function.state != disabled {
			d.report.violate("the command queue moved while the function is %v", d.function.state)
		}
	case interfaceDisabled:
		if d.function.closeFast {
			d.reset()
		}
	case interfaceReset:
		d.report.resets++
		d.reset()
	default:
		d.report.violate("nic_interface %d", d.segment.nicInterface())
	}
}
