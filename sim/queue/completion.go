// SPDX-License-Identifier: Apache-2.0

package queue

// Opcodes of completions.
const (
	cqeRequest      = 0
	cqeResponseSend = 2
	cqeRequestError = 13
	cqeReceiveError = 14
)

// Syndromes of error completions.
const (
	syndromeLength = 0x01 // local length error
	syndromeQueue  = 0x02 // local queue operation error: the request is malformed
	syndromeAccess = 0x04 // local protection error: memory or key
	syndromeFlush  = 0x05 // flushed because the queue is in ERR
)

// Syndromes of the completion queue error event.
const (
	cqOverrun = 1
	cqAccess  = 2
)

type completionQueue struct {
	CQ
	ring
	n        uint32
	produced uint32
	consumed uint32 // as last read from the record
	armed    bool
	broken   bool // overrun or bad memory; nothing is written any more
	users    int  // receive and send queues
}

// CreateCQ makes a completion queue, not armed.
func (d *Datapath) CreateCQ(n uint32, q CQ) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n > counterMask {
		return refuse(BadParam, "completion queue %#x: numbers have 24 bits", n)
	}
	r, err := d.newRing(q.Pages, q.LogSize, 22, 6)
	if err == nil {
		err = checkRecord(q.Record)
	}
	if err == nil {
		err = unused(d.cqs, "completion queue", n)
	}
	if err == nil {
		_, err = find(d.eqs, "event queue", q.EQ)
	}
	if err == nil {
		d.cqs[n] = &completionQueue{CQ: q, ring: r, n: n}
	}
	return err
}

// DestroyCQ is refused while a receive or send queue completes into it.
func (d *Datapath) DestroyCQ(n uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	q, err := find(d.cqs, "completion queue", n)
	if err != nil {
		return err
	}
	if q.users > 0 {
		return refuse(InUse, "completion queue %#x: %d receive and send queues complete into it", n, q.users)
	}
	delete(d.cqs, n)
	return nil
}

// newCQE clears d.cqe and stamps it with the time, the number of the work queue
// (or flow tag) with the opcode in bits 31:24, and the counter of the request.
func (d *Datapath) newCQE(opcode byte, word uint32, counter uint16) {
	clear(d.cqe[:])
	be.PutUint64(d.cqe[48:], d.now())
	be.PutUint32(d.cqe[56:], word)
	be.PutUint16(d.cqe[60:], counter)
	d.cqe[63] = opcode << 4
}

// newErrorCQE has the syndrome where others have the end of the time.
func (d *Datapath) newErrorCQE(opcode, syndrome byte, word uint32, counter uint16) {
	d.newCQE(opcode, word, counter)
	clear(d.cqe[48:56])
	d.cqe[55] = syndrome
}

// complete writes d.cqe and reports it if the queue is armed.
func (d *Datapath) complete(q *completionQueue) error {
	if err := d.room(q); err != nil {
		return err
	}
	d.cqe[63] |= q.owner(q.produced)
	if err := d.publish(q.at(q.produced), &d.cqe); err != nil {
		return d.breakCQ(q, cqAccess, err.Error())
	}
	q.produced++
	if q.armed {
		d.reportCompletion(q) // a failure is a violation of the event queue; the completion is there
	}
	return nil
}

// room reads the driver's consumer index only when the ring looks full.
func (d *Datapath) room(q *completionQueue) error {
	switch {
	case q.broken:
		return d.violate("completion queue %#x: used after an error", q.n)
	case q.IgnoreOverrun || ahead(q.produced, q.consumed) < q.size():
		return nil
	}
	index, err := d.word(q.Record)
	if err != nil {
		return d.breakCQ(q, cqAccess, err.Error())
	}
	q.consumed = index & counterMask
	if ahead(q.produced, q.consumed) >= q.size() {
		return d.breakCQ(q, cqOverrun, "overrun, the driver left all completions unread")
	}
	return nil
}

func (d *Datapath) breakCQ(q *completionQueue, syndrome byte, why string) error {
	q.broken = true
	e := Event{Type: EventCQError}
	be.PutUint32(e.Data[0:], q.n)
	e.Data[11] = syndrome
	d.announce(e) // a failure of the event queue is a violation of its own
	return d.violate("completion queue %#x: %s", q.n, why)
}

func (d *Datapath) reportCompletion(q *completionQueue) error {
	q.armed = false
	e := Event{Type: EventCompletion}
	be.PutUint32(e.Data[24:], q.n)
	return d.post(d.eqs[q.EQ], e)
}

// armCQ is the doorbell that asks for an event: a sequence number in bits 29:28,
// the command in 27:24, the consumer index below. The sequence number lets the card
// ignore a request that crossed an event; we serve it, which costs the driver at most
// an event for nothing and can lose none.
func (d *Datapath) armCQ(uar, request, n uint32) error {
	q := d.cqs[n]
	if q == nil || q.UAR != uar {
		return d.violate("arming of completion queue %#x through UAR page %#x: no such queue there", n, uar)
	}
	if request>>24&0xf != 0 {
		return d.violate("arming of completion queue %#x: command %#x is not modelled (mlx5_core asks for every completion, 0)", n, request>>24&0xf)
	}
	unread := ahead(q.produced, request&counterMask)
	if unread > q.size() && !q.IgnoreOverrun {
		return d.violate("arming of completion queue %#x: consumer index is beyond the completions written", n)
	}
	if q.armed = true; unread != 0 {
		return d.reportCompletion(q)
	}
	return nil
}
