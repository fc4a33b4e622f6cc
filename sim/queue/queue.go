// SPDX-License-Identifier: Apache-2.0

// Package queue holds the rings of one function in guest memory (event,
// completion, receive and send queues) and moves frames through them, byte by
// byte as the mlx5 driver expects it. Numbers are given by the caller, who also
// parses the commands; formats, states and doorbells are known here.
//
// A ring is a list of pages with 2^LogSize entries. Who produces counts up for
// ever; the entry is the counter modulo the size, and the lowest of the counter's
// other bits is the "owner" bit of event and completion entries: 0 in the first
// round, 1 in the second.
//
// Facts are those of NVIDIA's Programmer's Reference Manual (PRM) and of the
// driver: include/linux/mlx5/{device,cq,qp}.h, and wq.h, eq.c, en_rx.c, en_tx.c
// of drivers/net/ethernet/mellanox/mlx5/core.
package queue

// Pages is where a ring lies in guest memory.
type Pages struct {
	Addr        []uint64 // of every page, in order
	LogPageSize int      // base-2 logarithm of the page size in units of 4096 bytes
	Offset      int      // bytes from the start of the first page to entry 0
}

// State is that of a receive or send queue, with the numbers of the commands.
type State uint8

// The states of a queue.
const (
	RST State = 0 // reset: counters are 0, nothing moves
	RDY State = 1 // ready
	ERR State = 3 // error: nothing moves; what is posted to a send queue is flushed if it says so
)

// EQ is an event queue with entries of 64 bytes.
type EQ struct {
	Pages   Pages
	LogSize int       // base-2 logarithm of the number of entries, 0..22
	UAR     uint32    // page that its consumer index is written to
	Vector  int       // MSI-X
	Events  [4]uint64 // bit n%64 of word n/64: wants events of type n (the command's event_bitmask)
}

// CQ is a completion queue with entries of 64 bytes. Moderation is not
// modelled: it only puts events off, and no driver may need that.
type CQ struct {
	Pages         Pages
	LogSize       int    // 0..22
	UAR           uint32 // page that it is armed through
	EQ            uint32 // number of the event queue
	Record        uint64 // address of its doorbell record, 8 bytes: consumer index, arming
	IgnoreOverrun bool   // oi: overwrite what was not consumed
}

// RQ is a cyclic receive queue: entries are lists of 16-byte scatter entries.
type RQ struct {
	Pages      Pages
	LogSize    int    // 0..15
	LogStride  int    // base-2 logarithm of an entry's bytes, 4..9
	Record     uint64 // address of its doorbell record, 8 bytes: the receive counter is the first word
	CQ         uint32
	KeepVLAN   bool  // vsd: do not move a VLAN tag into the completion
	CounterSet uint8 // Q counter that counts frames for which nothing was posted
}

// SQ is a send queue with 64-byte basic blocks.
type SQ struct {
	Pages        Pages
	LogSize      int    // 0..15
	UAR          uint32 // page that its doorbell is rung through
	Record       uint64 // address of its doorbell record, 8 bytes: the send counter is the second word
	CQ           uint32
	FlushInError bool // flush_in_error_en: in state ERR each posted request completes with an error
}

// RQChange is what a modify command wants of a receive queue.
type RQChange struct {
	From, To   State  // From must be the state that the queue is in
	KeepVLAN   *bool  // nil: as it is
	CounterSet *uint8 // nil: as it is
}

// SQChange is what a modify command wants of a send queue.
type SQChange struct {
	From, To State // From must be the state that the queue is in
}

// Event is one entry of an event queue, without the owner bit.
type Event struct {
	Type, Subtype uint8
	Data          [28]byte
}

// Types of the events that this package posts by itself.
const (
	EventCompletion uint8 = 0x00 // data 24..27: number of the completion queue
	EventCQError    uint8 = 0x04 // data 0..3: number of the completion queue, 11: syndrome
)

// Frame is one received Ethernet frame without FCS and what steering found out
// about it. Header types, VLAN and checksums are worked out from the bytes.
type Frame struct {
	Bytes    []byte
	Hash     uint32 // Toeplitz result
	HashType uint8  // rss_hash_type of the completion: IP in bits 3:2, transport in bits 7:6
	Tag      uint32 // flow tag, 24 bits
}

// RQCounters counts one receive queue since it was made.
type RQCounters struct {
	Frames, Bytes uint64 // delivered
	NoBuffer      uint64 // see Lose
	TooLong       uint64 // completed with an error, the queue goes on
	Errors        uint64 // bad guest memory: each one stops the queue
}

// SQCounters counts one send queue since it was made.
type SQCounters struct {
	Requests      uint64 // of the guest, with NOPs
	Frames, Bytes uint64 // on the wire: a large send counts each of its segments
	Errors        uint64 // requests refused: each one stops the queue
}

// Counters is a copy of the counts of all queues, by number.
type Counters struct {
	RQ map[uint32]RQCounters
	SQ map[uint32]SQCounters
}

// Violation is something that the driver must not do, or memory that it named
// and that is not there.
type Violation struct {
	Text  string
	Count int
}
