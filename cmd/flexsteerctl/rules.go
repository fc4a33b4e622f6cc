// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

func newRules(a *app) *cobra.Command {
	var ethtool bool
	c := &cobra.Command{
		Use:   "rules [LINK]",
		Short: "Show the rules in place, ours and foreign",
		Long: `Show the rules that are in the NIC now, as entries of a policy file, each with
its location and whether it is ours or foreign. Lines can be copied into the
steer: list of a file. With --ethtool they are ethtool(8) commands instead.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLinks,
		RunE:              action(func(args []string) error { return a.rules(args, ethtool) }),
	}
	c.Flags().BoolVar(&ethtool, "ethtool", false, "print ethtool commands that make the rules")
	a.jsonFlag(c)
	return c
}

// linkRules is the rules of one link, for printing.
type linkRules struct {
	Link  string      `json:"link"`
	Own   *span       `json:"locations,omitempty"` // null: not managed
	Rules []placeRule `json:"rules"`

	table steer.Table
}

type span struct {
	First steer.Loc `json:"first"`
	Last  steer.Loc `json:"last"`
}

type placeRule struct {
	Location steer.Loc `json:"location"`
	Ours     bool      `json:"ours"`
	Rule     string    `json:"rule"`           // in the words of messages
	YAML     string    `json:"yaml,omitempty"` // "": no entry makes this rule
	Ethtool  []string  `json:"ethtool"`        // arguments of ethtool
}

func (a *app) rules(args []string, ethtool bool) error {
	links, err := a.links(args)
	if err != nil {
		return err
	}
	wanted := map[int]steer.Desired{}
	if c, err := a.load(); err == nil {
		wanted = desired(c, links)
	} else {
		a.note("%v: which rules are ours is not known", err)
	}
	all := []linkRules{}
	for _, l := range links {
		have, err := a.opened.Observe(l)
		if err != nil {
			return fmt.Errorf("%s: read rules: %w", l.Name, err)
		}
		d, managed := wanted[l.Index]
		if len(args) == 0 && !managed && len(have.Rules) == 0 {
			continue
		}
		all = append(all, describeRules(l, have.Rules, d.Own, managed))
	}
	switch {
	case a.json:
		return a.printJSON(all)
	case len(all) == 0:
		fmt.Fprintln(a.out, "No link has rules, and no policy matches a link.")
		return nil
	case ethtool:
		return a.printEthtool(all)
	}
	return a.printRules(all)
}

func describeRules(l steer.Link, rules steer.Table, own steer.Range, managed bool) linkRules {
	out := linkRules{Link: l.Name, Rules: []placeRule{}, table: rules}
	if managed {
		out.Own = &span{own.First, own.Last}
	}
	for _, loc := range slices.Sorted(maps.Keys(rules)) {
		r := rules[loc]
		yaml, ok := entryOf(r)
		if !ok {
			yaml = ""
		}
		out.Rules = append(out.Rules, placeRule{loc, managed && own.Contains(loc), r.String(), yaml, ethtoolArguments(l.Name, loc, r)})
	}
	return out
}

// ethtoolArguments is the ethtool command that makes r at loc.
func ethtoolArguments(link string, loc steer.Loc, r steer.Rule) []string {
	return append(append([]string{"-N", link}, r.Ethtool()...), "loc", fmt.Sprint(loc))
}

func whose(ours bool) string {
	if ours {
		return "ours"
	}
	return "foreign"
}

func (a *app) printRules(all []linkRules) error {
	w := bufio.NewWriter(a.out)
	for i, l := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "# %s: %s\n", l.Link, l.summary())
		width := 0
		for _, r := range l.Rules {
			width = max(width, len(r.YAML))
		}
		for _, r := range l.Rules {
			if r.YAML == "" {
				fmt.Fprintf(w, "# %s  # location %d, %s; no policy entry makes this rule\n", r.Rule, r.Location, whose(r.Ours))
				continue
			}
			fmt.Fprintf(w, "- %-*s  # location %d, %s\n", width, r.YAML, r.Location, whose(r.Ours))
		}
	}
	return w.Flush()
}

func (l linkRules) summary() string {
	if l.Own == nil {
		return fmt.Sprintf("%s; no policy matches this link", count(len(l.Rules), "rule"))
	}
	ours := 0
	for _, r := range l.Rules {
		if r.Ours {
			ours++
		}
	}
	return fmt.Sprintf("%s, %d of them ours (locations %d-%d), %d foreign",
		count(len(l.Rules), "rule"), ours, l.Own.First, l.Own.Last, len(l.Rules)-ours)
}

func (a *app) printEthtool(all []linkRules) error {
	w := bufio.NewWriter(a.out)
	for _, l := range all {
		for _, r := range l.Rules {
			if l.table[r.Location].Match.Flow == steer.Other {
				fmt.Fprintf(w, "# %s location %d holds a rule that cannot be written: %s\n", l.Link, r.Location, r.Rule)
				continue
			}
			fmt.Fprintf(w, "ethtool %s  # %s\n", strings.Join(r.Ethtool, " "), whose(r.Ours))
		}
	}
	return w.Flush()
}
