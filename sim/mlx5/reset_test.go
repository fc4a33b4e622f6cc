// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestADoorbellUnderWayIsWaitedFor(t *testing.T) {
	for name, end := range map[string]func(*Device){"reset": (*Device).Reset, "vanish": (*Device).Vanish} {
		g := newGuest(t, card()).initialize()
		n := g.up(1)
		ended := make(chan struct{})
		g.out = func([]byte) {
			go func() { end(g.Device); close(ended) }()
			select {
			case <-ended:
				t.Errorf("%s came in the midst of a doorbell", name)
			case <-time.After(50 * time.Millisecond):
			}
		}
		n.transmits(udp(1))
		<-ended
		g.clean()
	}
}

// interrupted ends what a driver does at the first thing that does not go as it should.
type interrupted struct{ testing.TB }

type stop struct{ why string }

func (interrupted) Fatalf(format string, args ...any) { panic(stop{fmt.Sprintf(format, args...)}) }

// work is a driver from probe to remove. It tells whether a reset ended it: any other end is wrong.
func (g *guest) work() (reset bool) {
	defer func() {
		why := recover()
		if _, stopped := why.(stop); !stopped && why != nil {
			panic(why)
		}
		if reset = g.read32(segQueueLow)>>8&7 == interfaceDisabled; why != nil && !reset {
			g.Errorf("the driver was stopped by %v", why)
		}
	}()
	g.initialize()
	n := g.up(2)
	r := n.rules()
	tir := r.tir(0)
	g.must(r.entry(2, 8, tir), 16)
	for range 50 {
		n.transmits(udp(2))
		g.write32(n.uar*pageSize+0x48, uint32(n.asyncEQ)<<24)
	}
	g.must(cmd(0x938, 0, 64, set{0xa8, 24, r.table}, set{0x100, 32, 8}), 16)
	r.clear(tir)
	n.down()
	g.leave()
	return false
}

// A driver that does nothing wrong is blamed for nothing, at whatever moment the card is reset.
func TestResetsBesideEverything(t *testing.T) {
	g := newGuest(interrupted{t}, card())
	g.Device.out = func([]byte) {}
	var others sync.WaitGroup
	var over atomic.Bool
	others.Go(func() {
		for !over.Load() {
			g.Lose(udp(1))
			g.Report()
			g.Tables()
			g.Counters()
		}
	})
	others.Go(func() {
		for i := range 200 {
			time.Sleep(time.Duration(i*i%17) * 100 * time.Microsecond)
			g.Reset()
		}
		over.Store(true)
	})
	lives, resets := 0, 0
	for ; !over.Load(); lives++ {
		if g.work() {
			resets++
		}
	}
	others.Wait()
	if resets == 0 {
		t.Errorf("of %d drivers none met a reset", lives)
	}
	g.TB = t
	g.clean()
}
