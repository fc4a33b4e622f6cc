// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/flexsteer/flexsteer/sim/mlx5"
	"github.com/flexsteer/flexsteer/sim/nv"
	"github.com/flexsteer/flexsteer/sim/pci"
	"github.com/flexsteer/flexsteer/sim/personalities"
	"github.com/flexsteer/flexsteer/sim/queue"
	"github.com/flexsteer/flexsteer/sim/steering"
	"github.com/flexsteer/flexsteer/sim/vfiouser"
	"github.com/flexsteer/flexsteer/sim/wire"
)

// card is a device between the machine that it sits in and the cable that is
// plugged into it:
//
//	QEMU -- server -- function -- device -- port -- frames
//	                     `-- firmware: settings, for tools
type card struct {
	personality personalities.Personality
	server      *vfiouser.Server
	function    *pci.Function
	device      *mlx5.Device
	firmware    *nv.Firmware // nil: tools find no way into the card
	port        *wire.Port
}

func newCard(p personalities.Personality, peer *wire.Peer, log func(format string, args ...any)) (c *card, err error) {
	c = &card{personality: p}
	c.server = vfiouser.New(vfiouser.Layout{BAR0: pci.BAR0, Vectors: pci.Vectors}, log)
	var door []pci.Capability
	if p.Settings != nil {
		if c.firmware, err = nv.New(forTools(p)); err != nil {
			return nil, err
		}
		door = append(door, doorTo(c.firmware))
	}
	if c.function, err = pci.New(c.server, uint16(p.PCIDevice), door...); err != nil {
		return nil, err
	}
	c.port = wire.NewPort(cableEnd{c}, peer)
	c.device = mlx5.New(c.function, p.Personality, c.port.Transmit)
	c.function.Plug(c.device)
	return c, nil
}

func forTools(p personalities.Personality) nv.Card {
	major, minor, sub := p.Firmware.Parts()
	return nv.Card{Personality: *p.Settings, PCIDevice: uint16(p.PCIDevice), Version: [3]uint32{major, minor, sub}, PSID: p.PSID, MAC: p.MAC.HardwareAddr}
}

// doorTo is the capability where a ConnectX has it. Its third byte is its length.
func doorTo(f *nv.Firmware) pci.Capability {
	return pci.Capability{At: 0xc0, Size: nv.CapabilitySize, ID: nv.CapabilityID, Dwords: f,
		Registers: []pci.Register{{At: 2, Size: 1, Value: nv.CapabilitySize}}}
}

// vanish pulls the card out, the device first: what it is at ends with the bus still there.
func (c *card) vanish() {
	c.device.Vanish()
	c.function.Vanish()
}

// restart is what a card does whose firmware starts anew: its PCI configuration,
// which is the machine's, stays. A card that was pulled out comes back as a new one.
func (c *card) restart() {
	if c.function.Vanished() {
		c.powerCycle()
		return
	}
	if c.firmware != nil {
		c.firmware.Restart()
	}
	c.obey()
	c.device.Reset()
}

// powerCycle switches the card off and on.
func (c *card) powerCycle() {
	if c.firmware != nil {
		c.firmware.Restart()
	}
	c.obey()
	c.function.Reset()
}

// obey has the device offer from its next reset on what the settings say.
func (c *card) obey() {
	if c.firmware != nil {
		c.device.SetParser(c.firmware.ParserOn())
	}
}

// slot is the card as the machine sees it: vfiouser.Device.
type slot struct {
	*pci.Function
	card *card
}

// ConfigWrite also restarts the firmware if a tool has asked for that at a reset of
// the PCI link. Such a reset is a matter of the root port, of which QEMU tells
// nothing; but before, tools take the driver away, and then nobody is bus master.
func (s slot) ConfigWrite(off int, b []byte) {
	s.Function.ConfigWrite(off, b)
	if c := s.card; c.firmware != nil && !c.function.Master() && c.firmware.Idle() {
		c.obey()
		c.device.Reset()
	}
}

// Reset is that of the machine.
func (s slot) Reset() {
	if c := s.card; c.firmware != nil && c.firmware.Rebooted() {
		c.obey()
	}
	s.Function.Reset()
}

// cableEnd is the device as the wire sees it.
type cableEnd struct{ *card }

// Receive implements wire.Card.
func (c cableEnd) Receive(frame []byte) (wire.Fate, error) { return fate(c.device.Receive(frame)) }

// ReceiveOrLose implements wire.Card.
func (c cableEnd) ReceiveOrLose(frame []byte) (wire.Fate, error) { return fate(c.device.Lose(frame)) }

func fate(v steering.Verdict, err error) (wire.Fate, error) {
	if errors.Is(err, queue.ErrNoBuffer) {
		err = wire.ErrFull
	}
	return wire.Fate{Queues: v.Queues, Dropped: v.Dropped}, err
}
