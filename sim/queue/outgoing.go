// SPDX-License-Identifier: Apache-2.0

package queue

import "slices"

// What a frame must have and the card makes of a shorter one: 64 bytes with FCS.
const (
	minFrame  = macs + 2
	minOnWire = 60
)

// A large send of tiny segments must not fill our memory.
const maxSegments = 16 << 10

// outgoing is the frames of one request, one behind the other, and their offloads.
type outgoing struct {
	bytes []byte
	ends  []int  // of the finished frames
	start int    // of the frame in the making
	whole []byte // of a large send, while it is cut
}

func (o *outgoing) reset() { o.bytes, o.ends, o.start = o.bytes[:0], o.ends[:0], 0 }

func (o *outgoing) begin() { o.start = len(o.bytes) }

// length is that of the frame in the making.
func (o *outgoing) length() int { return len(o.bytes) - o.start }

func (o *outgoing) each(do func(frame []byte)) {
	start := 0
	for _, end := range o.ends {
		do(o.bytes[start:end:end])
		start = end
	}
}

// finish does what the Ethernet segment asks for: a VLAN tag, checksums. And it pads.
func (o *outgoing) finish(e *ethernet) error {
	if o.length() < minFrame {
		return failure{syndromeLength, "frame without an Ethernet header"}
	}
	if e.insert {
		o.bytes = slices.Insert(o.bytes, o.start+macs, byte(e.tpid>>8), byte(e.tpid), byte(e.tci>>8), byte(e.tci))
	}
	fill(o.bytes[o.start:], e.flags)
	for o.length() < minOnWire {
		o.bytes = append(o.bytes, 0)
	}
	o.ends = append(o.ends, len(o.bytes))
	return nil
}

// fill writes the checksums that flags ask for, whatever was in their place. Of
// packets that are not IP, not in one piece or neither TCP nor UDP, nothing is changed.
func fill(f []byte, flags byte) {
	h := parse(f)
	if flags&fillL3 != 0 && h.l3 != 0 && !h.v6 {
		be.PutUint16(f[h.l3+10:], 0)
		be.PutUint16(f[h.l3+10:], ^fold(sum(h.ipHeader(f))))
	}
	if flags&fillL4 == 0 || h.l4 == 0 {
		return
	}
	at := f[h.checksumAt():]
	be.PutUint16(at, 0)
	checksum := ^fold(sum(f[h.l4:h.end]) + h.pseudo(f))
	if checksum == 0 && h.proto == protoUDP { // 0 would say that there is none
		checksum = 0xffff
	}
	be.PutUint16(at, checksum)
}

// cut makes frames of at most e.mss bytes of payload of the one in the making,
// each with the inline header, as TCP and UDP segmentation do.
func (o *outgoing) cut(e *ethernet) error {
	o.whole = append(o.whole[:0], o.bytes[o.start:]...)
	o.bytes = o.bytes[:o.start]
	header := len(e.inline)
	payload := len(o.whole) - header
	switch {
	case e.mss == 0 || payload <= 0 || e.insert:
		return failure{syndromeQueue, "large send without a segment size, an inline header or data"}
	case header+e.mss > maxSend || (payload-1)/e.mss >= maxSegments:
		return failure{syndromeLength, "large send with segments longer, or more of them, than the card makes"}
	}
	filled := *e
	filled.flags |= fillL3 | fillL4
	for from := 0; from < payload; from += e.mss {
		to := min(from+e.mss, payload)
		o.begin()
		o.bytes = append(append(o.bytes, o.whole[:header]...), o.whole[header+from:header+to]...)
		if !renumber(o.bytes[o.start:], header, from, e.mss, to == payload) {
			return failure{syndromeQueue, "large send whose inline header is not that of a TCP or UDP packet"}
		}
		if err := o.finish(&filled); err != nil {
			return err
		}
	}
	return nil
}

// renumber makes the header of a whole packet that of the segment which starts
// at byte from of the payload: lengths, IPv4 identification, TCP sequence number
// and flags (FIN and PSH in the last one only, CWR in the first one only). It
// reports whether header is the length of one.
func renumber(f []byte, header, from, mss int, last bool) bool {
	typ, at := network(f)
	switch typ {
	case etherIPv4:
		be.PutUint16(f[at+2:], uint16(len(f)-at))
		be.PutUint16(f[at+4:], be.Uint16(f[at+4:])+uint16(from/mss))
	case etherIPv6:
		be.PutUint16(f[at+4:], uint16(len(f)-at-40))
	}
	h := parse(f)
	switch {
	case h.l4 == 0:
		return false
	case h.proto == protoUDP:
		be.PutUint16(f[h.l4+4:], uint16(len(f)-h.l4))
		return header == h.l4+8
	}
	be.PutUint32(f[h.l4+4:], be.Uint32(f[h.l4+4:])+uint32(from))
	if from > 0 {
		f[h.l4+13] &^= 0x80
	}
	if !last {
		f[h.l4+13] &^= 0x09
	}
	return header == h.l4+int(f[h.l4+12]>>4)*4
}
