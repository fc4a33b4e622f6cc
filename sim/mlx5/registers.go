// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"github.com/flexsteer/flexsteer/sim/prm"
)

const opAccessRegister = 0x805

// ACCESS_REG's op_mods.
const (
	writeRegister = 0
	readRegister  = 1
)

const registerData = 16 // bytes into input and output

var registerID = at(0x50, 16)

var registerCommands = []command{
	{opcode: opAccessRegister, name: "ACCESS_REG", in: form{size: registerData, uses: []prm.Field{registerID}, tail: 4}, when: enabled | running,
		modifiers: []uint16{writeRegister, readRegister}, reply: registerData, run: (*function).accessRegister, shows: shows("register", registerID)},
}

// register is a register of the port or the card. The input of both reads and
// writes is a whole register; what it may hold is in reads and writes.
type register struct {
	name  string
	size  int
	port  bool        // of the port, which the input names
	asks  []prm.Field // of a read
	sets  []prm.Field // of a write; nil: not to be written
	read  func(f *function, in, out []byte) error
	write func(f *function, in []byte) error
}

// registers are those that ACCESS_REG knows.
var registers = map[uint16]*register{
	0x5002: {name: "PMLP", size: 64, port: true, asks: []prm.Field{localPort}, read: readPMLP},
	0x5003: {name: "PMTU", size: 16, port: true, asks: []prm.Field{localPort}, sets: []prm.Field{localPort, pmtuAdmin}, read: readPMTU, write: writePMTU},
	0x5004: {name: "PTYS", size: 64, port: true, asks: []prm.Field{localPort, ptysProtocol}, read: readPTYS},
	0x5006: {name: "PAOS", size: 16, port: true, asks: []prm.Field{localPort}, sets: []prm.Field{localPort, paosAdmin, paosEnable}, read: readPAOS, write: writePAOS},
	0x5007: {name: "PFCC", size: 32, port: true, asks: []prm.Field{localPort}, sets: []prm.Field{localPort, pfccTransmit, pfccReceive}, read: readPFCC, write: writePFCC},
	0x5008: {name: "PPCNT", size: 256, port: true, asks: []prm.Field{localPort, ppcntGroup, ppcntPriority}, read: readPPCNT},
	0x507f: {name: "PCAM", size: 80, asks: []prm.Field{pcamFeatures, pcamRegisters}, read: readPCAM},
	0x9014: {name: "MCIA", size: 144, asks: mciaAddress, read: readMCIA},
	// The driver says in which order it has its bytes.
	0x7004: {name: "HOST_ENDIANNESS", size: 16, sets: []prm.Field{at(0, 8)}, write: writeEndianness},
}

func (f *function) accessRegister(c *call) error {
	id := uint16(c.get(registerID))
	r := registers[id]
	if r == nil {
		return badValue("the model does not know register %#x", id)
	}
	in, out := c.in[registerData:], c.out[registerData:]
	allowed := r.asks
	if c.modifier == writeRegister {
		allowed = r.sets
	}
	switch {
	case len(in) != r.size:
		return refuse(BadInputLength, WrongLength, "%d bytes of register %s, not %d", len(in), r.name, r.size)
	case allowed == nil:
		return badValue("register %s is not for %s", r.name, [...]string{"writing", "reading"}[c.modifier])
	}
	if why := onlyFields(in, allowed); why != nil {
		return why
	}
	if port := localPort.Get(in); r.port && port != 1 {
		return badValue("port %d, there is port 1 only", port)
	}
	if c.modifier == writeRegister {
		copy(out, in)
		return r.write(f, in)
	}
	if len(out) < r.size {
		return refuse(BadOutputLength, WrongLength, "room for %d bytes of register %s, not %d", len(out), r.name, r.size)
	}
	copy(out, in)
	return r.read(f, in, out)
}

// onlyFields refuses bits outside of the fields.
func onlyFields(in []byte, fields []prm.Field) *refusal {
	rest := append([]byte(nil), in...)
	for _, field := range fields {
		field.Set(rest, 0)
	}
	for i, b := range rest {
		if b != 0 {
			return refuse(BadParam, UnknownBits, "bits %#02x of byte %#x of the register are not modelled", b, i)
		}
	}
	return nil
}

// localPort is in all registers of the port.
var localPort = at(0x08, 8)

var pmlpWidth = at(0x18, 8)

func readPMLP(f *function, _, out []byte) error {
	pmlpWidth.Set(out, f.dev.port.speed.lanes)
	for lane := range f.dev.port.speed.lanes {
		at(0x20+0x20*int(lane)+0x08, 8).Set(out, lane) // of module 0
	}
	return nil
}

var (
	pmtuMax   = at(0x20, 16)
	pmtuAdmin = at(0x40, 16)
	pmtuOper  = at(0x60, 16)
)

