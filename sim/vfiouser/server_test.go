// SPDX-License-Identifier: Apache-2.0

package vfiouser

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// qemuOffer is what QEMU 11.1 sends behind the version.
const qemuOffer = `{"capabilities": {"max_dma_maps": 65535, "max_msg_fds": 16, "pgsizes": 4096, "migration": {"max_bitmap_size": 268435456, "pgsize": 4096}, "max_data_xfer_size": 1048576, "write_multiple": true}}` + "\x00"

func TestTheVersionReplySaysOnlyWhatTheClientSpokeOf(t *testing.T) {
	for _, c := range []struct {
		name, offer string
		want        map[string]any
	}{
		{"as QEMU", qemuOffer, map[string]any{"max_dma_maps": 16384.0, "max_msg_fds": 16.0, "pgsizes": 4096.0, "max_data_xfer_size": 1048576.0}},
		{"only one", `{"capabilities":{"max_msg_fds":1}}` + "\x00", map[string]any{"max_msg_fds": 16.0}},
		{"no capabilities", "{}\x00", map[string]any{}},
		{"no data", "", map[string]any{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := attach(t)
			reply := g.must(1, append([]byte{0, 0, 1, 0}, c.offer...))
			if !bytes.HasPrefix(reply, []byte{0, 0, 0, 0}) || !bytes.HasSuffix(reply, []byte{0}) {
				t.Fatalf("reply %q is not version 0.0 and text with a NUL", reply)
			}
			var got struct{ Capabilities map[string]any }
			if err := json.Unmarshal(reply[4:len(reply)-1], &got); err != nil {
				t.Fatal(err)
			}
			if len(got.Capabilities) != len(c.want) {
				t.Errorf("capabilities %v", got.Capabilities)
			}
			for k, v := range c.want {
				if got.Capabilities[k] != v {
					t.Errorf("%s is %v, not %v", k, got.Capabilities[k], v)
				}
			}
			if c.offer == qemuOffer && len(reply) > len(qemuOffer)+4 {
				t.Errorf("QEMU has no room for %d bytes", len(reply))
			}
		})
	}
}

func TestAnAgreementThatFailsEndsTheConnection(t *testing.T) {
	for _, c := range []struct {
		name string
		cmd  uint16
		body string
		want string
	}{
		{"another major version", 1, "\x01\x00\x02\x00", "VERSION: version 1.2; we speak 0.0"},
		{"text without an end", 1, "\x00\x00\x00\x00{}", "VERSION: version data do not end with a NUL"},
		{"text that is not JSON", 1, "\x00\x00\x00\x00{\x00", "VERSION: version data: unexpected end of JSON input"},
		{"too short", 1, "\x00\x00", "VERSION: body of 2 bytes; 4 to 65536 can be"},
		{"something else first", 13, "", "DEVICE_RESET: the version is agreed on once, and first"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := attach(t)
			if _, errno := g.ask(c.cmd, []byte(c.body)); errno != unix.EINVAL {
				t.Errorf("answered %v", errno)
			}
			err := <-g.ended
			g.ended <- err
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("ended with %v, not %q", err, c.want)
			}
			if saw := g.device.saw(); len(saw) > 0 {
				t.Errorf("the device saw %v", saw)
			}
		})
	}
}

func TestTheClientLearnsWhatThereIs(t *testing.T) {
	g := boot(t)
	for _, c := range []struct {
		name      string
		cmd       uint16
		ask, want []byte
	}{
		{"device", 4, words(16, 0, 0, 0), words(16, 3, 9, 5)},
		{"BAR 0", 5, words(32, 0, 0, 0, uint64(0), uint64(0)), words(32, 3, 0, 0, uint64(64<<10), uint64(0))},
		{"BAR 2", 5, words(32, 0, 2, 0, uint64(0), uint64(0)), words(32, 0, 2, 0, uint64(0), uint64(0))},
		{"configuration", 5, words(100, 0, 7, 0, uint64(0), uint64(0)), words(32, 3, 7, 0, uint64(4096), uint64(0))},
		{"INTx", 7, words(16, 0, 0, 0), words(16, 0, 0, 0)},
		{"MSI-X", 7, words(16, 0, 2, 0), words(16, 1, 2, 64)},
	} {
		if got := g.must(c.cmd, c.ask); !bytes.Equal(got, c.want) {
			t.Errorf("%s: %x, not %x", c.name, got, c.want)
		}
	}
}

