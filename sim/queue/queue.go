// SPDX-License-Identifier: Apache-2.0

// Package queue holds the rings of one function in guest memory (event,
// completion, receive and send queues) and moves frames through them, byte by
// byte as the mlx5 driver expects it. Numbers are given by the caller, who also
// parses the commands; formats, states and doorbells are known here.
//
// A ring is a list of pages with 2^LogSize entries. Who produces counts up for
// ever; the entry is the counter modulo the size, and what is left of the
// counter after LogSize bits tells in its lowest bit whose an entry is (the
// "owner" bit of event and completion entries: 0 in the first round).
package queue

import (
	"errors"

	"github.com/flexsteer/flexsteer/sim/bus"
)

// Pages is where a ring lies in guest memory.
type Pages struct {
	Addr        []uint64 // of every page, in order
	LogPageSize int      // base-2 logarithm of the page size in units of 4096 bytes
	Offset      int      // bytes from the start of the first page to entry 0
}

// State is that of a receive or send queue, with the numbers of the commands.
type State uint8

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
	Events  [4]uint64 // bit n of word n/64: wants events of type n (the command's event_bitmask)
}

// CQ is a completion queue with entries of 64 bytes.
type CQ struct {
	Pages         Pages
	LogSize       int    // 0..22
	UAR           uint32 // page that it is armed through
	EQ            uint32 // number of the event queue
	Record        uint64 // address of its doorbell record (consumer index, arm)
	IgnoreOverrun bool   // oi: overwrites what was not consumed
}

// RQ is a cyclic receive queue: entries are lists of 16-byte scatter entries.
type RQ struct {
	Pages      Pages
	LogSize    int    // 0..15
	LogStride  int    // base-2 logarithm of an entry's bytes, 4..9
	Record     uint64 // address of its doorbell record; the receive counter is its first word
	CQ         uint32
	KeepVLAN   bool  // vsd: do not strip a VLAN tag into the completion
	CounterSet uint8 // Q counter that counts frames for which nothing was posted
}

// SQ is a send queue with 64-byte basic blocks.
type SQ struct {
	Pages        Pages
	LogSize      int    // 0..15
	UAR          uint32 // page that its doorbell is rung through
	Record       uint64 // address of its doorbell record; the send counter is its second word
	CQ           uint32
	FlushInError bool // flush_in_error_en: in state ERR each posted request completes with an error
	MultiPacket  bool // allow_multi_pkt_send_wqe
}

// RQChange and SQChange are what a modify command wants. From must be the state
// that the queue is in. Nil leaves a field alone.
type RQChange struct {
	From, To   State
	KeepVLAN   *bool
	CounterSet *uint8
}

type SQChange struct {
	From, To State
}

// Event is one entry of an event queue, without the owner bit.
type Event struct {
	Type, Subtype uint8
	Data          [28]byte
}

// Types of events that this package posts by itself.
const (
	EventCompletion uint8 = 0x00
	EventCQError    uint8 = 0x04
)

// Frame is one received Ethernet frame without FCS and what steering found out
// about it. Header types, VLAN and checksums are worked out from the bytes.
type Frame struct {
	Bytes    []byte
	Hash     uint32 // Toeplitz result
	HashType uint8  // rss_hash_type of the completion: IP in bits 3:2, transport in bits 7:6
	Tag      uint32 // flow tag, 24 bits
}

// Kind is what is wrong with a request, as coarse as a command's status.
type Kind int

// The kinds of an Error.
const (
	NotFound Kind = iota + 1 // names an object that is not there
	BadParam                 // a value that is not allowed, or that the model does not know
	InUse                    // the object cannot go while others need it
	BadState                 // not now: the number is taken, or not from this state to that one
)

// Error is the error of a create, modify, query or destroy that was not done.
type Error struct {
	Kind   Kind
	Detail string
}

func (e Error) Error() string { return e.Detail }

// What became of a frame that was not delivered.
var (
	ErrNoBuffer = errors.New("no receive buffer is posted")
	ErrNotReady = errors.New("receive queue is not ready")
	ErrTooLong  = errors.New("frame is longer than the posted buffers")
	ErrBroken   = errors.New("ring cannot be used") // bad guest memory, overrun; a violation says more
)

// Datapath holds the rings of one function and moves frames. Methods may be
// called by several goroutines and never panic on what guest memory holds.
type Datapath struct {
	bus      bus.Bus
	now      func() uint64
	transmit func(frame []byte)
}

