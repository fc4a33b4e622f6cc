// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flexsteer/flexsteer/internal/prepare"
	"github.com/flexsteer/flexsteer/pkg/config"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// app is what all commands share.
type app struct {
	in          io.Reader
	out, errOut io.Writer
	open        func() (machine, error)
	opened      machine
	exec        prepare.Run
	isRoot      bool
	known       *prepare.Facts // as facts has read them

	root       string   // where /etc, /run and /usr are
	configDirs []string // instead of the search path, most important first
	runtimeDir string   // where the daemon keeps its status
	json       bool
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "flexsteerctl",
		Short: "Show, check, plan and simulate receive-queue steering",
		Long: `Flexsteerctl shows the links that flexsteerd steers and their rules, checks
configurations, says what would change, and simulates which queue packets get.
Without a command it lists the links. Looking needs no privileges.

Exit codes: 0 good; 1 errors were found, or the command failed; 2 it could not
run: wrong usage, or something is missing.`,
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error { return fail(a.list()) },
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errOut)
	root.PersistentFlags().StringVar(&a.root, "root", "/", "directory below which etc, run and usr are, for trials")
	root.PersistentFlags().StringArrayVar(&a.configDirs, "config-dir", nil, "read the configuration from this directory only, below --root; may be repeated, most important first")
	root.PersistentFlags().StringVar(&a.runtimeDir, "runtime-dir", "/run/flexsteerd", "where flexsteerd keeps its status, below --root")
	root.MarkPersistentFlagDirname("root")
	root.MarkPersistentFlagDirname("config-dir")
	root.MarkPersistentFlagDirname("runtime-dir")
	a.jsonFlag(root)
	root.AddCommand(
		newList(a), newStatus(a), newRules(a), newCheck(a), newPlan(a), newSimulate(a), newGenerate(a),
		newCat(a), newEdit(a), newReload(a), newFlush(a), newFirmware(a), newPrepare(a), newVersion(a),
	)
	return root
}

func (a *app) jsonFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.json, "json", false, "print JSON with stable keys")
}

// fail gives errors that have no exit code yet exitFound.
func fail(err error) error {
	var f *failure
	if err == nil || errors.As(err, &f) {
		return err
	}
	return &failure{exitFound, err}
}

// action makes a cobra function of one that takes its arguments only.
func action(run func(args []string) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error { return fail(run(args)) }
}

func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func (a *app) note(format string, args ...any) { fmt.Fprintf(a.errOut, format+"\n", args...) }

// kernel opens the machine once.
func (a *app) kernel() (machine, error) {
	if a.opened != nil {
		return a.opened, nil
	}
	m, err := a.open()
	if err != nil {
		return nil, cannot(fmt.Errorf("ask the kernel: %w", err))
	}
	a.opened = informed{m, a.facts()}
	return a.opened, nil
}

func (a *app) close() {
	if a.opened != nil {
		a.opened.Close()
	}
}

// fsys is the file system that the configuration is read from.
func (a *app) fsys() fs.FS { return os.DirFS(a.root) }

// dirs is the search path in fsys.
func (a *app) dirs() ([]string, error) {
	if len(a.configDirs) == 0 {
		return config.SearchPath, nil
	}
	dirs := slices.Clone(a.configDirs)
	for i, dir := range dirs {
		if a.root == "/" {
			abs, err := filepath.Abs(dir)
			if err != nil {
				return nil, cannot(err)
			}
			dirs[i] = abs
		}
		if info, err := os.Stat(a.real(dirs[i])); err != nil || !info.IsDir() {
			return nil, cannot(fmt.Errorf("--config-dir %s: there is no such directory", dir))
		}
	}
	return dirs, nil
}

// real is where a file of fsys is on this machine.
func (a *app) real(file string) string { return filepath.Join(a.root, file) }

// load reads the configuration in effect. Its errors are printed in full.
func (a *app) load() (*config.Config, error) {
	dirs, err := a.dirs()
	if err != nil {
		return nil, err
	}
	c, err := config.Load(a.fsys(), dirs)
	if err != nil {
		return nil, a.configErrors(err)
	}
	for _, w := range c.Warnings {
		a.note("%v", w)
	}
	return c, nil
}

// configErrors prints the errors of a configuration and gives the one line
// that sums them up.
func (a *app) configErrors(err error) error {
	var all config.Errors
	if !errors.As(err, &all) {
		return err
	}
	a.note("%v", err)
	return fmt.Errorf("%s in the configuration", count(len(all), "error"))
}

// count is "1 error", "2 errors".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// links lists the links there are, or the one named.
func (a *app) links(args []string) ([]steer.Link, error) {
	k, err := a.kernel()
	if err != nil {
		return nil, err
	}
	all, err := k.Links()
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	slices.SortFunc(all, func(x, y steer.Link) int { return strings.Compare(x.Name, y.Name) })
	if len(args) == 0 {
		return all, nil
	}
	for _, l := range all {
		if named(l, args[0]) {
			return []steer.Link{l}, nil
		}
	}
	return nil, noLink(args[0], all)
}

func named(l steer.Link, name string) bool {
	return l.Name == name || slices.Contains(l.AltNames, name)
}

// noLink is the error for a name that no link has.
func noLink(name string, all []steer.Link) error {
	names := make([]string, len(all))
	for i, l := range all {
		names[i] = l.Name
	}
	if len(names) == 0 {
		return fmt.Errorf("%s: there is no such link, and no other Ethernet link either", name)
	}
	return fmt.Errorf("%s: there is no such link; the links are %s", name, strings.Join(names, ", "))
}

// desired is what c wants of each of links; links that no policy matches are
// not in it.
func desired(c *config.Config, links []steer.Link) map[int]steer.Desired {
	wanted := map[int]steer.Desired{}
	for _, d := range c.Resolve(links) {
		wanted[d.Link.Index] = d
	}
	return wanted
}

// completeLinks offers the names of the links for the first argument.
func (a *app) completeLinks(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	links, err := a.links(nil)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, l := range links {
		names = append(names, cobra.CompletionWithDesc(l.Name, l.Driver))
		for _, alt := range l.AltNames {
			names = append(names, cobra.CompletionWithDesc(alt, l.Name))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeYAML offers files that end in .yaml.
func completeYAML(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml"}, cobra.ShellCompDirectiveFilterFileExt
}
