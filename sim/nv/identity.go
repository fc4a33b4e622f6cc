// SPDX-License-Identifier: Apache-2.0

package nv

// MGIR: general information. Its parts are of the hardware, the firmware and more.
var (
	mgirRevision   = at(0x000, 16)
	mgirDevice     = at(0x010, 16)
	mgirPorts      = at(0x028, 8)
	mgirHardware   = at(0x050, 16)
	mgirMAC        = at(0x090, 48)
	mgirUptime     = at(0x0e0, 32) // seconds
	mgirMajor      = at(0x108, 8)
	mgirMinor      = at(0x110, 8)
	mgirSub        = at(0x118, 8)
	mgirPSID       = 0x30 // byte; 16 of them
	mgirExtMajor   = at(0x220, 32)
	mgirExtMinor   = at(0x240, 32)
	mgirExtSub     = at(0x260, 32)
	mgirPSIDLength = 16
)

func (f *Firmware) identity(b []byte) Status {
	c := f.card
	mgirRevision.Set(b, uint64(c.HardwareID>>16&0xff))
	mgirDevice.Set(b, uint64(c.PCIDevice))
	mgirPorts.Set(b, uint64(c.Ports))
	mgirHardware.Set(b, uint64(c.HardwareID&0xffff))
	var mac uint64
	for _, octet := range c.MAC {
		mac = mac<<8 | uint64(octet)
	}
	mgirMAC.Set(b, mac)
	mgirUptime.Set(b, uint64(f.uptime().Seconds()))
	major, minor, sub := c.Version[0], c.Version[1], c.Version[2]
	mgirMajor.Set(b, uint64(major))
	mgirMinor.Set(b, uint64(minor))
	mgirSub.Set(b, uint64(sub))
	copy(b[mgirPSID:mgirPSID+mgirPSIDLength], c.PSID)
	mgirExtMajor.Set(b, uint64(major))
	mgirExtMinor.Set(b, uint64(minor))
	mgirExtSub.Set(b, uint64(sub))
	return OK
}

// MQIS: texts, in pieces.
var (
	mqisType   = at(0x18, 8)
	mqisTotal  = at(0x30, 16) // of the text, in bytes
	mqisOffset = at(0x40, 16)
	mqisLength = at(0x50, 16) // wanted, and in the answer given

	// Tools ask for the next piece with the answer that has the one before.
	mqisFields = inOrder(mqisType, mqisTotal, mqisOffset, mqisLength, at(8*mqisText, 64))
)

const mqisText = 16 // byte

func (f *Firmware) description(b []byte) Status {
	const part, description = 1, 2
	text := map[uint64]string{part: f.card.Part, description: f.card.Description}[mqisType.Get(b)]
	offset := int(mqisOffset.Get(b))
	if text == "" || offset > len(text) {
		return BadParameter
	}
	room := b[mqisText:]
	n := copy(room[:min(len(room), int(mqisLength.Get(b)))], text[offset:])
	mqisTotal.Set(b, uint64(len(text)))
	mqisLength.Set(b, uint64(n))
	return OK
}

// MCAM: which of the registers from 0x9000 on there are.
var (
	mcamFeatures  = at(0x08, 8)
	mcamRegisters = at(0x18, 8)
	mcamMask      = 0x040 // bits: register 0x9000 in its last
	mcamMaskBits  = 128
)

// registerMasks has no feature: firmware and driver do not agree on resets here.
func (f *Firmware) registerMasks(b []byte) Status {
	if mcamFeatures.Get(b) != 0 || mcamRegisters.Get(b) != 0 {
		return OK // later groups are empty
	}
	for id := range registers {
		at(mcamMask+mcamMaskBits-1-int(id&0xfff), 1).Set(b, 1)
	}
	return OK
}

// MCQS: the components of the firmware. There is one, the boot image.
var (
	mcqsLast   = at(0x00, 1)
	mcqsIndex  = at(0x10, 16)
	mcqsID     = at(0x30, 16)
	mcqsStatus = at(0x57, 5)
	mcqsState  = at(0x5c, 4)
)

func (f *Firmware) component(b []byte) Status {
	if mcqsIndex.Get(b) != 0 {
		return BadParameter
	}
	const bootImage, inUse, idle = 1, 2, 0
	mcqsLast.Set(b, 1)
	mcqsID.Set(b, bootImage)
	mcqsStatus.Set(b, inUse)
	mcqsState.Set(b, idle)
	return OK
}

// MCQI: more about a component.
var (
	mcqiPending = at(0x00, 1)
	mcqiIndex   = at(0x10, 16)
	mcqiType    = at(0x5b, 5)
	mcqiSize    = at(0x60, 32)
	mcqiOffset  = at(0x80, 32)
	mcqiLength  = at(0xb0, 16)
	mcqiFields  = inOrder(mcqiPending, mcqiIndex, mcqiType, mcqiSize, mcqiOffset, mcqiLength)
	mcqiVersion = at(0xe0, 32)
)

func (f *Firmware) componentInfo(b []byte) Status {
	const version, bytes = 1, 0x7c
	if mcqiIndex.Get(b) != 0 || mcqiType.Get(b) != version || mcqiOffset.Get(b) != 0 {
		return BadParameter
	}
	mcqiSize.Set(b, bytes)
	v := f.card.Version
	mcqiVersion.Set(b, uint64(v[0])<<24|uint64(v[1])<<16|uint64(v[2]))
	return OK
}