func TestAccessesReachTheDevice(t *testing.T) {
	g := boot(t)
	at := func(off uint64, region, n int, data ...byte) []byte { return append(words(off, region, n), data...) }
	if got := g.must(10, at(0x10, 0, 4, 1, 2, 3, 4)); !bytes.Equal(got, at(0x10, 0, 4)) {
		t.Errorf("write answered %x", got)
	}
	if got := g.must(9, at(0x11, 0, 2)); !bytes.Equal(got, at(0x11, 0, 2, 2, 3)) {
		t.Errorf("read answered %x", got)
	}
	g.must(10, at(4, 7, 2, 6, 0))
	if got := g.must(9, at(0, 7, ConfigSize)); len(got) != 16+ConfigSize || got[16+4] != 6 {
		t.Errorf("configuration reads %d bytes, command %#x", len(got), got[16+4])
	}
	g.must(13, nil)
	want := []string{"bar write 0x10 4 bytes", "bar read 0x11 2", "config write 0x4 0600", "config read 0x0 4096", "reset"}
	if saw := g.device.saw(); !slices.Equal(saw, want) {
		t.Errorf("the device saw %q", saw)
	}
	if c := g.server.Counters(); c != (Counters{Messages: 6, Reads: 2, Writes: 2}) {
		t.Errorf("%+v", c)
	}
}

