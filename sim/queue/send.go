// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"slices"
)

// A request (WQE) is a control segment of 16 bytes, for frames an Ethernet
// segment of 16 bytes and what is inline of the headers, then data segments, in
// basic blocks of 64 bytes.
const (
	logBlock   = 6
	block      = 1 << logBlock
	segment    = 16
	maxRequest = 1024 // its length field counts up to 63 segments

	maxSend  = 16 << 10  // bytes of a frame; the port takes less
	maxLarge = 512 << 10 // bytes of a large send; Linux makes none beyond 8 * 65535
)

// Opcodes of requests.
const (
	opNop       = 0x00
	opSend      = 0x0a
	opLargeSend = 0x0e
	opMultiSend = 0x29 // enhanced multi-packet send, which needs no leave of the queue
)

// failure is why a request is not done, with the syndrome of its completion:
// every error of the functions below that work on one.
type failure struct {
	syndrome byte
	text     string
}

func (f failure) Error() string { return f.text }

// send does what its record says is posted to a send queue, one request at a time:
// the frames leave without a lock held, for who gets them may answer at once. What
// the driver posts meanwhile has a doorbell of its own, so that this has an end.
func (d *Datapath) send(n uint32) error {
	d.sending.Lock()
	defer d.sending.Unlock()
	more, failed := d.look(n)
	for more {
		var err error
		d.out.reset()
		more, err = d.sendNext(n)
		failed = errors.Join(failed, err)
		d.out.each(d.transmit)
	}
	return failed
}

// look reads the record of a send queue, and tells whether there is a request to do.
func (d *Datapath) look(n uint32) (some bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.sqs[n]
	switch {
	case q == nil: // destroyed meanwhile
		return false, nil
	case q.state == RST:
		return false, d.violate("send queue %#x: doorbell in state RST", n)
	}
	if err := d.count(&q.workQueue, "send queue", q.Record+4, q.size()); err != nil {
		return false, err
	}
	return q.waits(), nil
}

// waits tells whether there is a request to do.
func (q *sendQueue) waits() bool {
	return q.posted != q.taken && (q.state == RDY || q.state == ERR && q.FlushInError)
}

// sendNext does one request, and tells whether there is another.
func (d *Datapath) sendNext(n uint32) (more bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.sqs[n]
	if q == nil || !q.waits() { // destroyed or reset meanwhile
		return false, nil
	}
	err = d.request(q)
	return q.waits(), err
}

// request takes the next request, does it and completes it if it asks for that
// or fails.
func (d *Datapath) request(q *sendQueue) error {
	counter := q.taken
	w, err := d.fetch(q)
	q.taken += uint16(max(1, (len(w)+block-1)/block))
	q.counters.Requests++
	var opcode byte
	if len(w) > 0 {
		opcode = w[3]
	}
	word := uint32(opcode)<<24 | q.n
	if q.state == ERR {
		d.newErrorCQE(cqeRequestError, syndromeFlush, word, counter)
		return d.complete(q.cq)
	}
	if err == nil {
		err = d.perform(q, w, counter)
	}
	if err != nil {
		return d.fail(q, err.(failure), word, counter)
	}
	q.counters.Frames += uint64(len(d.out.ends))
	q.counters.Bytes += uint64(len(d.out.bytes))
	if w[11]&0x0c != 0x08 { // no completion asked for
		return nil
	}
	d.newCQE(cqeRequest, word, counter)
	if err = d.complete(q.cq); err != nil {
		q.state = ERR
	}
	return err
}

// fail completes a request with an error; nothing of it leaves, and those behind
// it are flushed.
func (d *Datapath) fail(q *sendQueue, f failure, word uint32, counter uint16) error {
	d.out.reset()
	q.counters.Errors++
	q.state = ERR
	d.newErrorCQE(cqeRequestError, f.syndrome, word, counter)
	return errors.Join(d.violate("send queue %#x: %s", q.n, f.text), d.complete(q.cq))
}

// fetch reads the request at our counter. What it returns is as long as the
// request says, or, with an error, empty if nobody can say.
func (d *Datapath) fetch(q *sendQueue) ([]byte, error) {
	at := uint32(q.taken)
	if err := d.bus.Read(q.at(at), d.wqe[:block]); err != nil {
		return nil, failure{syndromeAccess, "request: " + err.Error()}
	}
	n := int(d.wqe[7]&0x3f) * segment
	blocks := uint32(n+block-1) / block
	if n == 0 || blocks > uint32(q.posted-q.taken) {
		return nil, failure{syndromeQueue, "request of no length, or longer than what is posted"}
	}
	for i := uint32(1); i < blocks; i++ {
		if err := d.bus.Read(q.at(at+i), d.wqe[i*block:][:block]); err != nil {
			return d.wqe[:n], failure{syndromeAccess, "request: " + err.Error()}
		}
	}
	return d.wqe[:n], nil
}

