// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Output is what a command left behind. The zero value is a silent success.
type Output struct {
	Stdout, Stderr string
	Code           int   // exit status; -1 when a signal ended it
	Err            error // it could not be started; wraps exec.ErrNotFound when there is no such program
}

// Good reports whether the command ran and ended with status 0.
func (o Output) Good() bool { return o.Err == nil && o.Code == 0 }

// Missing reports whether there is no such program.
func (o Output) Missing() bool { return errors.Is(o.Err, exec.ErrNotFound) }

// Run runs a program to its end. When ctx ends it is asked to end too (SIGTERM),
// and waited for.
type Run func(ctx context.Context, name string, args ...string) Output

// Exec is the Run of a real machine. Programs get no input, a process group of
// their own, so that a Ctrl-C does not reach them, and messages in English.
func Exec(ctx context.Context, name string, args ...string) Output {
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(ctx, find(name), args...)
	c.Stdout, c.Stderr = &stdout, &stderr
	c.Env = append(os.Environ(), "LC_ALL=C")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	err := c.Run()
	out := Output{Stdout: stdout.String(), Stderr: stderr.String()}
	if c.ProcessState != nil {
		out.Code = c.ProcessState.ExitCode()
	} else {
		out.Err = err
	}
	return out
}

// find looks where a user's PATH does not: modinfo and dkms are for everybody.
func find(name string) string {
	if _, err := exec.LookPath(name); err != nil {
		for _, dir := range []string{"/usr/sbin/", "/sbin/"} {
			if path, err := exec.LookPath(dir + name); err == nil {
				return path
			}
		}
	}
	return name
}