// What is wrong is answered with an errno, said in the log, and nothing is done.
func TestWrongCommandsAreRefused(t *testing.T) {
	g := boot(t)
	event, file := eventfd(t), memfd(t, 64<<10)
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	const page = 4096
	g.mapMemory(0x10000, 4*page, 0, 3, file)
	for _, c := range []struct {
		name  string
		cmd   uint16
		body  []byte
		fds   []int
		errno unix.Errno
		says  string
	}{
		{"version again", 1, []byte("\x00\x00\x00\x00{}\x00"), nil, unix.EINVAL, "VERSION: the version is agreed on once, and first"},
		{"command of the server", 11, words(uint64(0), uint64(4)), nil, unix.ENOTSUP, "command 11"},
		{"command 6", 6, words(16, 0, 0, 0), nil, unix.ENOTSUP, "command 6"},
		{"command 0", 0, nil, nil, unix.ENOTSUP, "command 0"},
		{"command 65535", 65535, nil, []int{event}, unix.ENOTSUP, "command 65535"},

		{"map: short", 2, make([]byte, 31), nil, unix.EINVAL, "DMA_MAP: body of 31 bytes; 32 to 32"},
		{"map: two files", 2, mapBody(0, page, 0, 3), []int{file, file}, unix.EINVAL, "DMA_MAP: 2 file descriptors; at most 1"},
		{"map: no size", 2, mapBody(0, 0, 0, 3), []int{file}, unix.EINVAL, "0x0 bytes at 0x0 are no range"},
		{"map: over the end", 2, mapBody(1<<64-page, 2*page, 0, 3), []int{file}, unix.EINVAL, "are no range"},
		{"map: half a page", 2, mapBody(0, page/2, 0, 3), []int{file}, unix.EINVAL, "are not whole pages"},
		{"map: odd address", 2, mapBody(8, page, 0, 3), []int{file}, unix.EINVAL, "are not whole pages"},
		{"map: odd offset", 2, mapBody(0, page, 8, 3), []int{file}, unix.EINVAL, "are not whole pages"},
		{"map: flags", 2, mapBody(0, page, 0, 7), []int{file}, unix.EINVAL, "flags 0x7 are not known"},
		{"map: behind the file", 2, mapBody(0x40000, 17*page, 0, 3), []int{file}, unix.EINVAL, "of a file of 0x10000 bytes"},
		{"map: offset behind the file", 2, mapBody(0, page, 1<<63, 3), []int{file}, unix.EINVAL, "of a file of 0x10000 bytes"},
		{"map: no file", 2, mapBody(0, page, 0, 3), []int{pipe[0]}, unix.EINVAL, "of a file of 0x0 bytes"},
		{"map: over another", 2, mapBody(0xf000, 2*page, 0, 3), []int{file}, unix.EEXIST, "overlap a region at 0x10000"},
		{"map: inside another, no file", 2, mapBody(0x11000, page, 0, 3), nil, unix.EEXIST, "overlap a region at 0x10000"},

		{"unmap: part", 3, words(24, 0, uint64(0x10000), uint64(page)), nil, unix.ENOENT, "no region is exactly 0x1000 bytes at 0x10000"},
		{"unmap: nothing there", 3, words(24, 0, uint64(0x20000), uint64(page)), nil, unix.ENOENT, "no region is exactly"},
		{"unmap: dirty bitmap", 3, words(24, 1, uint64(0x10000), uint64(4*page)), nil, unix.EINVAL, "flags 0x1"},
		{"unmap: all of some", 3, words(24, 2, uint64(0x10000), uint64(4*page)), nil, unix.EINVAL, "flags 0x2"},
		{"unmap: with a file", 3, words(24, 0, uint64(0x10000), uint64(4*page)), []int{file}, unix.EINVAL, "1 file descriptors; at most 0"},

		{"device info: argsz", 4, words(15, 0, 0, 0), nil, unix.EINVAL, "argsz is 15; the reply has 16 bytes"},
		{"region info: argsz", 5, words(31, 0, 0, 0, uint64(0), uint64(0)), nil, unix.EINVAL, "argsz is 31"},
		{"region info: region 9", 5, words(32, 0, 9, 0, uint64(0), uint64(0)), nil, unix.EINVAL, "region 9; there are 9"},
		{"irq info: argsz", 7, words(0, 0, 2, 0), nil, unix.EINVAL, "argsz is 0"},
		{"irq info: type 5", 7, words(16, 0, 5, 0), nil, unix.EINVAL, "interrupt type 5; there are 5"},

		{"irqs: no such type", 8, words(20, 0x24, 5, 0, 1), []int{event}, unix.EINVAL, "interrupt type 5"},
		{"irqs: INTx", 8, words(20, 0x24, 0, 0, 1), []int{event}, unix.EINVAL, "vectors 0 to 0; interrupt type 0 has 0"},
		{"irqs: argsz", 8, words(24, 0x24, 2, 0, 1), []int{event}, unix.EINVAL, "argsz is 24 in a body of 20 bytes"},
		{"irqs: vector 64", 8, words(20, 0x24, 2, 64, 1), []int{event}, unix.EINVAL, "vectors 64 to 64; interrupt type 2 has 64"},
		{"irqs: very many", 8, words(20, 0x24, 2, 0xffffffff, 0xffffffff), []int{event}, unix.EINVAL, "vectors 4294967295 to 8589934589"},
		{"irqs: fewer eventfds", 8, words(20, 0x24, 2, 0, 3), []int{event, event}, unix.EINVAL, "2 file descriptors for 3 vectors"},
		{"irqs: more eventfds", 8, words(20, 0x24, 2, 0, 1), []int{event, event}, unix.EINVAL, "2 file descriptors for 1 vectors"},
		{"irqs: more than agreed", 8, words(20, 0x24, 2, 0, 17), slices.Repeat([]int{event}, 17), unix.EINVAL, "17 file descriptors; at most 16"},
		{"irqs: no eventfd", 8, words(20, 0x24, 2, 0, 2), []int{event, pipe[1]}, unix.EINVAL, "is no eventfd"},
		{"irqs: trigger with eventfd", 8, words(20, 0x21, 2, 0, 1), []int{event}, unix.EINVAL, "flags 0x21 with file descriptors"},
		{"irqs: mask", 8, words(20, 0x09, 2, 0, 1), nil, unix.EINVAL, "flags 0x9 are not offered"},
		{"irqs: no action", 8, words(20, 0x04, 2, 0, 1), nil, unix.EINVAL, "flags 0x4 are not offered"},
		{"irqs: bools missing", 8, words(20, 0x22, 2, 0, 4), nil, unix.EINVAL, "0 bytes of data for 4 vectors"},
		{"irqs: data not said", 8, words(24, 0x21, 2, 0, 4, 0), nil, unix.EINVAL, "4 bytes of data for 4 vectors"},

		{"read: behind BAR 0", 9, words(uint64(64<<10), 0, 1), nil, unix.EINVAL, "1 bytes at 0x10000 of region 0, which has 0x10000"},
		{"read: over the end", 9, words(uint64(64<<10-2), 0, 4), nil, unix.EINVAL, "4 bytes at 0xfffe"},
		{"read: offset wraps", 9, words(^uint64(0), 0, 4), nil, unix.EINVAL, "4 bytes at 0xffffffffffffffff"},
		{"read: nothing", 9, words(uint64(0), 0, 0), nil, unix.EINVAL, "0 bytes at 0x0"},
		{"read: BAR 1", 9, words(uint64(0), 1, 4), nil, unix.EINVAL, "region 1, which has 0x0"},
		{"read: region 1000", 9, words(uint64(0), 1000, 4), nil, unix.EINVAL, "region 1000"},
		{"read: more than agreed", 9, words(uint64(0), 0, 1<<20+1), nil, unix.EINVAL, "1048577 bytes at 0x0"},
		{"read: behind configuration", 9, words(uint64(4095), 7, 2), nil, unix.EINVAL, "region 7, which has 0x1000"},
		{"write: less data", 10, append(words(uint64(0), 0, 4), 1, 2, 3), nil, unix.EINVAL, "count is 4 with 3 bytes of data"},
		{"write: more data", 10, append(words(uint64(0), 7, 2), 1, 2, 3), nil, unix.EINVAL, "count is 2 with 3 bytes of data"},
		{"write: no data", 10, words(uint64(0), 0, 0), nil, unix.EINVAL, "0 bytes at 0x0"},
		{"write: short", 10, words(uint64(0), 0), nil, unix.EINVAL, "REGION_WRITE: body of 12 bytes"},
		{"reset: with a body", 13, words(1), nil, unix.EINVAL, "DEVICE_RESET: body of 4 bytes; 0 to 0"},
	} {
		before := len(g.said())
		if _, errno := g.ask(c.cmd, c.body, c.fds...); errno != c.errno {
			t.Errorf("%s: answered %v, not %v", c.name, errno, c.errno)
		}
		if lines := g.said()[before:]; len(lines) != 1 || !strings.Contains(lines[0], c.says) || !strings.Contains(lines[0], c.errno.Error()) {
			t.Errorf("%s: the log says %q, not %q and %q", c.name, lines, c.says, c.errno)
		}
	}
	if saw := g.device.saw(); len(saw) > 0 {
		t.Errorf("the device saw %q", saw)
	}
	if _, vectors := g.server.held(); raised(event) != 0 || vectors > 0 {
		t.Error("an eventfd was taken or raised")
	}
	if c := g.server.Counters(); c.Refused != c.Messages-2 {
		t.Errorf("%+v", c)
	}
	g.unmap(0x10000, 4*page)
}

