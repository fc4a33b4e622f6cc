// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// inside marks a test process that runs in a network namespace of its own.
const inside = "FLEXSTEER_TEST_NAMESPACE"

// TestMain gives the process in the namespace a /sys that shows it.
func TestMain(m *testing.M) {
	if os.Getenv(inside) == "new" {
		err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		if err == nil {
			err = unix.Mount("sysfs", "/sys", "sysfs", 0, "")
		}
		if err != nil {
			panic(err)
		}
		os.Setenv(inside, "ready")
	}
	os.Exit(m.Run())
}

// inNamespace runs the calling test again in a new network namespace and is
// true in there. It needs root: without it the test is skipped, but in CI root
// must be enough.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		return true
	}
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inside+"=new")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 && os.Getenv("CI") != "true" {
		t.Skipf("no network namespace here: %v", err)
	}
	if err != nil {
		t.Fatalf("in the namespace: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		t.Fatalf("it did not run in the namespace:\n%s", out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "_test.go:") {
			t.Log(strings.TrimSpace(line))
		}
	}
	return false
}

// asNobody runs the calling test again as user nobody with just the given
// capabilities, in the namespace it is in, with the marker set to role.
func asNobody(t *testing.T, role string, capabilities ...uintptr) {
	t.Helper()
	// The binary that go test builds lies where nobody may not look.
	dir, err := os.MkdirTemp("", "flexsteer")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "test")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	copyProgram(t, program)
	cmd := exec.Command(program, "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), inside+"="+role)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential:  &syscall.Credential{Uid: 65534, Gid: 65534},
		AmbientCaps: capabilities,
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		t.Errorf("%s: %v\n%s", role, err, out)
	}
}

func copyProgram(t *testing.T, to string) {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	program, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(program, from)
	if closeErr := program.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
}

// addVeth makes a pair and gives the ifindex of name.
func addVeth(t *testing.T, name, peer string) int {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: peer}))
	return byName(t, name).Attrs().Index
}

func byName(t *testing.T, name string) netlink.Link {
	t.Helper()
	l, err := netlink.LinkByName(name)
	must(t, err)
	return l
}

func rename(t *testing.T, index int, name string) {
	t.Helper()
	l, err := netlink.LinkByIndex(index)
	must(t, err)
	must(t, netlink.LinkSetName(l, name))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openHost(t *testing.T) *Host {
	t.Helper()
	h, err := Open(nil)
	must(t, err)
	t.Cleanup(func() { must(t, h.Close()) })
	return h
}
