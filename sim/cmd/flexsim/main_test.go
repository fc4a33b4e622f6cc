// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flexsteer/flexsteer/sim/mlx5"
	"github.com/flexsteer/flexsteer/sim/pci"
	"github.com/flexsteer/flexsteer/sim/vfiouser"
)

func TestTheRoomsAgreeOnSizes(t *testing.T) {
	if pci.BAR0 != mlx5.BARSize {
		t.Errorf("BAR 0 has %#x bytes, the device %#x", pci.BAR0, mlx5.BARSize)
	}
	if pci.ConfigSize != vfiouser.ConfigSize {
		t.Errorf("configuration space has %#x bytes, and %#x can be asked for", pci.ConfigSize, vfiouser.ConfigSize)
	}
}

func TestWrongCommandLines(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	taken, err := net.Listen("unix", filepath.Join(dir, "taken"))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	plain := file("plain", "not a socket")
	for _, c := range []struct {
		name, args, says string
	}{
		{"no socket", "", "--socket is missing"},
		{"unknown option", "--socket s --speed 5", "flag provided but not defined: -speed; flexsim -h tells more"},
		{"something else", "--socket s now", `"now" is no option`},
		{"unknown card", "--socket s --personality bluefield-9", `no personality "bluefield-9"; there are bluefield-3, `},
		{"no file", "--socket s --personality ./none.json", "open ./none.json: no such file"},
		{"file with an unknown field", "--socket s --personality " + file("card.json", `{"name":"x","color":"red"}`), `card.json: personality: json: unknown field "color"`},
		{"multicast address", "--socket s --mac 03:00:00:00:00:01", `--mac "03:00:00:00:00:01" is not an Ethernet address of one station`},
		{"no address", "--socket s --mac 1", `--mac "1" is not`},
		{"socket that is in use", "--socket " + taken.Addr().String(), "taken: another process listens there"},
		{"socket that is a file", "--socket " + plain, "plain is there, and is no socket"},
		{"control that is in use", "--socket " + filepath.Join(dir, "s") + " --control " + taken.Addr().String(), "taken: another process listens there"},
		{"socket nowhere", "--socket " + filepath.Join(dir, "none", "s"), "no such file or directory"},
		{"trace nowhere", "--socket " + filepath.Join(dir, "t") + " --trace " + filepath.Join(dir, "none", "trace"), "no such file or directory"},
	} {
		var out, errOut bytes.Buffer
		code := run(t.Context(), strings.Fields(c.args), &out, &errOut)
		if said := errOut.String(); code != exitCannot || !strings.Contains(said, "flexsim: ") || !strings.Contains(said, c.says) {
			t.Errorf("%s: exit code %d, said %q, not %q", c.name, code, said, c.says)
		}
	}
	if text, _ := os.ReadFile(plain); string(text) != "not a socket" {
		t.Error("a file was taken for a socket")
	}
	var help bytes.Buffer
	if code := run(t.Context(), []string{"-h"}, io.Discard, &help); code != exitClean || !strings.Contains(help.String(), "memory-backend-memfd") || !strings.Contains(help.String(), "-personality") {
		t.Errorf("help: exit code %d, %s", code, help.String())
	}
}

// sim is a running flexsim.
type sim struct {
	t       *testing.T
	dir     string
	stop    func() int // ends it; the exit code
	out     bytes.Buffer
	errOut  lockedBuffer
	control net.Conn
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

func start(t *testing.T, args ...string) *sim {
	s := &sim{t: t, dir: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"--socket", s.path("card"), "--control", s.path("control"), "--trace", s.path("trace")}, args...), &s.out, &s.errOut)
	}()
	s.stop = sync.OnceValue(func() int { cancel(); return <-ended })
	t.Cleanup(func() { s.stop() })
	s.control = s.dial("control")
	return s
}

func (s *sim) path(name string) string { return filepath.Join(s.dir, name) }

// dial connects to a socket as soon as it is there.
func (s *sim) dial(name string) net.Conn {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		c, err := net.Dial("unix", s.path(name))
		if err == nil {
			s.t.Cleanup(func() { c.Close() })
			return c
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%v; flexsim said %s", err, s.errOut.String())
		}
	}
}

// eventually waits for what another goroutine is about to do.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not after a minute: %s", what)
		}
	}
}

var le = binary.LittleEndian

// qemu is the client's end of a vfio-user connection with a version agreed on.
func (s *sim) qemu() net.Conn {
	s.t.Helper()
	c := s.dial("card")
	ask(s.t, c, 1, []byte{0, 0, 0, 0})
	return c
}

