// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// The attributes of log lines. The message alone is a full sentence; the
// attributes are for machines.
const (
	KeyEvent    = "event"    // one of the Event words
	KeyLink     = "link"     // name
	KeyLocation = "location" // of the rule
	KeyRule     = "rule"     // the rule inserted or removed
	KeyOld      = "old"      // the rule replaced
	KeyState    = "state"    // a State
	KeyFile     = "file"     // FILE:LINE:COL in the configuration
	KeyEntry    = "entry"    // name of the entry
)

// The kinds of log lines.
const (
	EventRule     = "rule"     // a rule was inserted, replaced or removed
	EventChannels = "channels" // the channel count was set
	EventState    = "state"    // a link has a new state
	EventProblem  = "problem"  // a problem that was not there before
)

// logStep hands values over as they are: a handler that leaves the attributes
// out need not wait for their text, a thousand times for a thousand rules.
func (l *Loop) logStep(d steer.Desired, s steer.Step) {
	attrs := append(make([]slog.Attr, 0, 7), slog.String(KeyEvent, EventRule), slog.String(KeyLink, d.Link.Name))
	if s.Kind == steer.SetChannels {
		attrs[0] = slog.String(KeyEvent, EventChannels)
	} else {
		attrs = append(attrs, slog.Int(KeyLocation, int(s.Loc)), slog.Any(KeyRule, s.Rule))
	}
	if s.Kind == steer.Replace {
		attrs = append(attrs, slog.Any(KeyOld, s.Old))
	}
	if (s.Kind == steer.Replace || s.Kind == steer.Insert) && s.Entry >= 0 && s.Entry < len(d.Entries) {
		e := d.Entries[s.Entry]
		attrs = append(attrs, slog.String(KeyEntry, e.Name), slog.Any(KeyFile, e.At))
	}
	l.o.Log.LogAttrs(context.Background(), slog.LevelInfo, d.Link.Name+": "+done(s), attrs...)
}

// logState logs a new state, but not the passing ones: Configuring is told by
// its steps, and a link that never was managed is no news.
func (l *Loop) logState(t *track) {
	s := &t.status
	if s.State == Configuring || s.State == t.logged || (s.State == Unmanaged && t.logged == "") {
		return
	}
	t.logged = s.State
	message := s.Link.Name + ": " + string(s.State)
	switch s.State {
	case Configured:
		message += fmt.Sprintf(": %d rules in place", s.InPlace)
	case Pending:
		if len(s.Problems) > 0 {
			message += ": " + strings.TrimPrefix(s.Problems[len(s.Problems)-1].Text, s.Link.Name+": ")
		}
	case Blocked, Failed:
		message += fmt.Sprintf(": %d of %d rules in place", s.InPlace, s.Wanted)
	}
	l.o.Log.LogAttrs(context.Background(), slog.LevelInfo, message,
		slog.String(KeyEvent, EventState), slog.String(KeyLink, s.Link.Name), slog.String(KeyState, string(s.State)))
}

// logNew logs the problems that were not there before.
func (l *Loop) logNew(link string, before, now []steer.Problem) {
	for _, p := range now {
		if slices.Contains(before, p) {
			continue
		}
		attrs := []slog.Attr{slog.String(KeyEvent, EventProblem)}
		if link != "" {
			attrs = append(attrs, slog.String(KeyLink, link))
		}
		if p.Entry != "" {
			attrs = append(attrs, slog.String(KeyEntry, p.Entry))
		}
		if p.At != (steer.Origin{}) {
			attrs = append(attrs, slog.String(KeyFile, p.At.String()))
		}
		l.o.Log.LogAttrs(context.Background(), levelOf(p.Severity), problemLine(link, p), attrs...)
	}
}

func levelOf(s steer.Severity) slog.Level {
	switch s {
	case steer.Failed:
		return slog.LevelError
	case steer.Blocked:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// problemLine is a problem in one line: where, what, what to do.
func problemLine(link string, p steer.Problem) string {
	line := p.Text
	if link != "" && !strings.HasPrefix(line, link+": ") {
		line = link + ": " + line
	}
	if p.At != (steer.Origin{}) {
		line = p.At.String() + ": " + line
	}
	if p.Fix != "" {
		line += " (fix: " + p.Fix + ")"
	}
	return line
}