func readPMTU(f *function, _, out []byte) error {
	pmtuMax.Set(out, maxMTU)
	pmtuAdmin.Set(out, uint64(f.dev.port.mtu))
	pmtuOper.Set(out, uint64(f.dev.port.mtu))
	return nil
}

func writePMTU(f *function, in []byte) error {
	mtu := pmtuAdmin.Get(in)
	if mtu > maxMTU {
		return badValue("MTU %d, at most %d", mtu, maxMTU)
	}
	f.dev.port.mtu = uint16(mtu)
	return nil
}

var (
	ptysProtocol = at(0x1d, 3)      // proto_mask
	ptysLists    = [3][2]prm.Field{ // capability, admin, operational: extended and older list
		{at(0x040, 32), at(0x060, 32)},
		{at(0x0a0, 32), at(0x0c0, 32)},
		{at(0x100, 32), at(0x120, 32)},
	}
	ptysConnector = at(0x17c, 4)
)

func readPTYS(f *function, in, out []byte) error {
	const ethernet, directAttachCopper = 1 << 2, 7
	if p := ptysProtocol.Get(in); p != ethernet {
		return badValue("proto_mask %d, the port is Ethernet (%d)", p, ethernet)
	}
	p := &f.dev.port
	for i, lists := range ptysLists {
		if i == len(ptysLists)-1 && !p.up() {
			break
		}
		lists[0].Set(out, uint64(p.speed.extended))
		lists[1].Set(out, uint64(p.speed.older))
	}
	ptysConnector.Set(out, directAttachCopper)
	return nil
}

var (
	paosAdmin  = at(0x14, 4)
	paosOper   = at(0x1c, 4)
	paosEnable = at(0x20, 1) // ase: admin_status is meant
)

func readPAOS(f *function, _, out []byte) error {
	paosAdmin.Set(out, uint64(f.dev.port.admin))
	oper := uint64(adminDown)
	if f.dev.port.up() {
		oper = adminUp
	}
	paosOper.Set(out, oper)
	return nil
}

func writePAOS(f *function, in []byte) error {
	admin := uint8(paosAdmin.Get(in))
	if paosEnable.Get(in) == 0 {
		return nil
	}
	if admin != adminUp && admin != adminDown {
		return badValue("admin status %d of the port, not %d (up) or %d (down)", admin, adminUp, adminDown)
	}
	f.dev.changePort(func(p *port) { p.admin = admin })
	return nil
}

var (
	pfccTransmit = at(0x40, 1)
	pfccReceive  = at(0x60, 1)
)

func readPFCC(f *function, _, out []byte) error {
	pfccReceive.Set(out, uint64(boolBit(f.dev.port.pause[0], 0)))
	pfccTransmit.Set(out, uint64(boolBit(f.dev.port.pause[1], 0)))
	return nil
}

func writePFCC(f *function, in []byte) error {
	f.dev.port.pause = [2]bool{pfccReceive.Get(in) != 0, pfccTransmit.Get(in) != 0}
	return nil
}

var (
	pcamFeatures  = at(0x08, 8)
	pcamRegisters = at(0x18, 8)
	pcamMask      = 0x040 // bits: port_access_reg_cap_mask, register 0x5000 in its last bit
	pcamMaskBits  = 128
	pcamExtended  = at(0x1b2, 1) // ptys_extended_ethernet
	pcamConnector = at(0x1bc, 1) // ptys_connector_type
)

// readPCAM tells which registers from 0x5000 on there are.
func readPCAM(_ *function, in, out []byte) error {
	if pcamFeatures.Get(in) != 0 || pcamRegisters.Get(in) != 0 {
		return badValue("groups %d and %d of PCAM, there is 0 only", pcamFeatures.Get(in), pcamRegisters.Get(in))
	}
	for _, id := range []int{0x5002, 0x5003, 0x5004, 0x5006, 0x5007, 0x5008, 0x507f} {
		at(pcamMask+pcamMaskBits-1-id%0x1000, 1).Set(out, 1)
	}
	pcamExtended.Set(out, 1)
	pcamConnector.Set(out, 1)
	return nil
}

var (
	mciaAddress = []prm.Field{at(0x00, 1), at(0x08, 8), at(0x20, 8), at(0x28, 8), at(0x30, 16), at(0x50, 16)} // lock, module, device, page, address, size
	mciaStatus  = at(0x18, 8)
)

// readMCIA: the cable has no memory that could be read.
func readMCIA(_ *function, _, out []byte) error {
	const noModule = 1
	mciaStatus.Set(out, noModule)
	return nil
}

func writeEndianness(_ *function, in []byte) error {
	const little, big = 0, 0x80
	if order := in[0]; order != little && order != big {
		return badValue("byte order %#x of the host", order)
	}
	return nil
}
