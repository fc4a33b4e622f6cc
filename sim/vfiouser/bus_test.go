// SPDX-License-Identifier: Apache-2.0

package vfiouser

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/sim/bus"
)

var _ bus.Bus = (*Server)(nil)

const page = 4096

func TestTheDeviceAndTheGuestShareMemory(t *testing.T) {
	g := boot(t)
	fd := memfd(t, 16*page)
	g.mapMemory(0x100000, 4*page, 8*page, 3, fd)
	if err := g.server.Write(0x100000+page, []byte("to the guest")); err != nil {
		t.Fatal(err)
	}
	if err := g.server.Publish(0x100000+4, [4]byte{1, 2, 3, 4}); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 12)
	if unix.Pread(fd, b, 9*page); string(b) != "to the guest" {
		t.Errorf("the guest sees %q", b)
	}
	if unix.Pread(fd, b[:4], 8*page+4); !bytes.Equal(b[:4], []byte{1, 2, 3, 4}) {
		t.Errorf("the guest sees word %x", b[:4])
	}
	unix.Pwrite(fd, []byte("from guest"), 10*page)
	if err := g.server.Read(0x100000+2*page, b[:10]); err != nil || string(b[:10]) != "from guest" {
		t.Errorf("the device reads %q, %v", b[:10], err)
	}
}

func TestAnAccessGoesOverRegionsThatAdjoin(t *testing.T) {
	g := boot(t)
	a, b := memfd(t, page), memfd(t, page)
	g.mapMemory(page, page, 0, 3, b) // the later one first
	g.mapMemory(0, page, 0, 3, a)
	if err := g.server.Write(page-3, []byte("abcdef")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 6)
	if err := g.server.Read(page-3, got); err != nil || string(got) != "abcdef" {
		t.Errorf("%q, %v", got, err)
	}
	if unix.Pread(b, got[:3], 0); string(got[:3]) != "def" {
		t.Errorf("the second file begins with %q", got[:3])
	}
}

func TestWhatIsNotLentIsNotTouched(t *testing.T) {
	g := boot(t)
	fd := memfd(t, 4*page)
	g.mapMemory(page, page, 0, 3, fd)
	g.mapMemory(2*page, page, page, 1, fd) // read-only, as a ROM
	g.mapMemory(3*page, page, 0, 3)        // without a file
	g.mapMemory(1<<64-page, page, 2*page, 3, fd)
	for _, c := range []struct {
		name      string
		addr      uint64
		n         int
		read      bool
		says      string // of an error; "" if it works
		published bool
	}{
		{"whole", page, page, true, "", false},
		{"before", page - 1, 1, true, "no guest memory for 1 bytes at 0xfff", false},
		{"begins before", page - 1, 2, true, "no guest memory for 2 bytes at 0xfff", false},
		{"nothing there", 0x900000, 4, false, "no guest memory for 4 bytes at 0x900000", false},
		{"read of read-only", 2*page - 4, 8, true, "", false},
		{"write of read-only", 2*page - 4, 8, false, "flags of the region there are 0x1", false},
		{"publish to read-only", 2 * page, 4, false, "flags of the region there are 0x1", true},
		{"no file", 3 * page, 4, true, "memory-backend-memfd,share=on", false},
		{"last bytes of all", 1<<64 - 4, 4, true, "", false},
		{"over the last byte", 1<<64 - 4, 8, true, "no guest memory for 8 bytes", false},
		{"publish unaligned", page + 2, 4, false, "multiple of 4", true},
		{"nothing at all", 0, 0, true, "", false},
	} {
		var err error
		switch {
		case c.published:
			err = g.server.Publish(c.addr, [4]byte{})
		case c.read:
			err = g.server.Read(c.addr, make([]byte, c.n))
		default:
			err = g.server.Write(c.addr, make([]byte, c.n))
		}
		var none bus.NotMapped
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.says != "" && (!errors.As(err, &none) || none.Addr != c.addr || none.Length != c.n || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v, not %q", c.name, err, c.says)
		}
	}
	g.unmap(page, page)
	if err := g.server.Read(page, make([]byte, 1)); err == nil {
		t.Error("read of what was unmapped")
	}
	g.must(3, words(24, 2, uint64(0), uint64(0))) // all
	if regions, _ := g.server.held(); regions > 0 {
		t.Errorf("unmap of all left %d regions", regions)
	}
}

// A file that shrinks under a mapping makes accesses faults, which must not end the process.
func TestRegionsLeaveMappingsToTheProcess(t *testing.T) {
	g := boot(t)
	fd := memfd(t, page)
	last := unix.Errno(0)
	for i := uint64(0); i < 1<<16 && last == 0; i++ {
		_, last = g.ask(2, mapBody(2*i*page, page, 0, 3), fd)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	limit, err2 := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil || err2 != nil {
		t.Skip(err, err2)
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(limit)))
	if used := bytes.Count(maps, []byte("\n")); last != unix.ENOSPC || used > most/2 || err != nil {
		t.Errorf("%d of %d mappings are in use, and then: %v", used, most, last)
	}
	g.must(3, words(24, 2, uint64(0), uint64(0)))
	g.mapMemory(0, page, 0, 3, fd)
}

