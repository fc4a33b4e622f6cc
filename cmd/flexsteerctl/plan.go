// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flexsteer/flexsteer/pkg/reconcile"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

func newPlan(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "plan [LINK]",
		Short: "Show what flexsteerd would change next, as a diff",
		Long: `Read the configuration and look at the links as flexsteerd does, and show the
changes that its next pass would make: lines with - are rules removed, with ~
replaced in place, with + inserted. Nothing is changed.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLinks,
		RunE:              action(a.plan),
	}
	a.jsonFlag(c)
	return c
}

// linkPlan is what would change on one link.
type linkPlan struct {
	Link          string     `json:"link"`
	Rules         int        `json:"rules_wanted"`
	LocationsLeft int        `json:"locations_left"`
	Steps         []planStep `json:"steps"`
	Problems      []problem  `json:"problems"`

	usage []checkedEntry
}

type planStep struct {
	Kind     string     `json:"kind"` // channels, remove, replace or insert
	Channels uint32     `json:"channels,omitempty"`
	Was      uint32     `json:"was_channels,omitempty"`
	Location *steer.Loc `json:"location,omitempty"`
	Rule     string     `json:"rule,omitempty"`
	Old      string     `json:"old_rule,omitempty"`
	Entry    string     `json:"entry,omitempty"`
	At       string     `json:"at,omitempty"` // FILE:LINE:COL of the entry
}

func (a *app) plan(args []string) error {
	links, err := a.links(args)
	if err != nil {
		return err
	}
	c, err := a.load()
	if err != nil {
		return err
	}
	plans := []linkPlan{}
	for _, d := range c.Resolve(links) {
		have, err := a.opened.Observe(d.Link)
		if err != nil {
			return fmt.Errorf("%s: %w", d.Link.Name, err)
		}
		plans = append(plans, planOf(d, have))
	}
	if a.json {
		return a.printJSON(plans)
	}
	for i, p := range plans {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		a.printPlan(p)
	}
	if len(plans) == 0 {
		fmt.Fprintln(a.out, a.nothingMatches(args, c.Found))
	}
	return nil
}

func (a *app) nothingMatches(args []string, found bool) string {
	switch {
	case !found:
		return "There is no configuration yet: no directory of the search path exists. flexsteerctl edit 10-NAME.yaml makes a first file."
	case len(args) == 1:
		return "No policy matches " + args[0] + "."
	}
	return "No policy matches any link."
}

func planOf(d steer.Desired, have steer.Observed) linkPlan {
	goal, problems := steer.Check(d, have)
	p := linkPlan{Link: d.Link.Name, Rules: reconcile.Wanted(d, goal, problems, have.NIC), LocationsLeft: d.Own.Size() - len(goal.Rules),
		Steps: []planStep{}, Problems: problemsOf(problems)}
	for _, s := range steer.Diff(goal, have, d.Own).Steps {
		p.Steps = append(p.Steps, describeStep(s, d, have))
	}
	for _, u := range goal.Usage {
		p.usage = append(p.usage, checkedEntry{d.Entries[u.Entry].Name, u.Rules, u.Imbalance})
	}
	return p
}

func describeStep(s steer.Step, d steer.Desired, have steer.Observed) planStep {
	switch s.Kind {
	case steer.SetChannels:
		return planStep{Kind: "channels", Channels: s.Channels, Was: have.Channels.Combined}
	case steer.Remove:
		return planStep{Kind: "remove", Location: &s.Loc, Rule: s.Rule.String()}
	}
	out := planStep{Kind: "insert", Location: &s.Loc, Rule: s.Rule.String()}
	if s.Kind == steer.Replace {
		out.Kind, out.Old = "replace", s.Old.String()
	}
	e := d.Entries[s.Entry]
	out.Entry, out.At = e.Name, e.At.String()
	return out
}

func (a *app) printPlan(p linkPlan) {
	ink := painter(colours(a.out))
	fmt.Fprintf(a.out, "%s: %s; %s wanted, %d locations left\n", p.Link, changes(len(p.Steps)), count(p.Rules, "rule"), p.LocationsLeft)
	for _, s := range p.Steps {
		switch s.Kind {
		case "channels":
			fmt.Fprintln(a.out, ink.paint(yellow, fmt.Sprintf("~ channels %d -> %d", s.Was, s.Channels)))
		case "remove":
			fmt.Fprintln(a.out, ink.paint(red, fmt.Sprintf("- %4d  %s", *s.Location, s.Rule)))
		case "replace":
			fmt.Fprintln(a.out, ink.paint(yellow, fmt.Sprintf("~ %4d  %s  (was %s)", *s.Location, s.Rule, s.Old))+ink.paint(grey, "  # "+s.Entry))
		case "insert":
			fmt.Fprintln(a.out, ink.paint(green, fmt.Sprintf("+ %4d  %s", *s.Location, s.Rule))+ink.paint(grey, "  # "+s.Entry))
		}
	}
	for _, e := range p.usage {
		if e.Imbalance > 0 {
			fmt.Fprintf(a.out, "  %s: %s%s\n", e.Name, count(e.Rules, "rule"), expected(e.Imbalance))
		}
	}
	for _, problem := range p.Problems {
		fmt.Fprintf(a.out, "%s: %s\n", problem.Severity, problem.full)
	}
}

func changes(n int) string {
	if n == 0 {
		return "nothing to change"
	}
	return count(n, "change")
}