// ask sends a vfio-user command and gives the body of its reply.
func ask(t *testing.T, c net.Conn, command uint16, body []byte) []byte {
	t.Helper()
	b := make([]byte, 16)
	le.PutUint16(b[2:], command)
	le.PutUint32(b[4:], uint32(16+len(body)))
	if _, err := c.Write(append(b, body...)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, le.Uint32(b[4:])-16)
	if _, err := io.ReadFull(c, reply); err != nil || le.Uint32(b[8:]) != 1 {
		t.Fatalf("reply %x %x, %v", b, reply, err)
	}
	return reply
}

func span(region int, off uint64, n int) []byte {
	return le.AppendUint32(le.AppendUint32(le.AppendUint64(nil, off), uint32(region)), uint32(n))
}

func read(t *testing.T, c net.Conn, region int, off uint64, n int) []byte {
	t.Helper()
	return ask(t, c, 9, span(region, off, n))[16:]
}

func write(t *testing.T, c net.Conn, region int, off uint64, b ...byte) {
	t.Helper()
	ask(t, c, 10, append(span(region, off, len(b)), b...))
}

const (
	bar0   = 0
	config = 7
)

func TestAGuestFindsTheCard(t *testing.T) {
	s := start(t, "--personality", "connectx-6-dx")
	for range 2 { // one guest after another
		c := s.qemu()
		if got := read(t, c, config, 0, 4); !bytes.Equal(got, []byte{0xb3, 0x15, 0x1d, 0x10}) {
			t.Errorf("vendor and device are %x", got)
		}
		if got := read(t, c, bar0, 0, 4); !bytes.Equal(got, []byte{0xff, 0xff, 0xff, 0xff}) {
			t.Errorf("with memory space disabled the firmware's version reads %x", got)
		}
		write(t, c, config, 4, 6, 0)
		// cmdif_rev, in the upper half of the second word, is 5 for every driver.
		if got := read(t, c, bar0, 4, 2); !bytes.Equal(got, []byte{0, 5}) {
			t.Errorf("command interface revision %x", got)
		}
		c.Close()
	}
	eventually(t, "both guests are gone", func() bool { return strings.Count(s.errOut.String(), "the guest is gone") == 2 })
	if code := s.stop(); code != exitClean {
		t.Errorf("exit code %d, said %s", code, s.errOut.String())
	}
	for _, line := range []string{"card        connectx-6-dx, firmware ", "commands    0, all OK", "leaks       none", "violations  none", "messages    6 reads, 2 writes, 0 refused"} {
		if !strings.Contains(s.out.String(), line) {
			t.Errorf("the report has no %q:\n%s", line, s.out.String())
		}
	}
	if _, err := os.Stat(s.path("card")); !os.IsNotExist(err) {
		t.Error("the socket is still there")
	}
	if text, err := os.ReadFile(s.path("trace")); err != nil || len(text) > 0 {
		t.Errorf("trace %q, %v", text, err)
	}
}

func TestItEndsWhileAGuestIsThere(t *testing.T) {
	s := start(t)
	s.qemu()
	if code := s.stop(); code != exitClean {
		t.Errorf("exit code %d", code)
	}
	if said := s.errOut.String(); strings.Contains(said, "broke") {
		t.Errorf("said %s", said)
	}
}

func TestABrokenGuestIsToldOf(t *testing.T) {
	s := start(t)
	c := s.qemu()
	c.Write([]byte("this is no header of a message of the protocol"))
	c.Close()
	s.qemu().Close() // the next one is served
	eventually(t, "the first one is told of", func() bool { return strings.Contains(s.errOut.String(), "its connection broke: message ") })
}

// A driver that does wrong makes the exit code 1, and is in the report.
func TestViolationsAreTheExitCode(t *testing.T) {
	s := start(t)
	c := s.qemu()
	write(t, c, config, 4, 6, 0)
	write(t, c, bar0, 0, 1, 2, 3, 4) // the firmware's version
	c.Close()
	eventually(t, "the guest is gone", func() bool { return strings.Contains(s.errOut.String(), "the guest is gone") })
	if code := s.stop(); code != exitFaults {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(s.out.String(), "violations  1\n  write of 0x1020304 at 0x0 of BAR 0") {
		t.Errorf("report:\n%s", s.out.String())
	}
}

func TestAStaleSocketIsTakenOver(t *testing.T) {
	dir := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "card"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false) // as a process that was killed
	l.Close()
	again, err := listen(filepath.Join(dir, "card"))
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}
