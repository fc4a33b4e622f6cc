// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// enotsupp is the kernel's internal "not supported", which drivers let out to
// user space: mlx5 of 6.1 and 6.12 for flow types that it lacks.
const enotsupp = syscall.Errno(524)

const mlx5 = "mlx5_core"

// Refusal is a step that the kernel refused, with what is known around it.
type Refusal struct {
	Errno syscall.Errno // 0: the error held none
	Step  steer.Step
	Link  steer.Link
	Have  steer.Observed // as read before the step
}

// cause is what an errno means for one step.
type cause struct {
	severity steer.Severity
	text     string // what it means, behind the kernel's own words; may be ""
	fix      string // what to do; may be ""
}

// Explain says what a refusal means and what to do about it. Text holds only
// the meaning; the sentence of the caller and the kernel's words go before it.
// The meanings are those measured on mlx5_core of Linux 6.1, 6.12 and 7.3.
func Explain(r Refusal) steer.Problem {
	c := r.cause()
	return steer.Problem{Severity: c.severity, Text: c.text, Fix: c.fix}
}

func (r Refusal) cause() cause {
	switch r.Errno {
	case syscall.EINVAL:
		return r.invalid()
	case syscall.EOPNOTSUPP, enotsupp:
		return r.unsupported()
	case syscall.EBUSY:
		return r.busy()
	case syscall.ENOSPC:
		return cause{steer.Failed, fmt.Sprintf("the table is full or ends before location %d", r.Step.Loc),
			"free locations (`flexsteerctl rules " + r.Link.Name + "` lists them all) or set a smaller `locations:`"}
	case syscall.ENODEV:
		return cause{steer.Notice, "the link is going away or resetting", ""}
	case syscall.EPERM, syscall.EACCES:
		return cause{steer.Failed, "flexsteerd lacks CAP_NET_ADMIN",
			"start it as flexsteerd.service does (AmbientCapabilities=CAP_NET_ADMIN), or as root"}
	}
	return cause{steer.Failed, "", ""}
}

func (r Refusal) invalid() cause {
	switch {
	case r.Step.Kind == steer.SetChannels:
		return r.channelsRefused()
	case r.usesL4Data() && r.lacking() != nil:
		return cause{steer.Blocked, r.lacking().Text, r.lacking().Fix}
	case r.usesL4Data() && r.Link.Driver != mlx5:
		return cause{steer.Blocked, "driver " + r.Link.Driver + " does not match l4data", ""}
	case r.usesL4Data():
		return cause{steer.Failed, "the driver or the firmware refuses l4data for this protocol", "see `dmesg | tail` for its reason"}
	}
	return cause{steer.Failed, "the driver refuses this rule", "see `dmesg | tail` for its reason"}
}

// channelsRefused: a NIC keeps its channels while a rule uses one of those that
// would go ("requested channel counts are too low for existing ntuple filter settings").
func (r Refusal) channelsRefused() cause {
	var above []string
	for _, loc := range sortedLocations(r.Have.Rules) {
		if a := r.Have.Rules[loc].Action; !a.Drop && a.Context == steer.NoContext && a.Queue >= r.Step.Channels {
			above = append(above, fmt.Sprint(loc))
		}
	}
	switch {
	case len(above) > 0:
		return cause{steer.Blocked, fmt.Sprintf("rules at %s use queues from %d up", plural(above, "location"), r.Step.Channels),
			fmt.Sprintf("remove them (`ethtool -N %s delete %s`) or set at least %d channels", r.Link.Name, above[0], maxQueue(r.Have.Rules)+1)}
	case r.Have.Channels.Max > 0 && r.Step.Channels > r.Have.Channels.Max:
		return cause{steer.Failed, fmt.Sprintf("the link has at most %d", r.Have.Channels.Max), fmt.Sprintf("set `channels: %d` or fewer", r.Have.Channels.Max)}
	}
	return cause{steer.Failed, "the driver refuses this count", fmt.Sprintf("see `ethtool -l %s` for what it takes", r.Link.Name)}
}

func (r Refusal) unsupported() cause {
	switch {
	case r.Step.Kind == steer.SetChannels:
		return cause{steer.Blocked, "this driver cannot set channels", "remove `channels:` from the policy"}
	case r.usesL4Data() && r.Link.Driver == mlx5 && r.Have.FirmwareRight:
		return cause{steer.Blocked, "the firmware settings are right, but the device offers no flex parser to this function",
			"see `dmesg | grep l4data` for what the driver misses; a newer firmware may have it"}
	case r.usesL4Data() && r.Link.Driver == mlx5:
		return cause{steer.Blocked, "the firmware setting for the flex parser is missing", r.firmwareFix()}
	case r.usesL4Data():
		return cause{steer.Blocked, "this driver does not match l4data", ""}
	}
	return cause{steer.Blocked, "this driver takes no such rule", ""}
}

// busy: the driver gives the flex parser to RawProtocols protocols at a time,
// whoever's rules they are; with room for more it is the device that has none.
func (r Refusal) busy() cause {
	if !r.usesL4Data() {
		return cause{steer.Failed, "", ""}
	}
	held, rules := r.rawProtocols(), "`flexsteerctl rules "+r.Link.Name+"`"
	switch {
	case len(held) == 0 && r.Have.NIC.RawProtocols <= 1:
		return cause{steer.Blocked, "the flex parser is held by another protocol",
			"remove the rules of the other protocol (" + rules + "), or load mlx5_core with a larger flex_l4_max_nodes"}
	case len(held) >= r.Have.NIC.RawProtocols:
		return cause{steer.Blocked, "the flex parser is held by " + plural(held, "protocol"),
			"remove the rules of the other protocol (" + rules + "), or load mlx5_core with a larger flex_l4_max_nodes"}
	}
	fix := "see `dmesg | tail` for the device's reason"
	if len(held) > 0 {
		fix = "remove the rules of " + plural(held, "protocol") + " (" + rules + "), or " + fix
	}
	return cause{steer.Blocked, "the device has no parser sample left, or another program uses its flex parser", fix}
}