// New is a datapath without rings. now is the internal timer that completions
// are stamped with, nil for a clock that stands still. transmit gets each frame
// that the guest sends, in the order of its queue, without any lock held, on the
// goroutine that called Doorbell; it may call Receive, and must copy what it
// wants to keep.
func New(b bus.Bus, now func() uint64, transmit func(frame []byte)) *Datapath {
	return &Datapath{bus: b, now: now, transmit: transmit}
}

func (d *Datapath) CreateEQ(n uint32, q EQ) error { return nil }
func (d *Datapath) DestroyEQ(n uint32) error      { return nil }

func (d *Datapath) CreateCQ(n uint32, q CQ) error { return nil }
func (d *Datapath) DestroyCQ(n uint32) error      { return nil }

// CreateRQ and CreateSQ make a queue in state RST.
func (d *Datapath) CreateRQ(n uint32, q RQ) error       { return nil }
func (d *Datapath) ModifyRQ(n uint32, c RQChange) error { return nil }
func (d *Datapath) RQState(n uint32) (State, error)     { return RST, nil }
func (d *Datapath) DestroyRQ(n uint32) error            { return nil }

func (d *Datapath) CreateSQ(n uint32, q SQ) error       { return nil }
func (d *Datapath) ModifySQ(n uint32, c SQChange) error { return nil }
func (d *Datapath) SQState(n uint32) (State, error)     { return RST, nil }
func (d *Datapath) DestroySQ(n uint32) error            { return nil }

// AllowKey makes a memory key (index in bits 31:8, variant in 7:0) good for
// data segments; RevokeKey ends that. Keys cover all of guest memory: the driver
// makes one with physical addresses.
func (d *Datapath) AllowKey(key uint32)  {}
func (d *Datapath) RevokeKey(key uint32) {}

// Post adds an event to an event queue.
func (d *Datapath) Post(eq uint32, e Event) error { return nil }

// Announce posts an event to every event queue that wants its type.
func (d *Datapath) Announce(e Event) error { return nil }

// Doorbell is a write of b at byte off of a UAR page: arms a completion queue
// (8 bytes at 0x20), moves the consumer index of an event queue (4 bytes at 0x40
// with arming, at 0x48 without), or starts a send queue (8 bytes at 0x800, 0x900,
// ...). The error is also kept as a violation.
func (d *Datapath) Doorbell(uar uint32, off int, b []byte) error { return nil }

// Posted tells whether Receive would find a buffer: nil, ErrNoBuffer or ErrNotReady.
func (d *Datapath) Posted(rq uint32) error { return nil }

// Receive delivers a frame. ErrNoBuffer counts nothing: the caller waits and
// tries again, or gives the frame up with Lose.
func (d *Datapath) Receive(rq uint32, f Frame) error { return nil }

// Lose counts a frame for which nothing was posted (out_of_buffer).
func (d *Datapath) Lose(rq uint32) {}

// OutOfBuffer is the count of a Q counter; it outlives the receive queues.
// Clear sets it to 0 after reading.
func (d *Datapath) OutOfBuffer(counterSet uint8, clear bool) uint64 { return 0 }

// Traffic counts frames and bytes (without FCS) by destination address.
type Traffic struct {
	Unicast, UnicastBytes     uint64
	Multicast, MulticastBytes uint64
	Broadcast, BroadcastBytes uint64
}

// RQCounters counts one receive queue since it was made.
type RQCounters struct {
	Frames, Bytes uint64 // delivered
	NoBuffer      uint64
	TooLong       uint64
	Errors        uint64 // bad guest memory
}

// SQCounters counts one send queue since it was made.
type SQCounters struct {
	Requests      uint64 // WQEs, with NOPs
	Frames, Bytes uint64
	Errors        uint64
}

// Counters is a copy of all counts.
type Counters struct {
	RQ       map[uint32]RQCounters
	SQ       map[uint32]SQCounters
	Received Traffic // delivered to all queues, those that are gone too
	Sent     Traffic
}

func (d *Datapath) Counters() Counters { return Counters{} }

// Violation is something that the driver must not do, or memory that it lent
// and that is not there.
type Violation struct {
	Text  string
	Count int
}

// Violations lists the first 100 different texts in the order of appearance.
func (d *Datapath) Violations() []Violation { return nil }

// Clear destroys all rings and keys, as a function reset does. Counts and
// violations stay.
func (d *Datapath) Clear() {}
