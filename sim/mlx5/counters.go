// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"encoding/binary"
	"sync"

	"github.com/flexsteer/flexsteer/sim/prm"
)

// traffic counts frames and bytes by the sort of their destination address.
type traffic struct{ frames, bytes [3]uint64 }

// The sorts of destination addresses.
const (
	unicast = iota
	multicast
	broadcast
)

func sortOf(frame []byte) int {
	switch {
	case len(frame) == 0 || frame[0]&1 == 0:
		return unicast
	case len(frame) >= 6 && binary.BigEndian.Uint32(frame) == 0xffffffff && binary.BigEndian.Uint16(frame[4:]) == 0xffff:
		return broadcast
	}
	return multicast
}

func (t *traffic) add(frame []byte, bytes int) {
	sort := sortOf(frame)
	t.frames[sort]++
	t.bytes[sort] += uint64(bytes)
}

func (t *traffic) sum() (frames, bytes uint64) {
	for sort := range t.frames {
		frames += t.frames[sort]
		bytes += t.bytes[sort]
	}
	return
}

// frameCounters counts at the port, with checksums of frames, and at the vport, without.
type frameCounters struct {
	mu        sync.Mutex
	port      [2]traffic // received, sent
	vport     [2]traffic
	sizes     [len(sizeClasses) + 1]uint64 // received, by sizeClasses
	tooLong   uint64
	discarded uint64 // received, but no rule or queue was for it
	lost      uint64 // received, but no buffer was posted
}

const (
	received = iota
	sent
)

// sizeClasses are the largest sizes of the port's histogram of received frames, in bytes with checksum.
var sizeClasses = [...]int{64, 127, 255, 511, 1023, 1518, 2047, 4095, 8191}

func (c *frameCounters) count(way int, frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := max(len(frame)+checksumBytes, 64)
	c.port[way].add(frame, n)
	c.vport[way].add(frame, len(frame))
	if way == received {
		c.sizes[sizeClass(n)]++
	}
}

func sizeClass(n int) int {
	for i, most := range sizeClasses {
		if n <= most {
			return i
		}
	}
	return len(sizeClasses)
}

func (c *frameCounters) note(what *uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*what++
}

// Counters is what went through the port and the function's receive queues, since the device was made.
type Counters struct {
	Received      Traffic                  `json:"received"`
	Sent          Traffic                  `json:"sent"`
	TooLong       uint64                   `json:"too_long"`       // longer than the port's MTU
	Discarded     uint64                   `json:"discarded"`      // no rule or queue was for them, or a rule drops them
	NoBuffer      uint64                   `json:"no_buffer"`      // given up since nothing was posted
	ReceiveQueues map[uint32]QueueCounters `json:"receive_queues"` // those that are alive, by number
	SendQueues    map[uint32]QueueCounters `json:"send_queues"`
}

// Traffic counts frames and bytes, without the frames' checksums.
type Traffic struct {
	Frames uint64 `json:"frames"`
	Bytes  uint64 `json:"bytes"`
}

// QueueCounters counts one queue since it was made.
type QueueCounters struct {
	Frames   uint64 `json:"frames"`
	Bytes    uint64 `json:"bytes"`
	NoBuffer uint64 `json:"no_buffer,omitempty"` // of receive queues
	Errors   uint64 `json:"errors,omitempty"`
}

// Counters is a copy of all counts.
func (d *Device) Counters() Counters {
	c := Counters{ReceiveQueues: map[uint32]QueueCounters{}, SendQueues: map[uint32]QueueCounters{}}
	rings := d.rings.Counters()
	for n, q := range rings.RQ {
		c.ReceiveQueues[n] = QueueCounters{Frames: q.Frames, Bytes: q.Bytes, NoBuffer: q.NoBuffer, Errors: q.Errors + q.TooLong}
	}
	for n, q := range rings.SQ {
		c.SendQueues[n] = QueueCounters{Frames: q.Frames, Bytes: q.Bytes, Errors: q.Errors}
	}
	d.frames.mu.Lock()
	defer d.frames.mu.Unlock()
	c.Received.Frames, c.Received.Bytes = d.frames.vport[received].sum()
	c.Sent.Frames, c.Sent.Bytes = d.frames.vport[sent].sum()
	c.TooLong, c.Discarded, c.NoBuffer = d.frames.tooLong, d.frames.discarded, d.frames.lost
	return c
}

