// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/flexsteer/flexsteer/internal/prepare"
	"github.com/flexsteer/flexsteer/pkg/config"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// prepareOptions is the flags of prepare.
type prepareOptions struct {
	atBoot bool
	cards  []string
	wait   time.Duration
}

func newPrepare(a *app) *cobra.Command {
	o := prepareOptions{wait: time.Minute}
	c := &cobra.Command{
		Use:   "prepare",
		Short: "Find out about the driver module and the firmware settings, for flexsteerd",
		Long: `Find out whether the patched driver module is loaded, and whether the firmware
settings of each card are right, and write that down for flexsteerd. Builds and
installs the module through DKMS where it is missing, its source is there, and
flexsteerd.yaml does not say "install: false". flexsteer-prepare.service runs this
at boot; run it again after a change. Needs root.`,
		Args: cobra.NoArgs,
		RunE: action(func([]string) error { return a.prepare(o) }),
	}
	c.Flags().BoolVar(&o.atBoot, "at-boot", false, "only load the patched module in place of the stock one, if flexsteerd.yaml says \"reload: at-boot\" and nothing uses the cards")
	c.Flags().StringArrayVar(&o.cards, "card", nil, "only ask the card with this PCI address; may be repeated")
	c.Flags().DurationVar(&o.wait, "wait", o.wait, "how long to ask a card again that does not answer")
	c.MarkFlagsMutuallyExclusive("at-boot", "card")
	a.jsonFlag(c)
	return c
}

func (a *app) prepare(o prepareOptions) error {
	if !a.isRoot {
		return cannot(errors.New("prepare needs root: use sudo"))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	settings, configError := a.daemonSettings()
	if o.atBoot {
		return errors.Join(configError, a.reloadModule(ctx, settings))
	}
	facts, err := a.preparer(o.wait).Run(ctx, prepare.Plan{
		Install: settings.Module.Install && configError == nil, Checked: settings.Firmware.Check, Ask: settings.Firmware.Check, Only: o.cards,
	})
	if errors.Is(err, context.Canceled) {
		return errors.New("ended by a signal; what was found out before it is kept")
	}
	if facts.WrittenAt.IsZero() {
		return err
	}
	if err := errors.Join(a.printFacts(facts), err); err != nil {
		return err
	}
	if v := facts.Module.Verdict; facts.Module.Failure != nil && (v == prepare.ModuleMissing || v == prepare.ModuleBuilt) {
		return errors.New("the driver module could not be installed")
	}
	return configError
}

// daemonSettings is those of flexsteerd.yaml. With errors in the configuration
// they are the defaults, and the errors are printed; what changes the machine is
// better left alone then.
func (a *app) daemonSettings() (config.Daemon, error) {
	c, err := a.load()
	if err != nil {
		return config.DefaultDaemon(), fmt.Errorf("%w, so no module is installed or loaded", err)
	}
	return c.Daemon, nil
}

func (a *app) preparer(wait time.Duration) *prepare.Preparer {
	return &prepare.Preparer{
		Store:   a.store(),
		Machine: &prepare.Machine{FS: a.fsys(), Run: a.exec, Root: a.isRoot},
		Asker:   &prepare.Asker{FS: a.fsys(), Run: a.exec, Root: a.isRoot, Wait: wait},
		Waiting: func() {
			a.note("waiting for another flexsteerctl, or for a build of the module that is under way")
		},
	}
}

// reloadModule follows `module: reload:`. That it is not safe is no failure: it
// is tried at the next boot again, and flexsteerd tells of it.
func (a *app) reloadModule(ctx context.Context, settings config.Daemon) error {
	if settings.Module.Reload != config.ReloadAtBoot {
		fmt.Fprintln(a.out, "The module is left as it is (reload: never).")
		return nil
	}
	m, err := a.preparer(0).Reload(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(m)
	}
	a.printModule(m)
	return nil
}

func (a *app) printFacts(f prepare.Facts) error {
	if a.json {
		return a.printJSON(f)
	}
	if f.Module.Verdict != "" {
		a.printModule(f.Module)
	}
	for _, c := range f.Firmware.Cards {
		fmt.Fprintf(a.out, "%s: %s\n", cardName(c), c.Text())
		a.printFix(c.Fix(c.PCI))
	}
	return nil
}

func (a *app) printModule(m prepare.Module) {
	for _, did := range m.Did {
		fmt.Fprintf(a.out, "mlx5_core: %s\n", did)
	}
	p, wrong := m.Problem()
	switch {
	case !wrong:
		fmt.Fprintf(a.out, "mlx5_core: the patched module %s is loaded\n", m.Running.Version)
	case !m.Card && p.Severity == steer.Blocked:
		fmt.Fprintln(a.out, "mlx5_core: this machine has no card for it")
	default:
		fmt.Fprintln(a.out, p.Text)
		a.printFix(p.Fix)
	}
}

func (a *app) printFix(fix string) {
	if fix != "" {
		fmt.Fprintf(a.out, "    Fix: %s\n", fix)
	}
}

// cardName is a card as a person knows it: BlueField3 0000:03:00.0.
func cardName(c prepare.Card) string {
	if c.Type == "" {
		return c.PCI
	}
	return c.Type + " " + c.PCI
}
