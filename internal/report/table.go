// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flexsteer/flexsteer/pkg/reconcile"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// Options say how to show a table to a person.
type Options struct {
	Width  int       // columns of the terminal; 0: no limit
	Colour bool      // ANSI colours
	Now    time.Time // to say how long ago something was; zero: leave that out
}

var stateColours = map[reconcile.State]string{
	reconcile.Configured: "\x1b[32m", reconcile.Configuring: "\x1b[33m", reconcile.Pending: "\x1b[33m",
	reconcile.Blocked: "\x1b[33m", reconcile.Failed: "\x1b[31m",
}

const colourOff = "\x1b[0m"

func (o Options) paint(state reconcile.State, text string) string {
	if colour := stateColours[state]; o.Colour && colour != "" {
		return colour + text + colourOff
	}
	return text
}

// List writes one row for each link: state, driver, rules in place of those
// wanted, and the first problem, cut to the width.
func List(w io.Writer, s reconcile.Status, o Options) error {
	rows := [][]string{{"LINK", "STATE", "DRIVER", "RULES", "PROBLEM"}}
	for _, l := range s.Links {
		rows = append(rows, []string{plain(l.Link.Name), string(l.State), orDash(l.Link.Driver), rulesCell(l), problemCell(l)})
	}
	widths := columnWidths(rows)
	var b strings.Builder
	for i, row := range rows {
		var line strings.Builder
		for c, cell := range row {
			padded := cell + strings.Repeat(" ", max(0, widths[c]-utf8.RuneCountInString(cell)))
			if c == len(row)-1 {
				padded = cut(cell, o.Width-utf8.RuneCountInString(line.String()), o.Width)
			}
			line.WriteString(padded + "  ")
		}
		text := strings.TrimRight(line.String(), " ")
		if i > 0 {
			state := s.Links[i-1].State
			text = strings.Replace(text, " "+string(state)+" ", " "+o.paint(state, string(state))+" ", 1)
		}
		b.WriteString(text + "\n")
	}
	fmt.Fprintf(&b, "\n%s.\n", listed(s))
	_, err := io.WriteString(w, b.String())
	return err
}

func listed(s reconcile.Status) string {
	text := quantity(len(s.Links), "link") + " listed, " + counts(s.Links)
	if n := len(s.ConfigErrors); n > 0 {
		text += fmt.Sprintf("; the configuration was not loaded, %s", quantity(n, "error"))
	}
	return text
}

func rulesCell(l reconcile.LinkStatus) string {
	if l.State == reconcile.Unmanaged {
		return "-"
	}
	return fmt.Sprintf("%d/%d", l.InPlace, l.Wanted)
}

