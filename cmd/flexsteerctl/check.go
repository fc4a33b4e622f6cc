// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flexsteer/flexsteer/internal/host"
	"github.com/flexsteer/flexsteer/pkg/config"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// card is the NIC that check and simulate assume.
type card struct {
	queues     uint32
	driver     string
	precedence string
}

func (c *card) flags(cmd *cobra.Command, queues string) {
	cmd.Flags().Uint32Var(&c.queues, "queues", 0, queues)
	cmd.Flags().StringVar(&c.driver, "driver", "mlx5_core", "driver of the NIC")
	cmd.Flags().StringVar(&c.precedence, "precedence", "", "how the NIC decides between overlapping rules: fields, location or unknown (default: as the driver does)")
	cmd.RegisterFlagCompletionFunc("precedence", cobra.FixedCompletions([]string{"fields", "location", "unknown"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RegisterFlagCompletionFunc("driver", cobra.FixedCompletions([]string{"mlx5_core", "mlx4_en", "ice", "i40e", "ixgbe"}, cobra.ShellCompDirectiveNoFileComp))
}

var precedenceWords = map[string]steer.Precedence{
	"fields": steer.ByFields, "location": steer.ByLocation, "unknown": steer.UnknownPrecedence,
}

// precedenceTexts say what a precedence means.
var precedenceTexts = map[steer.Precedence]string{
	steer.ByFields: "more compared fields win", steer.ByLocation: "the lower location wins",
	steer.UnknownPrecedence: "which rule wins is not known",
}

// tableSize is the number of locations of an mlx5 NIC, and what is assumed of others.
const tableSize = 1024

// maxQueues is more than any NIC has.
const maxQueues = 1 << 16

func (c *card) nic() (steer.NIC, error) {
	nic := steer.NIC{Precedence: host.PrecedenceOf(c.driver), Queues: c.queues, Capacity: tableSize, RawProtocols: steer.AnyProtocols}
	if c.queues > maxQueues {
		return nic, cannot(fmt.Errorf("--queues %d: at most %d", c.queues, maxQueues))
	}
	if c.driver == "mlx5_core" {
		nic.RawProtocols = 1 // flex_l4_max_nodes, unless somebody raised it
	}
	if c.precedence == "" {
		return nic, nil
	}
	p, ok := precedenceWords[c.precedence]
	if !ok {
		return nic, cannot(fmt.Errorf("--precedence %s: it is fields, location or unknown", c.precedence))
	}
	nic.Precedence = p
	return nic, nil
}

// everyLink is a link that policies fit once their match is anyLink.
var (
	everyLink = steer.Link{Name: "NIC", Kind: steer.Physical, Ready: true}
	anyLink   = config.Match{Kind: config.Patterns{{Glob: "*"}}}
)

// together is what all policies of c want of one link, whatever their match.
func together(policies []config.Policy, l steer.Link) steer.Desired {
	all := config.Config{}
	for _, p := range policies {
		p.Match = anyLink
		all.Policies = append(all.Policies, p)
	}
	if d := all.Resolve([]steer.Link{l}); len(d) == 1 {
		return d[0]
	}
	return steer.Desired{Link: l, Own: steer.DefaultOwn}
}

func newCheck(a *app) *cobra.Command {
	var nic card
	c := &cobra.Command{
		Use:   "check [FILE...]",
		Short: "Check configuration files, offline",
		Long: `Check files, or without FILE the configuration in effect: every error of every
file, then for each policy the rules it needs, the locations that are left and
how evenly its spreads are. No NIC is asked; --driver, --precedence and
--queues say which one to assume.

Exit codes: 0 all is good; 1 errors were found; 2 it could not run.`,
		ValidArgsFunction: completeYAML,
		RunE:              action(func(args []string) error { return a.check(args, nic) }),
	}
	nic.flags(c, "receive queues of the NIC (default: what the policy says in channels, else any number)")
	a.jsonFlag(c)
	return c
}

// checked is the outcome of check.
type checked struct {
	Errors   []fileError     `json:"errors"`
	Policies []checkedPolicy `json:"policies"`
}

type fileError struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"` // 0: the file as a whole
	Column int    `json:"column,omitempty"`
	Text   string `json:"text"`
	Hint   string `json:"hint,omitempty"`
}

type checkedPolicy struct {
	File          string         `json:"file"`
	Rules         int            `json:"rules"`
	LocationsLeft int            `json:"locations_left"`
	Locations     int            `json:"locations"`
	Entries       []checkedEntry `json:"entries"`
	Problems      []problem      `json:"problems"`
}

type checkedEntry struct {
	Name      string  `json:"name"`
	Rules     int     `json:"rules"`
	Imbalance float64 `json:"imbalance"`
}

type problem struct {
	Severity string `json:"severity"`
	Entry    string `json:"entry,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Text     string `json:"text"`
	Fix      string `json:"fix,omitempty"`

	full string
}

func problemsOf(problems []steer.Problem) []problem {
	out := []problem{}
	for _, p := range problems {
		out = append(out, problem{p.Severity.String(), p.Entry, p.At.File, p.At.Line, p.At.Column, p.Text, p.Fix, p.String()})
	}
	return out
}

func (a *app) check(files []string, c card) error {
	nic, err := c.nic()
	if err != nil {
		return err
	}
	conf, err := a.loadNamed(files)
	var faults config.Errors
	if err != nil && !errors.As(err, &faults) {
		return err
	}
	out := checked{Errors: fileErrors(faults), Policies: []checkedPolicy{}}
	bad := len(faults)
	if conf != nil {
		for _, p := range conf.Policies {
			policy, blocked := checkPolicy(p, nic)
			out.Policies = append(out.Policies, policy)
			bad += blocked
		}
	}
	if a.json {
		if err := a.printJSON(out); err != nil {
			return err
		}
	} else {
		a.printChecked(out, faults, conf)
	}
	if bad > 0 {
		return fmt.Errorf("%s found", count(bad, "error"))
	}
	return nil
}

// loadNamed reads the files, or the configuration in effect when there are none.
func (a *app) loadNamed(files []string) (*config.Config, error) {
	if len(files) > 0 {
		return loadFiles(files)
	}
	dirs, err := a.dirs()
	if err != nil {
		return nil, err
	}
	return config.Load(a.fsys(), dirs)
}

func fileErrors(errs config.Errors) []fileError {
	out := []fileError{}
	for _, e := range errs {
		out = append(out, fileError{e.At.File, e.At.Line, e.At.Column, e.Text, e.Hint})
	}
	return out
}

// checkPolicy compiles one policy alone; bad counts the problems that would
// keep rules from a link.
func checkPolicy(p config.Policy, nic steer.NIC) (out checkedPolicy, bad int) {
	d := together([]config.Policy{p}, everyLink)
	if nic.Queues == 0 {
		nic.Queues = d.Channels
	}
	d.Channels = 0
	goal, problems := steer.Check(d, steer.Observed{NIC: nic})
	out = checkedPolicy{File: p.File, Rules: len(goal.Rules), Locations: d.Own.Size(), LocationsLeft: d.Own.Size() - len(goal.Rules),
		Entries: []checkedEntry{}, Problems: problemsOf(problems)}
	for _, u := range goal.Usage {
		out.Entries = append(out.Entries, checkedEntry{d.Entries[u.Entry].Name, u.Rules, u.Imbalance})
	}
	for _, p := range problems {
		if p.Severity != steer.Notice {
			bad++
		}
	}
	return out, bad
}

func (a *app) printChecked(out checked, faults config.Errors, conf *config.Config) {
	if len(faults) > 0 {
		a.note("%v", faults)
		return
	}
	for _, w := range conf.Warnings {
		a.note("%v", w)
	}
	for _, p := range out.Policies {
		fmt.Fprintf(a.out, "%s: %s, %d of %d locations left\n", p.File, count(p.Rules, "rule"), p.LocationsLeft, p.Locations)
		width := 0
		for _, e := range p.Entries {
			width = max(width, len(e.Name))
		}
		for _, e := range p.Entries {
			fmt.Fprintf(a.out, "  %-*s  %s%s\n", width, e.Name, count(e.Rules, "rule"), expected(e.Imbalance))
		}
		for _, p := range p.Problems {
			a.note("%s: %s", p.Severity, p.full)
		}
	}
	if len(out.Policies) == 0 {
		fmt.Fprintln(a.out, "There is no policy.")
	}
}

// expected is the note about an uneven spread.
func expected(imbalance float64) string {
	if imbalance == 0 {
		return ""
	}
	return fmt.Sprintf(", expected imbalance %.1f %%", 100*imbalance)
}