func (r Refusal) usesL4Data() bool { return r.Step.Rule.Match.L4Data.Mask != 0 }

// lacking is the prerequisite for l4data that is known to be missing, or nil.
func (r Refusal) lacking() *steer.Problem {
	return r.prerequisite(func(p steer.Problem) bool { return p.Severity > steer.Notice })
}

func (r Refusal) prerequisite(fits func(steer.Problem) bool) *steer.Problem {
	i := slices.IndexFunc(r.Have.Prerequisites, func(p steer.Problem) bool { return p.Needs == steer.NeedL4Data && fits(p) })
	if i < 0 {
		return nil
	}
	return &r.Have.Prerequisites[i]
}

// firmwareFix is the exact next command; udev's ID_PATH holds the PCI address.
func (r Refusal) firmwareFix() string {
	if p := r.prerequisite(func(p steer.Problem) bool { return p.Fix != "" }); p != nil {
		return p.Fix
	}
	device := "PCI-ADDRESS"
	if address, ok := strings.CutPrefix(r.Link.Path, "pci-"); ok {
		device = address
	}
	return "mstconfig -d " + device + " -e q FLEX_PARSER_PROFILE_ENABLE PROG_PARSE_GRAPH (wanted: 4 and True)"
}

// rawProtocols lists the protocols that rules in place match by l4data, other
// than the step's own.
func (r Refusal) rawProtocols() []string {
	held := map[uint8]bool{}
	for _, rule := range r.Have.Rules {
		if m := rule.Match; m.L4Data.Mask != 0 && m.Protocol != r.Step.Rule.Match.Protocol {
			held[m.Protocol.Value] = true
		}
	}
	var names []string
	for p := range 256 {
		if held[uint8(p)] {
			names = append(names, fmt.Sprint(p))
		}
	}
	return names
}

// refusal is the Problem of a step that err refused: what, the kernel's words,
// what they mean.
func refusal(d steer.Desired, s steer.Step, have steer.Observed, err error) steer.Problem {
	var errno syscall.Errno
	errors.As(err, &errno)
	p := Explain(Refusal{Errno: errno, Step: s, Link: d.Link, Have: have})
	p.Text = sentence(d.Link, describe(s), err, p.Text)
	switch {
	case s.Kind == steer.SetChannels:
		p.At = d.ChannelsAt
	case s.Kind != steer.Remove && s.Entry >= 0 && s.Entry < len(d.Entries):
		p.Entry, p.At = d.Entries[s.Entry].Name, d.Entries[s.Entry].SteeringAt
	}
	return p
}

// unreadable is the Problem of a link that cannot be observed.
func unreadable(link steer.Link, err error) steer.Problem {
	p := steer.Problem{Severity: steer.Failed}
	meaning := ""
	if errors.Is(err, syscall.ENODEV) {
		p.Severity, meaning = steer.Notice, "the link is going away or resetting"
	}
	p.Text = sentence(link, "read rules", err, meaning)
	return p
}

// sentence reads `ens1f1np1: location 17: insert RULE: no space left on device:
// the table is full`. A part that err already has in front is not said twice.
func sentence(link steer.Link, what string, err error, meaning string) string {
	words := strings.ReplaceAll(err.Error(), "\n", "; ") // errors.Join
	for _, said := range append([]string{link.Name}, strings.Split(what, ": ")...) {
		words = strings.TrimPrefix(words, said+": ")
	}
	if errors.Is(err, enotsupp) {
		words = strings.ReplaceAll(words, enotsupp.Error(), "operation not supported (524)")
	}
	text := link.Name + ": " + what + ": " + words
	if meaning != "" {
		text += ": " + meaning
	}
	return text
}

// describe says what a step does: "location 17: insert RULE".
func describe(s steer.Step) string { return phrase(s, "insert", "replace", "remove") }

// done says what a step did: "location 17: inserted RULE".
func done(s steer.Step) string { return phrase(s, "inserted", "replaced", "removed") }

func phrase(s steer.Step, insert, replace, remove string) string {
	at := "location " + strconv.FormatUint(uint64(s.Loc), 10) + ": "
	switch s.Kind {
	case steer.SetChannels:
		return fmt.Sprintf("set %d combined channels", s.Channels)
	case steer.Remove:
		return at + remove + " " + s.Rule.String()
	case steer.Replace:
		return at + replace + " " + s.Old.String() + " by " + s.Rule.String()
	}
	return at + insert + " " + s.Rule.String()
}

func sortedLocations(t steer.Table) []steer.Loc {
	locs := make([]steer.Loc, 0, len(t))
	for loc := range t {
		locs = append(locs, loc)
	}
	slices.Sort(locs)
	return locs
}

func maxQueue(t steer.Table) uint32 {
	highest := uint32(0)
	for _, r := range t {
		if !r.Action.Drop {
			highest = max(highest, r.Action.Queue)
		}
	}
	return highest
}

// plural reads "location 3", "locations 3, 4" and "locations 3, 4, 5 and 9 more".
func plural(items []string, noun string) string {
	const shown = 3
	switch {
	case len(items) == 1:
		return noun + " " + items[0]
	case len(items) > shown+1:
		return fmt.Sprintf("%ss %s and %d more", noun, strings.Join(items[:shown], ", "), len(items)-shown)
	}
	return noun + "s " + strings.Join(items, ", ")
}
