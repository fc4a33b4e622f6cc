// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/flexsteer/flexsteer/sim/queue"
)

// ip4 is an Ethernet frame with an IPv4 packet of the protocol, from 10.0.0.2 to 10.0.0.1.
func ip4(protocol byte, payload ...byte) []byte {
	head, _ := hex.DecodeString("020000000001" + "020000000002" + "0800" + "4500" + "0000" + "00000000" + "40" + "00" + "0000" + "0a000002" + "0a000001")
	f := append(head, payload...)
	be.PutUint16(f[16:], uint16(len(f)-14))
	f[23] = protocol
	var sum uint32
	for i := 14; i < 34; i += 2 {
		sum += uint32(be.Uint16(f[i:]))
	}
	be.PutUint16(f[24:], ^uint16(sum+sum>>16))
	return append(f, make([]byte, max(60-len(f), 0))...)
}

func udp(port uint16) []byte {
	return ip4(17, 0x12, 0x34, byte(port>>8), byte(port), 0, 8, 0, 0)
}

// Where fields lie in match criteria and values, in bits.
const (
	matchProtocol = 0x80
	matchUDPPort  = 0xf0
	matchSample   = 8 * 320 // value and id of misc4's first sample
)

// rules is a table of three groups: UDP by port, sampled protocols, and all else.
type rules struct {
	*network
	table  uint64
	groups []uint64
	node   uint64
	sample uint64
}

func (n *network) rules() *rules {
	n.Helper()
	r := &rules{network: n}
	r.table = n.id(cmd(0x930, 0, 64, set{0xd8, 8, 4}))
	n.must(cmd(0x92f, 0, 64, set{0xa8, 24, r.table}), 16)
	r.node = n.node(253, 0)
	r.sample = get(n.must(cmd(0xa02, 0x22, 16, set{0x40, 32, r.node}), 432), 15*32, 32)
	r.group(0, 3, 1, set{matchProtocol, 8, 0xff}, set{matchUDPPort, 16, 0xffff})
	r.group(4, 7, 1|1<<5, set{matchProtocol, 8, 0xff}, set{matchSample, 32, 0xf}, set{matchSample + 32, 32, r.sample})
	r.group(8, 8, 0)
	return r
}

func (r *rules) group(start, end, enable uint64, criteria ...set) {
	r.Helper()
	in := cmd(0x933, 0, 1024, set{0xa8, 24, r.table}, set{0xe0, 32, start}, set{0x120, 32, end}, set{0x1f8, 8, enable})
	for _, f := range criteria {
		at(0x200+f.bit, f.width).Set(in, f.value)
	}
	r.groups = append(r.groups, r.id(in))
}

// entry is a command that sets an entry which sends to a TIR, or drops without one.
func (r *rules) entry(group int, index uint64, tir uint64, value ...set) []byte {
	in := cmd(0x936, 0, 0x340, set{0xa8, 24, r.table}, set{0x100, 32, index}, set{0x220, 32, r.groups[group]}, set{0x270, 16, 2})
	if tir != 0 {
		at(0x270, 16).Set(in, 4)
		at(0x288, 24).Set(in, 1)
		in = list(in, 2<<56|tir<<32)
	}
	for _, f := range value {
		at(0x400+f.bit, f.width).Set(in, f.value)
	}
	return in
}

func (r *rules) clearAll(tirs ...uint64) {
	r.Helper()
	for index := range uint64(16) {
		r.exec(cmd(0x938, 0, 64, set{0xa8, 24, r.table}, set{0x100, 32, index}), 16)
	}
	r.clear(tirs...)
}

