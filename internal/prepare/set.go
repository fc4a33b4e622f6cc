// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Ending is what mstconfig says must happen after a change.
type Ending string

const (
	Reboot     Ending = "reboot"
	PowerCycle Ending = "power-cycle"  // the card could not be prepared for a reboot
	NoPrepare  Ending = "not-prepared" // DPU mode: a reboot of the host does not reload the firmware (4.36)
	OtherEnd   Ending = "other"
)

// ParseSet reads the output of `mstconfig -y set`. said is the tool's own last
// word. An error wraps no other: it is what mstconfig refused with.
func ParseSet(o Output) (end Ending, said string, err error) {
	if r := refused(o); r.Reason != "" || o.Err != nil {
		if o.Err != nil {
			return "", "", o.Err
		}
		return "", "", errors.New(r.Said)
	}
	if !strings.Contains(o.Stdout, "Applying...") || !strings.Contains(o.Stdout, "Done!") {
		return "", "", fmt.Errorf("its answer is not understood: %q", lastLine(o.Stdout))
	}
	for line := range strings.Lines(o.Stdout) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "-I- "); ok {
			said = rest
		}
	}
	switch {
	case strings.Contains(said, "power cycle"):
		return PowerCycle, said, nil
	case strings.Contains(said, "Skipped reset preparation"):
		return NoPrepare, said, nil
	case strings.Contains(said, "reboot"):
		return Reboot, said, nil
	}
	return OtherEnd, said, nil
}

// Set makes the settings of a card. It arms a reset of the firmware, so it is
// not for a card whose next boot is right already.
func (a *Asker) Set(ctx context.Context, c Card) (Ending, string, error) {
	return ParseSet(a.run(ctx, append([]string{"-d", c.PCI, "-y", "set"}, Assignments()...)))
}

// Wanted is the value that a setting should have, as mstconfig prints it.
func Wanted(name string) string {
	for _, w := range wanted {
		if w.name == name {
			return w.shown
		}
	}
	return ""
}

// NextRight reports whether the next boot is right already: nothing is to be set.
func (c Card) NextRight() bool {
	return c.Verdict == Right || c.Verdict == Pending || c.Verdict == CurrentUnknown && nextRight(c.Settings)
}

// Settable reports whether the settings were read, and may be changed.
func (c Card) Settable() bool {
	readOnly := slices.ContainsFunc(c.Settings, func(s Setting) bool { return s.ReadOnly })
	return (c.Verdict == ToSet || c.Verdict == WillBeLost || c.Verdict == CurrentUnknown) && !readOnly
}
