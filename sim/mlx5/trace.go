// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Trace writes a line to w for each command from now on, until it is given
// another writer or nil: number, seconds since the device was made, name,
// op_mod, the objects that it is about, status, and why it was refused. Lines
// come one at a time, at the end of their commands; w must not call the device.
func (d *Device) Trace(w io.Writer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.report.trace = w
}

// traceLine is a command that was answered.
type traceLine struct {
	number int
	at     time.Duration
	opcode uint16
	call   *call
	err    error
}

func (l traceLine) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %.6f %s", l.number, l.at.Seconds(), commandName(l.opcode))
	if l.call.modifier != 0 {
		fmt.Fprintf(&b, " op_mod=%#x", l.call.modifier)
	}
	c := commands[l.opcode]
	if c != nil {
		for _, s := range c.shows {
			fmt.Fprintf(&b, " %s=%#x", s.name, s.field.Get(l.call.in))
		}
	} else {
		fmt.Fprintf(&b, " in=%x", l.call.in[:min(len(l.call.in), 64)])
	}
	status := Status(statusField.Get(l.call.out))
	fmt.Fprintf(&b, " -> %v", status)
	if status != OK {
		fmt.Fprintf(&b, " syndrome=%#x: %s", syndromeField.Get(l.call.out), l.err)
	} else if c != nil && c.gives != nil {
		fmt.Fprintf(&b, " %s=%#x", c.gives.name, c.gives.field.Get(l.call.out))
	}
	return b.String()
}
