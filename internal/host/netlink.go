// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"encoding/binary"
	"fmt"
	"iter"

	"golang.org/x/sys/unix"
)

// A small netlink of our own: one dump, one lookup and three groups to listen
// to are all that is asked of it, and the libraries would be a third of the
// daemon's size.

// listen is a non-blocking netlink socket in the given groups (numbers, not a
// mask). buffer is SO_RCVBUF in bytes, 0 for the system's own.
func listen(protocol int, buffer int, groups ...uint32) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return -1, fmt.Errorf("open a netlink socket: %w", err)
	}
	if err := join(fd, buffer, groups); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("listen to netlink protocol %d: %w", protocol, err)
	}
	return fd, nil
}

func join(fd, buffer int, groups []uint32) error {
	if buffer > 0 {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer); err != nil {
			return err
		}
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	for _, g := range groups {
		if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, int(g)); err != nil {
			return err
		}
	}
	return nil
}

// message is one netlink message: its type and what follows the header.
type message struct {
	kind uint16
	body []byte
}

// ask sends one request and collects the answers, of a dump or of one lookup.
// A dump that the kernel marks as interrupted is EAGAIN.
func ask(protocol int, kind uint16, flags uint16, body []byte) ([]message, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	defer unix.Close(fd)
	request := make([]byte, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr+len(body))
	binary.NativeEndian.PutUint32(request, uint32(unix.SizeofNlMsghdr+len(body)))
	binary.NativeEndian.PutUint16(request[4:], kind)
	binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST|flags)
	if err := retry(func() error {
		return unix.Sendto(fd, append(request, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}); err != nil {
		return nil, err
	}
	return collect(fd, flags&unix.NLM_F_DUMP != 0)
}

func collect(fd int, dump bool) (answers []message, err error) {
	buffer := make([]byte, 32<<10)
	for {
		var n int
		if err := retry(func() (err error) { n, _, err = unix.Recvfrom(fd, buffer, 0); return err }); err != nil {
			return nil, err
		}
		for m, flags := range messages(buffer[:n]) {
			switch {
			case flags&unix.NLM_F_DUMP_INTR != 0:
				return nil, unix.EAGAIN
			case m.kind == unix.NLMSG_ERROR:
				return answers, errnoOf(m.body)
			case m.kind == unix.NLMSG_DONE:
				return answers, errnoOf(m.body)
			}
			m.body = append([]byte(nil), m.body...)
			answers = append(answers, m)
			if !dump {
				return answers, nil
			}
		}
	}
}

// errnoOf reads the leading error of NLMSG_ERROR or NLMSG_DONE: 0 or -errno.
func errnoOf(body []byte) error {
	if len(body) < 4 {
		return nil
	}
	if code := int32(binary.NativeEndian.Uint32(body)); code < 0 {
		return unix.Errno(-code)
	}
	return nil
}

func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// messages walks the messages of one datagram, with their flags. It stops at
// the first that does not fit.
func messages(b []byte) iter.Seq2[message, uint16] {
	return func(yield func(message, uint16) bool) {
		for len(b) >= unix.SizeofNlMsghdr {
			length := int(binary.NativeEndian.Uint32(b))
			if length < unix.SizeofNlMsghdr || length > len(b) {
				return
			}
			m := message{kind: binary.NativeEndian.Uint16(b[4:]), body: b[unix.SizeofNlMsghdr:length]}
			if !yield(m, binary.NativeEndian.Uint16(b[6:])) {
				return
			}
			b = b[min(align4(length), len(b)):]
		}
	}
}

// attributes walks netlink attributes: type without flags, and payload.
func attributes(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= unix.SizeofNlAttr {
			length := int(binary.NativeEndian.Uint16(b))
			if length < unix.SizeofNlAttr || length > len(b) {
				return
			}
			kind := binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
			if !yield(kind, b[unix.SizeofNlAttr:length]) {
				return
			}
			b = b[min(align4(length), len(b)):]
		}
	}
}

func align4(n int) int { return (n + 3) &^ 3 }

// attribute is one attribute with its header, padded.
func attribute(kind uint16, payload []byte) []byte {
	b := make([]byte, align4(unix.SizeofNlAttr+len(payload)))
	binary.NativeEndian.PutUint16(b, uint16(unix.SizeofNlAttr+len(payload)))
	binary.NativeEndian.PutUint16(b[2:], kind)
	copy(b[unix.SizeofNlAttr:], payload)
	return b
}