func TestAFileThatShrinksIsAnErrorNotACrash(t *testing.T) {
	g := boot(t)
	fd := memfd(t, 4*page)
	g.mapMemory(0, 4*page, 0, 3, fd)
	if err := unix.Ftruncate(fd, page); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 64)
	for name, err := range map[string]error{
		"read":    g.server.Read(2*page, b),
		"write":   g.server.Write(page-8, b),
		"publish": g.server.Publish(3*page, [4]byte{}),
	} {
		if err == nil || !strings.Contains(err.Error(), "has shrunk") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := g.server.Write(0, b); err != nil {
		t.Error(err)
	}
	g.unmap(0, 4*page)
}

// QEMU remaps memory while a device may be at work in it.
func TestMemoryIsRemappedUnderADeviceAtWork(t *testing.T) {
	g := boot(t)
	fd := memfd(t, 64*page)
	stop := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		b := make([]byte, 5*page)
		for n := uint64(0); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			at := n * 7 % 60 * page
			g.server.Read(at, b)
			g.server.Write(at, b[:page])
			g.server.Publish(at, [4]byte{1})
		}
	})
	for i := range uint64(300) {
		at := i % 30 * 2 * page
		g.mapMemory(at, 2*page, at, 3, fd)
		if i >= 4 {
			old := (i - 4) % 30 * 2 * page
			g.unmap(old, 2*page)
		}
	}
	close(stop)
	work.Wait()
}

// As QEMU enables MSI-X: vector 0 without an eventfd, then one vector at a time.
func TestVectorsAreSetOneAtATime(t *testing.T) {
	g := boot(t)
	g.must(8, words(20, 0x24, 2, 0, 1))
	if g.server.Interrupt(0) {
		t.Error("vector 0 has an eventfd before one was given")
	}
	a, b := eventfd(t), eventfd(t)
	g.must(8, words(20, 0x24, 2, 0, 1), a)
	g.must(8, words(20, 0x24, 2, 63, 1), b)
	for _, v := range []int{0, 0, 63} {
		if !g.server.Interrupt(v) {
			t.Errorf("vector %d cannot be raised", v)
		}
	}
	for _, v := range []int{-1, 1, 62, 64, 1 << 40} {
		if g.server.Interrupt(v) {
			t.Errorf("vector %d is there", v)
		}
	}
	if x, y := raised(a), raised(b); x != 2 || y != 1 {
		t.Errorf("raised %d and %d times", x, y)
	}

	g.must(8, words(20, 0x24, 2, 63, 1), a) // another eventfd in its place
	g.server.Interrupt(63)
	if x, y := raised(a), raised(b); x != 1 || y != 0 {
		t.Errorf("raised %d and %d times", x, y)
	}
	g.must(8, words(20, 0x24, 2, 63, 1)) // taken away
	if g.server.Interrupt(63) {
		t.Error("vector 63 is still there")
	}
	g.must(8, words(20, 0x21, 2, 0, 0)) // all of them
	if g.server.Interrupt(0) {
		t.Error("vector 0 is still there")
	}
	g.must(8, words(20, 0x21, 0, 0, 0)) // those of INTx, of which there are none
}

func TestSixteenVectorsInOneMessage(t *testing.T) {
	g := boot(t)
	fds := make([]int, 16)
	for i := range fds {
		fds[i] = eventfd(t)
	}
	g.must(8, words(20, 0x24, 2, 48, 16), fds...)
	for i, fd := range fds {
		if !g.server.Interrupt(48+i) || raised(fd) != 1 {
			t.Errorf("vector %d", 48+i)
		}
	}
}

func TestTheClientMayRaiseVectorsItself(t *testing.T) {
	g := boot(t)
	a, b, c := eventfd(t), eventfd(t), eventfd(t)
	g.must(8, words(20, 0x24, 2, 4, 3), a, b, c)
	g.must(8, append(words(23, 0x22, 2, 4, 3), 1, 0, 1))
	g.must(8, words(20, 0x21, 2, 5, 2))
	if x, y, z := raised(a), raised(b), raised(c); x != 1 || y != 1 || z != 2 {
		t.Errorf("raised %d, %d and %d times", x, y, z)
	}
}

func TestAFullEventfdDoesNotBlock(t *testing.T) {
	g := boot(t)
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC) // blocking
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, words(^uint64(1))); err != nil {
		t.Fatal(err)
	}
	g.must(8, words(20, 0x24, 2, 0, 1), fd)
	if !g.server.Interrupt(0) {
		t.Error("vector 0 is pending, not missing")
	}
}

func BenchmarkRegionRead(b *testing.B) {
	g := boot(b)
	for b.Loop() {
		g.must(9, words(uint64(0), 0, 4))
	}
}

func BenchmarkBusWrite64(b *testing.B) {
	g := boot(b)
	g.mapMemory(0, 16*page, 0, 3, memfd(b, 16*page))
	buf := make([]byte, 64)
	for b.Loop() {
		if err := g.server.Write(page-32, buf); err != nil {
			b.Fatal(err)
		}
	}
}