func problemCell(l reconcile.LinkStatus) string {
	worst := -1
	for i, p := range l.Problems {
		if worst < 0 || p.Severity > l.Problems[worst].Severity {
			worst = i
		}
	}
	if worst < 0 {
		return ""
	}
	text := plain(strings.TrimPrefix(l.Problems[worst].Text, l.Link.Name+": "))
	if more := len(l.Problems) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

func columnWidths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for c, cell := range row {
			widths[c] = max(widths[c], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// cut shortens text to room columns, unless width says that there is no limit.
// The middle goes: the place is in front, and the cause at the end.
func cut(text string, room, width int) string {
	const least = 12 // less is of no use to anybody: let the terminal wrap
	room = max(room, least)
	runes := []rune(text)
	if width <= 0 || len(runes) <= room {
		return text
	}
	tail := room / 2
	return string(runes[:room-1-tail]) + "…" + string(runes[len(runes)-tail:])
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return plain(s)
}

// LinkStatus writes all that is known of one link, as networkctl status does.
func LinkStatus(w io.Writer, l reconcile.LinkStatus, o Options) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d: %s\n", o.paint(l.State, "●"), l.Link.Index, plain(l.Link.Name))
	f := fields{b: &b}
	f.add("State", o.paint(l.State, string(l.State))+since(l.ChangedAt, o.Now))
	if !l.RetryAt.IsZero() {
		f.add("Next attempt", at(l.RetryAt))
	}
	f.add("Alternative names", plain(strings.Join(l.Link.AltNames, ", ")))
	f.add("Driver", plain(l.Link.Driver))
	f.add("Kind", string(l.Link.Kind))
	f.add("Hardware address", plain(l.Link.MAC))
	f.add("Path", plain(strings.TrimSpace(l.Link.Path+" "+l.Link.PCI)))
	if l.State != reconcile.Unmanaged {
		f.managed(l)
	}
	f.problems(l.Problems, o)
	_, err := io.WriteString(w, b.String())
	return err
}

// fields writes "Name: value" lines with the colons below each other.
type fields struct{ b *strings.Builder }

const fieldWidth = 19

func (f fields) add(name string, lines ...string) {
	for i, line := range lines {
		switch {
		case line == "":
		case i == 0:
			fmt.Fprintf(f.b, "%*s: %s\n", fieldWidth, name, line)
		default:
			fmt.Fprintf(f.b, "%*s  %s\n", fieldWidth, "", line)
		}
	}
}

func (f fields) managed(l reconcile.LinkStatus) {
	policies := make([]string, len(l.Policies))
	for i, p := range l.Policies {
		policies[i] = plain(p)
	}
	f.add("Policies", policies...)
	f.add("Locations", fmt.Sprintf("%d-%d, %d free", l.Own.First, l.Own.Last, max(0, l.Own.Size()-l.InPlace)))
	rules := fmt.Sprintf("%d of %d in place", l.InPlace, l.Wanted)
	if l.Foreign > 0 {
		rules += fmt.Sprintf(", and %d of others", l.Foreign)
	}
	f.add("Rules", rules)
	if l.Channels.Max > 0 {
		f.add("Channels", fmt.Sprintf("%d of at most %d", l.Channels.Combined, l.Channels.Max))
	}
	if l.Queues > 0 {
		f.add("Receive queues", fmt.Sprint(l.Queues))
	}
	f.add("Entries", usageLines(l.Usage)...)
}

func usageLines(usage []reconcile.EntryUsage) (lines []string) {
	width := 0
	for _, u := range usage {
		width = max(width, utf8.RuneCountInString(plain(u.Entry)))
	}
	for _, u := range usage {
		name := plain(u.Entry)
		line := name + strings.Repeat(" ", width-utf8.RuneCountInString(name)) + "  " + quantity(u.Rules, "rule")
		if u.Imbalance > 0 {
			line += fmt.Sprintf(", busiest queue %.1f %% over its share", 100*u.Imbalance)
		}
		lines = append(lines, line)
	}
	return lines
}

var severityStates = map[steer.Severity]reconcile.State{steer.Blocked: reconcile.Blocked, steer.Failed: reconcile.Failed}

func (f fields) problems(problems []steer.Problem, o Options) {
	var lines []string
	for _, p := range problems {
		lines = append(lines, o.paint(severityStates[p.Severity], p.Severity.String())+": "+problemHead(p))
		if text := plain(p.At.Text); strings.TrimSpace(text) != "" {
			lines = append(lines, "    "+text, "    "+strings.Repeat(" ", max(0, min(p.At.Column-1, utf8.RuneCountInString(text))))+"^")
		}
		if p.Fix != "" {
			lines = append(lines, "    Fix: "+plain(p.Fix))
		}
	}
	f.add("Problems", lines...)
}

// problemHead reads "FILE:LINE:COL: entry homa: text".
func problemHead(p steer.Problem) string {
	head := ""
	if p.At.File != "" {
		head = p.At.String() + ": "
	}
	if p.Entry != "" {
		head += "entry " + p.Entry + ": "
	}
	return plain(head + p.Text)
}

func at(t time.Time) string { return t.Local().Format("Mon 2006-01-02 15:04:05 MST") }

// since reads " since Sun 2026-11-29 16:00:00 UTC; 5min ago".
func since(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	text := " since " + at(t)
	if ago := now.Sub(t); !now.IsZero() && ago >= 0 {
		text += "; " + span(ago) + " ago"
	}
	return text
}

// span is a duration in the two units that matter, in systemd's words.
func span(d time.Duration) string {
	units := []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	var parts []string
	for _, u := range units {
		if n := d / u.size; n > 0 && len(parts) < 2 {
			parts = append(parts, fmt.Sprintf("%d%s", n, u.name))
			d -= n * u.size
		}
	}
	if len(parts) == 0 {
		return "0s"
	}
	return strings.Join(parts, " ")
}
