// SPDX-License-Identifier: Apache-2.0

package vfiouser

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// A message is a header of 16 bytes, which holds id (2), command (2), size of
// the whole (4), flags (4) and in replies an errno (4); and a body.
const (
	headerSize = 16
	maxData    = 1 << 20 // of one read or write: max_data_xfer_size
	maxMessage = headerSize + accessSize + maxData

	flagType    = 0xf // 0 is a command
	typeReply   = 0x1
	flagNoReply = 0x10
	flagError   = 0x20
)

// maxFDs is what Linux lets one message carry (SCM_MAX_FD), so that none is cut off unseen.
const maxFDs = 253

var le = binary.LittleEndian

// message is a command as it came. Its body is valid until the next one is read.
type message struct {
	id, command uint16
	flags       uint32
	body        []byte
	fds         []int // owned by the message until taken
}

// take gives the file descriptors to the caller.
func (m *message) take() []int {
	fds := m.fds
	m.fds = nil
	return fds
}

// close closes the file descriptors that nobody has taken.
func (m *message) close() {
	for _, fd := range m.take() {
		unix.Close(fd)
	}
}

// stream reads commands from a socket and writes replies to it.
type stream struct {
	conn    *net.UnixConn
	header  [headerSize]byte
	body    []byte
	reply   []byte
	control []byte
}

func newStream(c *net.UnixConn) *stream {
	return &stream{conn: c, control: make([]byte, unix.CmsgSpace(4*maxFDs))}
}

// next reads a command; the caller closes it. io.EOF says that the client left
// where one message ends. After another error the stream cannot be followed.
func (s *stream) next() (m message, err error) {
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	if err := s.fill(s.header[:], &m.fds); err != nil {
		return m, err
	}
	m.id, m.command, m.flags = le.Uint16(s.header[:]), le.Uint16(s.header[2:]), le.Uint32(s.header[8:])
	size := le.Uint32(s.header[4:])
	switch {
	case size < headerSize || size > maxMessage:
		return m, fmt.Errorf("message %d (%s) says that it has %d bytes; %d to %d can be", m.id, name(m.command), size, headerSize, maxMessage)
	case m.flags&flagType == typeReply:
		return m, fmt.Errorf("message %d (%s) is a reply, and nothing was asked", m.id, name(m.command))
	}
	n := int(size) - headerSize
	if n > len(s.body) {
		s.body = make([]byte, n)
	}
	m.body = s.body[:n]
	if err := s.fill(m.body, &m.fds); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return m, fmt.Errorf("message %d (%s) of %d bytes: %w", m.id, name(m.command), size, err)
	}
	return m, nil
}

// fill reads len(b) bytes and adds the file descriptors that come with them. One
// receive call never gives those of bytes behind b.
func (s *stream) fill(b []byte, fds *[]int) error {
	for done := 0; done < len(b); {
		n, nc, flags, _, err := s.conn.ReadMsgUnix(b[done:], s.control)
		got, cerr := descriptors(s.control[:nc])
		*fds = append(*fds, got...)
		done += n
		switch {
		case errors.Is(err, io.EOF) && done > 0:
			return io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF):
			return io.EOF
		case err != nil:
			return err
		case cerr != nil:
			return fmt.Errorf("file descriptors of a message: %w", cerr)
		case flags&unix.MSG_CTRUNC != 0:
			return errors.New("file descriptors of a message were lost: this process has as many open as it may (ulimit -n)")
		}
	}
	return nil
}

func descriptors(control []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(control)
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_RIGHTS {
			got, rerr := unix.ParseUnixRights(&m)
			fds, err = append(fds, got...), errors.Join(err, rerr)
		}
	}
	return fds, err
}

// answer sends the reply to m: a body, or only the errno if that is not 0. QEMU
// wants the header whole from its first read, so a reply is one write.
func (s *stream) answer(m message, body []byte, errno unix.Errno) error {
	flags := uint32(typeReply)
	if errno != 0 {
		body, flags = nil, typeReply|flagError
	}
	s.reply = append(s.reply[:0], make([]byte, headerSize)...)
	le.PutUint16(s.reply, m.id)
	le.PutUint16(s.reply[2:], m.command)
	le.PutUint32(s.reply[4:], uint32(headerSize+len(body)))
	le.PutUint32(s.reply[8:], flags)
	le.PutUint32(s.reply[12:], uint32(errno))
	s.reply = append(s.reply, body...)
	_, err := s.conn.Write(s.reply)
	return err
}
