// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// Card is what is known of the firmware settings of one card.
type Card struct {
	PCI       string    `json:"pci"`       // the function that is asked, such as 0000:03:00.0
	Functions []string  `json:"functions"` // all that share its settings, PCI first
	Type      string    `json:"type,omitempty"`
	Part      string    `json:"part,omitempty"`
	Verdict   Verdict   `json:"verdict"`
	Reason    Reason    `json:"reason,omitempty"`
	Said      string    `json:"said,omitempty"` // by mstconfig, where it refused
	Parameter string    `json:"parameter,omitempty"`
	Settings  []Setting `json:"settings,omitempty"`
	Hidden    bool      `json:"hidden,omitempty"`            // mstconfig does not show them: they are read-only, or the firmware does not have them
	DPU       bool      `json:"dpu,omitempty"`               // its own cores own it: a reboot of the host does not reload the firmware
	Stuck     bool      `json:"reboot_not_enough,omitempty"` // the same was pending in an earlier boot
	Cold      bool      `json:"power_cycle,omitempty"`       // by mstconfig's word at the set: a reboot will not do
	AskedAt   time.Time `json:"asked_at,omitzero"`
}

// Asker asks cards for their settings.
type Asker struct {
	FS    fs.FS // the machine, rooted at /
	Run   Run
	Root  bool                                       // has the privileges to ask
	Now   func() time.Time                           // nil: time.Now
	Sleep func(context.Context, time.Duration) error // nil: by the clock
	Wait  time.Duration                              // how long to ask again what may pass
}

// askEvery is the pause before a card is asked again.
const askEvery = 5 * time.Second

// Cards lists the cards of the machine as they are before they are asked.
func Cards(fsys fs.FS) (all []Card) {
	for _, functions := range cards(fsys) {
		all = append(all, Card{PCI: functions[0], Functions: functions, Verdict: Unknown, Reason: NotRoot})
	}
	return all
}

// Ask asks one card, once, and while it cannot answer again until Wait is over.
// mstconfig is never killed on the way: it would leave the card's semaphore taken.
func (a *Asker) Ask(ctx context.Context, c Card) Card {
	c = Card{PCI: c.PCI, Functions: c.Functions, Verdict: Unknown, Reason: NotRoot}
	if !a.Root {
		return c
	}
	for end := a.now().Add(a.Wait); ; {
		answer := a.answer(ctx, c.PCI)
		c.take(answer)
		c.Reason = a.closer(c)
		if !passing[c.Reason] || ctx.Err() != nil || !a.now().Before(end) || a.sleep(ctx) != nil {
			break
		}
	}
	if mayWaitForABoot[c.Verdict] {
		c.DPU = a.dpu(ctx, c)
	}
	c.AskedAt = a.now().UTC()
	return c
}

// mayWaitForABoot are the verdicts that a boot may change, now or after a set.
var mayWaitForABoot = map[Verdict]bool{Pending: true, ToSet: true, WillBeLost: true, CurrentUnknown: true}

func (c *Card) take(answer Answer) {
	c.Verdict, c.Reason = Judge(answer)
	c.Hidden = answer.Hidden
	c.Type, c.Part = answer.Device.Type, answer.Device.Part
	c.Settings = answer.Device.settings()
	c.Said, c.Parameter = answer.Refusal.Said, answer.Refusal.Parameter
	if c.Verdict == Unsupported && c.Parameter == "" {
		c.Parameter = missing(answer.Device)
	}
}

// missing is the first parameter that a device which lists others does not have.
func missing(d Device) string {
	for _, w := range wanted {
		if _, ok := d.Rows[w.name]; !ok && len(d.Rows) > 0 {
			return w.name
		}
	}
	return ""
}

// closer is the reason why a device cannot be opened, by what the kernel says.
func (a *Asker) closer(c Card) Reason {
	switch {
	case c.Reason != CannotOpen:
		return c.Reason
	case !exists(a.FS, pciDevices+"/"+c.PCI):
		return Gone
	case lockedDown(lockdown(a.FS)):
		return Lockdown
	}
	return c.Reason
}

