// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"bytes"
	"encoding/binary"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flexsteer/flexsteer/sim/bus"
	"github.com/flexsteer/flexsteer/sim/prm"
)

var be = binary.BigEndian

// card is the personality of most tests: a pool of three samples.
func card() Personality {
	return Personality{
		Name: "test", Firmware: "32.43.2566", PSID: "MT_0000000884", MAC: MAC{net.HardwareAddr{2, 0, 0, 0, 0, 1}}, Speed: 200,
		ParseGraph: &ParseGraph{Nodes: 4, Samples: 3, SamplesPerNode: 2, ArcsIn: 1, HeaderBytes: 64},
		FlowTables: FlowTables{Levels: 96, LogSize: 16, LogTables: 8, LogDestinations: 4, LogCounters: 2},
	}
}

// guest is a driver by hand: it lays commands into memory and looks at what comes back.
type guest struct {
	testing.TB
	*Device
	memory *bus.Memory
	sent   [][]byte // frames
	free   uint64   // where unused memory starts
	queue  uint64
	token  byte
	clock  time.Duration
	events struct { // of finished commands
		uar, eq uint64 // eq 0: none
		count   uint32
	}
}

func newGuest(t testing.TB, p Personality) *guest {
	g := &guest{TB: t, memory: &bus.Memory{}, free: 0x100000, clock: time.Hour}
	g.Device = New(g.memory, p, func(frame []byte) { g.sent = append(g.sent, bytes.Clone(frame)) })
	g.Device.now = func() time.Duration { return g.clock }
	g.Device.segment.since = 0
	return g
}

// alloc is n bytes of zeros at the start of a page.
func (g *guest) alloc(n int) uint64 {
	at := g.free
	g.memory.Map(at, n)
	g.free += uint64(n+pageSize-1) / pageSize * pageSize
	return at
}

func (g *guest) read(addr uint64, n int) []byte {
	g.Helper()
	b := make([]byte, n)
	if err := g.memory.Read(addr, b); err != nil {
		g.Fatal(err)
	}
	return b
}

func (g *guest) write(addr uint64, b []byte) {
	g.Helper()
	if err := g.memory.Write(addr, b); err != nil {
		g.Fatal(err)
	}
}

func (g *guest) read32(off uint64) uint32 {
	b := make([]byte, 4)
	g.BARRead(off, b)
	return be.Uint32(b)
}

func (g *guest) write32(off uint64, v uint32) { g.BARWrite(off, be.AppendUint32(nil, v)) }

// attach tells the device where the command queue is.
func (g *guest) attach() *guest {
	g.queue, g.events.eq = g.alloc(pageSize), 0
	g.write32(0x10, uint32(g.queue>>32))
	g.write32(0x14, uint32(g.queue))
	return g
}

// set is a field of a command, in bits from its start.
type set struct {
	bit, width int
	value      uint64
}

// cmd is the input of a command of size bytes.
func cmd(opcode, modifier, size int, fields ...set) []byte {
	b := make([]byte, size)
	be.PutUint16(b, uint16(opcode))
	be.PutUint16(b[6:], uint16(modifier))
	for _, f := range fields {
		prm.Field{Bit: f.bit, Width: f.width}.Set(b, f.value)
	}
	return b
}

func get(b []byte, bit, width int) uint64 { return prm.Field{Bit: bit, Width: width}.Get(b) }

func list(b []byte, addresses ...uint64) []byte {
	for _, a := range addresses {
		b = be.AppendUint64(b, a)
	}
	return b
}

// boxes is a chain of mailboxes for what does not fit into the entry, filled with data.
func (g *guest) boxes(length int, data []byte) uint64 {
	n := max(length-16+511, 0) / 512
	if n == 0 {
		return 0
	}
	at := g.alloc(1024 * n)
	for i := range n {
		box := make([]byte, 576)
		copy(box, data[min(512*i, len(data)):])
		clear(box[512:])
		if i < n-1 {
			be.PutUint64(box[560:], at+1024*uint64(i+1))
		}
		be.PutUint32(box[568:], uint32(i))
		box[573] = g.token
		g.write(at+1024*uint64(i), box)
	}
	return at
}

