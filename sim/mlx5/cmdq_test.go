// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"testing"
	"time"
)

func TestACommandIsNotEvenLookedAtIfItsDeliveryIsWrong(t *testing.T) {
	for _, c := range []struct {
		name  string
		want  delivery
		spoil func(g *guest, entry []byte)
	}{
		{"type", badDescriptor, func(_ *guest, e []byte) { e[0] = 1 }},
		{"no input", badInLength, func(_ *guest, e []byte) { be.PutUint32(e[4:], 4) }},
		{"too much input", badInLength, func(_ *guest, e []byte) { be.PutUint32(e[4:], 1<<31) }},
		{"no output", badOutLength, func(_ *guest, e []byte) { be.PutUint32(e[0x38:], 0) }},
		{"too much output", badOutLength, func(_ *guest, e []byte) { be.PutUint32(e[0x38:], 1<<24) }},
		{"input unaligned", badInAlignment, func(_ *guest, e []byte) { e[15] |= 8 }},
		{"output unaligned", badOutAlignment, func(_ *guest, e []byte) { e[0x37] |= 4 }},
		{"input outside", deliveryFailed, func(_ *guest, e []byte) { be.PutUint64(e[8:], 1<<50) }},
		{"output outside", deliveryFailed, func(_ *guest, e []byte) { be.PutUint64(e[0x30:], 1<<50) }},
		{"token of the entry", badToken, func(_ *guest, e []byte) { e[0x3c]++ }},
		{"token of a mailbox", badToken, func(g *guest, e []byte) { g.write(be.Uint64(e[0x30:])+1024+573, []byte{0xee}) }},
		{"block number", badBlockNumber, func(g *guest, e []byte) { g.write(be.Uint64(e[8:])+1024+568, []byte{0, 0, 0, 7}) }},
		{"a chain that ends", deliveryFailed, func(g *guest, e []byte) { g.write(be.Uint64(e[8:])+560, make([]byte, 8)) }},
		{"a chain in a circle", badBlockNumber, func(g *guest, e []byte) {
			g.write(be.Uint64(e[8:])+560, e[8:16])
		}},
	} {
		g := newGuest(t, card()).attach()
		entry := g.entry(cmd(0x104, 0, 16+600), 16+600)
		c.spoil(g, entry)
		g.give(0, entry)
		owner := g.read(g.queue+0x3f, 1)[0]
		if owner != byte(c.want)<<1 {
			t.Errorf("%s: status %#x, want delivery status %#x", c.name, owner, c.want)
		}
		if r := g.Report(); len(r.Violations) != 1 || len(r.Commands) != 0 || r.State != "disabled" {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

func TestADoorbellTakesAllSlotsThatItNames(t *testing.T) {
	g := newGuest(t, card()).attach()
	enable, issi := g.entry(cmd(0x104, 0, 16), 12), g.entry(cmd(0x10a, 0, 16), 112)
	g.write(g.queue, enable)
	g.write(g.queue+31*64, issi)
	g.write32(0x18, 1<<31|1)
	out, _ := g.taken(31)
	if Status(out[0]) != OK || get(out, 0x360, 32) != 3 {
		t.Errorf("QUERY_ISSI in slot 31: %x", out)
	}
	g.clean()
}

func TestADoorbellForAnEntryOfTheDriverIsAViolation(t *testing.T) {
	g := newGuest(t, card()).attach()
	entry := g.entry(cmd(0x104, 0, 16), 12)
	entry[0x3f] = 0
	g.give(0, entry)
	if r := g.Report(); r.Total != 1 || r.State != "disabled" {
		t.Errorf("%+v", r)
	}
}

func TestDoorbellsAreIgnoredWhileTheInterfaceIsNotFull(t *testing.T) {
	g := newGuest(t, card()).attach()
	for _, nicInterface := range []uint32{1, 2} {
		g.write32(0x14, uint32(g.queue)|nicInterface<<8)
		if got := g.read32(0x14); got != nicInterface<<8|5<<4|6 {
			t.Errorf("nic_interface %d reads %#x", nicInterface, got)
		}
		g.give(0, g.entry(cmd(0x104, 0, 16), 12))
		if g.read(g.queue+0x3f, 1)[0] != 1 {
			t.Errorf("nic_interface %d: command was taken", nicInterface)
		}
	}
}

func TestAReplyEndsWhereTheDriverHasNoMoreRoom(t *testing.T) {
	g := newGuest(t, card()).initialize()
	entry := g.entry(cmd(0x754, 0, 16), 272)
	box := be.Uint64(entry[0x30:])
	g.write(box+256, []byte{0xaa})
	g.give(0, entry)
	if got := g.read(box+256, 1)[0]; got != 0xaa {
		t.Errorf("byte 272 of a reply of 272 was written: %#x", got)
	}
	g.refused(cmd(0x754, 0, 16), 271, BadOutputLength, WrongLength)
	g.refused(cmd(0x754, 0, 15), 272, BadInputLength, WrongLength)
}

func TestInputMayBeLongerThanKnownAsLongAsNothingIsInIt(t *testing.T) {
	g := newGuest(t, card()).attach()
	g.must(cmd(0x104, 0, 900), 900)
	g.refused(cmd(0x10b, 0, 900, set{899 * 8, 8, 1}), 16, BadParam, UnknownBits)
}

func TestFromTheCommandEventQueueOnACommandEndsWithAnEvent(t *testing.T) {
	g := newGuest(t, card()).initialize()
	uar := g.id(cmd(0x802, 0, 16))
	eq, ring := g.eventQueue(uar, 5, 1<<0x0a)
	if n := g.memory.Fired(5); n != 0 {
		t.Errorf("the command that made the queue was told in it: %d interrupts", n)
	}
	g.write32(uint64(uar)*pageSize+0x40, uint32(eq)<<24) // arm
	g.give(7, g.entry(cmd(0x104, 0, 16), 12))            // refused, and told all the same
	event := g.read(ring, 64)
	if event[1] != 0x0a || be.Uint32(event[32:]) != 1<<7 || event[63] != 0 {
		t.Errorf("event %x", event)
	}
	if n := g.memory.Fired(5); n != 1 {
		t.Errorf("%d interrupts", n)
	}
	g.must(cmd(0x302, 0, 16, set{0x58, 8, eq}), 16)
	if n := g.memory.Fired(5); n != 1 {
		t.Errorf("an event after the queue was gone: %d interrupts", n)
	}
}

func TestAMovedCommandQueueIsAViolationWhileTheFunctionIsEnabled(t *testing.T) {
	g := newGuest(t, card()).attach()
	g.write32(0x14, uint32(g.alloc(pageSize)))
	g.clean()
	g.attach()
	g.must(cmd(0x104, 0, 16), 12)
	g.write32(0x14, uint32(g.alloc(pageSize)))
	if g.Report().Total != 1 {
		t.Error(g.Report())
	}
}

func TestMemoryThatGoesWhileACommandRunsIsAViolation(t *testing.T) {
	for _, what := range []string{"mailbox", "entry"} {
		g := newGuest(t, card()).initialize()
		g.fault(Fault{Command: "QUERY_ISSI", Delay: 10 * time.Millisecond})
		entry := g.entry(cmd(0x10a, 0, 16), 112)
		g.give(0, entry)
		if what == "entry" {
			g.memory.Unmap(g.queue, pageSize)
		} else {
			g.memory.Unmap(be.Uint64(entry[0x30:]), pageSize)
		}
		g.until(func() bool { return g.Report().Total > 0 })
		if what == "mailbox" {
			if owner := g.read(g.queue+0x3f, 1)[0]; owner != byte(deliveryFailed)<<1 {
				t.Errorf("delivery status %#x", owner>>1)
			}
		}
	}
}
