// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

func TestTheInitializationSegment(t *testing.T) {
	g := newGuest(t, card())
	for _, c := range []struct {
		name string
		off  uint64
		want uint32
	}{
		{"firmware minor and major", 0x0, 43<<16 | 32},
		{"command interface revision, firmware sub-minor", 0x4, 5<<16 | 2566},
		{"32 commands of 64 bytes, nic_interface disabled", 0x14, 1<<8 | 5<<4 | 6},
		{"initialized, and reset by the driver is offered", 0x1fc, 1 << 30},
		{"health buffer's firmware version", 0x230, 32<<24 | 43<<16 | 2566},
		{"health syndrome", 0x23c, 0},
		{"internal timer, high", 0x1000, uint32(time.Hour >> 32)},
		{"internal timer, low", 0x1004, uint32(time.Hour & 0xffffffff)},
		{"health counter", 0x1010, 360000},
		{"nothing", 0x300, 0},
		{"behind the segment", 0x8000, 0},
	} {
		if got := g.read32(c.off); got != c.want {
			t.Errorf("%s at %#x: %#x, want %#x", c.name, c.off, got, c.want)
		}
	}
	one := []byte{9}
	if g.BARRead(0x4, one); one[0] != 0 {
		t.Errorf("byte 4: %#x", one)
	}
	if g.BARRead(0x5, one); one[0] != 5 {
		t.Errorf("byte 5: %#x", one)
	}
	g.clean()
}

// The timer runs on while its bytes are put together.
func TestAWordIsReadAtOneTime(t *testing.T) {
	g := newGuest(t, card())
	var told []uint32
	g.Device.now = func() time.Duration {
		g.clock += 0x1010101
		told = append(told, uint32(g.clock))
		return g.clock
	}
	if got := g.read32(0x1004); !slices.Contains(told, got) {
		t.Errorf("internal timer %#x; it was %#x", got, told)
	}
}

func TestAfterAResetTheFirmwareTakesItsTime(t *testing.T) {
	g := newGuest(t, card())
	g.Reset()
	if got := g.read32(0x1fc); got != 1<<31|1<<30 {
		t.Errorf("initializing: %#x", got)
	}
	g.clock += bootTime
	if got := g.read32(0x1fc); got != 1<<30 {
		t.Errorf("initializing, later: %#x", got)
	}
	if got := g.read32(0x1010); got != 0 {
		t.Errorf("health counter: %d", got)
	}
}

func TestWhatMayNotBeWrittenIsAViolation(t *testing.T) {
	g := newGuest(t, card())
	g.write32(0x0, 1)
	g.write32(0x1010, 1)
	g.BARWrite(0x14, make([]byte, 8))
	g.write32(0x14, 3<<8)
	if r := g.Report(); r.Total != 4 {
		t.Errorf("%d violations: %v", r.Total, r.Violations)
	}
}

func TestHealth(t *testing.T) {
	g := newGuest(t, card())
	g.SetHealth(Health{Syndrome: 7, RequestReset: true})
	if synd, severity := g.read32(0x23c), g.read32(0x238); synd != 7<<16 || severity != 1<<31 {
		t.Errorf("syndrome %#x, severity %#x", synd, severity)
	}
	one := make([]byte, 1)
	if g.BARRead(0x23d, one); one[0] != 7 {
		t.Errorf("the driver reads one byte: %#x", one)
	}
	g.SetHealth(Health{})
	if synd := g.read32(0x23c); synd != 0 {
		t.Errorf("syndrome %#x", synd)
	}
}

func TestTheDriverResetsASickFunctionAndStartsAgain(t *testing.T) {
	g := newGuest(t, card()).initialize()
	g.up(2)
	g.SetHealth(Health{Syndrome: 1, RequestReset: true})
	g.write32(0x14, uint32(g.queue)|7<<8)
	if got := g.read32(0x14) >> 8 & 7; got != 1 {
		t.Errorf("nic_interface %d", got)
	}
	if g.read32(0x23c) != 0 {
		t.Error("still sick")
	}
	r := g.Report()
	if r.State != "disabled" || len(r.Alive) != 0 || len(r.Leaks) != 0 || r.Resets != 1 {
		t.Errorf("%+v", r)
	}
	g.write32(0x10010*16, 1) // a doorbell of somebody who does not know yet
	g.initialize().up(1).down()
	g.leave()
	g.clean()
}

func TestAVanishedDevice(t *testing.T) {
	g := newGuest(t, card()).initialize()
	n := g.up(1)
	g.Vanish()
	if got := g.read32(0x230); got != 0xffffffff {
		t.Errorf("reads %#x", got)
	}
	g.give(0, g.entry(cmd(0x10a, 0, 16), 112))
	if g.read(g.queue+0x3f, 1)[0] != 1 {
		t.Error("a command was taken")
	}
	g.write32(n.uar*pageSize+0x40, 0)
	if _, err := g.Receive(bytes.Repeat([]byte{1}, 60)); err != ErrVanished {
		t.Errorf("a frame: %v", err)
	}
	g.SetLink(false)
	g.SetLink(true)
	g.clean()
	g.Reset()
	g.clock += bootTime
	if got := g.read32(0x1fc); got != 1<<30 {
		t.Errorf("after a reset: %#x", got)
	}
	g.initialize()
	g.leave()
	g.clean()
}
