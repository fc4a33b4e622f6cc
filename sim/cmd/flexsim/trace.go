// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"sync"
)

// trace is the file that gets a line for each command, and for each access of a
// tool to a register. A line that cannot be written must not stop the card, so the
// first error is kept for the end.
type trace struct {
	mu   sync.Mutex
	file *os.File
	err  error
}

// startTrace makes the file anew. It is not buffered: a card that is killed has
// written every command that it did.
func startTrace(c *card, path string) (*trace, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	t := &trace{file: f}
	c.device.Trace(t)
	if c.firmware != nil {
		c.firmware.Trace(t)
	}
	return t, nil
}

// Write implements io.Writer for the device and the firmware, which write a line
// at a time.
func (t *trace) Write(line []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		_, t.err = t.file.Write(line)
	}
	return len(line), nil
}

// end closes the file and says whether it has all.
func (t *trace) end(c *card) error {
	c.device.Trace(nil)
	if c.firmware != nil {
		c.firmware.Trace(nil)
	}
	if err := t.file.Close(); t.err == nil {
		t.err = err
	}
	if t.err != nil {
		return fmt.Errorf("the trace is not whole: %w", t.err)
	}
	return nil
}
