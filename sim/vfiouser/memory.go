// SPDX-License-Identifier: Apache-2.0

package vfiouser

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/sim/bus"
)

// memory is guest memory: regions that the client maps and unmaps, about thirty
// times while SeaBIOS runs. Whoever touches a region's bytes holds the lock for
// reading, so that none is unmapped under an access.
type memory struct {
	mu      sync.RWMutex
	regions []region // by address; they do not overlap
}

type region struct {
	first, last uint64 // guest addresses of its first and last byte
	bytes       []byte // nil if the client gave no file descriptor
	may         access
}

// access is what a device may do with a region: VFIO_DMA_MAP_FLAG_*.
type access uint32

const (
	mayRead  access = 1 << 0
	mayWrite access = 1 << 1
)

const (
	pageSize = 4096
	// A process has some 65,530 mappings (vm.max_map_count), and dies when Go finds
	// none for its heap. QEMU has a few dozen regions.
	maxRegions = 1 << 14
)

// file is where a region's bytes are: fd is -1 if the client gave none.
type file struct {
	fd     int
	offset uint64
}

// add takes a region; the file stays the caller's.
func (m *memory) add(addr, size uint64, may access, f file) error {
	last := addr + size - 1
	switch {
	case may&^(mayRead|mayWrite) != 0:
		return fmt.Errorf("flags %#x are not known: %w", uint32(may), unix.EINVAL)
	case size == 0 || last < addr:
		return fmt.Errorf("%#x bytes at %#x are no range: %w", size, addr, unix.EINVAL)
	case (addr|size|f.offset)%pageSize != 0:
		return fmt.Errorf("%#x bytes at %#x from offset %#x are not whole pages: %w", size, addr, f.offset, unix.EINVAL)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.search(addr)
	switch {
	case len(m.regions) == maxRegions:
		return fmt.Errorf("more than %d regions: %w", maxRegions, unix.ENOSPC)
	case at < len(m.regions) && m.regions[at].first <= last:
		return fmt.Errorf("%#x bytes at %#x overlap a region at %#x: %w", size, addr, m.regions[at].first, unix.EEXIST)
	}
	bytes, err := f.mmap(size, may)
	if err != nil {
		return err
	}
	m.regions = slices.Insert(m.regions, at, region{addr, last, bytes, may})
	return nil
}

func (f file) mmap(size uint64, may access) ([]byte, error) {
	if f.fd < 0 {
		return nil, nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return nil, fmt.Errorf("file of a region: %w", err)
	}
	// A page behind the end of a file can be mapped, but to touch it is a SIGBUS.
	have := uint64(max(st.Size, 0))
	if st.Mode&unix.S_IFMT != unix.S_IFREG || f.offset > have || size > have-f.offset || size > math.MaxInt {
		return nil, fmt.Errorf("%#x bytes from offset %#x of a file of %#x bytes (mode %#o): %w", size, f.offset, have, st.Mode, unix.EINVAL)
	}
	prot := unix.PROT_READ
	if may&mayWrite != 0 {
		prot |= unix.PROT_WRITE
	}
	bytes, err := unix.Mmap(f.fd, int64(f.offset), int(size), prot, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %#x bytes of a region: %w", size, err)
	}
	return bytes, nil
}

// remove gives up the region that is exactly there.
func (m *memory) remove(addr, size uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.search(addr)
	if at == len(m.regions) || m.regions[at].first != addr || m.regions[at].last-addr+1 != size {
		return fmt.Errorf("no region is exactly %#x bytes at %#x: %w", size, addr, unix.ENOENT)
	}
	m.regions[at].unmap()
	m.regions = slices.Delete(m.regions, at, at+1)
	return nil
}

func (m *memory) removeAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.regions {
		r.unmap()
	}
	m.regions = nil
}

func (r region) unmap() {
	if r.bytes != nil {
		unix.Munmap(r.bytes) // fails only for what Mmap did not return
	}
}

// search is the index of the first region that ends at or behind addr.
func (m *memory) search(addr uint64) int {
	return sort.Search(len(m.regions), func(i int) bool { return m.regions[i].last >= addr })
}

// Read implements bus.Bus.
func (m *memory) Read(addr uint64, b []byte) error {
	return m.each(addr, b, mayRead, func(guest, part []byte) { copy(part, guest) })
}

// Write implements bus.Bus.
func (m *memory) Write(addr uint64, b []byte) error {
	return m.each(addr, b, mayWrite, func(guest, part []byte) { copy(guest, part) })
}

// Publish implements bus.Bus.
func (m *memory) Publish(addr uint64, w [4]byte) error {
	if addr%4 != 0 {
		return notMapped(addr, 4, "a word is published at a multiple of 4")
	}
	return m.each(addr, w[:], mayWrite, func(guest, part []byte) {
		// Regions are whole pages, so the word is aligned here too, and in one of them.
		atomic.StoreUint32((*uint32)(unsafe.Pointer(&guest[0])), binary.NativeEndian.Uint32(part))
	})
}

// each calls move for every region that holds some of the len(b) bytes at addr.
func (m *memory) each(addr uint64, b []byte, want access, move func(guest, part []byte)) (err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	// A client may shrink the file that it lent: then touching it is a fault.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			if _, ok := fault.(interface{ Addr() uintptr }); !ok {
				panic(fault)
			}
			err = notMapped(addr, len(b), "the file that the guest gave has shrunk")
		}
	}()
	for done := 0; done < len(b); {
		guest, why := m.at(addr+uint64(done), want)
		if guest == nil || addr+uint64(done) < addr {
			return notMapped(addr, len(b), why)
		}
		n := min(len(guest), len(b)-done)
		move(guest[:n], b[done:done+n])
		done += n
	}
	return nil
}

// at is the rest of the region at addr; or nil, and why if there is one.
func (m *memory) at(addr uint64, want access) (rest []byte, why string) {
	i := m.search(addr)
	switch {
	case i == len(m.regions) || m.regions[i].first > addr:
		return nil, ""
	case m.regions[i].bytes == nil:
		return nil, "the guest has some there, but gave no file to map; QEMU gives one with -object memory-backend-memfd,share=on"
	case m.regions[i].may&want == 0:
		return nil, fmt.Sprintf("flags of the region there are %#x", uint32(m.regions[i].may))
	}
	return m.regions[i].bytes[addr-m.regions[i].first:], ""
}

func notMapped(addr uint64, n int, why string) error {
	err := bus.NotMapped{Addr: addr, Length: n}
	if why == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, why)
}