func TestFlagsOfACommandAreChecked(t *testing.T) {
	g := boot(t)
	for _, flags := range []uint32{0x20, 0x40, 1 << 31, 2, 0xf} {
		g.send(frame(7, 13, flags, nil))
		if _, errno := g.reply(7, 13); errno != unix.EINVAL {
			t.Errorf("flags %#x: %v", flags, errno)
		}
	}
	if saw := g.device.saw(); len(saw) > 0 {
		t.Errorf("the device saw %q", saw)
	}
}

func TestACommandThatWantsNoReplyGetsNone(t *testing.T) {
	g := boot(t)
	g.send(frame(1, 10, flagNoReply, append(words(uint64(0), 0, 1), 9)))
	g.send(frame(2, 77, flagNoReply, nil))
	g.send(frame(3, 9, 0, words(uint64(0), 0, 1)))
	if body, errno := g.reply(3, 9); errno != 0 || body[16] != 9 {
		t.Errorf("%v, %x", errno, body)
	}
	if said := g.said(); len(said) != 1 || !strings.Contains(said[0], "command 77") {
		t.Errorf("the log says %q", said)
	}
}

// A stream that cannot be followed ends, with an error that says why.
func TestBrokenStreamsEnd(t *testing.T) {
	size := func(n uint32) []byte {
		b := frame(5, 9, 0, nil)
		le.PutUint32(b[4:], n)
		return b
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		want  string
	}{
		{"size less than the header", size(15), "message 5 (REGION_READ) says that it has 15 bytes; 16 to 1048608 can be"},
		{"size 0", size(0), "says that it has 0 bytes"},
		{"size more than any", size(1<<20 + 33), "says that it has 1048609 bytes"},
		{"size most", size(1<<32 - 1), "says that it has 4294967295 bytes"},
		{"a reply", frame(6, 11, typeReply, nil), "message 6 (command 11) is a reply, and nothing was asked"},
		{"half a header", size(16)[:9], "unexpected EOF"},
		{"half a body", size(32)[:16], "message 5 (REGION_READ) of 32 bytes: unexpected EOF"},
		{"half of half a body", append(size(32), 1, 2), "message 5 (REGION_READ) of 32 bytes: unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := boot(t)
			g.send(c.bytes, eventfd(t), memfd(t, 4096))
			if err := g.conn.CloseWrite(); err != nil && !errors.Is(err, unix.ENOTCONN) {
				t.Fatal(err)
			}
			err := <-g.ended
			g.ended <- err
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("ended with %v, not %q", err, c.want)
			}
		})
	}
}

