// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv("FLEXSTEER_LAB") != "1" {
		os.Exit(m.Run())
	}
	start := time.Now()
	dir, err := os.MkdirTemp("", "flexlab")
	if err != nil {
		fmt.Println("lab:", err)
		os.Exit(1)
	}
	theLab, err = open(dir)
	if err != nil {
		os.RemoveAll(dir)
		fmt.Println("lab:", err)
		fmt.Println("lab: 0 passed, 1 failed")
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	tellTimes()
	if tally.passed+tally.failed == 0 {
		fmt.Println("lab: no experiment has such a name")
		code = 1
	}
	fmt.Printf("lab: %d passed, %d failed (%v)\n", tally.passed, tally.failed, time.Since(start).Round(time.Second))
	os.Exit(code)
}

func open(dir string) (*laboratory, error) {
	p, err := findPlaces()
	if err != nil {
		return nil, err
	}
	if err := p.prepare("6.1", "6.12"); err != nil {
		return nil, err
	}
	return &laboratory{places: p, images: images{places: p, dir: dir}, system: sync.OnceValues(p.laySystem)}, nil
}

// TestLab runs the experiments with the driver, TestBoot those with an installed
// system.
func TestLab(t *testing.T)  { runAll(t, false) }
func TestBoot(t *testing.T) { runAll(t, true) }

func runAll(t *testing.T, system bool) {
	if theLab == nil {
		t.Skip("experiments run with FLEXSTEER_LAB=1; see docs/lab.md")
	}
	order, on := byBoot(experiments)
	boots := make(chan boot, len(order))
	for _, b := range order {
		if b.system == system {
			boots <- b
		}
	}
	close(boots)
	var machines sync.WaitGroup
	for range atOnce() {
		machines.Go(func() {
			for b := range boots {
				t.Run(b.String(), func(t *testing.T) { runOn(t, b, on[b]) })
			}
		})
	}
	machines.Wait()
}

// atOnce is how many machines run side by side: go test's -parallel. Its own
// t.Parallel would begin with any of them, and end with the longest alone.
func atOnce() int {
	n, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String())
	if err != nil {
		panic(err)
	}
	return n
}
