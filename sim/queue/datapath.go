// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"encoding/binary"
	"sync"

	"github.com/flexsteer/flexsteer/sim/bus"
)

var be = binary.BigEndian

// Datapath holds the rings of one function and moves frames. Methods may be
// called by several goroutines and never panic on what guest memory holds.
type Datapath struct {
	bus      bus.Bus
	now      func() uint64
	transmit func(frame []byte)

	sending sync.Mutex // taken before mu, for a whole doorbell: frames of a queue stay in order
	out     outgoing   // under sending

	mu          sync.Mutex // of all below
	eqs         map[uint32]*eventQueue
	cqs         map[uint32]*completionQueue
	rqs         map[uint32]*receiveQueue
	sqs         map[uint32]*sendQueue
	keys        map[uint32]struct{}
	outOfBuffer [256]uint64 // by Q counter
	violations  []Violation
	violationAt map[string]int

	// Room for one entry each, so that a frame costs no allocation.
	eqe, cqe [64]byte
	rqe      [1 << maxLogStride]byte
	wqe      [maxRequest]byte
	record   [4]byte
	stripped []byte
}

// New is a datapath without rings. now is the internal timer that completions
// are stamped with, nil for a clock that stands still. transmit, nil for nobody,
// gets each frame that the guest sends, in the order of its queue, without FCS and
// at least 60 bytes long, on the goroutine that called Doorbell. It may call every
// method but Doorbell and ModifySQ, and must copy what it wants to keep.
func New(b bus.Bus, now func() uint64, transmit func(frame []byte)) *Datapath {
	if now == nil {
		now = func() uint64 { return 0 }
	}
	if transmit == nil {
		transmit = func([]byte) {}
	}
	d := &Datapath{bus: b, now: now, transmit: transmit, violationAt: map[string]int{}}
	d.clear()
	return d
}

// Clear destroys all rings and keys, as a function reset does. The counts of Q
// counters and violations stay.
func (d *Datapath) Clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clear()
}

func (d *Datapath) clear() {
	d.eqs = map[uint32]*eventQueue{}
	d.cqs = map[uint32]*completionQueue{}
	d.rqs = map[uint32]*receiveQueue{}
	d.sqs = map[uint32]*sendQueue{}
	d.keys = map[uint32]struct{}{}
}

// AllowKey makes a memory key (index in bits 31:8, variant in 7:0) good for
// scatter entries and data segments. Keys cover all of guest memory: the driver
// makes one with physical addresses.
func (d *Datapath) AllowKey(key uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys[key] = struct{}{}
}

// RevokeKey ends what AllowKey began.
func (d *Datapath) RevokeKey(key uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.keys, key)
}

// Counters is a copy of the counts of all queues.
func (d *Datapath) Counters() Counters {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := Counters{RQ: map[uint32]RQCounters{}, SQ: map[uint32]SQCounters{}}
	for n, q := range d.rqs {
		c.RQ[n] = q.counters
	}
	for n, q := range d.sqs {
		c.SQ[n] = q.counters
	}
	return c
}

// OutOfBuffer is the count of a Q counter, of all receive queues that name it or
// did; reset sets it to 0 after reading.
func (d *Datapath) OutOfBuffer(counterSet uint8, reset bool) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.outOfBuffer[counterSet]
	if reset {
		d.outOfBuffer[counterSet] = 0
	}
	return n
}

// word reads a word of a doorbell record.
func (d *Datapath) word(addr uint64) (uint32, error) {
	if err := d.bus.Read(addr, d.record[:]); err != nil {
		return 0, err
	}
	return be.Uint32(d.record[:]), nil
}

// publish hands a 64-byte entry to the driver: the word with the owner bit last.
func (d *Datapath) publish(addr uint64, entry *[64]byte) error {
	if err := d.bus.Write(addr, entry[:60]); err != nil {
		return err
	}
	return d.bus.Publish(addr+60, [4]byte(entry[60:]))
}

// find looks a queue up for a command.
func find[Q any](all map[uint32]*Q, kind string, n uint32) (*Q, error) {
	q := all[n]
	if q == nil {
		return nil, refuse(NotFound, "there is no %s %#x", kind, n)
	}
	return q, nil
}

// unused refuses a number that is taken.
func unused[Q any](all map[uint32]*Q, kind string, n uint32) error {
	if all[n] != nil {
		return refuse(BadState, "%s %#x exists already", kind, n)
	}
	return nil
}