// answer asks for both parameters at once. A refusal names only the first that
// it does not know and prints no row of the others, so then each is asked alone.
func (a *Asker) answer(ctx context.Context, address string) Answer {
	out := a.mstconfig(ctx, address, wantedNames()...)
	if out.Missing() {
		return Answer{Refusal: Refusal{Reason: NoMstconfig}}
	}
	if out.Err != nil {
		return Answer{Refusal: Refusal{Reason: NotUnderstood, Said: out.Err.Error()}}
	}
	got := read(out, address)
	switch {
	case got.Refusal.NoNames:
		return read(a.mstconfig(ctx, address), address)
	case got.Refusal.Parameter != "":
		return a.oneByOne(ctx, address)
	}
	if _, reason := Judge(got); reason == NotUnderstood && out.Good() {
		return a.byJSON(ctx, address, got)
	}
	return got
}

func (a *Asker) oneByOne(ctx context.Context, address string) (all Answer) {
	all.Device.Rows = map[string]Setting{}
	for _, name := range wantedNames() {
		one := read(a.mstconfig(ctx, address, name), address)
		if one.Device.Address != "" {
			all.Device.Address, all.Device.Type, all.Device.Part = one.Device.Address, one.Device.Type, one.Device.Part
		}
		if s, ok := one.Device.Rows[name]; ok && one.Refusal.Reason == "" {
			all.Device.Rows[name] = s
		} else if all.Refusal.Reason == "" {
			all.Refusal = one.Refusal
		}
	}
	if len(all.Device.Rows) == 0 && all.Refusal.Reason == NoParameter {
		return a.further(ctx, address, all)
	}
	return all
}

// byJSON asks once more in the form that does not change with the version, for a
// table that is not understood. Versions before 4.31 refuse it.
func (a *Asker) byJSON(ctx context.Context, address string, got Answer) Answer {
	f, err := os.CreateTemp("", "flexsteer-mstconfig-*.json")
	if err != nil {
		return got
	}
	f.Close()
	defer os.Remove(f.Name())
	out := a.run(ctx, append([]string{"-d", address, "-j", f.Name(), "-e", "q"}, wantedNames()...))
	data, err := os.ReadFile(f.Name())
	if !out.Good() || refused(out).Reason != "" || err != nil {
		return got
	}
	devices, err := ParseJSON(data)
	if err != nil {
		return got
	}
	if d, ok := deviceAt(devices, address); ok {
		return Answer{Device: d}
	}
	return got
}

func (a *Asker) mstconfig(ctx context.Context, address string, names ...string) Output {
	return a.run(ctx, append([]string{"-d", address, "-e", "q"}, names...))
}

func (a *Asker) run(ctx context.Context, args []string) Output {
	return a.Run(context.WithoutCancel(ctx), "mstconfig", args...)
}

// dpu reports whether a BlueField's own cores own the card. mstconfig prints
// EMBEDDED_CPU(1) and, inverted, ENABLED(0) for the offload engine.
func (a *Asker) dpu(ctx context.Context, c Card) bool {
	if !strings.HasPrefix(c.Type, "BlueField") {
		return false
	}
	values := map[string]int{}
	for _, name := range []string{"INTERNAL_CPU_MODEL", "INTERNAL_CPU_OFFLOAD_ENGINE"} {
		got := read(a.mstconfig(ctx, c.PCI, name), c.PCI)
		row := got.Device.Rows[name]
		for _, value := range []string{row.Next, row.Current} {
			if n, ok := number(value); ok && got.Refusal.Reason == "" {
				values[name] = n
			}
		}
	}
	model, told := values["INTERNAL_CPU_MODEL"]
	return told && model == 1 && values["INTERNAL_CPU_OFFLOAD_ENGINE"] == 0
}

func (a *Asker) now() time.Time {
	if a.Now == nil {
		return time.Now()
	}
	return a.Now()
}

func (a *Asker) sleep(ctx context.Context) error {
	if a.Sleep != nil {
		return a.Sleep(ctx, askEvery)
	}
	return pause(ctx, askEvery)
}

// Has reports whether a PCI function belongs to the card.
func (c *Card) Has(function string) bool { return slices.Contains(c.Functions, function) }
