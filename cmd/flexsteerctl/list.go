// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/internal/prepare"
	"github.com/flexsteer/flexsteer/internal/report"
	"github.com/flexsteer/flexsteer/pkg/reconcile"
)

func newList(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List the links, their state, rules in place and first problem",
		Args:  cobra.NoArgs,
		RunE:  action(func([]string) error { return a.list() }),
	}
	a.jsonFlag(c)
	return c
}

func (a *app) list() error {
	s, err := a.status()
	if err != nil {
		return err
	}
	if a.json {
		return a.printStatus(s)
	}
	a.configNote(s)
	return report.List(a.out, s, a.style())
}

// style is how tables are to look on standard output.
func (a *app) style() report.Options {
	o := report.Options{Now: time.Now(), Colour: colours(a.out)}
	if width, ok := terminal(a.out); ok {
		o.Width = width
	}
	return o
}

// printStatus prints s as the status file has it.
func (a *app) printStatus(s reconcile.Status) error {
	b, err := report.Encode(s)
	if err != nil {
		return err
	}
	_, err = a.out.Write(b)
	return err
}

// configNote prints the errors that keep the daemon on its last good configuration.
func (a *app) configNote(s reconcile.Status) {
	if s.PID == 0 || len(s.ConfigErrors) == 0 {
		return
	}
	a.note("flexsteerd did not take the configuration, and keeps to the last good one:\n%s\n", strings.Join(s.ConfigErrors, "\n"))
}

func newStatus(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "status [LINK]",
		Short: "Show one link in full, or the daemon and every managed link",
		Long: `Show a link in full: its state, policies, rules, problems with what to do about
them, carrier and speed, and the packets received by queue. Without LINK, show
the daemon and every link that a policy matches.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLinks,
		RunE:              action(a.showStatus),
	}
	a.jsonFlag(c)
	return c
}

func (a *app) showStatus(args []string) error {
	s, err := a.status()
	if err != nil {
		return err
	}
	if len(args) == 1 {
		if s.Links, err = only(s.Links, args[0]); err != nil {
			return err
		}
	}
	if a.json {
		return a.printStatus(s)
	}
	if len(args) == 0 {
		a.daemonHead(s)
	}
	a.configNote(s)
	shown := 0
	for _, l := range s.Links {
		if len(args) == 0 && l.State == reconcile.Unmanaged {
			continue
		}
		if shown++; shown > 1 {
			fmt.Fprintln(a.out)
		}
		if err := report.LinkStatus(a.out, l, a.style()); err != nil {
			return err
		}
		a.prerequisites(l)
		a.carrier(l)
		a.queuePackets(l)
	}
	if shown == 0 {
		fmt.Fprintln(a.out, "No policy matches any link.")
	}
	return nil
}

// only is the link of that name.
func only(links []reconcile.LinkStatus, name string) ([]reconcile.LinkStatus, error) {
	var names []string
	for _, l := range links {
		if named(l.Link, name) {
			return []reconcile.LinkStatus{l}, nil
		}
		names = append(names, l.Link.Name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: there is no such link, and no other Ethernet link either", name)
	}
	return nil, fmt.Errorf("%s: there is no such link; the links are %s", name, strings.Join(names, ", "))
}

func (a *app) daemonHead(s reconcile.Status) {
	if s.PID == 0 {
		return
	}
	fmt.Fprintf(a.out, "flexsteerd %s, process %d, configuration %d", s.Version, s.PID, s.Generation)
	if !s.LoadedAt.IsZero() {
		fmt.Fprintf(a.out, " loaded %s", s.LoadedAt.Local().Format("Mon 2006-01-02 15:04:05 MST"))
	}
	fmt.Fprint(a.out, "\n\n")
	for _, p := range s.Problems {
		fmt.Fprintf(a.out, "%s\n\n", p)
	}
}

// prerequisites prints how far the module and the firmware settings of a link of
// mlx5_core are; what is wrong with them is among its problems, where a rule needs them.
func (a *app) prerequisites(l reconcile.LinkStatus) {
	f := a.facts()
	if l.Link.Driver != "mlx5_core" {
		return
	}
	if m := f.Module; m.Verdict != "" {
		fmt.Fprintf(a.out, "%20s %s\n", "l4data module:", m.Words())
	}
	if c, ok := f.Card(prepare.Function(l.Link)); ok {
		fmt.Fprintf(a.out, "%20s %s\n", "l4data firmware:", c.Verdict)
	}
}

// carrier prints the state of the wire, where the driver and the kernel tell it.
func (a *app) carrier(l reconcile.LinkStatus) {
	k, err := a.kernel()
	if err != nil {
		return
	}
	state, err := k.LinkState(l.Link)
	switch {
	case err == nil:
		fmt.Fprintf(a.out, "%20s %s\n", "Carrier:", state)
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENODEV):
		fmt.Fprintf(a.out, "%20s unknown: %v\n", "Carrier:", err)
	}
}

// queuePackets prints what the driver has counted by queue, where it does.
func (a *app) queuePackets(l reconcile.LinkStatus) {
	k, err := a.kernel()
	if err != nil {
		return
	}
	counts, err := k.QueueCounters(l.Link)
	if err != nil || len(counts) == 0 {
		return
	}
	const perLine = 4
	label := "Packets by queue:"
	for q := 0; q < len(counts); q += perLine {
		var line strings.Builder
		for i, n := range counts[q:min(q+perLine, len(counts))] {
			fmt.Fprintf(&line, "%4d: %-14d", q+i, n)
		}
		fmt.Fprintf(a.out, "%20s%s\n", label, strings.TrimRight(line.String(), " "))
		label = ""
	}
}
