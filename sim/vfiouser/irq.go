// SPDX-License-Identifier: Apache-2.0

package vfiouser

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// vectors are the MSI-X vectors: for each the eventfd that raises it, or -1. The
// table with addresses and masks is QEMU's and never seen here.
type vectors struct {
	mu  sync.RWMutex
	fds []int
}

// none is n vectors without an eventfd.
func none(n int) []int { return slices.Repeat([]int{-1}, n) }

// Interrupt implements bus.Bus: there is a vector if the client gave an eventfd.
func (v *vectors) Interrupt(vector int) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if vector < 0 || vector >= len(v.fds) || v.fds[vector] < 0 {
		return false
	}
	// An eventfd whose counter is full would block; it is signalled as it is.
	full := []unix.PollFd{{Fd: int32(v.fds[vector]), Events: unix.POLLOUT}}
	if n, err := unix.Poll(full, 0); err == nil && n == 0 {
		return true
	}
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, err := unix.Write(v.fds[vector], one[:])
	return err == nil
}

// assign makes fds the eventfds of the vectors from first on and owns them then.
func (v *vectors) assign(first int, fds []int) error {
	for _, fd := range fds {
		if !isEventfd(fd) {
			return fmt.Errorf("a file descriptor is no eventfd: %w", unix.EINVAL)
		}
	}
	v.set(first, fds)
	return nil
}

// release takes the eventfds of n vectors away.
func (v *vectors) release(first, n int) {
	v.set(first, none(n))
}

func (v *vectors) set(first int, fds []int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, fd := range fds {
		if old := v.fds[first+i]; old >= 0 {
			unix.Close(old)
		}
		v.fds[first+i] = fd
	}
}

// isEventfd keeps a pipe or a file out, to which a write may block or mean something.
func isEventfd(fd int) bool {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return err == nil && name == "anon_inode:[eventfd]"
}
