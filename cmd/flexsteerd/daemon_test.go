// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/internal/prepare"
	"github.com/flexsteer/flexsteer/internal/report"
	"github.com/flexsteer/flexsteer/pkg/reconcile"
)

// binary is the daemon as it ships, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "flexsteerd")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "flexsteerd")
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=9.9", "-o", binary, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

const goodConfig = `match:
  name: nothing-has-this-name
steer:
  - {name: raw, protocol: 253, l4data: 0x3/0xf, queue: 3}
`

// trial is a daemon below a root directory of its own, with a service manager
// that listens.
type trial struct {
	t      *testing.T
	root   string
	notify *net.UnixConn
	cmd    *exec.Cmd

	mu     sync.Mutex
	stderr bytes.Buffer
}

func (d *trial) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stderr.Write(p)
}

func (d *trial) log() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stderr.String()
}

func newTrial(t *testing.T) *trial {
	d := &trial{t: t, root: t.TempDir()}
	socket := filepath.Join(d.root, "notify")
	var err error
	d.notify, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.notify.Close() })
	return d
}

func (d *trial) configure(text string) {
	d.t.Helper()
	dir := filepath.Join(d.root, "etc/flexsteer")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "10-test.yaml"), []byte(text), 0o644)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *trial) start(env ...string) {
	d.t.Helper()
	d.startWith(nil, env...)
}

func (d *trial) startWith(attr *syscall.SysProcAttr, env ...string) {
	d.t.Helper()
	d.cmd = exec.Command(binary, "--root", d.root)
	d.cmd.Env = append(append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(d.root, "notify")), env...)
	d.cmd.Stderr = d
	d.cmd.SysProcAttr = attr
	if err := d.cmd.Start(); err != nil {
		if attr != nil && errors.Is(err, syscall.EPERM) {
			d.t.Skip("no network namespace: ", err)
		}
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if d.cmd.ProcessState == nil {
			d.cmd.Process.Kill()
			d.cmd.Wait()
		}
	})
}

// next is the next datagram.
func (d *trial) next() string {
	d.t.Helper()
	b := make([]byte, 4096)
	d.notify.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, err := d.notify.Read(b)
	if err != nil {
		d.t.Fatalf("no datagram: %v\n%s", err, d.log())
	}
	return string(b[:n])
}

// until is the next datagram that begins with prefix; STATUS and WATCHDOG come
// when they come.
func (d *trial) until(prefix string) string {
	d.t.Helper()
	for {
		if m := d.next(); strings.HasPrefix(m, prefix) {
			return m
		} else if !strings.HasPrefix(m, "STATUS=") && !strings.HasPrefix(m, "WATCHDOG=1") {
			d.t.Fatalf("datagram %q, want %q", m, prefix)
		}
	}
}

func (d *trial) status() reconcile.Status {
	d.t.Helper()
	s, err := report.Read(filepath.Join(d.root, "run/flexsteerd"))
	if err != nil {
		d.t.Fatalf("%v\n%s", err, d.log())
	}
	return s
}

func (d *trial) signal(s os.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.t.Fatal(err)
	}
}

// reload sends SIGHUP and returns the datagram that ends the reload.
func (d *trial) reload() string {
	d.t.Helper()
	d.signal(unix.SIGHUP)
	d.until("RELOADING=1\nMONOTONIC_USEC=")
	return d.until("READY=1")
}

// stop ends the daemon and returns its exit status.
func (d *trial) stop() int {
	d.t.Helper()
	d.signal(unix.SIGTERM)
	d.until("STOPPING=1")
	d.cmd.Wait()
	return d.cmd.ProcessState.ExitCode()
}

func TestReadyComesWithTheStatusAndTheFile(t *testing.T) {
	d := newTrial(t)
	d.configure(goodConfig)
	d.start()
	if got, want := d.until("READY=1"), "READY=1\nSTATUS=no link is managed"; got != want {
		t.Errorf("datagram %q, want %q", got, want)
	}
	s := d.status()
	if s.PID != d.cmd.Process.Pid || s.Version != "9.9" || s.Generation != 1 || s.Reloads != 1 || len(s.ConfigErrors) > 0 {
		t.Errorf("status %+v", s)
	}
	if _, err := os.Stat(filepath.Join(d.root, "run/flexsteerd", report.MetricsName)); err != nil {
		t.Error(err)
	}
	if code := d.stop(); code != 0 {
		t.Errorf("exit status %d\n%s", code, d.log())
	}
	if _, err := os.Stat(filepath.Join(d.root, "run/flexsteerd", report.StatusName)); err == nil {
		t.Error("a status file is left behind that nobody keeps true")
	}
}

