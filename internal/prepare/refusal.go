// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// Reason is why nothing, or less than all, is known of a card.
type Reason string

const (
	NoMstconfig   Reason = "no-mstconfig"   // the program is not installed
	NotRoot       Reason = "not-root"       // nobody else may ask a card
	Lockdown      Reason = "lockdown"       // the kernel forbids access to the device (Secure Boot)
	CannotOpen    Reason = "cannot-open"    // semaphore held, device busy or resetting
	Gone          Reason = "gone"           // no such device any more
	MailboxStuck  Reason = "mailbox-stuck"  // the firmware does not answer
	Busy          Reason = "busy"           // the firmware says that it is
	NoAccess      Reason = "no-access"      // the firmware keeps its settings from this host
	Recovery      Reason = "recovery"       // the card runs without firmware (livefish)
	OldMstconfig  Reason = "old-mstconfig"  // it does not know the parameter
	NoParameter   Reason = "no-parameter"   // the firmware does not have it
	NoSettings    Reason = "no-settings"    // the card or its firmware has none at all
	NotUnderstood Reason = "not-understood" // what mstconfig said
	NotTold       Reason = "not-told"       // the firmware left a value out
)

// passing are the reasons that may be gone a moment later.
var passing = map[Reason]bool{CannotOpen: true, MailboxStuck: true, Busy: true}

// Refusal is an error that mstconfig printed. The zero value is none.
type Refusal struct {
	Reason    Reason
	Parameter string // that it is about; "" for the device
	Said      string // the line
	NoNames   bool   // this mstconfig answers for all parameters only (4.6, 4.7)
}

// refusals maps what mstconfig 4.6 to 4.36 prints, all of it on standard output,
// to what it means. The first that fits counts. A device that cannot be
// identified is one that does not answer: it was found by its PCI id.
var refusals = []struct {
	text   *regexp.Regexp
	reason Reason
}{
	{regexp.MustCompile(`Unknown Parameter:? (\S+)`), OldMstconfig},
	{regexp.MustCompile(`The Device doesn't support (\S+) parameter`), NoParameter},
	// "Either FW does not support NV access register, or HW access is disabled":
	// which of the two, nobody knows.
	{regexp.MustCompile(`HW access is disabled|Cannot access NV register|permission issue|from other hosts cannot be modified`), NoAccess},
	{regexp.MustCompile(`(?i)FW does not support NV access|NVQC access register is not supported|Device doesn't support any configuration changes|Unsupported device`), NoSettings},
	{regexp.MustCompile(`Livefish`), Recovery},
	{regexp.MustCompile(`Error when trying to check if NV access registers are supported`), MailboxStuck},
	{regexp.MustCompile(`(?i)semaphore|not ready|timed? ?out`), MailboxStuck},
	{regexp.MustCompile(`(?i)\bbusy\b`), Busy},
	{regexp.MustCompile(`(?i)Failed to open (the )?device|Failed to identify the device|Failed to get device type|Can't find device id|crspace read`), CannotOpen},
}

var takesNoNames = regexp.MustCompile(`query command expects no argument`)

// refused finds the error in the output of mstconfig; that of a FATAL line
// counts no more than the -E- that follows it.
func refused(o Output) Refusal {
	var r Refusal
	for line := range strings.Lines(o.Stdout + "\n" + o.Stderr) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "-E-") && !strings.HasPrefix(line, "FATAL") {
			continue
		}
		r = understand(line)
		if r.Reason != NotUnderstood {
			return r
		}
	}
	if r.Reason == "" && o.Code != 0 {
		r = Refusal{Reason: NotUnderstood, Said: cmp.Or(lastLine(o.Stdout+"\n"+o.Stderr), fmt.Sprintf("nothing, and ended with status %d", o.Code))}
	}
	return r
}

func understand(line string) Refusal {
	r := Refusal{Reason: NotUnderstood, Said: strings.TrimSpace(strings.TrimPrefix(line, "-E-"))}
	if takesNoNames.MatchString(line) {
		r.NoNames = true
		return r
	}
	for _, known := range refusals {
		if found := known.text.FindStringSubmatch(line); found != nil {
			r.Reason = known.reason
			if len(found) > 1 && (r.Reason == OldMstconfig || r.Reason == NoParameter) {
				r.Parameter = found[1]
			}
			return r
		}
	}
	return r
}

// lastLine is the last line of text that is not empty.
func lastLine(text string) (last string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			last = line
		}
	}
	return last
}
