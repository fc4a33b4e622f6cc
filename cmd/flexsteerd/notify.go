// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"log/slog"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// notifier speaks sd_notify(3). Without a service manager it does nothing.
type notifier struct {
	log      *slog.Logger
	watchdog time.Duration // WatchdogSec= of the unit; 0: none

	pinged time.Time // by the loop's goroutine only

	mu   sync.Mutex // held while line is sent, so that READY never carries an older one than was sent last
	line string
}

func newNotifier(log *slog.Logger) *notifier {
	watchdog, err := sd.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("watchdog of the service manager: " + err.Error())
	}
	return &notifier{log: log, watchdog: watchdog}
}

func (n *notifier) send(state string) {
	if _, err := sd.SdNotify(false, state); err != nil {
		n.log.Warn("notify the service manager: " + err.Error())
	}
}

// status sends STATUS when it has changed.
func (n *notifier) status(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if line != n.line {
		n.line = line
		n.send("STATUS=" + line)
	}
}

// ready says that a start or a reload is done.
func (n *notifier) ready() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.send("READY=1\nSTATUS=" + n.line)
}

// beat is the longest that the loop may sleep: sd_watchdog_enabled(3) asks for
// a ping every half of the time. It costs a wake-up only where that is shorter
// than the resync.
func (n *notifier) beat() time.Duration { return n.watchdog / 2 }

// alive is called by the loop at every turn and every step, and pings no more
// often than it must.
func (n *notifier) alive() {
	if now := time.Now(); n.watchdog > 0 && now.Sub(n.pinged) >= n.watchdog/4 {
		n.pinged = now
		n.send(sd.SdNotifyWatchdog)
	}
}

// monotonic is CLOCK_MONOTONIC in microseconds, which Go's time does not tell.
func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return t.Nano() / 1000
}
