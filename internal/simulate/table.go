// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Style is how a Counts is shown.
type Style struct {
	Width   int  // of the terminal, in characters
	Unicode bool // bars of blocks instead of #
}

// Table writes c for people: a row with bars for each queue, before and after,
// then what was dropped, what no entry matched, and each entry's share.
func (c *Counts) Table(w io.Writer, s Style) error {
	var b strings.Builder
	c.queueTable(&b, s)
	c.totals(&b)
	c.entryTable(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// rows is the queues in runs: a queue with packets is alone, queues without any
// share a row.
func (c *Counts) rows() (rows [][2]int) {
	idle := func(q int) bool { return c.Before[q] == 0 && c.After[q] == 0 }
	for q := 0; q < len(c.Before); q++ {
		last := q
		for idle(q) && last+1 < len(c.Before) && idle(last+1) {
			last++
		}
		rows = append(rows, [2]int{q, last})
		q = last
	}
	return rows
}

func (c *Counts) queueTable(b *strings.Builder, s Style) {
	number := max(len("packets"), len(Grouped(c.Packets)))
	label := 2*len(strconv.Itoa(len(c.Before))) + 1
	label = max(label, len("imbalance"))
	// "LABEL  NUMBER  100.0 %  BAR  NUMBER  100.0 %  BAR"
	bar := min(max((s.Width-label-2*(number+len("  100.0 %  ")+2))/2, 4), 40)
	side := number + len("  100.0 %  ") + bar

	fmt.Fprintf(b, "%-*s  %-*s  %s\n", label, "", side, "before", "after")
	fmt.Fprintf(b, "%*s  %*s  %7s  %-*s  %*s  %7s\n", label, "queue", number, "packets", "share", bar, "", number, "packets", "share")
	full := max(slices.Max(c.Before), slices.Max(c.After), 1)
	for _, r := range c.rows() {
		name := strconv.Itoa(r[0])
		if r[1] > r[0] {
			name += "-" + strconv.Itoa(r[1])
		}
		before, after := c.Before[r[0]], c.After[r[0]]
		line := fmt.Sprintf("%*s  %*s  %7s  %s  %*s  %7s  %s", label, name,
			number, Grouped(before), percent(before, c.Packets), s.bar(before, full, bar),
			number, Grouped(after), percent(after, c.Packets), s.bar(after, full, bar))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	gap := strings.Repeat(" ", len("  100.0 %  ")+bar)
	if c.Dropped > 0 {
		fmt.Fprintf(b, "%*s  %*s%s  %*s  %7s\n", label, "dropped", number, "0", gap, number, Grouped(c.Dropped), percent(c.Dropped, c.Packets))
	}
	fmt.Fprintf(b, "%*s  %*s%s  %*s\n", label, "imbalance", number, imbalance(c.Before), gap, number, imbalance(c.After))
}

func (c *Counts) totals(b *strings.Builder) {
	fmt.Fprintf(b, "\nbefore: %s\nafter:  %s\n", inUse(c.Before), inUse(c.After))
	fmt.Fprintf(b, "no entry matched %s (%s); they take the default path\n", Packets(c.Unmatched), strings.TrimSpace(percent(c.Unmatched, c.Packets)))
	if c.Outgoing > 0 {
		fmt.Fprintf(b, "left out: %s that the capturing host sent itself (--outgoing counts them)\n", Packets(c.Outgoing))
	}
}

// inUse is one line about a distribution.
func inUse(queues []uint64) string {
	least, most := slices.Min(queues), slices.Max(queues)
	used := Used(queues)
	text := fmt.Sprintf("%d of %d queues in use", used, len(queues))
	switch {
	case most == 0:
		return "no packets on any queue"
	case used == 1:
		return fmt.Sprintf("all %s on one queue of %d", Packets(most), len(queues))
	case least == most:
		return fmt.Sprintf("%s on each of %d queues", Packets(most), len(queues))
	case least == 0:
		return text
	}
	return fmt.Sprintf("%s, %s to %s packets each", text, Grouped(least), Grouped(most))
}

func (c *Counts) entryTable(b *strings.Builder) {
	if len(c.Entries) == 0 {
		return
	}
	name, number := len("entry"), max(len("packets"), len(Grouped(c.Packets)))
	for _, e := range c.Entries {
		name = max(name, len(e.Name))
	}
	fmt.Fprintf(b, "\n%-*s  %5s  %*s  %7s\n", name, "entry", "rules", number, "packets", "share")
	for _, e := range c.Entries {
		fmt.Fprintf(b, "%-*s  %5d  %*s  %7s\n", name, e.Name, e.Rules, number, Grouped(e.Packets), percent(e.Packets, c.Packets))
	}
}

// bar is n of full as a bar, padded to width.
func (s Style) bar(n, full uint64, width int) string {
	filled := float64(n) / float64(full) * float64(width)
	whole := int(filled)
	if !s.Unicode {
		if whole == 0 && n > 0 {
			whole = 1
		}
		return fmt.Sprintf("%-*s", width, strings.Repeat("#", whole))
	}
	text, used := strings.Repeat("█", whole), whole
	if eighths := int((filled - float64(whole)) * 8); eighths > 0 {
		text, used = text+string(rune('▉'+7-eighths)), used+1
	} else if whole == 0 && n > 0 {
		text, used = "▏", 1
	}
	return text + strings.Repeat(" ", width-used)
}

func percent(n, of uint64) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

func imbalance(queues []uint64) string { return fmt.Sprintf("%.1f %%", 100*Imbalance(queues)) }

// Packets is n with its unit.
func Packets(n uint64) string {
	if n == 1 {
		return "1 packet"
	}
	return Grouped(n) + " packets"
}

// Grouped is n with commas between thousands.
func Grouped(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
