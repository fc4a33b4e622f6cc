// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unicode"
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

// patience is how long a program that was asked to end may take for it, and how
// long its children may keep its output open once it has ended.
var patience = 30 * time.Second

// Exec is the Run of a real machine. Programs get no input, a process group of
// their own, so that a Ctrl-C does not reach them, and messages in English. Of
// their output the first mostOutput bytes are kept, as text without control
// characters: it goes on to terminals and into the journal.
func Exec(ctx context.Context, name string, args ...string) Output {
	var stdout, stderr head
	c := exec.CommandContext(ctx, find(name), args...)
	c.Stdout, c.Stderr, c.WaitDelay = &stdout, &stderr, patience
	c.Env = append(os.Environ(), "LC_ALL=C")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	err := c.Run()
	out := Output{Stdout: stdout.text(), Stderr: stderr.text()}
	if c.ProcessState != nil {
		out.Code = c.ProcessState.ExitCode()
	} else {
		out.Err = err
	}
	return out
}

// mostOutput is more than anything that is read here has: the list of a large
// initramfs comes to some 500 kB.
const mostOutput = 8 << 20

// head keeps the first bytes that are written, and takes all others.
type head struct{ kept bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	h.kept.Write(p[:min(len(p), mostOutput-h.kept.Len())])
	return len(p), nil
}

// text is what was kept. Programs that show progress go back to the start of a line.
func (h *head) text() string {
	plain := func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case unicode.IsControl(r) && r != '\n' && r != '\t':
			return -1
		}
		return r
	}
	return strings.Map(plain, strings.ToValidUTF8(h.kept.String(), "\ufffd"))
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
