// SPDX-License-Identifier: Apache-2.0

package queue

// The largest entry of a receive queue: 32 scatter entries.
const maxLogStride = 9

type receiveQueue struct {
	RQ
	ring
	workQueue
	counters RQCounters
}

type sendQueue struct {
	SQ
	ring
	workQueue
	counters SQCounters
}

// workQueue is what receive and send queues share. Their counters have 16 bits.
type workQueue struct {
	n      uint32
	state  State
	cq     *completionQueue
	posted uint16 // the driver's counter, as last read from the record
	taken  uint16 // ours
}

// move changes the state if the driver knows the present one and the change is
// one that the card makes.
func (w *workQueue) move(kind string, from, to State) error {
	if from != w.state {
		return refuse(BadState, "%s %#x: in state %v, not in %v", kind, w.n, w.state, from)
	}
	switch {
	case to == RST || to == ERR || to == RDY && from != ERR:
	default:
		return refuse(BadState, "%s %#x: no way from state %v to %v", kind, w.n, from, to)
	}
	if w.state = to; to == RST {
		w.posted, w.taken = 0, 0
	}
	return nil
}

// count takes the driver's counter over from its record. It may not be further
// ahead of ours than the ring is long.
func (d *Datapath) count(w *workQueue, kind string, record uint64, size uint32) error {
	v, err := d.word(record)
	if err != nil {
		return d.violate("%s %#x: doorbell record: %v", kind, w.n, err)
	}
	if uint32(uint16(v)-w.taken) > size {
		return d.violate("%s %#x: more entries posted than the ring has", kind, w.n)
	}
	w.posted = uint16(v)
	return nil
}

func (s State) String() string {
	switch s {
	case RST:
		return "RST"
	case RDY:
		return "RDY"
	case ERR:
		return "ERR"
	}
	return "unknown"
}

// CreateRQ makes a receive queue in state RST.
func (d *Datapath) CreateRQ(n uint32, q RQ) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if q.LogStride < 4 || q.LogStride > maxLogStride {
		return refuse(BadParam, "receive queue with entries of 2^%d bytes: 2^4 to 2^%d are possible", q.LogStride, maxLogStride)
	}
	if err := unused(d.rqs, "receive queue", n); err != nil {
		return err
	}
	r, cq, err := d.newWork(q.Pages, q.LogSize, q.LogStride, q.Record, n, q.CQ)
	if err == nil {
		d.rqs[n] = &receiveQueue{RQ: q, ring: r, workQueue: workQueue{n: n, cq: cq}}
	}
	return err
}

// CreateSQ makes a send queue in state RST.
func (d *Datapath) CreateSQ(n uint32, q SQ) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := unused(d.sqs, "send queue", n); err != nil {
		return err
	}
	r, cq, err := d.newWork(q.Pages, q.LogSize, logBlock, q.Record, n, q.CQ)
	if err == nil {
		d.sqs[n] = &sendQueue{SQ: q, ring: r, workQueue: workQueue{n: n, cq: cq}}
	}
	return err
}

// newWork checks what receive and send queues have in common and enters the
// queue as a user of its completion queue.
func (d *Datapath) newWork(p Pages, logSize, logStride int, record uint64, n, cqn uint32) (r ring, cq *completionQueue, err error) {
	if n > counterMask {
		return r, nil, refuse(BadParam, "queue %#x: numbers have 24 bits", n)
	}
	// With 16 bits of counter, full and empty can be told apart up to half of them.
	if r, err = d.newRing(p, logSize, 15, logStride); err != nil {
		return r, nil, err
	}
	if err = checkRecord(record); err != nil {
		return r, nil, err
	}
	if cq, err = find(d.cqs, "completion queue", cqn); err == nil {
		cq.users++
	}
	return r, cq, err
}

// ModifyRQ changes the state of a receive queue, and what else is named.
func (d *Datapath) ModifyRQ(n uint32, c RQChange) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	q, err := find(d.rqs, "receive queue", n)
	if err == nil {
		err = q.move("receive queue", c.From, c.To)
	}
	if err != nil {
		return err
	}
	if c.KeepVLAN != nil {
		q.KeepVLAN = *c.KeepVLAN
	}
	if c.CounterSet != nil {
		q.CounterSet = *c.CounterSet
	}
	return nil
}

// ModifySQ changes the state of a send queue. Going to ERR completes what is
// posted with errors if the queue was made so.
func (d *Datapath) ModifySQ(n uint32, c SQChange) error {
	if err := d.moveSQ(n, c); err != nil || c.To != ERR {
		return err
	}
	d.send(n) // what goes wrong here is a violation, not the command's fault
	return nil
}

func (d *Datapath) moveSQ(n uint32, c SQChange) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	q, err := find(d.sqs, "send queue", n)
	if err != nil {
		return err
	}
	return q.move("send queue", c.From, c.To)
}

// RQState is the state of a receive queue.
func (d *Datapath) RQState(n uint32) (State, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q, err := find(d.rqs, "receive queue", n)
	if err != nil {
		return RST, err
	}
	return q.state, nil
}

// SQState is the state of a send queue.
func (d *Datapath) SQState(n uint32) (State, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q, err := find(d.sqs, "send queue", n)
	if err != nil {
		return RST, err
	}
	return q.state, nil
}

// DestroyRQ takes a receive queue away in whatever state it is.
func (d *Datapath) DestroyRQ(n uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	q, err := find(d.rqs, "receive queue", n)
	if err == nil {
		q.cq.users--
		delete(d.rqs, n)
	}
	return err
}

// DestroySQ takes a send queue away in whatever state it is.
func (d *Datapath) DestroySQ(n uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	q, err := find(d.sqs, "send queue", n)
	if err == nil {
		q.cq.users--
		delete(d.sqs, n)
	}
	return err
}
