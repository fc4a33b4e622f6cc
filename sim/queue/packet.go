// SPDX-License-Identifier: Apache-2.0

package queue

// Header types of a completion.
const (
	l3None = 0
	l3IPv6 = 1
	l3IPv4 = 2

	l4None       = 0
	l4TCP        = 1 // without ACK
	l4UDP        = 2
	l4TCPAck     = 3 // without data
	l4TCPAckData = 4
)

// Ethernet types and IP protocols.
const (
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
	etherVLAN = 0x8100
	etherQinQ = 0x88a8

	protoTCP = 6
	protoUDP = 17
)

const macs = 12 // bytes before the first EtherType

// headers is where the parts of a frame are. Offsets are from its start; 0 means
// that there is no such part.
type headers struct {
	l3    int // IP header
	v6    bool
	l4    int   // TCP or UDP header, of a packet in one piece
	proto uint8 // of l4
	end   int   // behind the IP packet, inside the frame; padding follows
}

// parse finds the headers of any bytes. Offsets are such that the fixed part of
// each header lies in the frame.
func parse(f []byte) (h headers) {
	switch typ, at := network(f); typ {
	case etherIPv4:
		h.parseIPv4(f, at)
	case etherIPv6:
		h.parseIPv6(f, at)
	}
	return h
}

// network is the EtherType behind any VLAN tags and where its header starts; 0
// if the fixed part of an IP header does not follow.
func network(f []byte) (typ uint16, at int) {
	at = macs
	typ = wordAt(f, at)
	for at += 2; typ == etherVLAN || typ == etherQinQ; at += 4 {
		typ = wordAt(f, at+2)
	}
	if typ == etherIPv4 && len(f) >= at+20 || typ == etherIPv6 && len(f) >= at+40 {
		return typ, at
	}
	return 0, 0
}

func wordAt(f []byte, at int) uint16 {
	if len(f) < at+2 {
		return 0
	}
	return be.Uint16(f[at:])
}

func (h *headers) parseIPv4(f []byte, at int) {
	n := int(f[at]&0xf) * 4
	total := int(be.Uint16(f[at+2:]))
	if f[at]>>4 != 4 || n < 20 || total < n || len(f) < at+n {
		return
	}
	h.l3, h.end = at, min(at+total, len(f))
	if be.Uint16(f[at+6:])&0x3fff == 0 { // neither more fragments nor an offset
		h.transport(f, at+n, f[at+9])
	}
}

func (h *headers) parseIPv6(f []byte, at int) {
	if f[at]>>4 != 6 {
		return
	}
	h.l3, h.v6 = at, true
	h.end = min(at+40+int(be.Uint16(f[at+4:])), len(f))
	next := f[at+6]
	at += 40
	for at+8 <= h.end {
		switch next {
		case 0, 43, 60: // hop-by-hop, routing, destination options: in units of 8 bytes, less one
			next, at = f[at], at+int(f[at+1])*8+8
		case 51: // authentication: in units of 4 bytes, less two
			next, at = f[at], at+int(f[at+1])*4+8
		default: // a fragment header ends it as well
			h.transport(f, at, next)
			return
		}
	}
}

func (h *headers) transport(f []byte, at int, proto uint8) {
	if proto == protoTCP && at+20 <= h.end || proto == protoUDP && at+8 <= h.end {
		h.l4, h.proto = at, proto
	}
}

// checksumAt is where the checksum of the transport header is.
func (h *headers) checksumAt() int {
	if h.proto == protoTCP {
		return h.l4 + 16
	}
	return h.l4 + 6
}

// sum adds 16-bit words; an odd byte is the high half of one. Sums of parts may
// be added when the parts but the last have even lengths.
func sum(b []byte) (s uint64) {
	for ; len(b) >= 8; b = b[8:] {
		s += uint64(be.Uint32(b)) + uint64(be.Uint32(b[4:]))
	}
	for ; len(b) >= 2; b = b[2:] {
		s += uint64(be.Uint16(b))
	}
	if len(b) == 1 {
		s += uint64(b[0]) << 8
	}
	return s
}

func fold(s uint64) uint16 {
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

// pseudo is the sum of the pseudo header that TCP and UDP checksums cover.
func (h *headers) pseudo(f []byte) uint64 {
	addresses := f[h.l3+12 : h.l3+20]
	if h.v6 {
		addresses = f[h.l3+8 : h.l3+40]
	}
	return sum(addresses) + uint64(h.proto) + uint64(h.end-h.l4)
}

// ipHeader is an IPv4 header with its options, or an IPv6 header without extensions.
func (h *headers) ipHeader(f []byte) []byte {
	if h.v6 {
		return f[h.l3 : h.l3+40]
	}
	return f[h.l3 : h.l3+int(f[h.l3]&0xf)*4]
}

// types are the header types of a completion.
func (h *headers) types(f []byte) (l3, l4 byte) {
	switch {
	case h.l3 == 0:
		return l3None, l4None
	case h.v6:
		l3 = l3IPv6
	default:
		l3 = l3IPv4
	}
	switch {
	case h.l4 == 0:
		l4 = l4None
	case h.proto == protoUDP:
		l4 = l4UDP
	case f[h.l4+13]&0x10 == 0:
		l4 = l4TCP
	case h.l4+int(f[h.l4+12]>>4)*4 < h.end:
		l4 = l4TCPAckData
	default:
		l4 = l4TCPAck
	}
	return l3, l4
}
