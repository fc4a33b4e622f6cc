// SPDX-License-Identifier: Apache-2.0

package vfiouser

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// guest is the client's end of a connection: what QEMU does, by hand.
type guest struct {
	t      testing.TB
	conn   *net.UnixConn
	server *Server
	device *card
	ended  chan error // what Serve returned
	id     uint16

	mu  sync.Mutex
	log []string
}

// card is a device that keeps what is written and says what was done to it.
type card struct {
	config [ConfigSize]byte
	bar    [64 << 10]byte

	mu   sync.Mutex
	done []string
}

func (c *card) did(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = append(c.done, fmt.Sprintf(format, args...))
}

// saw is what was done to the device so far.
func (c *card) saw() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.done)
}

func (c *card) ConfigRead(off int, b []byte) {
	c.did("config read %#x %d", off, len(b))
	copy(b, c.config[off:])
}

func (c *card) ConfigWrite(off int, b []byte) {
	c.did("config write %#x %x", off, b)
	copy(c.config[off:], b)
}

func (c *card) BARRead(off uint64, b []byte) {
	c.did("bar read %#x %d", off, len(b))
	copy(b, c.bar[off:])
}

func (c *card) BARWrite(off uint64, b []byte) {
	c.did("bar write %#x %d bytes", off, len(b))
	copy(c.bar[off:], b)
}

func (c *card) Reset() { c.did("reset") }

// said is what the server logged so far.
func (g *guest) said() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.log)
}

// attach starts a server with a guest on it. When the test ends everything must
// be given back: file descriptors, guest memory, vectors.
func attach(t testing.TB) *guest {
	before := openFiles(t)
	ours, theirs := socketpair(t)
	g := &guest{t: t, conn: theirs, device: &card{}, ended: make(chan error, 1)}
	g.server = New(Layout{BAR0: uint64(len(g.device.bar)), Vectors: 64}, func(format string, args ...any) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.log = append(g.log, fmt.Sprintf(format, args...))
	})
	go func() {
		err := g.server.Serve(ours, g.device)
		ours.Close()
		g.ended <- err
	}()
	t.Cleanup(func() {
		theirs.Close()
		g.ended <- <-g.ended
		if regions, vectors := g.server.held(); regions+vectors > 0 {
			t.Errorf("kept after the guest left: %d regions, %d eventfds", regions, vectors)
		}
		if after := openFiles(t); len(after) > len(before) {
			t.Errorf("file descriptors leaked: %v before, %v after", before, after)
		}
	})
	return g
}

// held is how many regions and eventfds the server has.
func (s *Server) held() (regions, vectors int) {
	s.memory.mu.RLock()
	defer s.memory.mu.RUnlock()
	s.vectors.mu.RLock()
	defer s.vectors.mu.RUnlock()
	for _, fd := range s.fds {
		if fd >= 0 {
			vectors++
		}
	}
	return len(s.regions), vectors
}

// boot is attach with a version agreed on.
func boot(t testing.TB) *guest {
	g := attach(t)
	if _, err := g.ask(1, append([]byte{0, 0, 0, 0}, qemuOffer...)); err != 0 {
		t.Fatalf("version: %v", err)
	}
	return g
}

func socketpair(t testing.TB) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	conn := func(fd int) *net.UnixConn {
		f := os.NewFile(uintptr(fd), "socket")
		defer f.Close()
		c, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		return c.(*net.UnixConn)
	}
	return conn(fds[0]), conn(fds[1])
}

// openFiles is what each file descriptor of this process is.
func openFiles(t testing.TB) (names []string) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && !strings.HasPrefix(name, "/proc/") {
			names = append(names, name)
		}
	}
	return names
}

func frame(id, cmd uint16, flags uint32, body []byte) []byte {
	b := make([]byte, headerSize, headerSize+len(body))
	le.PutUint16(b, id)
	le.PutUint16(b[2:], cmd)
	le.PutUint32(b[4:], uint32(headerSize+len(body)))
	le.PutUint32(b[8:], flags)
	return append(b, body...)
}

func (g *guest) send(b []byte, fds ...int) {
	g.t.Helper()
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	if n, _, err := g.conn.WriteMsgUnix(b, oob, nil); err != nil || n < len(b) {
		g.t.Fatalf("sent %d of %d bytes: %v", n, len(b), err)
	}
}

// reply reads the answer to message id.
func (g *guest) reply(id, cmd uint16) (body []byte, errno unix.Errno) {
	g.t.Helper()
	h := make([]byte, headerSize)
	if _, err := io.ReadFull(g.conn, h); err != nil {
		g.t.Fatalf("reply to command %d: %v; the server said %q", cmd, err, g.said())
	}
	if le.Uint16(h) != id || le.Uint16(h[2:]) != cmd || le.Uint32(h[8:])&^flagError != typeReply {
		g.t.Fatalf("reply to message %d command %d begins with %x", id, cmd, h)
	}
	body = make([]byte, le.Uint32(h[4:])-headerSize)
	if _, err := io.ReadFull(g.conn, body); err != nil {
		g.t.Fatal(err)
	}
	if failed := le.Uint32(h[8:])&flagError != 0; failed != (le.Uint32(h[12:]) != 0) || failed && len(body) > 0 {
		g.t.Fatalf("an error reply is a header with an errno and no more: %x, body of %d", h, len(body))
	}
	return body, unix.Errno(le.Uint32(h[12:]))
}

// ask sends a command and waits for the answer, as QEMU does.
func (g *guest) ask(cmd uint16, body []byte, fds ...int) ([]byte, unix.Errno) {
	g.t.Helper()
	g.id++
	g.send(frame(g.id, cmd, 0, body), fds...)
	return g.reply(g.id, cmd)
}

// must is ask for a command that works.
func (g *guest) must(cmd uint16, body []byte, fds ...int) []byte {
	g.t.Helper()
	reply, errno := g.ask(cmd, body, fds...)
	if errno != 0 {
		g.t.Fatalf("command %d: %v; the server said %q", cmd, errno, g.said())
	}
	return reply
}

// words are 32-bit numbers as bytes; a uint64 makes 8 bytes.
func words(v ...any) (b []byte) {
	for _, v := range v {
		switch v := v.(type) {
		case int:
			b = le.AppendUint32(b, uint32(v))
		case uint64:
			b = le.AppendUint64(b, v)
		}
	}
	return b
}

func mapBody(addr, size, offset uint64, flags int) []byte {
	return words(32, flags, offset, addr, size)
}

func (g *guest) mapMemory(addr, size, offset uint64, flags int, fds ...int) {
	g.t.Helper()
	g.must(2, mapBody(addr, size, offset, flags), fds...)
}

func (g *guest) unmap(addr, size uint64) {
	g.t.Helper()
	g.must(3, words(24, 0, addr, size))
}

// memfd is guest memory as QEMU has it; closed when the test ends.
func memfd(t testing.TB, size int64) int {
	t.Helper()
	fd, err := unix.MemfdCreate("guest", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Ftruncate(fd, size); err != nil {
		t.Fatal(err)
	}
	return fd
}

func eventfd(t testing.TB) int {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// raised reads and clears an eventfd.
func raised(fd int) uint64 {
	var b [8]byte
	if _, err := unix.Read(fd, b[:]); err != nil {
		return 0
	}
	return le.Uint64(b[:])
}