func TestAClientThatLeavesIsNoError(t *testing.T) {
	g := boot(t)
	fd := memfd(t, 8192)
	g.mapMemory(0, 8192, 0, 3, fd)
	g.must(8, words(20, 0x24, 2, 3, 1), eventfd(t))
	g.conn.Close()
	err := <-g.ended
	g.ended <- err
	if err != nil {
		t.Error(err)
	}
	if g.server.Read(0, make([]byte, 4)) == nil || g.server.Interrupt(3) {
		t.Error("the device still has memory or a vector")
	}
}

// lastTouch is a device that uses memory and a vector when it is reset.
type lastTouch struct {
	card
	server *Server
	worked bool
}

func (l *lastTouch) Reset() {
	l.worked = l.server.Read(0, make([]byte, 4)) == nil && l.server.Interrupt(0)
}

func TestADeviceIsResetBeforeItsMachineGoes(t *testing.T) {
	ours, theirs := socketpair(t)
	defer ours.Close()
	s := New(Layout{BAR0: 4096, Vectors: 1}, t.Logf)
	d, ended := &lastTouch{server: s}, make(chan error, 1)
	go func() { ended <- s.Serve(ours, d) }()
	g := &guest{t: t, conn: theirs, server: s}
	g.must(1, []byte{0, 0, 0, 0})
	g.mapMemory(0, 4096, 0, 3, memfd(t, 4096))
	g.must(8, words(20, 0x24, 2, 0, 1), eventfd(t))
	theirs.Close()
	if err := <-ended; err != nil || !d.worked {
		t.Errorf("memory and vector when it was reset: %v; %v", d.worked, err)
	}
}

func TestFramesMayComeInPieces(t *testing.T) {
	g := boot(t)
	fd := memfd(t, 4096)
	message := append(frame(1, 2, 0, mapBody(0x4000, 4096, 0, 3)), frame(2, 9, 0, words(uint64(0), 0, 4))...)
	g.send(message[:1], fd)
	for _, b := range message[1:] {
		g.send([]byte{b})
	}
	if _, errno := g.reply(1, 2); errno != 0 {
		t.Fatal(errno, g.said())
	}
	if _, errno := g.reply(2, 9); errno != 0 {
		t.Fatal(errno)
	}
	if err := g.server.Write(0x4000, []byte{1}); err != nil {
		t.Error(err)
	}
}

// Several commands at once: a file descriptor belongs to the command that it came with.
func TestPipelinedCommandsKeepTheirFiles(t *testing.T) {
	g := boot(t)
	a, b := memfd(t, 4096), memfd(t, 4096)
	g.send(frame(1, 9, 0, words(uint64(0), 0, 4)))
	g.send(frame(2, 2, 0, mapBody(0, 4096, 0, 3)), a)
	g.send(frame(3, 9, 0, words(uint64(0), 0, 4)))
	g.send(frame(4, 2, 0, mapBody(4096, 4096, 0, 3)), b)
	for id, cmd := range []uint16{9, 2, 9, 2} {
		if _, errno := g.reply(uint16(id+1), cmd); errno != 0 {
			t.Fatal(id, errno, g.said())
		}
	}
	if err := g.server.Write(4095, []byte{0xaa, 0xbb}); err != nil {
		t.Fatal(err)
	}
	var x [1]byte
	if unix.Pread(b, x[:], 0); x[0] != 0xbb {
		t.Errorf("the second file begins with %x", x)
	}
}

func TestTheNextClientStartsFresh(t *testing.T) {
	g := boot(t)
	g.mapMemory(0, 4096, 0, 3, memfd(t, 4096))
	ours, theirs := socketpair(t)
	ended := make(chan error, 1)
	go func() {
		err := g.server.Serve(ours, g.device)
		ours.Close()
		ended <- err
	}()
	g.conn.Close()
	second := &guest{t: t, conn: theirs, server: g.server}
	second.must(1, []byte{0, 0, 0, 0})
	second.mapMemory(0, 4096, 0, 3, memfd(t, 4096))
	theirs.Close()
	if err := <-ended; err != nil && err != io.EOF {
		t.Error(err)
	}
}
