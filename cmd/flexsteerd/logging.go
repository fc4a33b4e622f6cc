// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/coreos/go-systemd/v22/journal"
	slogjournal "github.com/systemd/slog-journal"

	"github.com/flexsteer/flexsteer/pkg/reconcile"
)

const (
	keyEvent    = reconcile.KeyEvent
	eventConfig = "config" // the configuration was loaded, or was not
)

// messageIDs are the MESSAGE_ID= of each kind of line; see journalctl --catalog.
// They never change: people search for them.
var messageIDs = map[string]string{
	reconcile.EventRule:     "7738210e2afa4ef7b5f6d44460ee4794",
	reconcile.EventChannels: "ba50d1e499914fad83260f8bc5dd38df",
	reconcile.EventState:    "c364c53632554115a411fb04d7b06d07",
	reconcile.EventProblem:  "7a1d001b51c840ab849af5f9550be2db",
	eventConfig:             "49711b63cacc47eab0af26ba4fea27de",
}

var journalKeys = map[string]string{
	reconcile.KeyLink:     "INTERFACE", // as systemd-networkd has it
	reconcile.KeyLocation: "FLEXSTEER_LOCATION", reconcile.KeyRule: "FLEXSTEER_RULE", reconcile.KeyOld: "FLEXSTEER_OLD_RULE",
	reconcile.KeyState: "FLEXSTEER_STATE", reconcile.KeyFile: "FLEXSTEER_FILE", reconcile.KeyEntry: "FLEXSTEER_ENTRY",
}

// newLogger writes to the journal, with fields, where stderr is the journal,
// and plain lines otherwise. slog-journal's handler is made without error on a
// machine that has no journal, so that alone decides nothing.
func newLogger(stderr io.Writer) *slog.Logger {
	if onJournal, err := journal.StderrIsJournalStream(); err == nil && onJournal {
		if h, err := slogjournal.NewHandler(&slogjournal.Options{ReplaceAttr: journalAttr}); err == nil {
			return slog.New(h)
		}
	}
	return slog.New(&lines{w: stderr})
}

// journalAttr gives fields their journal names: it drops keys in lower case
// without a word.
func journalAttr(_ []string, a slog.Attr) slog.Attr {
	if a.Key == keyEvent {
		if id := messageIDs[a.Value.String()]; id != "" {
			return slog.String("MESSAGE_ID", id)
		}
	}
	if key := journalKeys[a.Key]; key != "" {
		a.Key = key
	} else {
		a.Key = "FLEXSTEER_" + strings.ToUpper(strings.ReplaceAll(a.Key, "-", "_"))
	}
	return a
}

// lines writes the message of each record, one below the other. The messages
// are full sentences; fields are for machines, and left out.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *lines) WithGroup(string) slog.Handler                    { return l }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	word := ""
	switch {
	case r.Level >= slog.LevelError:
		word = "error: "
	case r.Level >= slog.LevelWarn:
		word = "warning: "
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := fmt.Fprintf(l.w, "flexsteerd: %s%s\n", word, r.Message)
	return err
}
