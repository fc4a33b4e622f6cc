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
	s := reconcile.LinkStatus{Link: l, State: reconcile.Unmanaged, Policies: d.Policies, Own: d.Own}
	have, err := a.opened.Observe(l)
	if err != nil {
		s.State = reconcile.Failed
		s.Problems = []steer.Problem{{Severity: steer.Failed, Text: err.Error()}}
		return s
	}
	s.Channels, s.Queues = have.Channels, have.NIC.Queues
	if !managed {
		s.Foreign = len(have.Rules)
		return s
	}
	goal, problems := steer.Check(d, have)
	s.Problems, s.Wanted = problems, wanted(d, have, goal, problems)
	s.InPlace, s.Foreign = inPlace(goal, have.Rules, d.Own)
	for _, u := range goal.Usage {
		s.Usage = append(s.Usage, reconcile.EntryUsage{Entry: d.Entries[u.Entry].Name, Rules: u.Rules, Imbalance: u.Imbalance})
	}
	s.State = stateOf(l, problems, len(steer.Diff(goal, have, d.Own).Steps))
	return s
}

// wanted counts the rules of all entries, also of those that the link cannot
// have now.
func wanted(d steer.Desired, have steer.Observed, goal steer.Goal, problems []steer.Problem) int {
	if len(problems) == 0 {
		return len(goal.Rules)
	}
	able := steer.Observed{NIC: steer.NIC{Precedence: have.NIC.Precedence, RawProtocols: steer.AnyProtocols}}
	all, _ := steer.Check(d, able)
	return max(len(goal.Rules), len(all.Rules))
}

// inPlace counts the rules of goal that are in our locations, and the rules
// outside of them.
func inPlace(goal steer.Goal, have steer.Table, own steer.Range) (ours, foreign int) {
	there := map[steer.Rule]bool{}
	for loc, r := range have {
		if own.Contains(loc) {
			there[r] = true
		} else {
			foreign++
		}
	}
	for _, w := range goal.Rules {
		if there[w.Rule] {
			ours++
		}
	}
	return ours, foreign
}

func stateOf(l steer.Link, problems []steer.Problem, steps int) reconcile.State {
	worst := steer.Severity(0)
	for _, p := range problems {
		worst = max(worst, p.Severity)
	}
	switch {
	case !l.Ready:
		return reconcile.Pending
	case worst == steer.Failed:
		return reconcile.Failed
	case worst == steer.Blocked:
		return reconcile.Blocked
	case steps > 0:
		return reconcile.Configuring
	}
	return reconcile.Configured
}
