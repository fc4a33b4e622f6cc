// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Experiment is one thing that must hold, and the machine that it wants.
type Experiment struct {
	Name string // what holds, in plain words; unique

	// Kernels are lines of Debian's kernels; nil: "6.1" and "6.12", each. A System
	// has 6.1 if nothing is said.
	Kernels []string
	// System wants a Debian system that boots from a disk, with our packages
	// installed: see system.go. make boot runs these, make lab the others.
	System bool
	// Stock wants the distribution's own mlx5_core instead of the patched one.
	Stock bool
	// Personality is a card of sim/personalities; "": bluefield-3.
	Personality string
	// Tools wants Debian's mstflint in the guest, in an image of its own, since that
	// needs Python and is large: see firmware.go.
	Tools bool
	// MaxNodes is the patched driver's flex_l4_max_nodes at its load; 0: not given.
	MaxNodes int
	// Fresh wants a machine that no other experiment gets before or after.
	Fresh bool

	Run func(m *Machine)
}

var experiments []Experiment

// add makes an experiment known.
func add(e Experiment) struct{} {
	if e.Kernels == nil {
		e.Kernels = []string{"6.1", "6.12"}
		if e.System {
			e.Kernels = e.Kernels[:1]
		}
	}
	e.Personality = cmp.Or(e.Personality, "bluefield-3")
	for _, other := range experiments {
		if other.Name == e.Name {
			panic("two experiments are named " + e.Name)
		}
	}
	experiments = append(experiments, e)
	return struct{}{}
}

// boot is what experiments must agree on to share a running machine. The driver
// can be changed while it runs.
type boot struct {
	kernel      string
	personality string
	tools       bool
	system      bool
	fresh       string // the name of the one experiment, or ""
}

func (b boot) String() string {
	parts := []string{b.kernel, b.personality}
	if b.tools {
		parts = append(parts, "tools")
	}
	if b.system {
		parts = append(parts, "system")
	}
	if b.fresh != "" {
		parts = append(parts, plain(b.fresh))
	}
	return strings.Join(parts, "-")
}

// driver is how mlx5_core is loaded.
type driver struct {
	stock    bool
	maxNodes int
}

func (d driver) String() string {
	switch {
	case d.stock:
		return "stock"
	case d.maxNodes > 0:
		return fmt.Sprintf("patched-%d-nodes", d.maxNodes)
	}
	return "patched"
}

func (e Experiment) driver() driver { return driver{e.Stock, e.MaxNodes} }

// byBoot sorts experiments to the machines that they run on, the longest first.
func byBoot(all []Experiment) (order []boot, on map[boot][]Experiment) {
	on = make(map[boot][]Experiment)
	for _, e := range all {
		for _, kernel := range e.Kernels {
			b := boot{kernel: kernel, personality: e.Personality, tools: e.Tools, system: e.System}
			if e.Fresh {
				b.fresh = e.Name
			}
			if _, known := on[b]; !known {
				order = append(order, b)
			}
			on[b] = append(on[b], e)
		}
	}
	for _, es := range on {
		slices.SortStableFunc(es, func(a, b Experiment) int { return strings.Compare(a.driver().String(), b.driver().String()) })
	}
	slices.SortFunc(order, func(a, b boot) int {
		return cmp.Or(b.work(len(on[b]))-a.work(len(on[a])), strings.Compare(a.String(), b.String()))
	})
	return order, on
}

// work is about how long n experiments take on this machine, in usual ones.
func (b boot) work(n int) int {
	switch {
	case b.tools: // mstconfig asks a card for each byte, by way of an emulator
		return 6 * n
	case b.system && b.fresh != "": // they boot again and again, or run apt
		return 10 * n
	}
	return n
}

// plain is a name as a folder: "one rule: EINVAL" is one_rule_EINVAL.
func plain(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.'
	})
	return strings.Join(words, "_")
}

// tally counts for the closing line.
var tally struct {
	sync.Mutex
	passed, failed int
}

// tell prints one line about an experiment, as it ends.
func tell(t *testing.T, name string, took time.Duration, folder string) {
	tally.Lock()
	defer tally.Unlock()
	if t.Failed() {
		tally.failed++
		fmt.Printf("not ok - %s (%.1f s): see %s\n", name, took.Seconds(), folder)
		return
	}
	tally.passed++
	fmt.Printf("ok - %s (%.1f s)\n", name, took.Seconds())
}

// runOn runs the experiments of one machine, which boots with the first of them
// that -run lets through.
func runOn(t *testing.T, b boot, all []Experiment) {
	var s *session
	defer func() {
		if s != nil {
			s.end(t)
		}
	}()
	for _, e := range all {
		t.Run(e.driver().String()+" "+plain(e.Name), func(t *testing.T) {
			start := time.Now()
			m := newMachine(t, b, e)
			defer func() { tell(t, b.String()+" "+e.driver().String()+": "+e.Name, time.Since(start), m.folder) }()
			// One each, since what fails in a deferred function ends that function.
			defer func() {
				// A failure may have left anything behind: the next gets a new machine.
				if t.Failed() && s != nil {
					m.keep()
					s.kill()
					s = nil
				}
			}()
			defer func() {
				if t.Skipped() {
					t.Error("an experiment that cannot run fails")
				}
				if !t.Failed() && s != nil {
					m.restore()
				}
			}()
			s = m.on(s, b, e.driver())
			e.Run(m)
			m.noFault()
		})
	}
}
