// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"github.com/flexsteer/flexsteer/sim/prm"
	"github.com/flexsteer/flexsteer/sim/queue"
)

// Receive and send queues have a context, and in it a work queue (wq) with the
// ring. In bits, from the start of the command.
const (
	workContext = 0x100
	workQueue   = workContext + 0x180
)

// The fields of a work queue.
var (
	wqType      = at(0x000, 4)
	wqOffset    = at(0x02b, 5) // in units of 64 bytes
	wqPD        = at(0x048, 24)
	wqUAR       = at(0x068, 24)
	wqRecord    = at(0x080, 64)
	wqLogStride = at(0x10c, 4)
	wqLogPage   = at(0x113, 5)
	wqLogSize   = at(0x11b, 5)
	wqPadding   = at(0x005, 2) // end_padding_mode
)

// The only type of ring: entries in a row, around and around.
const cyclic = 1

var wqFields = []prm.Field{wqType, wqOffset, wqPD, wqRecord, wqLogStride, wqLogPage, wqLogSize}

// In both contexts.
var (
	workState   = at(0x008, 4).At(workContext)
	workCQ      = at(0x048, 24).At(workContext)
	workChanges = at(0x80, 64)
	workFrom    = at(0x40, 4)
)

func wqPages(c *call) queue.Pages {
	return queue.Pages{
		Addr:        addresses(c.in[ringPages:]),
		LogPageSize: int(c.get(wqLogPage.At(workQueue))),
		Offset:      int(c.get(wqOffset.At(workQueue))) * 64,
	}
}

// newWorkQueue checks what CREATE_RQ and CREATE_SQ have in common.
func newWorkQueue(c *call) error {
	if t := c.get(wqType.At(workQueue)); t != cyclic {
		return badValue("work queue of type %d, the model has 1 (cyclic) only", t)
	}
	if s := queue.State(c.get(workState)); s != queue.RST {
		return badValue("a queue is made in state 0 (reset), not %d", s)
	}
	return nil
}
