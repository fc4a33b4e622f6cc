// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"maps"
	"slices"
)

type eventQueue struct {
	EQ
	ring
	n        uint32
	produced uint32
	consumed uint32 // as last told by the driver
	armed    bool   // an interrupt is due at the next event
}

// CreateEQ makes an event queue, not armed.
func (d *Datapath) CreateEQ(n uint32, q EQ) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.newRing(q.Pages, q.LogSize, 22, 6)
	if err == nil {
		err = unused(d.eqs, "event queue", n)
	}
	if err != nil {
		return err
	}
	if n > 0xff { // the doorbell has eight bits for it
		return refuse(BadParam, "event queue %#x: numbers end at 0xff", n)
	}
	d.eqs[n] = &eventQueue{EQ: q, ring: r, n: n}
	return nil
}

// DestroyEQ is refused while a completion queue reports to it.
func (d *Datapath) DestroyEQ(n uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := find(d.eqs, "event queue", n); err != nil {
		return err
	}
	for cqn, cq := range d.cqs {
		if cq.EQ == n {
			return refuse(InUse, "event queue %#x: completion queue %#x reports to it", n, cqn)
		}
	}
	delete(d.eqs, n)
	return nil
}

// Announce posts an event to every event queue that wants its type.
func (d *Datapath) Announce(e Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.announce(e)
}

func (d *Datapath) announce(e Event) (err error) {
	for _, n := range slices.Sorted(maps.Keys(d.eqs)) {
		if q := d.eqs[n]; q.Events[e.Type/64]>>(e.Type%64)&1 != 0 {
			err = errors.Join(err, d.post(q, e))
		}
	}
	return err
}

// Entry: type in byte 1, subtype in 3, data in 32..59, owner bit in 63.
func (d *Datapath) post(q *eventQueue, e Event) error {
	if ahead(q.produced, q.consumed) >= q.size() {
		return d.violate("event queue %#x: overrun, the driver left %d events unread; event type %#x is lost", q.n, q.size(), e.Type)
	}
	clear(d.eqe[:])
	d.eqe[1], d.eqe[3] = e.Type, e.Subtype
	copy(d.eqe[32:], e.Data[:])
	d.eqe[63] = q.owner(q.produced)
	if err := d.publish(q.at(q.produced), &d.eqe); err != nil {
		return d.violate("event queue %#x: %v", q.n, err)
	}
	q.produced++
	return d.fire(q)
}

// fire interrupts once for each arming.
func (d *Datapath) fire(q *eventQueue) error {
	if !q.armed {
		return nil
	}
	q.armed = false
	if !d.bus.Interrupt(q.Vector) {
		return d.violate("event queue %#x: the machine has no vector %d", q.n, q.Vector)
	}
	return nil
}

// consumeEvents is the doorbell of an event queue: its number in bits 31:24, the
// consumer index below. Arming with events unread fires at once, so none that came
// between the driver's last look and its write can be missed.
func (d *Datapath) consumeEvents(uar, v uint32, arm bool) error {
	q := d.eqs[v>>24]
	if q == nil || q.UAR != uar {
		return d.violate("doorbell of event queue %#x through UAR page %#x: no such queue there", v>>24, uar)
	}
	index := v & counterMask
	if ahead(index, q.consumed) > ahead(q.produced, q.consumed) {
		return d.violate("event queue %#x: consumer index is not between the last one and the number of events", q.n)
	}
	q.consumed = index
	q.armed = arm
	if arm && index != q.produced&counterMask {
		return d.fire(q)
	}
	return nil
}
