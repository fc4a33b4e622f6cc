// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Report is what the driver did since the device was made; resets do not clear it.
type Report struct {
	Driver     string                    `json:"driver"`   // as it calls itself; empty before it told
	State      string                    `json:"state"`    // of the function: "disabled", "enabled", "initialized"
	Commands   map[string]map[string]int `json:"commands"` // by name and status
	Unknown    map[string]int            `json:"unknown_opcodes"`
	Violations []Violation               `json:"violations"` // the first ones; see maxViolations
	Total      int                       `json:"violations_total"`
	Alive      map[string]int            `json:"alive"` // objects by kind
	Leaks      map[string]int            `json:"leaks"` // objects by kind that were left at TEARDOWN_HCA, and pages at DISABLE_HCA
	Teardowns  int                       `json:"teardowns"`
	Resets     int                       `json:"resets"`
	Samples    int                       `json:"free_samples"` // of the parse graph
}

// Violation is something that a correct driver does not do.
type Violation struct {
	Command  string   `json:"command,omitempty"` // empty: not by a command
	Number   int      `json:"number,omitempty"`  // of the command, as in the trace
	Status   Status   `json:"status"`
	Syndrome Syndrome `json:"syndrome,omitempty"`
	Text     string   `json:"text"`
}

func (v Violation) String() string {
	if v.Command == "" {
		return v.Text
	}
	return fmt.Sprintf("#%d %s: %s (%v, syndrome %#x)", v.Number, v.Command, v.Text, v.Status, uint32(v.Syndrome))
}

// maxViolations is how many a Report keeps; the others are only counted.
const maxViolations = 1000

// Clean is nil if the driver did nothing wrong so far and left nothing behind.
func (r Report) Clean() error {
	var wrong []string
	for _, opcode := range slices.Sorted(maps.Keys(r.Unknown)) {
		wrong = append(wrong, fmt.Sprintf("unknown opcode %s, %d times", opcode, r.Unknown[opcode]))
	}
	for _, v := range r.Violations {
		wrong = append(wrong, v.String())
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Leaks)) {
		wrong = append(wrong, fmt.Sprintf("%d of kind %s were left behind", r.Leaks[kind], kind))
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("the driver is at fault: %s", strings.Join(wrong, "; "))
}

// recorder gathers the Report and the trace.
type recorder struct {
	done       int    // commands
	driver     string // what SET_DRIVER_VERSION said last
	commands   map[uint16]map[Status]int
	violations []Violation
	total      int
	leaks      map[string]int
	teardowns  int
	resets     int
	trace      io.Writer // nil: none
}

// Report is a copy of what is known now.
func (d *Device) Report() Report {
	d.mu.RLock()
	defer d.mu.RUnlock()
	r := Report{
		Driver: d.report.driver, State: d.function.state.String(),
		Commands: map[string]map[string]int{}, Unknown: map[string]int{},
		Violations: slices.Clone(d.report.violations), Total: d.report.total,
		Alive: d.function.objects.alive(), Leaks: maps.Clone(d.report.leaks),
		Teardowns: d.report.teardowns, Resets: d.report.resets, Samples: d.function.steering.FreeSamples(),
	}
	for opcode, statuses := range d.report.commands {
		r.count(opcode, statuses)
	}
	for _, v := range d.rings.Violations() {
		r.Violations = append(r.Violations, Violation{Text: fmt.Sprintf("%s (%d times)", v.Text, v.Count)})
		r.Total += v.Count
	}
	return r
}

func (r *Report) count(opcode uint16, statuses map[Status]int) {
	of := map[string]int{}
	for status, n := range statuses {
		of[status.String()] = n
		if commands[opcode] == nil {
			r.Unknown[commandName(opcode)] += n
		}
	}
	r.Commands[commandName(opcode)] = of
}

// command notes a command that was answered.
func (r *recorder) command(now time.Duration, opcode uint16, c *call, err error) {
	r.done++
	status := Status(statusField.Get(c.out))
	if r.commands == nil {
		r.commands = map[uint16]map[Status]int{}
	}
	if r.commands[opcode] == nil {
		r.commands[opcode] = map[Status]int{}
	}
	r.commands[opcode][status]++
	if r.trace != nil {
		fmt.Fprintln(r.trace, traceLine{r.done, now, opcode, c, err})
	}
	if err != nil {
		r.refused(opcode, asRefusal(err))
	}
}

func (r *recorder) refused(opcode uint16, why *refusal) {
	if !why.legal() && commands[opcode] != nil && !why.injected {
		r.add(Violation{Command: commandName(opcode), Number: r.done, Status: why.status, Syndrome: why.syndrome, Text: why.text})
	}
}

// violate notes a violation outside of commands.
func (r *recorder) violate(format string, args ...any) {
	r.add(Violation{Text: fmt.Sprintf(format, args...)})
}

func (r *recorder) add(v Violation) {
	r.total++
	if len(r.violations) < maxViolations {
		r.violations = append(r.violations, v)
	}
}

// leaked notes what was left behind at a teardown.
func (r *recorder) leaked(alive map[string]int) {
	if r.leaks == nil {
		r.leaks = map[string]int{}
	}
	for kind, n := range alive {
		r.leaks[kind] += n
	}
}