// entry is a command queue entry for the input, with mailboxes.
func (g *guest) entry(in []byte, outLength int) []byte {
	g.token++
	e := make([]byte, 64)
	e[0] = 7
	be.PutUint32(e[4:], uint32(len(in)))
	copy(e[0x10:0x20], in)
	be.PutUint64(e[8:], g.boxes(len(in), in[min(16, len(in)):]))
	be.PutUint64(e[0x30:], g.boxes(outLength, nil))
	be.PutUint32(e[0x38:], uint32(outLength))
	e[0x3c], e[0x3f] = g.token, 1
	return e
}

// give puts an entry into a slot and rings.
func (g *guest) give(slot int, entry []byte) {
	g.write(g.queue+uint64(64*slot), entry)
	g.write32(0x18, 1<<slot)
}

// taken is the output of a slot that the device has handed back, and how the delivery went.
func (g *guest) taken(slot int) (out []byte, delivery byte) {
	g.Helper()
	e := g.read(g.queue+uint64(64*slot), 64)
	if e[0x3f]&1 != 0 {
		g.Fatalf("slot %d was not handed back", slot)
	}
	length := int(be.Uint32(e[0x38:]))
	out = bytes.Clone(e[0x20 : 0x20+min(length, 16)])
	for box := be.Uint64(e[0x30:]); len(out) < length; {
		m := g.read(box, 576)
		out = append(out, m[:min(512, length-len(out))]...)
		box = be.Uint64(m[560:])
	}
	return out, e[0x3f] >> 1
}

// exec runs a command by polling.
func (g *guest) exec(in []byte, outLength int) []byte {
	g.Helper()
	g.give(3, g.entry(in, outLength))
	out, delivery := g.taken(3)
	if delivery != 0 {
		g.Fatalf("delivery status %#x", delivery)
	}
	g.consume()
	return out
}

// consume tells the device that the event of a finished command was read.
func (g *guest) consume() {
	if g.events.eq != 0 {
		g.events.count++
		g.write32(g.events.uar*pageSize+0x40, uint32(g.events.eq)<<24|g.events.count&0xffffff)
	}
}

// must runs a command that has to be OK.
func (g *guest) must(in []byte, outLength int) []byte {
	g.Helper()
	out := g.exec(in, outLength)
	if status := Status(out[0]); status != OK {
		g.Fatalf("%s: %v, syndrome %#x; %v", commandName(be.Uint16(in)), status, be.Uint32(out[4:]), g.last())
	}
	return out
}

// id runs a command that gives a number of 24 bits.
func (g *guest) id(in []byte) uint64 {
	g.Helper()
	return get(g.must(in, 16), 0x48, 24)
}

// last is the last violation.
func (g *guest) last() string {
	r := g.Report()
	if len(r.Violations) == 0 {
		return "no violation"
	}
	return r.Violations[len(r.Violations)-1].String()
}

// refused runs a command that has to be refused so, and to be a violation unless it is about a limit.
func (g *guest) refused(in []byte, outLength int, status Status, why Syndrome) {
	g.Helper()
	before := g.Report().Total
	out := g.exec(in, outLength)
	if Status(out[0]) != status || Syndrome(be.Uint32(out[4:])) != why {
		g.Errorf("%s: %v, syndrome %#x, want %v, %#x; %s",
			commandName(be.Uint16(in)), Status(out[0]), be.Uint32(out[4:]), status, uint32(why), g.last())
	}
	if violations := g.Report().Total - before; (violations == 0) != (why == LimitReached) {
		g.Errorf("%s: %d violations", commandName(be.Uint16(in)), violations)
	}
}

// clean ends a test in which the driver was correct.
func (g *guest) clean() {
	g.Helper()
	if err := g.Report().Clean(); err != nil {
		g.Error(err)
	}
}

// givePages gives as many pages as QUERY_PAGES asks for.
func (g *guest) givePages(which int) (pages []uint64) {
	g.Helper()
	n := get(g.must(cmd(0x107, which, 16), 16), 0x60, 32)
	for range n {
		pages = append(pages, g.alloc(pageSize))
	}
	g.must(list(cmd(0x108, 1, 16, set{0x60, 32, n}), pages...), 16)
	return pages
}