func TestReloadFollowsTheNotifyProtocol(t *testing.T) {
	d := newTrial(t)
	d.configure(goodConfig)
	d.start()
	d.until("READY=1")
	before := monotonic()
	d.signal(unix.SIGHUP)
	var usec int64
	if n, err := fmt.Sscanf(d.until("RELOADING=1"), "RELOADING=1\nMONOTONIC_USEC=%d", &usec); n != 1 || err != nil || usec < before || usec > monotonic() {
		t.Errorf("MONOTONIC_USEC=%d, want one datagram with a time from %d on", usec, before)
	}
	if got := d.until("READY=1"); !strings.HasPrefix(got, "READY=1\nSTATUS=no link") {
		t.Errorf("datagram %q", got)
	}
	if s := d.status(); s.Generation != 2 || s.Reloads != 2 {
		t.Errorf("generation %d, reloads %d; want 2 and 2", s.Generation, s.Reloads)
	}
	d.stop()
}

func TestABadReloadKeepsTheLastGoodConfiguration(t *testing.T) {
	d := newTrial(t)
	d.configure(goodConfig)
	d.start()
	d.until("READY=1")
	d.configure(strings.Replace(goodConfig, "queue:", "quueue:", 1) + "also: wrong\n")
	if got, want := d.reload(), "READY=1\nSTATUS=configuration not loaded, "; !strings.HasPrefix(got, want) {
		t.Errorf("datagram %q, want %q...", got, want)
	}
	s := d.status()
	if s.Generation != 1 || s.Reloads != 2 || len(s.ConfigErrors) < 2 {
		t.Errorf("generation %d, reloads %d, errors %q; want 1, 2 and both", s.Generation, s.Reloads, s.ConfigErrors)
	}
	for _, want := range []string{"10-test.yaml:4:", "10-test.yaml:5:1", "^", "what was in use stays"} {
		if !strings.Contains(d.log(), want) {
			t.Errorf("no %q in the log:\n%s", want, d.log())
		}
	}
	d.configure(goodConfig)
	d.reload()
	if s := d.status(); s.Generation != 2 || s.Reloads != 3 || len(s.ConfigErrors) > 0 {
		t.Errorf("after a good one again: %+v", s)
	}
	d.stop()
}

func TestADirectoryThatVanishedIsNoPermission(t *testing.T) {
	d := newTrial(t)
	d.configure(goodConfig)
	d.start()
	d.until("READY=1")
	os.RemoveAll(filepath.Join(d.root, "etc"))
	d.reload()
	if s := d.status(); s.Generation != 1 || len(s.ConfigErrors) != 1 || !strings.Contains(s.ConfigErrors[0], "no configuration directory exists") {
		t.Errorf("generation %d, errors %q", s.Generation, s.ConfigErrors)
	}
	d.stop()
}

func TestABadConfigurationAtTheStartLeavesTheDaemonUp(t *testing.T) {
	d := newTrial(t)
	d.configure("match: {}\n")
	d.start()
	if got := d.until("READY=1"); !strings.Contains(got, "configuration not loaded, 1 error: /etc/flexsteer/10-test.yaml:1:") {
		t.Errorf("datagram %q", got)
	}
	if s := d.status(); s.Generation != 0 || s.Reloads != 1 {
		t.Errorf("generation %d, reloads %d; want 0 and 1", s.Generation, s.Reloads)
	}
	d.stop()
}

// TestFactsAreReadWhenTheyCome: well before the next resync. These cannot be
// used, which is said once; steering goes on.
func TestFactsAreReadWhenTheyCome(t *testing.T) {
	d := newTrial(t)
	d.configure(goodConfig)
	d.start()
	d.until("READY=1")
	file := filepath.Join(d.root, prepare.FactsFile)
	for _, version := range []string{"98", "99"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file+".new", []byte(`{"version": `+version+`}`), 0o644), os.Rename(file+".new", file)); err != nil {
			t.Fatal(err)
		}
		want := "prerequisites.json: prerequisites: format version " + version + ", but this program reads version 1; going on without them"
		for deadline := time.Now().Add(10 * time.Second); !strings.Contains(d.log(), want); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("no %q in the log:\n%s", want, d.log())
			}
		}
	}
	d.reload()
	if n := strings.Count(d.log(), "format version 99"); n != 1 {
		t.Errorf("said %d times:\n%s", n, d.log())
	}
	d.stop()
}

