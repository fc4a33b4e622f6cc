// SPDX-License-Identifier: Apache-2.0

package vfiouser

import (
	"bytes"
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// FuzzStream: whatever a client writes, with whatever file descriptors, Serve
// returns, nothing is kept, and a device that works meanwhile comes to no harm.
// Each byte of files says what goes with the next message, or with the next piece of
// what is none: none, guest memory, an eventfd, a pipe, or several. The bytes are
// those of the socket, or, so that chance gets further, bodies (command, flags,
// length, body) in frames that are right, behind a version that is agreed on.
func FuzzStream(f *testing.F) {
	version := frame(1, 1, 0, append([]byte{0, 0, 0, 0}, qemuOffer...))
	join := func(parts ...[]byte) (b []byte) {
		for _, p := range append([][]byte{version}, parts...) {
			b = append(b, p...)
		}
		return b
	}
	add := func(stream, files []byte) {
		f.Add(stream, files, false)
		var bodies []byte
		for rest := stream[len(version):]; len(rest) >= headerSize; rest = rest[le.Uint32(rest[4:]):] {
			n := le.Uint32(rest[4:])
			bodies = append(append(bodies, rest[2], rest[8], byte(n-headerSize)), rest[headerSize:n]...)
		}
		f.Add(bodies, files, true)
	}
	add(version, []byte{})
	add(join(frame(2, 2, 0, mapBody(0, page, 0, 3)), frame(3, 2, 0, mapBody(page, page, page, 1)), frame(4, 3, 0, words(24, 0, uint64(0), uint64(page)))), []byte{0, 1, 1})
	add(join(frame(2, 8, 0, words(20, 0x24, 2, 0, 1)), frame(3, 8, 0, words(20, 0x24, 2, 0, 1)), frame(4, 8, 0, words(20, 0x24, 2, 8, 3))), []byte{0, 0, 2, 4})
	add(join(frame(2, 8, 0, append(words(23, 0x22, 2, 4, 3), 1, 0, 1)), frame(3, 8, 0, words(20, 0x21, 2, 0, 0))), []byte{3, 3, 2})
	add(join(frame(2, 4, 0, words(16, 0, 0, 0)), frame(3, 5, 0, words(32, 0, 7, 0, uint64(0), uint64(0))), frame(4, 7, 0, words(16, 0, 2, 0))), []byte{})
	add(join(frame(2, 9, 0, words(uint64(0), 7, 4096)), frame(3, 10, 0x10, append(words(uint64(8), 0, 4), 1, 2, 3, 4)), frame(4, 13, 0, nil)), []byte{})
	add(join(frame(2, 3, 0, words(24, 2, uint64(0), uint64(0))), frame(3, 99, 0, nil), []byte{1, 2, 3}), []byte{0, 4, 4, 4})
	f.Fuzz(func(t *testing.T, stream, files []byte, framed bool) {
		if framed {
			files, stream = append([]byte{0}, files...), append(bytes.Clone(version), frames(stream)...)
		}
		if len(stream) > 64<<10 {
			t.Skip("longer than what a socket takes at once")
		}
		g := attach(t)
		// Replies are read to the end, so that no side waits for the other.
		drained := make(chan struct{})
		go func() {
			io.Copy(io.Discard, g.conn)
			close(drained)
		}()
		working := make(chan struct{})
		go func() {
			defer close(working)
			for _, at := range []uint64{0, page - 4, 2*page - 1} {
				g.server.Read(at, make([]byte, 8))
				g.server.Write(at, make([]byte, 8))
				g.server.Publish(at, [4]byte{})
				g.server.Interrupt(int(at % 70))
			}
		}()
		write(t, g, stream, files)
		g.conn.CloseWrite()
		select {
		case err := <-g.ended:
			g.ended <- err
		case <-time.After(time.Minute):
			t.Fatal("Serve does not end")
		}
		<-drained
		<-working
	})
}

// frames makes frames of what says command (1), flags (1), length (1) and body.
func frames(b []byte) (stream []byte) {
	for len(b) >= 3 {
		n := min(int(b[2]), len(b)-3)
		stream = append(stream, frame(1, uint16(b[0]), uint32(b[1]), b[3:3+n])...)
		b = b[3+n:]
	}
	return stream
}

// write sends the stream message by message, as far as it can be told what one is.
func write(t *testing.T, g *guest, stream, files []byte) {
	for len(stream) > 0 {
		n := len(stream)
		if n >= headerSize {
			n = min(n, max(headerSize, int(le.Uint32(stream[4:]))))
		}
		var rights []byte
		var fds []int
		if len(files) > 0 {
			fds, files = open(t, files[0]), files[1:]
			if len(fds) > 0 {
				rights = unix.UnixRights(fds...)
			}
		}
		_, _, err := g.conn.WriteMsgUnix(stream[:n], rights, nil)
		for _, fd := range fds {
			unix.Close(fd)
		}
		if err != nil {
			return // the server has given up
		}
		stream = stream[n:]
	}
}

func open(t *testing.T, kind byte) []int {
	must := func(fd int, err error) int {
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	memory := func() int {
		fd := must(unix.MemfdCreate("guest", unix.MFD_CLOEXEC))
		must(0, unix.Ftruncate(fd, 4*page))
		return fd
	}
	event := func() int { return must(unix.Eventfd(0, unix.EFD_CLOEXEC)) }
	switch kind % 6 {
	case 1:
		return []int{memory()}
	case 2:
		return []int{event()}
	case 3:
		var p [2]int
		must(0, unix.Pipe2(p[:], unix.O_CLOEXEC))
		return p[:]
	case 4:
		return []int{event(), event(), event()}
	case 5:
		return []int{event(), memory(), event()}
	}
	return nil
}
