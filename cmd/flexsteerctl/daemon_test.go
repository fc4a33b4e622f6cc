// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The scripts use a stand-in; here the real daemon answers, with a policy that
// matches no link of this machine.
func TestRealDaemonReloads(t *testing.T) {
	if testing.Short() {
		t.Skip("builds two programs")
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+"/", "github.com/flexsteer/flexsteer/cmd/flexsteerd", "github.com/flexsteer/flexsteer/cmd/flexsteerctl")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	root := filepath.Join(dir, "root")
	write := func(text string) {
		t.Helper()
		file := filepath.Join(root, "etc/flexsteer/10-a.yaml")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("match: {name: no-such-link}\n")

	daemon := exec.Command(filepath.Join(dir, "flexsteerd"), "--root", root)
	var log bytes.Buffer
	daemon.Stdout, daemon.Stderr = &log, &log
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		daemon.Process.Signal(syscall.SIGTERM)
		if err := daemon.Wait(); err != nil {
			t.Errorf("flexsteerd: %v\n%s", err, log.String())
		}
	})
	for range 500 {
		if _, err := os.Stat(filepath.Join(root, "run/flexsteerd/status.json")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	ctl := func(want int, wants string, args ...string) {
		t.Helper()
		c := exec.Command(filepath.Join(dir, "flexsteerctl"), append(args, "--root", root)...)
		out, _ := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); code != want || !strings.Contains(string(out), wants) {
			t.Errorf("%v: exit code %d, want %d with %q\n%s", args, code, want, wants, out)
		}
	}
	ctl(0, "uses configuration 2.", "reload")
	write("match: {nam: x}\n")
	ctl(1, "etc/flexsteer/10-a.yaml:1:9: unknown key nam", "reload")
	ctl(0, "keeps to the last good one", "list")
	write("match: {name: no-such-link}\nsteer: []\n")
	ctl(0, "uses configuration 3.", "reload", "--json=false")
	ctl(0, "configuration 3", "status")
}
