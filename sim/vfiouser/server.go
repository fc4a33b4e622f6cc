// SPDX-License-Identifier: Apache-2.0

package vfiouser

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Device is a PCI function as its bus sees it: accesses of any length inside of
// ConfigSize and of Layout.BAR0. They come from one goroutine, one at a time.
type Device interface {
	ConfigRead(off int, b []byte)
	ConfigWrite(off int, b []byte)
	BARRead(off uint64, b []byte)
	BARWrite(off uint64, b []byte)
	Reset() // of the whole function, as by a PCI reset
}

// ConfigSize is the size of configuration space in bytes: that of PCI Express.
const ConfigSize = 4096

// Layout is what a client is told of a device.
type Layout struct {
	BAR0    uint64 // size in bytes
	Vectors int    // of MSI-X
}

// Server is the machine's side of one device. It is a bus.Bus: what a client
// lends, for as long as it is connected. Between clients there is no memory and
// no vector.
type Server struct {
	memory
	vectors
	layout Layout
	log    func(format string, args ...any)
	busy   sync.Mutex
	counts struct{ messages, reads, writes, refused atomic.Uint64 }
}

// New makes the server of a device. log gets a line for each message that was
// refused.
func New(l Layout, log func(format string, args ...any)) *Server {
	return &Server{vectors: vectors{fds: none(l.Vectors)}, layout: l, log: log}
}

// Counters are numbers of messages since New.
type Counters struct {
	Messages uint64 `json:"messages"` // all
	Reads    uint64 `json:"reads"`    // of a region
	Writes   uint64 `json:"writes"`   // of a region
	Refused  uint64 `json:"refused"`  // answered with an error
}

// Counters are those of all clients so far.
func (s *Server) Counters() Counters {
	return Counters{s.counts.messages.Load(), s.counts.reads.Load(), s.counts.writes.Load(), s.counts.refused.Load()}
}

// Serve lets the client on c drive d until it leaves, which is no error. Close c
// to end it. A client that leaves is a machine that is off: d is reset, and then
// its memory and vectors go. One client is served at a time; another waits.
func (s *Server) Serve(c *net.UnixConn, d Device) error {
	s.busy.Lock()
	defer s.busy.Unlock()
	defer s.removeAll()
	defer s.release(0, len(s.fds))
	t := &session{Server: s, device: d, stream: newStream(c)}
	defer t.powerOff() // first, so that a frame on its way finds no queue rather than no memory
	for {
		m, err := t.stream.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := t.serve(m); err != nil {
			return err
		}
	}
}

// session is the time of one client.
type session struct {
	*Server
	device     Device
	stream     *stream
	negotiated bool
	out        []byte // body of the reply
}

func (t *session) powerOff() {
	if t.negotiated {
		t.device.Reset()
	}
}

// serve answers m. An error of its own, and not of the message, ends the session.
func (t *session) serve(m message) error {
	defer m.close()
	t.counts.messages.Add(1)
	t.out = t.out[:0]
	refusal := t.do(&m)
	if refusal != nil {
		t.counts.refused.Add(1)
		refusal = fmt.Errorf("%s: %w", name(m.command), refusal)
		t.log("refused: %v", refusal)
	}
	if m.flags&flagNoReply == 0 {
		if err := t.stream.answer(m, t.out, errno(refusal)); err != nil {
			return fmt.Errorf("answer %s: %w", name(m.command), err)
		}
	}
	if !t.negotiated {
		return refusal
	}
	return nil
}

func (t *session) do(m *message) error {
	c, known := commands[m.command]
	switch {
	case m.flags&^(flagType|flagNoReply) != 0 || m.flags&flagType != 0:
		return fmt.Errorf("flags %#x are not those of a command: %w", m.flags, unix.EINVAL)
	case !known:
		return unix.ENOTSUP
	case (m.command == cmdVersion) == t.negotiated:
		return fmt.Errorf("the version is agreed on once, and first: %w", unix.EINVAL)
	case len(m.body) < c.min || len(m.body) > c.max:
		return fmt.Errorf("body of %d bytes; %d to %d can be: %w", len(m.body), c.min, c.max, unix.EINVAL)
	case len(m.fds) > c.fds:
		return fmt.Errorf("%d file descriptors; at most %d can be: %w", len(m.fds), c.fds, unix.EINVAL)
	}
	return c.do(t, m)
}

// errno is what a client is told of a refusal; 0 for none.
func errno(refusal error) unix.Errno {
	if refusal == nil {
		return 0
	}
	var e unix.Errno
	if errors.As(refusal, &e) {
		return e
	}
	return unix.EIO
}
