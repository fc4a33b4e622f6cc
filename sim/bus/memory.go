// SPDX-License-Identifier: Apache-2.0

package bus

import "sync"

const pageSize = 4096

// Memory is a Bus of a map of pages, for tests and fuzzing. Nothing is mapped
// at first. The zero value is ready.
type Memory struct {
	mu    sync.Mutex
	pages map[uint64]*[pageSize]byte
	fired map[int]int
}

// Map adds n bytes of zeros at addr, both rounded out to whole pages. Pages
// that are there stay as they are.
func (m *Memory) Map(addr uint64, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pages == nil {
		m.pages = map[uint64]*[pageSize]byte{}
	}
	for p := addr / pageSize; p <= (addr+uint64(n)-1)/pageSize; p++ {
		if m.pages[p] == nil {
			m.pages[p] = new([pageSize]byte)
		}
	}
}

// Unmap takes away every page that holds one of the n bytes at addr.
func (m *Memory) Unmap(addr uint64, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := addr / pageSize; p <= (addr+uint64(n)-1)/pageSize; p++ {
		delete(m.pages, p)
	}
}

// Fired is how often the vector was raised.
func (m *Memory) Fired(vector int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fired[vector]
}

// Read implements Bus.
func (m *Memory) Read(addr uint64, b []byte) error {
	return m.each(addr, b, func(page, part []byte) { copy(part, page) })
}

// Write implements Bus.
func (m *Memory) Write(addr uint64, b []byte) error {
	return m.each(addr, b, func(page, part []byte) { copy(page, part) })
}

// Publish implements Bus.
func (m *Memory) Publish(addr uint64, w [4]byte) error { return m.Write(addr, w[:]) }

// Interrupt implements Bus; there is a vector for every number that is not negative.
func (m *Memory) Interrupt(vector int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fired == nil {
		m.fired = map[int]int{}
	}
	m.fired[vector]++
	return vector >= 0
}

func (m *Memory) each(addr uint64, b []byte, move func(page, part []byte)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for done := 0; done < len(b); {
		at := addr + uint64(done)
		page := m.pages[at/pageSize]
		if page == nil || at < addr { // nothing is behind the last address
			return NotMapped{addr, len(b)}
		}
		from := page[at%pageSize:]
		n := min(len(from), len(b)-done)
		move(from[:n], b[done:done+n])
		done += n
	}
	return nil
}