// perform checks the control segment (counter in bytes 1..2, opcode in 3, queue
// in 4..6, segments in 7, completion in bits 3:2 of 11) and does what it says.
func (d *Datapath) perform(q *sendQueue, w []byte, counter uint16) error {
	switch {
	case w[0] != 0:
		return failure{syndromeQueue, "request with an opcode modifier"}
	case be.Uint16(w[1:]) != counter:
		return failure{syndromeQueue, "request whose index is not its place in the ring"}
	case be.Uint32(w[4:])>>8 != q.n:
		return failure{syndromeQueue, "request with the number of another queue"}
	case w[11]&0x0c == 0x0c:
		return failure{syndromeQueue, "request for a completion with an event of its own, which is not modelled"}
	case w[3] == opNop:
		return nil
	case len(w) < 2*segment:
		return failure{syndromeQueue, "request without an Ethernet segment"}
	}
	switch w[3] {
	case opSend:
		return d.sendOne(w)
	case opLargeSend:
		return d.sendLarge(w)
	case opMultiSend:
		return d.sendMany(w)
	}
	return failure{syndromeQueue, "request with an opcode that is not modelled"}
}

// ethernet is an Ethernet segment.
type ethernet struct {
	flags     byte // checksums to fill in
	mss       int  // bytes of payload in each segment of a large send
	insert    bool // a VLAN tag
	tpid, tci uint16
	inline    []byte // the first bytes of the frame, instead
	data      []byte // data segments
}

const (
	fillL3     = 1 << 6
	fillL4     = 1 << 7
	insertVLAN = 1 << 15
	insertQinQ = 1 << 0
	inlineMask = 1<<10 - 1
)

// parseEthernet reads bytes 16..: offsets of a software parser (16..19, 21),
// flags (20), MSS (22..23), metadata for transmit steering, of which there is none
// (24..27), and from 28 either what VLAN tag to insert or how much is inline.
func parseEthernet(w []byte) (e ethernet, err error) {
	e.flags, e.mss = w[20], int(be.Uint16(w[22:]))
	if be.Uint32(w[16:]) != 0 || w[21] != 0 || e.flags&^(fillL3|fillL4) != 0 {
		return e, failure{syndromeQueue, "request with a software parser or inner checksums, which are not modelled"}
	}
	kind := be.Uint16(w[28:])
	switch {
	case kind&^insertQinQ == insertVLAN:
		e.insert, e.tpid, e.tci = true, etherVLAN, be.Uint16(w[30:])
		if kind&insertQinQ != 0 {
			e.tpid = etherQinQ
		}
		e.data = w[32:]
		return e, nil
	case kind&^inlineMask != 0:
		return e, failure{syndromeQueue, "request with a kind of insertion that is not modelled"}
	}
	n := int(kind)
	end := max(32, roundUp(30+n)) // the first two bytes are in the Ethernet segment itself
	if 30+n > len(w) || end > len(w) {
		return e, failure{syndromeQueue, "request whose inline header is longer than itself"}
	}
	e.inline, e.data = w[30:30+n], w[end:]
	return e, nil
}

func roundUp(n int) int { return (n + segment - 1) &^ (segment - 1) }

// sendOne sends the inline header and all data segments as a frame.
func (d *Datapath) sendOne(w []byte) error {
	e, err := d.gatherAll(w, maxSend)
	if err != nil {
		return err
	}
	return d.out.finish(&e)
}

// sendLarge cuts them into frames, each with the inline header.
func (d *Datapath) sendLarge(w []byte) error {
	e, err := d.gatherAll(w, maxLarge)
	if err != nil {
		return err
	}
	return d.out.cut(&e)
}

func (d *Datapath) gatherAll(w []byte, most int) (ethernet, error) {
	e, err := parseEthernet(w)
	d.out.begin()
	d.out.bytes = append(d.out.bytes, e.inline...)
	for data := e.data; len(data) > 0 && err == nil; {
		data, err = d.gather(data, most)
	}
	return e, err
}

// sendMany sends each data segment as a frame.
func (d *Datapath) sendMany(w []byte) error {
	e, err := parseEthernet(w)
	if err == nil && len(e.inline) > 0 {
		err = failure{syndromeQueue, "multi-packet request with an inline header"}
	}
	for data := e.data; len(data) > 0 && err == nil; {
		d.out.begin()
		if data, err = d.gather(data, maxSend); err == nil {
			err = d.out.finish(&e)
		}
	}
	return err
}

// gather appends what the first data segment names to the frame in the making
// and returns the segments behind it. A segment is a byte count, a key and an
// address, or, with bit 31 of the count, that many bytes behind the count.
func (d *Datapath) gather(data []byte, most int) ([]byte, error) {
	if len(data) < segment {
		return nil, failure{syndromeQueue, "request that ends within a segment"}
	}
	count := be.Uint32(data)
	n := int(count & inlineMask)
	if count>>31 == 0 {
		n = int(count)
	}
	switch {
	case n == 0 || d.out.length()+n > most: // a count of 0 means 2^31
		return nil, failure{syndromeLength, "frame longer than the card takes"}
	case count>>31 != 0:
		if 4+n > len(data) {
			return nil, failure{syndromeQueue, "request whose inline data is longer than itself"}
		}
		d.out.bytes = append(d.out.bytes, data[4:4+n]...)
		return data[min(roundUp(4+n), len(data)):], nil
	}
	if _, ok := d.keys[be.Uint32(data[4:])]; !ok {
		return nil, failure{syndromeAccess, "data segment with a memory key that there is not"}
	}
	return data[segment:], d.gatherFrom(be.Uint64(data[8:]), n)
}

func (d *Datapath) gatherFrom(addr uint64, n int) error {
	at := len(d.out.bytes)
	d.out.bytes = slices.Grow(d.out.bytes, n)[:at+n]
	if err := d.bus.Read(addr, d.out.bytes[at:]); err != nil {
		return failure{syndromeAccess, "data segment: " + err.Error()}
	}
	return nil
}