// enable brings the function to where INIT_HCA comes next.
func (g *guest) enable() *guest {
	g.Helper()
	g.attach()
	g.must(cmd(0x104, 0, 16), 12)
	g.must(cmd(0x10a, 0, 16), 112)
	g.must(cmd(0x10b, 0, 16, set{0x50, 16, 1}), 16)
	g.givePages(1)
	g.must(cmd(0x805, 0, 32, set{0x50, 16, 0x7004}), 32)
	general := g.must(cmd(0x100, 1, 16), 16+4096)
	g.must(append(cmd(0x109, 0, 16), general[16:]...), 16)
	g.givePages(2)
	return g
}

// initialize brings the function up.
func (g *guest) initialize() *guest {
	g.Helper()
	g.enable()
	g.must(cmd(0x102, 0, 32), 16)
	return g
}

// leave is what a driver does at the end, when its objects are gone.
func (g *guest) leave() {
	g.Helper()
	g.must(cmd(0x103, 0, 16), 16)
	for {
		out := g.must(cmd(0x108, 2, 16, set{0x60, 32, 30}), 16+8*30)
		if get(out, 0x40, 32) == 0 {
			break
		}
	}
	g.must(cmd(0x105, 0, 16), 12)
}

// network is the objects of an interface with receive queues.
type network struct {
	*guest
	uar, pd, domain, key, tis uint64
	commandEQ, asyncEQ, eq    uint64
	commandRing               uint64
	counters                  uint64
	cq, rq                    []uint64
	cqRing, rqRing, rqRecord  []uint64
	sq, sqCQ                  uint64
	sqRing, sqRecord          uint64
	posted                    uint16 // to sq
}

// eventQueue makes an EQ with 64 entries.
func (g *guest) eventQueue(uar uint64, vector, mask uint64) (number, ring uint64) {
	g.Helper()
	ring = g.alloc(pageSize)
	in := list(cmd(0x301, 0, 272, set{0xe3, 5, 6}, set{0xe8, 24, uar}, set{0x134, 12, vector}, set{0x2c0, 64, mask}), ring)
	number = get(g.must(in, 16), 0x58, 8)
	if mask>>0x0a&1 != 0 {
		g.events.uar, g.events.eq, g.events.count = uar, number, 0
	}
	return number, ring
}

// completionQueue makes a CQ with 64 entries.
func (n *network) completionQueue() (number, ring uint64) {
	n.Helper()
	ring = n.alloc(pageSize)
	record := n.alloc(64)
	return n.id(list(cmd(0x400, 0, 272, set{0xe3, 5, 6}, set{0xe8, 24, n.uar}, set{0x120, 32, n.eq}, set{0x240, 64, record}), ring)), ring
}

const postedBytes = 2048 // of each receive buffer

// receiveQueue makes a ready RQ with 16 buffers posted.
func (n *network) receiveQueue() {
	n.Helper()
	cq, cqRing := n.completionQueue()
	ring, record := n.alloc(pageSize), n.alloc(64)
	rq := n.id(list(cmd(0x908, 0, 272, set{0x148, 24, cq}, set{0x160, 8, n.counters}, set{0x280, 4, 1}, set{0x2c8, 24, n.pd}, set{0x300, 64, record},
		set{0x38c, 4, 4}, set{0x39b, 5, 4}), ring))
	buffers := n.alloc(16 * postedBytes)
	for i := range 16 {
		entry := be.AppendUint32(nil, postedBytes)
		entry = be.AppendUint32(entry, uint32(n.key<<8))
		n.write(ring+uint64(16*i), be.AppendUint64(entry, buffers+uint64(postedBytes*i)))
	}
	n.must(cmd(0x909, 0, 272, set{0x48, 24, rq}, set{0x40, 4, 0}, set{0x108, 4, 1}), 16)
	n.write(record, be.AppendUint32(nil, 16))
	n.cq, n.cqRing = append(n.cq, cq), append(n.cqRing, cqRing)
	n.rq, n.rqRing, n.rqRecord = append(n.rq, rq), append(n.rqRing, ring), append(n.rqRecord, record)
}

