// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"encoding/binary"
	"net"

	"github.com/flexsteer/flexsteer/sim/prm"
)

// vport is the function's port of the embedded switch, as far as a function that does not manage it sees it.
type vport struct {
	permanent net.HardwareAddr
	mtu       uint16
	promisc   uint8     // all, multicast, unicast in bits 0 to 2
	noLoop    [2]bool   // multicast, unicast: what the guest sends to itself does not come back (and never does here)
	lists     [3][]byte // the filters, as the driver wrote them: unicast, multicast, VLANs; 8 bytes each
}

func newVport(mac net.HardwareAddr) vport { return vport{permanent: mac, mtu: 1500} }

// nic_vport_context, in bits, and where it starts in the two commands.
const (
	vportQuery  = 0x080
	vportModify = 0x800
)

var (
	vportMTU          = at(0x130, 16)
	vportSystemGUID   = at(0x140, 64)
	vportNodeGUID     = at(0x1c0, 64)
	vportMulticastOff = at(0x01d, 1) // disable_mc_local_lb
	vportUnicastOff   = at(0x01e, 1)
	vportPromisc      = at(0x780, 3) // unicast, multicast, all
	vportListType     = at(0x785, 3)
	vportListSize     = at(0x794, 12)
	vportMAC          = at(0x7b0, 48)

	vportListAsked = at(0x065, 3)  // QUERY_NIC_VPORT_CONTEXT
	vportChanges   = at(0x060, 32) // MODIFY_NIC_VPORT_CONTEXT's field_select
	vportAdmin     = at(0x078, 4)
	vportUp        = at(0x07c, 4)
)

const (
	vportQueryList  = (vportQuery + 0x800) / 8 // bytes: where the list starts
	vportModifyList = (vportModify + 0x800) / 8
)

// What MODIFY_NIC_VPORT_CONTEXT may change, as bits of vportChanges.
const (
	changeList      = 1 << 2
	changePromisc   = 1 << 4
	changeMTU       = 1 << 6
	changeMulticast = 1 << 10
	changeUnicast   = 1 << 11
)

var listSizes = [3]int{1 << logMaxMACs, 1 << logMaxMulticast, 1 << logMaxVLANs}

var vportCommands = []command{
	{opcode: 0x750, name: "QUERY_VPORT_STATE", in: bare, reply: 16, when: running, run: (*function).queryVportState, gives: gives("state", vportUp)},
	{opcode: 0x754, name: "QUERY_NIC_VPORT_CONTEXT", in: form{size: 16, uses: []prm.Field{vportListAsked}}, reply: vportQueryList, when: running,
		run: (*function).queryVport},
	{opcode: 0x755, name: "MODIFY_NIC_VPORT_CONTEXT", when: running, run: (*function).modifyVport, shows: shows("change", vportChanges),
		in: form{size: vportModifyList, tail: 8, uses: append([]prm.Field{vportChanges},
			inside(vportModify, vportMTU, vportMulticastOff, vportUnicastOff, vportPromisc, vportListType, vportListSize)...)}},
}

func (f *function) queryVportState(c *call) error {
	c.put(vportAdmin, uint64(f.dev.port.admin))
	c.put(vportUp, uint64(boolBit(f.dev.port.up(), 0)))
	return nil
}

func (f *function) queryVport(c *call) error {
	v := &f.vport
	mac := append(make([]byte, 2), v.permanent...)
	guid := binary.BigEndian.Uint64(mac)
	for _, x := range []capability{
		{vportMTU, uint64(v.mtu)}, {vportSystemGUID, guid}, {vportNodeGUID, guid}, {vportMAC, guid}, {vportPromisc, uint64(v.promisc)},
		{vportMulticastOff, uint64(boolBit(v.noLoop[0], 0))}, {vportUnicastOff, uint64(boolBit(v.noLoop[1], 0))},
	} {
		c.put(x.field.At(vportQuery), x.value)
	}
	kind := c.get(vportListAsked)
	if kind >= uint64(len(v.lists)) {
		return badValue("list %d of the vport", kind)
	}
	c.put(vportListType.At(vportQuery), kind)
	c.put(vportListSize.At(vportQuery), uint64(len(v.lists[kind])/8))
	copy(c.out[vportQueryList:], v.lists[kind])
	return nil
}

func (f *function) modifyVport(c *call) error {
	v, changes := &f.vport, c.get(vportChanges)
	if other := changes &^ (changeList | changePromisc | changeMTU | changeMulticast | changeUnicast); other != 0 {
		return badValue("MODIFY_NIC_VPORT_CONTEXT of %#x is not modelled", other)
	}
	if changes&changeList != 0 {
		if err := v.setList(c); err != nil {
			return err
		}
	} else if n := len(c.in) - vportModifyList; n > 0 {
		return refuse(BadInputLength, WrongLength, "a list of %d bytes, which is not to be changed", n)
	}
	if changes&changePromisc != 0 {
		v.promisc = uint8(c.get(vportPromisc.At(vportModify)))
	}
	if changes&changeMTU != 0 {
		v.mtu = uint16(c.get(vportMTU.At(vportModify)))
	}
	if changes&changeMulticast != 0 {
		v.noLoop[0] = c.flag(vportMulticastOff.At(vportModify))
	}
	if changes&changeUnicast != 0 {
		v.noLoop[1] = c.flag(vportUnicastOff.At(vportModify))
	}
	return nil
}

func (v *vport) setList(c *call) error {
	kind, n := c.get(vportListType.At(vportModify)), int(c.get(vportListSize.At(vportModify)))
	list := c.in[vportModifyList:]
	switch {
	case kind >= uint64(len(v.lists)):
		return badValue("list %d of the vport", kind)
	case n > listSizes[kind]:
		return badValue("%d entries in list %d of the vport, at most %d", n, kind, listSizes[kind])
	case len(list) != 8*n:
		return refuse(BadInputLength, WrongLength, "%d entries in %d bytes", n, len(list))
	}
	v.lists[kind] = append([]byte(nil), list[:8*n]...)
	return nil
}
