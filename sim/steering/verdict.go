// SPDX-License-Identifier: Apache-2.0

package steering

// Verdict is what becomes of a frame.
type Verdict struct {
	Queues   []uint32 // receive queue numbers that get a copy, in order; empty: none
	Dropped  bool     // by a rule; if Queues is empty without it, nothing matched or there is no root
	Hash     uint32   // of the TIR of the last queue; 0 if there is none
	HashType uint8    // rss_hash_type of the completion
	Tag      uint32   // flow tag of the last entry that had one
	Counters []uint32 // flow counters hit
	Headers  Headers
	Path     []Step
}

// The layer 4 types of a completion: l4_hdr_type.
const (
	L4None              uint8 = 0
	L4TCP               uint8 = 1 // without ACK
	L4UDP               uint8 = 2
	L4TCPAckWithoutData uint8 = 3
	L4TCPAckWithData    uint8 = 4
)

// The layer 3 types of a completion: l3_hdr_type.
const (
	L3None uint8 = 0
	L3IPv6 uint8 = 1
	L3IPv4 uint8 = 2
)

// Headers is what the fixed parser saw, in the completion's terms.
type Headers struct {
	L2OK, L3OK, L4OK bool  // parsed, and the checksums (IPv4 header; TCP, UDP) are right
	L3, L4           uint8 // L3* and L4*
	Fragment         bool
	Tags             uint8  // VLAN tags, 0 to 2
	TPID, TCI        uint16 // of the first tag
	EtherType        uint16 // behind the tags
	Protocol         uint8  // of IP, behind IPv6 extension headers
	L3Offset         int    // bytes from the frame's start; 0: no IP
	L4Offset         int    // bytes from the frame's start; 0: no IP
}

// Step is one table on a packet's way.
type Step struct {
	Table uint32
	Level uint8
	Entry int // index; -1: none matched
	text  string
}

// String is the step in words, as in "table 7 (level 12) entry 3: ip_protocol 253, sample 5 = 0x3/0xf -> TIR 0x13 -> RQ 0x1c".
func (s Step) String() string { return s.text }

// Steer is what becomes of a frame (Ethernet, without its checksum). It
// changes nothing and never panics, whatever the frame holds. The result shares nothing with the State.
func (s *State) Steer(frame []byte) Verdict { return Verdict{} }
