// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/internal/report"
	"github.com/flexsteer/flexsteer/pkg/reconcile"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// errNotRunning says that no daemon keeps the status file.
var errNotRunning = errors.New("flexsteerd is not running")

// daemonStatus is what the daemon last wrote. The error wraps errNotRunning
// when there is no daemon, also when one has left its file behind.
func (a *app) daemonStatus() (reconcile.Status, error) {
	file := a.real(filepath.Join(a.runtimeDir, "status.json"))
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return reconcile.Status{}, fmt.Errorf("%w: there is no %s", errNotRunning, file)
	}
	if err != nil {
		return reconcile.Status{}, cannot(err)
	}
	s, err := report.Decode(data)
	if err != nil {
		return s, cannot(fmt.Errorf("%s: %w", file, err))
	}
	if !alive(s.PID) {
		return s, fmt.Errorf("%w: process %d, which wrote %s, has ended", errNotRunning, s.PID, file)
	}
	return s, nil
}

// alive reports whether a process exists, whoever owns it.
func alive(pid int) bool {
	if pid <= 0 {
		return false
	}
	err := unix.Kill(pid, 0)
	return err == nil || errors.Is(err, unix.EPERM)
}

// status is the daemon's word or, when there is no daemon, what can be seen
// without one.
func (a *app) status() (reconcile.Status, error) {
	s, err := a.daemonStatus()
	if !errors.Is(err, errNotRunning) {
		return s, err
	}
	a.note("%v; what follows is what flexsteerctl sees for itself", err)
	return a.look()
}

// look is the status as a daemon would find it before it changes anything. A
// configuration with errors is in the status, as it is in the daemon's.
func (a *app) look() (reconcile.Status, error) {
	s := reconcile.Status{Version: version}
	links, err := a.links(nil)
	if err != nil {
		return s, err
	}
	wanted := map[int]steer.Desired{}
	if c, err := a.load(); err == nil {
		wanted = desired(c, links)
	} else if f := new(failure); errors.As(err, &f) {
		return s, err
	} else {
		s.ConfigErrors = []string{err.Error()}
	}
	for _, l := range links {
		d, managed := wanted[l.Index]
		s.Links = append(s.Links, a.lookAt(l, d, managed))
	}
	return s, nil
}

func (a *app) lookAt(l steer.Link, d steer.Desired, managed bool) reconcile.LinkStatus {
	have, err := a.opened.Observe(l)
	switch {
	case err != nil:
		return reconcile.LinkStatus{Link: l, State: reconcile.Failed, Problems: []steer.Problem{{Severity: steer.Failed, Text: err.Error()}}}
	case !managed:
		return reconcile.LinkStatus{Link: l, State: reconcile.Unmanaged, Channels: have.Channels, Queues: have.NIC.Queues, Foreign: len(have.Rules)}
	}
	return reconcile.Look(d, have)
}