var (
	vportCounterBit = 0x80 // first of pairs of packets and octets, 64 bits each
	qCounterNumber  = at(0xf8, 8)
	qCounterClear   = at(0xc0, 1)
	qOutOfBuffer    = at(0x180, 32)
	envDiscarded    = at(0x100, 64) // nic_receive_steering_discard
	envInvalid      = at(0x220, 32) // invalid_command
)

var counterCommands = []command{
	{opcode: 0x770, name: "QUERY_VPORT_COUNTER", in: form{size: 32}, reply: 528, when: running, run: (*function).queryVportCounter},
	{opcode: 0x76f, name: "QUERY_VNIC_ENV", in: bare, reply: 528, when: running, run: (*function).queryEnvironment},
	{opcode: 0x773, name: "QUERY_Q_COUNTER", in: form{size: 32, uses: []prm.Field{qCounterNumber, qCounterClear}}, reply: 256, when: running,
		run: (*function).queryQCounter, shows: shows("set", qCounterNumber)},
}

// queryVportCounter: of 14 pairs the last six are Ethernet broadcast, unicast
// and multicast, each received and transmitted.
func (f *function) queryVportCounter(c *call) error {
	d := f.dev
	d.frames.mu.Lock()
	defer d.frames.mu.Unlock()
	const firstEthernet, pairBits = 6, 0x80
	for i, sort := range []int{broadcast, unicast, multicast} {
		for way := range d.frames.vport {
			bit := vportCounterBit + (firstEthernet+2*i+way)*pairBits
			c.put(at(bit, 64), d.frames.vport[way].frames[sort])
			c.put(at(bit+64, 64), d.frames.vport[way].bytes[sort])
		}
	}
	return nil
}

func (f *function) queryEnvironment(c *call) error {
	d := f.dev
	d.frames.mu.Lock()
	defer d.frames.mu.Unlock()
	c.put(envDiscarded, d.frames.discarded)
	c.put(envInvalid, uint64(d.report.total))
	return nil
}

func (f *function) queryQCounter(c *call) error {
	set := c.get(qCounterNumber)
	if why := f.objects.need(ref{qCounter, set}); why != nil {
		return why
	}
	c.put(qOutOfBuffer, f.rings.OutOfBuffer(uint8(set), c.flag(qCounterClear)))
	return nil
}

var (
	ppcntGroup    = at(0x1a, 6)
	ppcntPriority = at(0x3b, 5)
)

// The groups of PPCNT.
const (
	groupIEEE8023    = 0x00
	groupRFC2863     = 0x01
	groupRFC2819     = 0x02
	groupPerPriority = 0x10
	groupPhysical    = 0x12
)

// readPPCNT fills a group of the port's counters in, which have 64 bits each.
func readPPCNT(f *function, in, out []byte) error {
	c := &f.dev.frames
	c.mu.Lock()
	defer c.mu.Unlock()
	put := func(index int, v uint64) { binary.BigEndian.PutUint64(out[8+8*index:], v) }
	rx, tx := &c.port[received], &c.port[sent]
	rxFrames, rxBytes := rx.sum()
	txFrames, txBytes := tx.sum()
	switch group := ppcntGroup.Get(in); group {
	case groupIEEE8023:
		for i, v := range []uint64{txFrames, rxFrames, 0, 0, txBytes, rxBytes, tx.frames[multicast], tx.frames[broadcast],
			rx.frames[multicast], rx.frames[broadcast], 0, 0, c.tooLong} {
			put(i, v)
		}
	case groupRFC2863:
		for i, v := range []uint64{rxBytes, rx.frames[unicast], 0, c.tooLong, 0, txBytes, tx.frames[unicast], 0, 0,
			rx.frames[multicast], rx.frames[broadcast], tx.frames[multicast], tx.frames[broadcast]} {
			put(i, v)
		}
	case groupRFC2819:
		for i, v := range []uint64{0, rxBytes, rxFrames, rx.frames[broadcast], rx.frames[multicast], 0, 0, c.tooLong, 0, 0, 0} {
			put(i, v)
		}
		for i, v := range c.sizes {
			put(11+i, v)
		}
	case groupPerPriority:
		if ppcntPriority.Get(in) == 0 { // the wire has one
			put(0, rxBytes)
			put(4, rxFrames)
			put(5, txBytes)
			put(9, txFrames)
		}
	case groupPhysical:
		binary.BigEndian.PutUint32(out[0xc8:], uint32(f.dev.port.falls))
	default:
		return badValue("group %#x of PPCNT", group)
	}
	return nil
}
