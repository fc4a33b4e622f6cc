// SPDX-License-Identifier: Apache-2.0

package queue

import "errors"

// Posted tells whether Receive would find a buffer: nil, ErrNoBuffer,
// ErrNotReady, an Error of kind NotFound, or ErrViolation for a bad record.
func (d *Datapath) Posted(rq uint32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := d.receiver(rq)
	return err
}

// receiver is a queue in which an entry waits.
func (d *Datapath) receiver(n uint32) (*receiveQueue, error) {
	q := d.rqs[n]
	if q == nil {
		return nil, refuse(NotFound, "there is no receive queue %#x", n)
	}
	if q.state != RDY {
		return nil, ErrNotReady
	}
	if q.posted == q.taken {
		if err := d.count(&q.workQueue, "receive queue", q.Record, q.size()); err != nil {
			return nil, err
		}
	}
	if q.posted == q.taken {
		return nil, ErrNoBuffer
	}
	return q, nil
}

// Lose counts a frame that its sender gave up because nothing was posted.
func (d *Datapath) Lose(rq uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if q := d.rqs[rq]; q != nil {
		q.counters.NoBuffer++
		d.outOfBuffer[q.CounterSet]++
	}
}

// Receive delivers a frame: the bytes, the completion, its last word, then the
// event if one was asked for. With ErrNoBuffer and ErrNotReady nothing was done
// or counted: the caller waits and tries again, or gives the frame up with Lose.
// ErrTooLong costs the buffer (the driver sees a length error and goes on).
// ErrViolation, for memory that is not there or may not be used, leaves the queue
// in state ERR.
func (d *Datapath) Receive(rq uint32, f Frame) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	q, err := d.receiver(rq)
	if err != nil {
		return err
	}
	counter := q.taken
	q.taken++
	frame, tci, tagged := f.Bytes, uint16(0), false
	if !q.KeepVLAN {
		frame, tci, tagged = d.strip(frame)
	}
	switch err = d.scatter(q, counter, frame); {
	case err == nil:
		d.receiveCQE(&f, q.n, counter, frame, tci, tagged)
		q.counters.Frames++
		q.counters.Bytes += uint64(len(f.Bytes))
	case errors.Is(err, ErrTooLong):
		// The driver starts a recovery for other syndromes only: this one leaves the queue as it is.
		d.newErrorCQE(cqeReceiveError, syndromeLength, q.n, counter)
		q.counters.TooLong++
	default:
		d.newErrorCQE(cqeReceiveError, syndromeAccess, q.n, counter)
		q.counters.Errors++
		q.state = ERR
	}
	if broken := d.complete(q.cq); broken != nil {
		q.state = ERR
		return broken
	}
	return err
}

// strip takes an outer C-VLAN tag out of a frame, as a copy.
func (d *Datapath) strip(f []byte) (frame []byte, tci uint16, tagged bool) {
	if len(f) < macs+4 || wordAt(f, macs) != etherVLAN {
		return f, 0, false
	}
	d.stripped = append(append(d.stripped[:0], f[:macs]...), f[macs+4:]...)
	return d.stripped, be.Uint16(f[macs+2:]), true
}

// scatter writes a frame to the buffers of an entry: a byte count (bit 31 asks
// for padding at the start, which means nothing here), a key, an address. A count
// of 0 ends the list.
func (d *Datapath) scatter(q *receiveQueue, counter uint16, frame []byte) error {
	entry := d.rqe[:1<<q.LogStride]
	if err := d.bus.Read(q.at(uint32(counter)), entry); err != nil {
		return d.violate("receive queue %#x: entry: %v", q.n, err)
	}
	if room(entry) < uint64(len(frame)) {
		return ErrTooLong
	}
	for ; len(frame) > 0; entry = entry[16:] {
		n := min(int(scatterBytes(entry)), len(frame))
		if _, ok := d.keys[be.Uint32(entry[4:])]; !ok {
			return d.violate("receive queue %#x: scatter entry with a memory key that there is not", q.n)
		}
		if err := d.bus.Write(be.Uint64(entry[8:]), frame[:n]); err != nil {
			return d.violate("receive queue %#x: buffer: %v", q.n, err)
		}
		frame = frame[n:]
	}
	return nil
}

func scatterBytes(entry []byte) uint32 { return be.Uint32(entry) &^ (1 << 31) }

// room is how many bytes the buffers of an entry take.
func room(entry []byte) (n uint64) {
	for ; len(entry) >= 16 && scatterBytes(entry) != 0; entry = entry[16:] {
		n += uint64(scatterBytes(entry))
	}
	return n
}

// Bits of a receive completion.
const (
	cqeL2OK = 1 << 0 // byte 28
	cqeL3OK = 1 << 1
	cqeL4OK = 1 << 2

	cqeTagged  = 1 << 0 // byte 29
	cqeL3Shift = 2
	cqeL4Shift = 4
)

// receiveCQE fills d.cqe. What the driver makes of it: CHECKSUM_COMPLETE for IP
// in frames over 64 bytes, of the sum in bytes 20..21, which covers the IP packet
// and neither VLAN tags nor padding (cqe_checksum_full is off); for others
// CHECKSUM_UNNECESSARY if both L3 and L4 are marked right, else CHECKSUM_NONE.
func (d *Datapath) receiveCQE(f *Frame, rqn uint32, counter uint16, frame []byte, tci uint16, tagged bool) {
	d.newCQE(cqeResponseSend, f.Tag&counterMask, counter)
	e := &d.cqe
	be.PutUint32(e[12:], f.Hash)
	e[16] = f.HashType
	be.PutUint32(e[24:], rqn)
	be.PutUint32(e[44:], uint32(len(frame)))
	h := parse(frame)
	l3, l4 := h.types(frame)
	e[28] = cqeL2OK
	if l3 != l3None {
		checksum, ok := h.verify(frame)
		be.PutUint16(e[20:], checksum)
		e[28] |= ok
	}
	e[29] = l4<<cqeL4Shift | l3<<cqeL3Shift
	if tagged {
		e[29] |= cqeTagged
		be.PutUint16(e[30:], tci)
	}
}

// verify sums an IP packet up and tells by cqeL3OK and cqeL4OK which checksums in
// it are right. A UDP checksum of 0 over IPv4 means that there is none: right.
func (h *headers) verify(f []byte) (checksum uint16, ok byte) {
	if h.v6 || fold(sum(h.ipHeader(f))) == 0xffff {
		ok = cqeL3OK
	}
	if h.l4 == 0 {
		return fold(sum(f[h.l3:h.end])), ok
	}
	segment := sum(f[h.l4:h.end])
	none := h.proto == protoUDP && !h.v6 && be.Uint16(f[h.checksumAt():]) == 0
	if none || fold(segment+h.pseudo(f)) == 0xffff {
		ok |= cqeL4OK
	}
	return fold(sum(f[h.l3:h.l4]) + segment), ok
}
