// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Watch is linkwatch in the guest: what happens to links, by the guest's clock.
type Watch struct {
	*Process
	marked int // changes before the mark
}

// Change is one line of linkwatch.
type Change struct {
	At    time.Duration // CLOCK_MONOTONIC
	What  string        // link, gone, rules, queues
	Index int
	Link  string // name
	State string // of link: up, down, no-carrier
	Count int    // of rules and queues
}

// Watch starts to watch all links.
func (m *Machine) Watch() *Watch {
	m.Helper()
	w := &Watch{Process: m.Start("/lab/linkwatch")}
	w.First(is("rules", m.Link))
	return w
}

// Mark has First and Last look at what comes from now on.
func (w *Watch) Mark() { w.m.Helper(); w.marked = len(w.changes()) }

// Since is all changes since the mark, in order.
func (w *Watch) Since() []Change { w.m.Helper(); return w.changes()[w.marked:] }

func (w *Watch) changes() (all []Change) {
	w.m.Helper()
	for line := range strings.Lines(w.Output()) {
		if strings.HasSuffix(line, "\n") {
			c, err := parseChange(strings.Fields(line))
			w.m.must(err)
			all = append(all, c)
		}
	}
	return all
}

func parseChange(fields []string) (c Change, err error) {
	if len(fields) < 4 {
		return c, fmt.Errorf("linkwatch said %q", fields)
	}
	seconds, err := time.ParseDuration(fields[0] + "s")
	if err != nil {
		return c, fmt.Errorf("linkwatch said %q: %w", fields, err)
	}
	c.At, c.What, c.Link = seconds, fields[1], fields[3]
	if c.Index, err = strconv.Atoi(fields[2]); err != nil {
		return c, fmt.Errorf("linkwatch said %q: %w", fields, err)
	}
	switch c.What {
	case "link":
		c.State = fields[4]
	case "rules", "queues":
		c.Count, err = strconv.Atoi(fields[4])
	}
	return c, err
}

// First waits for a change since the mark of which f is true.
func (w *Watch) First(f func(Change) bool) (found Change) {
	w.m.Helper()
	w.m.Eventually(func() string {
		for _, found = range w.Since() {
			if f(found) {
				return ""
			}
		}
		return fmt.Sprintf("no such change of a link in %v", w.Since())
	})
	return found
}

// After waits for the first change behind another one of which f is true.
func (w *Watch) After(c Change, f func(Change) bool) Change {
	w.m.Helper()
	return w.First(func(later Change) bool { return later.At > c.At && f(later) })
}

func is(what, link string) func(Change) bool {
	return func(c Change) bool { return c.What == what && c.Link == link }
}

// counts is a new count of rules or queues on a link.
func counts(what, link string, n int) func(Change) bool {
	return func(c Change) bool { return is(what, link)(c) && c.Count == n }
}

// times are what experiments have measured, for the table at the end.
var times struct {
	sync.Mutex
	rows []string
}

// Took notes for the table at the end how long rules were gone, from their loss
// or the one thing that happened, and, if the link told of something (else a
// zero Change), how long they took from there.
func (m *Machine) Took(what string, rules int, loss, event, done Change) {
	m.Helper()
	since := func(c Change) string {
		if c == (Change{}) {
			return "-"
		}
		return fmt.Sprintf("%.3f s", max(0, done.At-c.At).Seconds())
	}
	m.note("%s: %d rules, lost by %+v, told by %+v, complete with %+v", what, rules, loss, event, done)
	times.Lock()
	defer times.Unlock()
	times.rows = append(times.rows, fmt.Sprintf("%-6s %-52s %5d %12s %12s", m.boot.kernel, what, rules, since(event), since(loss)))
}

// tellTimes prints the table.
func tellTimes() {
	times.Lock()
	defer times.Unlock()
	if len(times.rows) == 0 {
		return
	}
	slices.SortStableFunc(times.rows, func(a, b string) int { return strings.Compare(a[:6], b[:6]) }) // by kernel
	fmt.Println("lab: the time until all rules were in place again, by the guest's clock (emulated CPUs, a busy host)")
	fmt.Printf("%-6s %-52s %5s %12s %12s\n", "kernel", "after", "rules", "since event", "since loss")
	for _, row := range times.rows {
		fmt.Println(row)
	}
}
