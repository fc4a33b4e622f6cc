// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ethtool

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socket is the running kernel. Any datagram socket reaches SIOCETHTOOL; the
// namespace is the one it was made in.
type socket struct{ fd int }

func openSocket() (*socket, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a socket for ethtool: %w", err)
	}
	return &socket{fd: fd}, nil
}

// Close ends the use of the socket.
func (s *socket) Close() error { return unix.Close(s.fd) }

// ifreq is struct ifreq with ifr_data: 40 bytes on 64-bit Linux.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

// Ethtool makes the call. A name of more than 15 bytes is an altname, which
// the ioctl cannot carry.
//
// It is a raw system call, which keeps its processor. The kernel takes some 50 to
// 300 µs for a rule; after 20 µs Go's monitor would hand the processor to another
// thread, which has nothing to do, and back again: on the lab's machines three
// futex calls a rule, and twice the time. What waits behind one processor in the
// daemon waits for the loop that makes this call in any case.
func (s *socket) Ethtool(name string, request []byte) error {
	var r ifreq
	if len(name) >= len(r.name) || len(request) < 4 {
		return fmt.Errorf("interface name %q: %w", name, unix.EINVAL)
	}
	copy(r.name[:], name)
	r.data = unsafe.Pointer(unsafe.SliceData(request))
	_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(s.fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r)))
	runtime.KeepAlive(request)
	if errno != 0 {
		return errno
	}
	return nil
}
