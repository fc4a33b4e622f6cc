// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/pkg/reconcile"
)

const reloadPoll = 20 * time.Millisecond

func newReload(a *app) *cobra.Command {
	timeout := 10 * time.Second
	c := &cobra.Command{
		Use:   "reload",
		Short: "Have flexsteerd read its configuration again",
		Long: `Have the running flexsteerd read its configuration again, and wait for the
outcome. When the configuration has errors the daemon keeps to the last good
one; the errors are printed, and the exit code is 1.`,
		Args: cobra.NoArgs,
		RunE: action(func([]string) error { return a.reload(timeout) }),
	}
	c.Flags().DurationVar(&timeout, "timeout", timeout, "how long to wait for the outcome")
	a.jsonFlag(c)
	return c
}

// reloaded is the outcome as JSON.
type reloaded struct {
	PID        int      `json:"pid"`
	Generation uint64   `json:"generation"`
	Errors     []string `json:"errors"`
}

func (a *app) reload(timeout time.Duration) error {
	before, err := a.daemonStatus()
	if err != nil {
		return cannot(err)
	}
	if err := hangUp(before.PID); err != nil {
		return cannot(err)
	}
	after, err := a.waitReloaded(before, timeout)
	if err != nil {
		return err
	}
	if a.json {
		out := reloaded{after.PID, after.Generation, append([]string{}, after.ConfigErrors...)}
		if err := a.printJSON(out); err != nil {
			return err
		}
	}
	if n := len(after.ConfigErrors); n > 0 {
		if !a.json {
			a.note("%s", strings.Join(after.ConfigErrors, "\n"))
		}
		return fmt.Errorf("%s in the configuration; flexsteerd keeps to the last good one", count(n, "error"))
	}
	if !a.json {
		fmt.Fprintf(a.out, "flexsteerd (process %d) uses configuration %d.\n", after.PID, after.Generation)
	}
	return nil
}

// hangUp sends the daemon SIGHUP, after a look at whether it is the daemon.
func hangUp(pid int) error {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err == nil && strings.TrimSpace(string(name)) != "flexsteerd" {
		return fmt.Errorf("%w: process %d is %s", errNotRunning, pid, strings.TrimSpace(string(name)))
	}
	err = unix.Kill(pid, unix.SIGHUP)
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("signal flexsteerd (process %d): %w; use sudo, or systemctl reload flexsteerd", pid, err)
	case errors.Is(err, unix.ESRCH):
		return fmt.Errorf("%w: process %d has ended", errNotRunning, pid)
	}
	return err
}

// waitReloaded waits until the daemon has written the outcome of an attempt to
// load that is younger than before.
func (a *app) waitReloaded(before reconcile.Status, timeout time.Duration) (reconcile.Status, error) {
	for deadline := time.Now().Add(timeout); ; time.Sleep(reloadPoll) {
		s, err := a.daemonStatus()
		switch {
		case err != nil:
			return s, err
		case s.PID != before.PID || s.Reloads > before.Reloads:
			return s, nil
		case time.Now().After(deadline):
			return s, fmt.Errorf("flexsteerd (process %d) has not answered within %v; see: journalctl -u flexsteerd", before.PID, timeout)
		}
	}
}
