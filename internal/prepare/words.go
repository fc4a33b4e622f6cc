// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// Problem says what the settings of the card mean for a link of its; false: nothing.
func (c Card) Problem(link string) (p steer.Problem, wrong bool) {
	p = steer.Problem{Severity: steer.Notice, Needs: steer.NeedL4Data, Text: "firmware of " + c.PCI + ": " + c.Text(), Fix: c.Fix(link)}
	switch c.Verdict {
	case Right:
		return steer.Problem{}, false
	case Pending, ToSet, Unsupported:
		p.Severity = steer.Blocked
	}
	return p, true
}

// Text says what is the matter with the card's settings, in one line.
func (c Card) Text() string {
	switch c.Verdict {
	case Right:
		return "the settings for l4data are right"
	case Pending:
		if c.Stuck {
			return "the settings for l4data are made, but a reboot was not enough to load them (" + c.values() + ")"
		}
		return "the settings for l4data are made, but not loaded yet (" + c.values() + ")"
	case ToSet:
		return "the settings for l4data are not made (" + c.values() + ")"
	case WillBeLost:
		return "the settings for l4data are right now, but the next boot undoes them (" + c.values() + ")"
	case CurrentUnknown:
		now := "; this firmware does not tell those of now"
		if c.Hidden {
			now = "; they are read-only, and this mstconfig does not tell those of now"
		}
		if nextRight(c.Settings) {
			return "the settings for l4data are right for the next boot" + now
		}
		return "the settings for l4data are not made for the next boot" + now + " (" + c.values() + ")"
	case Unsupported:
		return c.unsupported()
	}
	return "the settings for l4data are not known: " + c.unknown()
}

// values reads "FLEX_PARSER_PROFILE_ENABLE is 0, next boot 4; ...".
func (c Card) values() string {
	var parts []string
	for _, s := range c.Settings {
		var said []string
		if s.Current != "" {
			said = append(said, "is "+s.Current)
		}
		if s.Next != "" && s.Next != s.Current {
			said = append(said, "next boot "+s.Next)
		}
		parts = append(parts, s.Name+" "+strings.Join(said, ", "))
	}
	return strings.Join(parts, "; ")
}

func (c Card) unsupported() string {
	switch c.Reason {
	case NoParameter:
		text := "it has no " + c.parameter() + ", so it cannot match l4data"
		if c.Hidden {
			text += "; or it has, but read-only, which this mstconfig does not tell apart"
		}
		return text
	case OldMstconfig:
		return "mstconfig does not know " + c.parameter() + ", so it is not known whether l4data can be matched"
	}
	return "it has no settings that could be made: " + c.Said
}

func (c Card) parameter() string {
	if c.Parameter == "" {
		return "such parameter"
	}
	return c.Parameter
}

func (c Card) unknown() string {
	texts := map[Reason]string{
		NoMstconfig:  "mstconfig is not installed",
		NotRoot:      "only root can ask the card",
		Lockdown:     "the kernel is locked down (Secure Boot) and keeps mstconfig from the card",
		CannotOpen:   "mstconfig cannot open the card, which may be in use by another tool or resetting",
		Gone:         "the card is gone",
		MailboxStuck: "the firmware does not answer",
		Busy:         "the firmware is busy",
		NoAccess:     "the firmware keeps its settings from this host",
		Recovery:     "the card is in recovery mode (livefish), without working firmware",
		NotTold:      "the firmware does not tell them",
	}
	text := texts[c.Reason]
	if text == "" {
		text = "the answer of mstconfig is not understood"
	}
	if c.Said != "" {
		text += ` (mstconfig: "` + c.Said + `")`
	}
	return text
}

// Fix is what to do about it, a command where there is one; link is the name that
// the card goes by for a person.
func (c Card) Fix(link string) string {
	switch c.Verdict {
	case Pending:
		return c.load()
	case ToSet, WillBeLost:
		return c.set(link)
	case CurrentUnknown:
		if !nextRight(c.Settings) {
			return c.set(link)
		}
		return "if rules on l4data are refused: " + c.load()
	case Unsupported:
		return c.replace()
	case Unknown:
		return c.retry(link)
	}
	return ""
}

// replace is what could be newer, or another: mstconfig, the firmware, the card.
func (c Card) replace() string {
	const unheeded = "; or, where the settings are known to be right, write `daemon: {firmware: {check: false}}` into flexsteerd.yaml"
	firmware := fmt.Sprintf("a newer firmware may have it: mstflint -d %s query shows the version; else use a card with a flex parser", c.PCI)
	switch {
	case c.Reason == OldMstconfig:
		return "install a newer mstflint (4.20 or later)" + unheeded
	case c.Hidden:
		return "install mstflint 4.25 or later, which tells; " + firmware + unheeded
	case c.Reason == NoSettings:
		return "if the card is newer than this mstflint, install a newer one; " + firmware
	}
	return firmware
}

func (c Card) set(link string) string {
	for _, s := range c.Settings {
		if s.ReadOnly {
			return "the firmware does not let this host change them (read-only): ask the administrator of the card"
		}
	}
	return fmt.Sprintf("flexsteerctl firmware set %s (after a backup it runs: mstconfig -d %s set %s)", link, c.PCI, strings.Join(Assignments(), " "))
}

// load says how settings that are made become those in use.
func (c Card) load() string {
	reset := fmt.Sprintf("mstfwreset -d %s reset (its links go down meanwhile)", c.PCI)
	switch {
	case c.DPU:
		return "power cycle the machine: the card is in DPU mode, and a reboot of the host does not reload its firmware; or run: " + reset
	case c.Stuck, c.Cold:
		return "power cycle the machine, or run: " + reset
	}
	return "reboot; or run: " + reset
}

func (c Card) retry(link string) string {
	again := "flexsteerctl firmware " + link
	switch c.Reason {
	case NoMstconfig:
		return "install mstflint (Debian: apt install mstflint; Fedora: dnf install mstflint), then run: " + again
	case NotRoot:
		return "sudo " + again
	case Lockdown:
		return "nothing, if rules on l4data are in place; else turn Secure Boot off to look, or use mstflint 4.36 or later with a kernel that has fwctl"
	case Gone:
		return ""
	case CannotOpen:
		return "end other tools that use the card, then run: " + again + "; if it stays so, power cycle the machine, or install an mstflint that is no older than the card"
	case MailboxStuck:
		return "end other tools that use the card, then run: " + again + "; if it stays so, power cycle the machine"
	case NoAccess:
		return "ask from the card's own system, or of whoever administers it"
	case Recovery:
		return fmt.Sprintf("burn its firmware again: mstflint -d %s -i IMAGE burn", c.PCI)
	case NotTold:
		return ""
	}
	return "run: " + again + "; the answer itself: mstconfig -d " + c.PCI + " -e q " + strings.Join(wantedNames(), " ")
}
