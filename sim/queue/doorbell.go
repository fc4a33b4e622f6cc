// SPDX-License-Identifier: Apache-2.0

package queue

// Registers of a UAR page.
const (
	uarArmCQ   = 0x20
	uarArmEQ   = 0x40 // consumer index of an event queue, with arming
	uarEQ      = 0x48 // without
	uarSend    = 0x800
	uarEnd     = 0x1000
	bfRegister = 0x100 // the least distance of send doorbells: two halves of a BlueFlame register
)

// Doorbell is a write of b at byte off of a UAR page: arms a completion queue
// (8 bytes at 0x20), moves the consumer index of an event queue (4 bytes at 0x40
// with arming, at 0x48 without), or starts a send queue (8 bytes at 0x800, 0x900
// ... 0xf00, the start of a request: its counter and queue). A failure is a
// violation; the error says which.
func (d *Datapath) Doorbell(uar uint32, off int, b []byte) error {
	if off >= uarSend && off < uarEnd && off%bfRegister == 0 && len(b) == 8 {
		n := be.Uint32(b[4:]) >> 8
		if err := d.ringsHere(uar, n); err != nil {
			return err
		}
		return d.send(n)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case off == uarArmCQ && len(b) == 8:
		return d.armCQ(uar, be.Uint32(b), be.Uint32(b[4:]))
	case (off == uarArmEQ || off == uarEQ) && len(b) == 4:
		return d.consumeEvents(uar, be.Uint32(b), off == uarArmEQ)
	}
	// BlueFlame writes of more than the first 8 bytes are not modelled: mlx5_core sends none.
	return d.violate("UAR page %#x: write of %d bytes at %#x: no such doorbell", uar, len(b), off)
}

func (d *Datapath) ringsHere(uar, sqn uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if q := d.sqs[sqn]; q == nil || q.UAR != uar {
		return d.violate("doorbell of send queue %#x through UAR page %#x: no such queue there", sqn, uar)
	}
	return nil
}
