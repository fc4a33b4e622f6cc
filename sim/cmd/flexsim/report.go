// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/flexsteer/flexsteer/sim/mlx5"
)

// printReport is what a person wants to know at the end.
func printReport(out io.Writer, c *card, r report) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	row("card", "%s, firmware %s", c.personality.Name, c.personality.Firmware)
	row("driver", "%s", or(r.Driver, "none has told its name"))
	row("function", "%s; %d resets, %d teardowns", r.State, r.Resets, r.Teardowns)
	row("commands", "%s", answersText("%d", r.Commands))
	row("unknown", "%s", or(listText(r.Unknown), "none"))
	row("leaks", "%s", or(listText(r.Leaks), "none"))
	row("alive", "%s", or(listText(r.Alive), "nothing"))
	n, m := c.device.Counters(), c.server.Counters()
	row("frames", "%d received, %d sent, %d lost without a buffer", n.Received.Frames, n.Sent.Frames, n.NoBuffer)
	row("messages", "%d reads, %d writes, %d refused", m.Reads, m.Writes, m.Refused)
	if s := r.Settings; s != nil {
		row("settings", "%s; %d starts of the firmware", answersText("%d accesses to registers", s.Registers), s.Restarts)
	}
	if r.Total == 0 {
		row("violations", "none")
	} else {
		row("violations", "%d", r.Total)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, v := range r.Violations {
		if _, err := fmt.Fprintf(out, "  %v\n", v); err != nil {
			return err
		}
	}
	return nil
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// listText is counts by name, as "2 eq, 1 cq".
func listText(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}

// answersText is how many there were in all, and how many had which answer.
func answersText(total string, answers map[string]map[string]int) string {
	n, byStatus := 0, map[string]int{}
	for _, statuses := range answers {
		for status, times := range statuses {
			n += times
			byStatus[status] += times
		}
	}
	delete(byStatus, mlx5.OK.String())
	text := fmt.Sprintf(total, n)
	if refused := listText(byStatus); refused != "" {
		return text + "; answered otherwise than OK: " + refused
	}
	return text + ", all OK"
}