func TestASecondDaemonIsRefused(t *testing.T) {
	d := newTrial(t)
	d.configure(goodConfig)
	d.start()
	d.until("READY=1")
	for _, args := range [][]string{{"--root", d.root}, {"--root", d.root, "--once"}} {
		out, err := exec.Command(binary, args...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitBad || !strings.Contains(string(out), "another flexsteerd runs") {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	d.stop()
}

func TestTheWatchdogIsFedInTime(t *testing.T) {
	d := newTrial(t)
	d.configure(goodConfig)
	d.start("WATCHDOG_USEC=2000000")
	d.until("READY=1")
	last, longest := time.Now(), time.Duration(0)
	for range 3 {
		d.until("WATCHDOG=1")
		longest, last = max(longest, time.Since(last)), time.Now()
	}
	if longest > 2*time.Second {
		t.Errorf("%v between two pings: systemd would have killed the daemon", longest)
	}
	d.stop()
}

func TestOnceBringsLinksToTheirGoalAndExits(t *testing.T) {
	d := newTrial(t)
	d.configure(goodConfig)
	run := func() (int, string) {
		cmd := exec.Command(binary, "--root", d.root, "--once")
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	if code, out := run(); code != 0 || !strings.Contains(out, "no link is managed") {
		t.Errorf("exit status %d\n%s", code, out)
	}
	d.configure("match: {}\n")
	if code, out := run(); code != exitBad || !strings.Contains(out, "10-test.yaml:1:") || !strings.Contains(out, "nothing is changed") {
		t.Errorf("with a bad configuration: exit status %d\n%s", code, out)
	}
	d.configure("match: {driver: '*'}\nsteer: [{name: raw, protocol: 253, l4data: 0x3/0xf, queue: 0}]\n")
	cmd := exec.Command(binary, "--root", d.root, "--once")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if out, err := cmd.CombinedOutput(); err == nil && !strings.Contains(string(out), "0 links listed") {
		t.Errorf("in an empty namespace:\n%s", out)
	}
}

func TestCommandLine(t *testing.T) {
	for name, row := range map[string]struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"help":             {[]string{"--help"}, 0, "Usage: flexsteerd", ""},
		"version":          {[]string{"--version"}, 0, "flexsteerd 9.9", ""},
		"unknown option":   {[]string{"--frob"}, 2, "", "-frob"},
		"an argument":      {[]string{"start"}, 2, "", `unexpected argument "start"`},
		"option and value": {[]string{"--root"}, 2, "", "needs an argument"},
		"empty directory":  {[]string{"--config-dir", ""}, 2, "", "want a directory"},
		"no such runtime":  {[]string{"--runtime-dir", "/dev/null/x"}, 1, "", "runtime directory"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(binary, row.args...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			cmd.Run()
			if got := cmd.ProcessState.ExitCode(); got != row.code {
				t.Errorf("exit status %d, want %d", got, row.code)
			}
			if !strings.Contains(stdout.String(), row.stdout) || !strings.Contains(stderr.String(), row.stderr) {
				t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
			}
		})
	}
}

func TestPaths(t *testing.T) {
	t.Chdir("/")
	for name, row := range map[string]struct {
		args    []string
		runtime string // $RUNTIME_DIRECTORY
		dirs    string
		want    string
	}{
		"defaults":          {nil, "", "/etc/flexsteer /run/flexsteer /usr/local/lib/flexsteer /usr/lib/flexsteer", "/run/flexsteerd"},
		"from systemd":      {nil, "/run/a:/run/b", "/etc/flexsteer /run/flexsteer /usr/local/lib/flexsteer /usr/lib/flexsteer", "/run/a"},
		"the option wins":   {[]string{"--runtime-dir", "/tmp/r"}, "/run/a", "/etc/flexsteer /run/flexsteer /usr/local/lib/flexsteer /usr/lib/flexsteer", "/tmp/r"},
		"a root":            {[]string{"--root", "/r", "--config-dir", "/c"}, "", "/c", "/r/run/flexsteerd"},
		"several, in order": {[]string{"--config-dir", "b", "--config-dir=a"}, "", "/b /a", "/run/flexsteerd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("RUNTIME_DIRECTORY", row.runtime)
			s, err := parse(row.args, os.Stderr)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(s.configDirs, " "); got != row.dirs || s.runtimeDir != row.want {
				t.Errorf("directories %s and %s, want %s and %s", got, s.runtimeDir, row.dirs, row.want)
			}
		})
	}
}

// TestJournalKeys: slog-journal drops keys that are not upper case without a word.
func TestJournalKeys(t *testing.T) {
	valid := regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	for _, key := range []string{reconcile.KeyEvent, reconcile.KeyLink, reconcile.KeyLocation, reconcile.KeyRule, reconcile.KeyOld,
		reconcile.KeyState, reconcile.KeyFile, reconcile.KeyEntry, "anything-else"} {
		if a := journalAttr(nil, slog.String(key, "x")); !valid.MatchString(a.Key) {
			t.Errorf("%s becomes %s", key, a.Key)
		}
	}
	seen := map[string]bool{}
	for event, id := range messageIDs {
		a := journalAttr(nil, slog.String(reconcile.KeyEvent, event))
		if a.Key != "MESSAGE_ID" || !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(id) || seen[id] {
			t.Errorf("event %s: %s=%s", event, a.Key, a.Value)
		}
		seen[id] = true
	}
	if a := journalAttr(nil, slog.String(reconcile.KeyLink, "eth0")); a.Key != "INTERFACE" {
		t.Errorf("the link's key is %s, want INTERFACE as systemd has it", a.Key)
	}
}
