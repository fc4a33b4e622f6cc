// SPDX-License-Identifier: Apache-2.0

package qemu

import (
	"bufio"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// trouble is what no experiment may make a guest say: the kernel's own words
// for a fault (lib/bug.c, kernel/panic.c, mm/, kernel/rcu/), and those of a Go
// program that dies.
var trouble = regexp.MustCompile(`^Kernel panic|^BUG: |^WARNING: |^Oops\b|^kernel BUG at|general protection fault|Unable to handle|` +
	`refcount_t: |UBSAN: |list_(add|del) corruption|detected stall|soft lockup|blocked for more than|` +
	`^panic: |^fatal error: |^lab: serving ended|Call Trace:`)

// Console is what a guest has said on its serial line.
type Console struct {
	mu      sync.Mutex
	lines   []string
	trouble string
}

// read takes all of in, and writes it to file as it comes.
func (c *Console) read(in io.Reader, file *os.File) {
	scan := bufio.NewScanner(io.TeeReader(in, file))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		c.add(strings.TrimRight(scan.Text(), "\r"))
	}
	io.Copy(file, in) // a line too long to scan; QEMU must not block
}

func (c *Console) add(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
	if c.trouble == "" && trouble.MatchString(afterTime(line)) {
		c.trouble = line
	}
}

// afterTime cuts the kernel's "[   12.345678] ".
func afterTime(line string) string {
	if text, ok := strings.CutPrefix(line, "["); ok {
		if _, text, ok := strings.Cut(text, "] "); ok {
			return text
		}
	}
	return line
}

// Trouble is the first line that tells of a fault of the kernel or of the
// guest's own init; "": none.
func (c *Console) Trouble() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trouble
}

// Tail is the last n lines.
func (c *Console) Tail(n int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(slices.Clone(c.lines[max(0, len(c.lines)-n):]), "\n")
}