// up makes an interface with receive queues and one send queue.
func (g *guest) up(queues int) *network {
	g.Helper()
	n := &network{guest: g}
	n.uar = g.id(cmd(0x802, 0, 16))
	n.commandEQ, n.commandRing = g.eventQueue(n.uar, 0, 1<<0x0a)
	n.asyncEQ, _ = g.eventQueue(n.uar, 0, 1<<0x09)
	n.eq, _ = g.eventQueue(n.uar, 1, 0)
	n.pd = g.id(cmd(0x800, 0, 16))
	n.domain = g.id(cmd(0x816, 0, 16))
	n.key = g.id(cmd(0x200, 0, 272, set{0x94, 2, 3}, set{0xe8, 24, n.pd}, set{0xe0, 1, 1}, set{0xa0, 24, 0xffffff}))
	n.tis = g.id(cmd(0x912, 0, 192, set{0x228, 24, n.domain}))
	n.counters = get(g.must(cmd(0x771, 0, 16), 16), 0x58, 8)
	for range queues {
		n.receiveQueue()
	}
	n.sqCQ, _ = n.completionQueue()
	n.sqRing, n.sqRecord = g.alloc(pageSize), g.alloc(64)
	n.sq = n.id(list(cmd(0x904, 0, 272, set{0x148, 24, n.sqCQ}, set{0x103, 1, 1}, set{0x200, 16, 1}, set{0x268, 24, n.tis}, set{0x280, 4, 1},
		set{0x2c8, 24, n.pd}, set{0x2e8, 24, n.uar}, set{0x300, 64, n.sqRecord}, set{0x38c, 4, 6}, set{0x39b, 5, 4}), n.sqRing))
	n.must(cmd(0x905, 0, 272, set{0x48, 24, n.sq}, set{0x108, 4, 1}), 16)
	return n
}

// transmits posts a frame, of a page at most, to the send queue of 16 requests, and rings.
func (n *network) transmits(frame []byte) {
	n.Helper()
	request := make([]byte, 48) // control, Ethernet and data segment
	be.PutUint32(request, uint32(n.posted)<<8|0x0a)
	be.PutUint32(request[4:], uint32(n.sq)<<8|3)
	be.PutUint32(request[32:], uint32(len(frame)))
	be.PutUint32(request[36:], uint32(n.key<<8))
	be.PutUint64(request[40:], n.sqRing+pageSize/2)
	n.write(n.sqRing+pageSize/2, frame)
	n.write(n.sqRing+uint64(n.posted%16)*64, request)
	n.posted++
	n.write(n.sqRecord+4, be.AppendUint32(nil, uint32(n.posted)))
	n.BARWrite(n.uar*pageSize+0x800, request[:8])
}

// down takes away what up made.
func (n *network) down() {
	n.Helper()
	n.must(cmd(0x906, 0, 16, set{0x48, 24, n.sq}), 16)
	n.must(cmd(0x401, 0, 16, set{0x48, 24, n.sqCQ}), 16)
	for i := range n.rq {
		n.must(cmd(0x90a, 0, 16, set{0x48, 24, n.rq[i]}), 16)
		n.must(cmd(0x401, 0, 16, set{0x48, 24, n.cq[i]}), 16)
	}
	n.must(cmd(0x772, 0, 16, set{0x58, 8, n.counters}), 16)
	n.must(cmd(0x914, 0, 16, set{0x48, 24, n.tis}), 16)
	n.must(cmd(0x202, 0, 16, set{0x48, 24, n.key}), 16)
	n.must(cmd(0x817, 0, 16, set{0x48, 24, n.domain}), 16)
	n.must(cmd(0x801, 0, 16, set{0x48, 24, n.pd}), 16)
	for _, eq := range []uint64{n.eq, n.asyncEQ, n.commandEQ} {
		if eq == n.commandEQ {
			n.events.eq = 0
		}
		n.must(cmd(0x302, 0, 16, set{0x58, 8, eq}), 16)
	}
	n.must(cmd(0x803, 0, 16, set{0x48, 24, n.uar}), 16)
}

// tir makes a direct TIR.
func (n *network) tir(queue int) uint64 {
	n.Helper()
	return n.id(cmd(0x900, 0, 272, set{0x1e8, 24, n.rq[queue]}, set{0x228, 24, n.domain}))
}

// destroyPlain destroys an object whose number is the only field.
func (g *guest) destroyPlain(opcode int, number uint64) {
	g.Helper()
	g.must(cmd(opcode, 0, 16, set{0x48, 24, number}), 16)
}

func contains(texts []Violation, part string) bool {
	return slices.ContainsFunc(texts, func(v Violation) bool { return strings.Contains(v.String(), part) })
}
