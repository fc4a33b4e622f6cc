// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"testing"
	"time"
)

func TestBarFillsTheTerminalsWidth(t *testing.T) {
	for _, c := range []struct {
		size, read int64
		want       string
	}{
		{100 << 20, 25 << 20, "[=====                 ]  25 %  25 MiB  30s left "},
		{100 << 20, 100 << 20, "[======================] 100 %  100 MiB  0s left "},
		{0, 5 << 20, "5 MiB"},
	} {
		b := &progressBar{width: 50, size: c.size, read: &countingReader{n: c.read}}
		if got := b.line(10 * time.Second); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.read, c.size, got, c.want)
		}
	}
}

func TestNoBarWithoutATerminal(t *testing.T) {
	a := &app{errOut: &bytes.Buffer{}}
	b := a.newProgress(os.Stdin, &countingReader{})
	if b != nil {
		t.Fatal("a bar for a buffer")
	}
	b.show()
	b.clear()
}

func TestBarIsLeftOutOfShortRuns(t *testing.T) {
	var out bytes.Buffer
	b := &progressBar{out: &out, width: 80, size: 100, read: &countingReader{n: 1}, start: time.Now()}
	b.show()
	b.clear()
	if out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
	b.start = b.start.Add(-time.Second)
	b.show()
	b.clear()
	if !bytes.Contains(out.Bytes(), []byte("[")) || !bytes.HasSuffix(out.Bytes(), []byte("\r")) {
		t.Errorf("%q", out.String())
	}
}
