// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/flexsteer/flexsteer/internal/simulate"
)

// progressBar shows on a terminal how far a file has been read. A nil bar shows
// nothing.
type progressBar struct {
	out   io.Writer
	width int
	size  int64 // 0: not known
	read  *countingReader
	start time.Time
	last  time.Time
}

// Bars are for captures that take a while.
const (
	barAfter = 500 * time.Millisecond
	barEvery = 100 * time.Millisecond
)

// newProgress is a bar for reading f through r, nil when standard error is no terminal.
func (a *app) newProgress(f *os.File, r *countingReader) *progressBar {
	width, ok := terminal(a.errOut)
	if !ok {
		return nil
	}
	b := &progressBar{out: a.errOut, width: width, read: r, start: time.Now()}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		b.size = info.Size()
	}
	return b
}

func (b *progressBar) show() {
	if b == nil {
		return
	}
	now := time.Now()
	if now.Sub(b.start) < barAfter || now.Sub(b.last) < barEvery {
		return
	}
	b.last = now
	fmt.Fprintf(b.out, "\r%s", b.line(now.Sub(b.start)))
}

// line is the bar after some time of reading.
func (b *progressBar) line(spent time.Duration) string {
	mib := simulate.Grouped(uint64(b.read.n >> 20))
	if b.size == 0 {
		return mib + " MiB"
	}
	share := float64(b.read.n) / float64(b.size)
	left := time.Duration(float64(spent) * (1 - share) / max(share, 0.001)).Round(time.Second)
	text := fmt.Sprintf(" %3.0f %%  %s MiB  %s left ", 100*share, mib, left)
	width := max(b.width-len(text)-3, 1)
	filled := int(share * float64(width))
	return "[" + strings.Repeat("=", filled) + strings.Repeat(" ", width-filled) + "]" + text
}

func (b *progressBar) clear() {
	if b == nil || b.last.IsZero() {
		return
	}
	fmt.Fprintf(b.out, "\r%s\r", strings.Repeat(" ", b.width-1))
}

// countingReader counts the bytes that were read through it.
type countingReader struct {
	in io.Reader
	n  int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}
