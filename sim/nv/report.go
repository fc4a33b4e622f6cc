// SPDX-License-Identifier: Apache-2.0

package nv

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Report is what tools and drivers did since the firmware was made.
type Report struct {
	Accesses  int                       `json:"accesses"`  // to address spaces, a dword each
	Registers map[string]map[string]int `json:"registers"` // by name and method, as "NVDA get", and by status
	Restarts  int                       `json:"restarts"`  // of the firmware, the first start among them
	// Violations are what no tool may do, and what the model does not know; with
	// how often each happened.
	Violations map[string]int `json:"violations"`
}

// recorder gathers the Report and the trace.
type recorder struct {
	accesses   int
	registers  map[string]map[string]int
	restarts   int
	violations map[string]int
	trace      io.Writer // nil: none
}

// maxViolations is how many different ones are kept.
const maxViolations = 200

// violate notes what no tool may do, unless faults bring tools to it.
func (f *Firmware) violate(format string, args ...any) {
	if !f.faults.broken() {
		f.report.violate(fmt.Sprintf(format, args...))
	}
}

func (r *recorder) violate(text string) {
	if r.violations == nil {
		r.violations = map[string]int{}
	}
	if len(r.violations) >= maxViolations && r.violations[text] == 0 {
		text = "others"
	}
	r.violations[text]++
}

// register notes an access, with the beginning of its data.
func (r *recorder) register(when time.Duration, id uint16, how method, status Status, data []byte) {
	name := registerName(id) + " " + how.String()
	counted := name
	if !named(id) || how != methodGet && how != methodSet {
		counted = "others"
	}
	if r.registers == nil {
		r.registers = map[string]map[string]int{}
	}
	if r.registers[counted] == nil {
		r.registers[counted] = map[string]int{}
	}
	r.registers[counted][status.String()]++
	if r.trace != nil {
		fmt.Fprintf(r.trace, "settings %.6f %s %v %x\n", when.Seconds(), name, status, data)
	}
}

// Report is a copy of what is known now.
func (f *Firmware) Report() Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := Report{Accesses: f.report.accesses, Registers: map[string]map[string]int{}, Restarts: f.report.restarts, Violations: map[string]int{}}
	maps.Copy(r.Violations, f.report.violations)
	for name, statuses := range f.report.registers {
		r.Registers[name] = maps.Clone(statuses)
	}
	return r
}

// List is the violations in words, in alphabetical order.
func (r Report) List() (all []string) {
	for _, text := range slices.Sorted(maps.Keys(r.Violations)) {
		all = append(all, fmt.Sprintf("%s (%d times)", text, r.Violations[text]))
	}
	return all
}