// clear takes all away but entries.
func (r *rules) clear(tirs ...uint64) {
	r.Helper()
	for _, g := range r.groups {
		r.must(cmd(0x934, 0, 64, set{0xa8, 24, r.table}, set{0xc0, 32, g}), 16)
	}
	r.must(cmd(0xa03, 0x22, 16, set{0x40, 32, r.node}), 16)
	r.must(cmd(0x92f, 1, 64), 16)
	r.must(cmd(0x931, 0, 64, set{0xa8, 24, r.table}), 16)
	for _, tir := range tirs {
		r.destroyPlain(0x902, tir)
	}
}

// frames counts the completions in each receive queue's ring.
func (n *network) frames() (counts []int) {
	n.Helper()
	for _, ring := range n.cqRing {
		count := 0
		for i := range 64 {
			if cqe := n.read(ring+uint64(64*i), 64); be.Uint32(cqe[44:]) != 0 {
				count++
			}
		}
		counts = append(counts, count)
	}
	return counts
}

func equalInts(a, b []int) bool {
	for i := range a {
		if len(a) != len(b) || a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestRulesDecideWhichQueueGetsAFrame(t *testing.T) {
	g := newGuest(t, card()).initialize()
	r := g.up(3).rules()
	tirs := []uint64{r.tir(0), r.tir(1), r.tir(2)}
	r.must(r.entry(0, 0, tirs[1], set{matchProtocol, 8, 17}, set{matchUDPPort, 16, 5000}), 16)
	r.must(r.entry(0, 1, 0, set{matchProtocol, 8, 17}, set{matchUDPPort, 16, 6000}), 16)
	r.must(r.entry(1, 4, tirs[2], set{matchProtocol, 8, 253}, set{matchSample, 32, 3}, set{matchSample + 32, 32, r.sample}), 16)
	r.must(r.entry(2, 8, tirs[0]), 16)
	for _, c := range []struct {
		name  string
		frame []byte
		want  []int // frames per queue afterwards
	}{
		{"UDP to 5000", udp(5000), []int{0, 1, 0}},
		{"UDP to 6000 is dropped", udp(6000), []int{0, 1, 0}},
		{"UDP to 7000 is for all", udp(7000), []int{1, 1, 0}},
		{"protocol 253 with 3", ip4(253, 1, 2, 3, 0xa3), []int{1, 1, 1}},
		{"protocol 253 with 4 is for all", ip4(253, 1, 2, 3, 0xa4), []int{2, 1, 1}},
		{"protocol 252 with 3 is for all", ip4(252, 1, 2, 3, 0xa3), []int{3, 1, 1}},
	} {
		if _, err := g.Receive(c.frame); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := r.frames(); !equalInts(got, c.want) {
			t.Errorf("%s: frames per queue %v, want %v", c.name, got, c.want)
		}
	}
	if v, err := g.Receive(udp(6000)); !v.Dropped || len(v.Queues) != 0 || err != nil {
		t.Errorf("%+v, %v", v, err)
	}
	if v := g.Steer(udp(5000)); len(v.Queues) != 1 || uint64(v.Queues[0]) != r.rq[1] {
		t.Errorf("%+v", v)
	}
	if !strings.Contains(g.Tables(), "253") {
		t.Errorf("tables without the rule:\n%s", g.Tables())
	}
	for _, tir := range tirs {
		g.refused(cmd(0x902, 0, 16, set{0x48, 24, tir}), 16, BadResourceState, ObjectInUse)
	}
	g.refused(cmd(0x931, 0, 64, set{0xa8, 24, r.table}), 16, BadResourceState, ObjectInUse)
	g.refused(cmd(0x934, 0, 64, set{0xa8, 24, r.table}, set{0xc0, 32, r.groups[0]}), 16, BadResourceState, ObjectInUse)
	total := g.Report().Total
	r.clearAll(tirs...)
	r.down()
	g.leave()
	if r := g.Report(); r.Total-total != 16-4 || len(r.Leaks) != 0 { // deleted entries that were not there
		t.Errorf("%d more violations, leaks %v", r.Total-total, r.Leaks)
	}
}

func TestEntriesThatAreRefused(t *testing.T) {
	g := newGuest(t, card()).initialize()
	r := g.up(1).rules()
	tir := r.tir(0)
	good := r.entry(0, 0, tir, set{matchProtocol, 8, 17}, set{matchUDPPort, 16, 5000})
	with := func(fields ...set) []byte {
		in := bytes.Clone(good)
		for _, f := range fields {
			at(f.bit, f.width).Set(in, f.value)
		}
		return in
	}
	r.refused(with(set{0x100, 32, 5}), 16, BadParam, BadValue)                   // index of another group
	r.refused(with(set{0x400 + 0x180, 32, 1}), 16, BadParam, BadValue)           // value outside of the criteria
	r.refused(with(set{0x270, 16, 0x44}), 16, BadParam, BadValue)                // modify header
	r.refused(with(set{0x1a00, 8, 0}), 16, BadParam, BadValue)                   // to a vport
	r.refused(with(set{0x1a20, 32, 1}), 16, BadParam, UnknownBits)               // behind the destination
	r.refused(with(set{0x288, 24, 2}), 16, BadInputLength, WrongLength)          // two destinations, one is there
	r.refused(with(set{0x1a08, 24, 99}), 16, BadResource, NoSuchObject)          // no such TIR
	r.refused(with(set{0x80, 8, 1}), 16, BadParam, UnknownBits)                  // table type
	r.refused(good[:len(good)-4], 16, BadInputLength, WrongLength)               // half a destination
	r.refused(list(with(), 2<<56|tir<<32), 16, BadInputLength, WrongLength)      // one more than it says
	r.refused(list(with(set{0x2a8, 24, 1}), 1<<32|1), 16, BadParam, UnknownBits) // behind the counter
	r.refused(with(set{0x30, 16, 1}), 16, BadResource, NoSuchObject)             // change of an entry that is not there
	r.must(good, 16)
	r.refused(good, 16, BadResourceState, WrongObjectState)                       // there is one
	r.refused(with(set{0x30, 16, 1}, set{0xd8, 8, 0x80}), 16, BadParam, BadValue) // change of what is not modelled
}

func TestEntriesOfAllTablesAreBounded(t *testing.T) {
	g := newGuest(t, card()).initialize()
	r := g.up(1).rules()
	g.function.objects.count[flowEntry] = 1<<logMaxEntries - 1 // as if they were there
	last, more := r.entry(2, 8, 0), r.entry(0, 0, 0)
	r.must(last, 16)
	r.refused(more, 16, NoResources, LimitReached)
	r.must(cmd(0x938, 0, 64, set{0xa8, 24, r.table}, set{0x100, 32, 8}), 16)
	r.must(more, 16)
}

func TestAChangedEntryNeedsOnlyWhatItHasNow(t *testing.T) {
	g := newGuest(t, card()).initialize()
	r := g.up(2).rules()
	first, second := r.tir(0), r.tir(1)
	counter := get(g.must(cmd(0x939, 0, 16), 16), 0x40, 32)
	value := []set{{matchProtocol, 8, 17}, {matchUDPPort, 16, 5000}}
	r.must(r.entry(0, 0, first, value...), 16)
	change := r.entry(0, 0, second, value...)
	for _, f := range []set{{0x30, 16, 1}, {0xd8, 8, 1<<0 | 1<<2 | 1<<3}, {0x270, 16, 0xc}, {0x2a8, 24, 1}} {
		at(f.bit, f.width).Set(change, f.value)
	}
	r.must(list(change, counter<<32), 16)
	r.destroyPlain(0x902, first)
	r.refused(cmd(0x902, 0, 16, set{0x48, 24, second}), 16, BadResourceState, ObjectInUse)
	r.refused(cmd(0x93a, 0, 16, set{0x40, 32, counter}), 16, BadResourceState, ObjectInUse)

	for range 3 {
		if _, err := g.Receive(udp(5000)); err != nil {
			t.Fatal(err)
		}
	}
	out := r.must(cmd(0x93b, 0, 32, set{0xc0, 1, 1}, set{0xe0, 32, counter}), 32)
	if be.Uint64(out[16:]) != 3 || be.Uint64(out[24:]) != 180 {
		t.Errorf("flow counter: %d frames, %d bytes", be.Uint64(out[16:]), be.Uint64(out[24:]))
	}
	if out := r.must(cmd(0x93b, 0, 32, set{0xe0, 32, counter}), 32); be.Uint64(out[16:]) != 0 {
		t.Error("the counter was not cleared")
	}
	r.must(cmd(0x938, 0, 64, set{0xa8, 24, r.table}), 16)
	r.destroyPlain(0x902, second)
	r.must(cmd(0x93a, 0, 16, set{0x40, 32, counter}), 16)
}

func TestTablesAreChainedAndTIRsRehashed(t *testing.T) {
	g := newGuest(t, card()).initialize()
	r := g.up(2).rules()
	next := g.id(cmd(0x930, 0, 64, set{0xc8, 8, 5}, set{0xd8, 8, 0}))
	group := g.id(cmd(0x933, 0, 1024, set{0xa8, 24, next}))
	rqt := g.id(words(cmd(0x916, 0, 0x110, set{0x1b0, 16, 2}, set{0x1d0, 16, 2}), r.rq[0], r.rq[1]))
	in := cmd(0x900, 0, 272, set{0x120, 4, 1}, set{0x208, 24, rqt}, set{0x220, 4, 2}, set{0x228, 24, r.domain}, set{0x380, 2, 1}, set{0x382, 30, 0xf})
	copy(in[0x48:0x70], "forty bytes of a key that is no real key.")
	tir := g.id(in)
	g.must(list(cmd(0x936, 0, 0x340, set{0xa8, 24, next}, set{0x220, 32, group}, set{0x270, 16, 4}, set{0x288, 24, 1}), 2<<56|tir<<32), 16)
	if v := g.Steer(udp(1)); len(v.Queues) != 0 {
		t.Errorf("not chained: %+v", v)
	}
	miss := cmd(0x93c, 0, 64, set{0x70, 16, 1}, set{0xa8, 24, r.table}, set{0xc4, 4, 1}, set{0xe8, 24, next})
	g.must(miss, 16)
	g.refused(cmd(0x931, 0, 64, set{0xa8, 24, next}), 16, BadResourceState, ObjectInUse)
	queues := map[uint32]bool{}
	for port := range uint16(64) {
		v := g.Steer(udp(port))
		queues[v.Queues[0]] = true
	}
	if len(queues) != 2 {
		t.Errorf("64 flows on queues %v", queues)
	}
	g.must(cmd(0x901, 0, 272, set{0x48, 24, tir}, set{0x80, 64, 1 << 4}, set{0x226, 2, 3}), 16)                    // loopback only
	g.must(cmd(0x901, 0, 272, set{0x48, 24, tir}, set{0x80, 64, 1 << 2}, set{0x220, 4, 2}, set{0x382, 30, 3}), 16) // addresses only
	clear(queues)
	for port := range uint16(64) {
		queues[g.Steer(udp(port)).Queues[0]] = true
	}
	if len(queues) != 1 {
		t.Errorf("64 flows of one pair of addresses on queues %v", queues)
	}
	g.refused(cmd(0x901, 0, 272, set{0x48, 24, tir}, set{0x80, 64, 1}), 16, BadParam, BadValue)
	g.must(cmd(0x93c, 0, 64, set{0x70, 16, 1}, set{0xa8, 24, r.table}), 16)
	g.must(cmd(0x938, 0, 64, set{0xa8, 24, next}), 16)
	g.must(cmd(0x934, 0, 64, set{0xa8, 24, next}, set{0xc0, 32, group}), 16)
	g.must(cmd(0x931, 0, 64, set{0xa8, 24, next}), 16)
}

func TestAFrameWaitsForABufferOrIsLost(t *testing.T) {
	g := newGuest(t, card()).initialize()
	r := g.up(1).rules()
	r.must(r.entry(2, 8, r.tir(0)), 16)
	for range 16 {
		if _, err := g.Receive(udp(1)); err != nil {
			t.Fatal(err)
		}
	}
	before := g.Counters()
	if v, err := g.Receive(udp(1)); !errors.Is(err, queue.ErrNoBuffer) || len(v.Queues) != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	if after := g.Counters(); after.Received != before.Received || after.NoBuffer != 0 {
		t.Errorf("a frame that waits was counted: %+v", after)
	}
	if _, err := g.Lose(udp(1)); !errors.Is(err, queue.ErrNoBuffer) {
		t.Error(err)
	}
	out := g.must(cmd(0x773, 0, 32, set{0xf8, 8, r.counters}), 256)
	if lost := get(out, 0x180, 32); lost != 1 || g.Counters().NoBuffer != 1 {
		t.Errorf("out_of_buffer %d, %+v", lost, g.Counters())
	}
	g.write(r.rqRecord[0], be.AppendUint32(nil, 17))
	if _, err := g.Lose(udp(1)); err != nil {
		t.Error(err)
	}
}

func TestTheQueueForNobodyIsNotWaitedFor(t *testing.T) {
	g := newGuest(t, card()).initialize()
	n := g.up(1)
	nobody := n.id(list(cmd(0x908, 0, 272, set{0x148, 24, n.cq[0]}, set{0x160, 8, n.counters}, set{0x280, 4, 1}, set{0x300, 64, g.alloc(64)}, set{0x38c, 4, 4}), g.alloc(pageSize)))
	n.must(cmd(0x909, 0, 272, set{0x48, 24, nobody}, set{0x108, 4, 1}), 16)
	r := n.rules()
	tir := n.id(cmd(0x900, 0, 272, set{0x1e8, 24, nobody}, set{0x228, 24, n.domain}))
	r.must(r.entry(2, 8, tir), 16)
	g.Receive(udp(1))
	if c := g.Counters(); c.NoBuffer != 1 {
		t.Errorf("%+v", c)
	}
}

func TestNoFrameComesWithoutLinkOrLongerThanTheMTU(t *testing.T) {
	g := newGuest(t, card()).initialize()
	r := g.up(1).rules()
	r.must(r.entry(2, 8, r.tir(0)), 16)
	g.SetLink(false)
	if _, err := g.Receive(udp(1)); err != ErrLinkDown {
		t.Error(err)
	}
	g.SetLink(true)
	long := append(udp(1), make([]byte, defaultMTU-checksumBytes-60+1)...)
	if _, err := g.Receive(long); err != ErrTooLong {
		t.Error(err)
	}
	if _, err := g.Receive(long[:len(long)-1]); err != nil {
		t.Error(err)
	}
	if c := g.Counters(); c.TooLong != 1 || c.Received.Frames != 1 {
		t.Errorf("%+v", c)
	}
}

func TestFramesAndCommandsAtOnce(t *testing.T) {
	g := newGuest(t, card()).initialize()
	r := g.up(2).rules()
	tirs := []uint64{r.tir(0), r.tir(1)}
	r.must(r.entry(2, 8, tirs[0]), 16)
	entry := r.entry(0, 0, tirs[1], set{matchProtocol, 8, 17}, set{matchUDPPort, 16, 5000})
	remove := cmd(0x938, 0, 64, set{0xa8, 24, r.table})
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			for i := range 200 {
				g.Lose(udp(uint16(5000 + i%2)))
				g.Report()
				g.Steer(udp(5000))
			}
		})
	}
	for range 100 {
		r.must(entry, 16)
		r.must(remove, 16)
	}
	wait.Wait()
	g.clean()
}
