// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"github.com/flexsteer/flexsteer/sim/queue"
)

// speed is a port speed as the PTYS register has it: a bit of the extended and
// of the older list of Ethernet protocols, and the number of lanes.
type speed struct {
	extended, older uint32
	lanes           uint64
}

// speeds are those that a port can have, by Gb/s. The older list ends at 100.
var speeds = map[int]speed{
	10:  {1 << 4, 1 << 12, 1},  // 10GBASE-CR
	25:  {1 << 6, 1 << 27, 1},  // 25GBASE-CR
	100: {1 << 10, 1 << 20, 4}, // 100GBASE-CR2; in the older list CR4
	200: {1 << 12, 0, 4},       // 200GBASE-CR4
	400: {1 << 16, 0, 4},       // 400GBASE-CR4
}

// PAOS's words for up and down, which QUERY_VPORT_STATE shares.
const (
	adminUp   = 1
	adminDown = 2
)

// The port's frame sizes are with the checksum of 4 bytes.
const (
	maxMTU        = 9978
	defaultMTU    = 1522
	checksumBytes = 4
)

// port is the Ethernet port behind the function.
type port struct {
	speed speed
	cable bool // there is light
	admin uint8
	mtu   uint16
	pause [2]bool // receive, transmit: as the driver set them; nobody ever pauses
	falls uint64  // how often the link went down
}

func newPort(p Personality) port { return port{speed: speeds[p.Speed], cable: true} }

// reset is what a reset of the function does to its port.
func (p *port) reset() { p.admin, p.mtu, p.pause = adminUp, defaultMTU, [2]bool{true, true} }

func (p *port) up() bool { return p.cable && p.admin == adminUp }

// SetLink plugs the cable in or out. The driver is told by an event.
func (d *Device) SetLink(up bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changePort(func(p *port) { p.cable = up })
}

// Sub-types of a port change event.
const (
	portDown   uint8 = 1
	portActive uint8 = 4
)

func (d *Device) changePort(change func(*port)) {
	before := d.port.up()
	change(&d.port)
	after := d.port.up()
	if before == after {
		return
	}
	e := queue.Event{Type: eventPortChange, Subtype: portActive}
	e.Data[8] = 1 << 4 // port 1
	if !after {
		e.Subtype = portDown
		d.port.falls++
	}
	if !d.segment.vanished {
		d.rings.Announce(e)
	}
}
