// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/flexsteer/flexsteer/sim/mlx5"
	"github.com/flexsteer/flexsteer/sim/pci"
	"github.com/flexsteer/flexsteer/sim/queue"
	"github.com/flexsteer/flexsteer/sim/steering"
	"github.com/flexsteer/flexsteer/sim/vfiouser"
	"github.com/flexsteer/flexsteer/sim/wire"
)

// card is a device between the machine that it sits in and the cable that is
// plugged into it:
//
//	QEMU -- server -- function -- device -- port -- frames
type card struct {
	personality mlx5.Personality
	server      *vfiouser.Server
	function    *pci.Function
	device      *mlx5.Device
	port        *wire.Port
}

func newCard(p mlx5.Personality, peer *wire.Peer, log func(format string, args ...any)) (*card, error) {
	c := &card{personality: p}
	c.server = vfiouser.New(vfiouser.Layout{BAR0: pci.BAR0, Vectors: pci.Vectors}, log)
	var err error
	if c.function, err = pci.New(c.server, uint16(p.PCIDevice)); err != nil {
		return nil, err
	}
	c.port = wire.NewPort(cableEnd{c}, peer)
	c.device = mlx5.New(c.function, p, c.port.Transmit)
	c.function.Plug(c.device)
	return c, nil
}

// vanish pulls the card out.
func (c *card) vanish() {
	c.function.Vanish()
	c.device.Vanish()
}

// restart is what a card does whose firmware starts anew: its PCI configuration,
// which is the machine's, stays. A card that was pulled out comes back as a new one.
func (c *card) restart() {
	if c.function.Vanished() {
		c.function.Reset()
		return
	}
	c.device.Reset()
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
