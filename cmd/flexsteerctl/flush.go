// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// flushOptions is the flags of flush.
type flushOptions struct {
	yes       bool
	locations string
}

func newFlush(a *app) *cobra.Command {
	var o flushOptions
	c := &cobra.Command{
		Use:   "flush [LINK]",
		Short: "Remove our rules from the NIC",
		Long: `Remove the rules in the locations that are ours: on LINK, or on every link that
a policy matches. Rules in other locations stay. A link that no policy matches
has no locations of ours; --locations names them, for rules left behind.

A running flexsteerd puts the rules back: stop it first. Needs CAP_NET_ADMIN.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLinks,
		RunE:              action(func(args []string) error { return a.flush(args, o) }),
	}
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	c.Flags().StringVar(&o.locations, "locations", "", "remove the rules in these locations of LINK, such as 0-895, whatever the configuration says")
	a.jsonFlag(c)
	return c
}

// flushed is what flush removes on one link.
type flushed struct {
	Link    string      `json:"link"`
	Removed []placeRule `json:"removed"`

	link  steer.Link
	steps []steer.Step
}

func (a *app) flush(args []string, o flushOptions) error {
	if o.locations != "" && len(args) == 0 {
		return cannot(errors.New("--locations needs a LINK"))
	}
	links, err := a.links(args)
	if err != nil {
		return err
	}
	owned, err := a.owned(links, o.locations)
	if err != nil {
		return err
	}
	todo, total, err := a.toFlush(links, owned)
	if err != nil {
		return err
	}
	if total == 0 {
		return a.nothingToFlush(args, owned)
	}
	if s, err := a.daemonStatus(); err == nil {
		a.note("flexsteerd (process %d) is running and will put the rules back; stop it with: systemctl stop flexsteerd", s.PID)
	}
	if err := a.confirm(todo, total, o.yes); err != nil {
		return err
	}
	return a.remove(todo)
}

// owned is the locations that are ours, by ifindex.
func (a *app) owned(links []steer.Link, locations string) (map[int]steer.Range, error) {
	owned := map[int]steer.Range{}
	if locations != "" {
		r, err := parseRange(locations)
		if err != nil {
			return nil, cannot(fmt.Errorf("--locations %s: %w", locations, err))
		}
		owned[links[0].Index] = r
		return owned, nil
	}
	c, err := a.load()
	if err != nil {
		return nil, fmt.Errorf("%w, so which locations are ours is not known; correct them, or name the locations: flexsteerctl flush LINK --locations 0-895", err)
	}
	for _, d := range c.Resolve(links) {
		owned[d.Link.Index] = d.Own
	}
	return owned, nil
}

func parseRange(text string) (r steer.Range, err error) {
	var extra string
	if n, _ := fmt.Sscanf(text+" .", "%d-%d %s", &r.First, &r.Last, &extra); n != 3 || extra != "." || r.Last < r.First {
		return r, errors.New("write a range such as 0-895")
	}
	return r, nil
}

func (a *app) toFlush(links []steer.Link, owned map[int]steer.Range) (todo []flushed, total int, err error) {
	for _, l := range links {
		own, ok := owned[l.Index]
		if !ok {
			continue
		}
		have, err := a.opened.Observe(l)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: read rules: %w", l.Name, err)
		}
		f := flushed{Link: l.Name, link: l, Removed: []placeRule{}}
		f.steps = steer.Diff(steer.Goal{}, have, own).Steps
		total += len(f.steps)
		todo = append(todo, f)
	}
	return todo, total, nil
}

func (a *app) nothingToFlush(args []string, owned map[int]steer.Range) error {
	switch {
	case a.json:
		return a.printJSON([]flushed{})
	case len(owned) > 0:
		fmt.Fprintln(a.out, "There are no rules of ours.")
	case len(args) == 1:
		fmt.Fprintf(a.out, "No policy matches %s, so no rule on it is ours. --locations 0-895 removes rules that were left behind.\n", args[0])
	default:
		fmt.Fprintln(a.out, "No policy matches any link, so no rule is ours.")
	}
	return nil
}

// confirm asks on the terminal before anything is removed.
func (a *app) confirm(todo []flushed, total int, yes bool) error {
	if yes {
		return nil
	}
	var names []string
	for _, f := range todo {
		if len(f.steps) > 0 {
			names = append(names, fmt.Sprintf("%d on %s", len(f.steps), f.Link))
		}
	}
	ok, err := a.ask(fmt.Sprintf("Remove %s (%s)? [y/N] ", count(total, "rule"), strings.Join(names, ", ")), false)
	if err != nil {
		return cannot(fmt.Errorf("%w; --yes removes without asking", err))
	}
	if !ok {
		return errors.New("nothing was removed")
	}
	return nil
}

// ask puts a question that is answered with y or n; an empty line is usual.
func (a *app) ask(question string, usual bool) (bool, error) {
	fmt.Fprint(a.errOut, question)
	line, err := bufio.NewReader(oneByte{a.in}).ReadString('\n')
	if err != nil && line == "" {
		fmt.Fprintln(a.errOut)
		return false, errors.New("there was no answer")
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	case "":
		return usual, nil
	}
	return false, nil
}

// remove takes the steps, link by link; a link is left at its first error.
func (a *app) remove(todo []flushed) error {
	var errs []error
	for i := range todo {
		f := &todo[i]
		for _, s := range f.steps {
			if s.Kind != steer.Remove {
				continue
			}
			if err := a.opened.Apply(f.link, s); err != nil {
				errs = append(errs, fmt.Errorf("%s: location %d: remove %s: %w%s", f.Link, s.Loc, s.Rule, err, privilegeHint(err)))
				break
			}
			f.Removed = append(f.Removed, describeRules(f.link, steer.Table{s.Loc: s.Rule}, steer.Range{First: s.Loc, Last: s.Loc}, true).Rules...)
		}
	}
	if err := a.printFlushed(todo); err != nil {
		return err
	}
	return errors.Join(errs...)
}

func privilegeHint(err error) string {
	if errors.Is(err, unix.EPERM) {
		return "; changing rules needs CAP_NET_ADMIN: use sudo"
	}
	return ""
}

func (a *app) printFlushed(todo []flushed) error {
	if a.json {
		return a.printJSON(todo)
	}
	for _, f := range todo {
		for _, r := range f.Removed {
			fmt.Fprintf(a.out, "%s: removed location %d: %s\n", f.Link, r.Location, r.Rule)
		}
	}
	return nil
}
