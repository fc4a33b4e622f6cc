// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// maxTrace is how many commands the trace keeps: the last ones.
const maxTrace = 1 << 16

// trace is the last commands, a ring.
type trace struct {
	ring []traceLine
	next int
}

// traceLine is one command of the trace.
type traceLine struct {
	number   int
	at       time.Duration
	opcode   uint16
	modifier uint16
	in       [tracedBytes]byte
	out      [inlineBytes]byte
	why      string
}

// Bytes of the input that a trace line keeps: no field that is shown lies behind them.
const tracedBytes = 40

func traced(number int, now time.Duration, opcode uint16, c *call, err error) traceLine {
	l := traceLine{number: number, at: now, opcode: opcode, modifier: c.modifier}
	copy(l.in[:], c.in)
	copy(l.out[:], c.out)
	if err != nil {
		l.why = err.Error()
	}
	return l
}

func (t *trace) add(l traceLine) {
	if len(t.ring) < maxTrace {
		t.ring = append(t.ring, l)
		return
	}
	t.ring[t.next] = l
	t.next = (t.next + 1) % maxTrace
}

// Trace writes the last 65,536 commands, a line each, the oldest first: number,
// seconds since the device was made, name, op_mod, the objects that it is
// about, status, and why it was refused.
func (d *Device) Trace(w io.Writer) error {
	d.mu.RLock()
	t := d.report.trace
	lines := append(append([]traceLine(nil), t.ring[t.next:]...), t.ring[:t.next]...)
	d.mu.RUnlock()
	for _, l := range lines {
		if _, err := fmt.Fprintln(w, l); err != nil {
			return err
		}
	}
	return nil
}

func (l traceLine) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %.6f %s", l.number, l.at.Seconds(), commandName(l.opcode))
	if l.modifier != 0 {
		fmt.Fprintf(&b, " op_mod=%#x", l.modifier)
	}
	c := commands[l.opcode]
	if c != nil {
		for _, s := range c.shows {
			fmt.Fprintf(&b, " %s=%#x", s.name, s.field.Get(l.in[:]))
		}
	} else {
		fmt.Fprintf(&b, " in=%x", l.in)
	}
	status := Status(statusField.Get(l.out[:]))
	fmt.Fprintf(&b, " -> %v", status)
	if status != OK {
		fmt.Fprintf(&b, " syndrome=%#x: %s", syndromeField.Get(l.out[:]), l.why)
	} else if c != nil && c.gives != nil {
		fmt.Fprintf(&b, " %s=%#x", c.gives.name, c.gives.field.Get(l.out[:]))
	}
	return b.String()
}
