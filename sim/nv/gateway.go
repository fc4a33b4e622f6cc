// SPDX-License-Identifier: Apache-2.0

package nv

// The capability, as it is for pci.Capability.
const (
	CapabilityID   = 0x09 // vendor specific
	CapabilitySize = 0x18 // bytes
)

// Its dwords, as byte offsets.
const (
	gatewayControl   = 0x04 // bits 15:0 the space; 31:29 not 0 where the card has it
	gatewayCounter   = 0x08 // a new ticket with each read
	gatewaySemaphore = 0x0c // 0, or the ticket of who uses the gateway
	gatewayAddress   = 0x10 // bits 29:0; a write begins an access, bit 31 then tells that it is over
	gatewayData      = 0x14
)

const (
	spaceStatus  = 1 << 29
	accessFlag   = 1 << 31
	accessFields = 1<<30 - 1
)

// gateway is what a reset of the firmware forgets.
type gateway struct {
	space   space
	ticket  uint32
	holder  uint32
	address uint32
	data    uint32
}

// ReadDword implements pci.Dwords.
func (f *Firmware) ReadDword(off int) uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch off {
	case gatewayControl:
		if f.offers(f.gateway.space) {
			return uint32(f.gateway.space) | spaceStatus
		}
		return uint32(f.gateway.space)
	case gatewayCounter:
		return f.newTicket()
	case gatewaySemaphore:
		return f.gateway.holder
	case gatewayAddress:
		return f.gateway.address
	case gatewayData:
		return f.gateway.data
	}
	return 0
}

// newTicket is never 0, which is nobody's.
func (f *Firmware) newTicket() uint32 {
	if f.gateway.ticket++; f.gateway.ticket == 0 {
		f.gateway.ticket++
	}
	return f.gateway.ticket
}

// WriteDword implements pci.Dwords.
func (f *Firmware) WriteDword(off int, v uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch off {
	case gatewayControl:
		f.gateway.space = space(v)
	case gatewaySemaphore:
		f.gateway.holder = f.faults.Semaphore.write(f.gateway.holder, v)
	case gatewayAddress:
		f.access(v)
	case gatewayData:
		f.gateway.data = v
	default:
		f.violate("write to byte %#x of the capability, which is read only", off)
	}
}

// access reads or writes a dword of a space, at once.
func (f *Firmware) access(v uint32) {
	f.report.accesses++
	if f.gateway.holder == 0 {
		f.violate("an access through the gateway by one that does not hold its semaphore")
	}
	address := v & accessFields
	if !f.offers(f.gateway.space) {
		f.violate("an access to %v, which the card has not", f.gateway.space)
		f.gateway.address = v // with the flag as it was written: it is never over
		return
	}
	if v&accessFlag != 0 {
		f.put(f.gateway.space, address, f.gateway.data)
		f.gateway.address = address
		return
	}
	f.gateway.data = f.get(f.gateway.space, address)
	f.gateway.address = address | accessFlag
}
