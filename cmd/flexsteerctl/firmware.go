// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flexsteer/flexsteer/internal/prepare"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

func newFirmware(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "firmware [LINK]",
		Short: "Show the firmware settings that l4data rules need, and what to do about them",
		Long: `Show the two firmware settings of each card, or of the card of LINK, that rules on
l4data need, and the exact next command. LINK is a link's name or a PCI address.
As root it asks the card with mstconfig; else it shows what was found out at boot.
Nothing is changed.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLinks,
		RunE:              action(a.firmware),
	}
	a.jsonFlag(c)
	c.AddCommand(newFirmwareBackup(a), newFirmwareSet(a))
	return c
}

func newFirmwareBackup(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "backup [LINK]",
		Short: "Save all settings that a card stores",
		Long: `Save all settings that the card of LINK, or each card, stores, into a dated file
below /var/lib/flexsteer/firmware. Needs root.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLinks,
		RunE:              action(a.firmwareBackup),
	}
	a.jsonFlag(c)
	return c
}

func newFirmwareSet(a *app) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "set [LINK]",
		Short: "Make the firmware settings that l4data rules need",
		Long: `Make the settings on the card of LINK, or on each card that lacks them: saves what
the card stores, asks, sets, and says what must happen next. A card whose next
boot is right already is left alone. No card is reset and no machine rebooted.
Needs root.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeLinks,
		RunE:              action(func(args []string) error { return a.firmwareSet(args, yes) }),
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	a.jsonFlag(c)
	return c
}

// shownCard is a card as people and scripts get it.
type shownCard struct {
	prepare.Card
	Links  []string `json:"links"`
	Text   string   `json:"text"`
	Fix    string   `json:"fix,omitempty"`
	Backup string   `json:"backup,omitempty"` // the file that set or backup wrote
	Ending string   `json:"ending,omitempty"` // what mstconfig said after a set

	name string // for commands: the link that was named, else its first, else the PCI address
}

func (a *app) firmware(args []string) error {
	cards, err := a.askCards(args)
	if err != nil {
		return err
	}
	return a.printCards(cards)
}

// askCards is the cards of the links that were named, or all. Root asks the cards
// themselves, and what they say is written down for flexsteerd.
func (a *app) askCards(args []string) ([]shownCard, error) {
	chosen, names, err := a.chooseCards(args)
	if err != nil {
		return nil, err
	}
	facts := a.facts()
	if a.isRoot && len(chosen) > 0 {
		var functions []string
		for _, c := range chosen {
			functions = append(functions, c.PCI)
		}
		settings, _ := a.daemonSettings()
		facts, err = a.preparer(0).Run(context.Background(), prepare.Plan{Ask: true, Checked: settings.Firmware.Check, Only: functions})
		if facts.WrittenAt.IsZero() {
			return nil, err
		}
		if err != nil {
			a.note("%v", err)
		}
	}
	var cards []shownCard
	for _, c := range chosen {
		if known, ok := facts.Card(c.PCI); ok {
			c = known
		}
		cards = append(cards, show(c, names[c.PCI]))
	}
	return cards, nil
}

func show(c prepare.Card, links []string) shownCard {
	s := shownCard{Card: c, Links: append([]string{}, links...), name: c.PCI}
	if len(links) > 0 {
		s.name = links[0]
	}
	s.Text, s.Fix = c.Text(), c.Fix(s.name)
	return s
}

// chooseCards is the cards of this machine, or the one that was named, and the
// names of their links by the card's PCI address, the one that was named first.
func (a *app) chooseCards(args []string) (chosen []prepare.Card, names map[string][]string, err error) {
	all := prepare.Cards(a.fsys())
	links, err := a.links(nil)
	if err != nil {
		return nil, nil, err
	}
	names = map[string][]string{}
	for _, l := range links {
		if c, ok := cardOf(all, prepare.Function(l)); ok {
			names[c.PCI] = append(names[c.PCI], l.Name)
		}
	}
	if len(args) == 0 {
		return all, names, nil
	}
	for _, address := range []string{args[0], "0000:" + args[0]} { // lspci(8) leaves the domain out
		if c, ok := cardOf(all, address); ok {
			return []prepare.Card{c}, names, nil
		}
	}
	named, err := a.links(args)
	if err != nil {
		return nil, nil, err
	}
	c, ok := cardOf(all, prepare.Function(named[0]))
	if !ok {
		return nil, nil, noCard(named[0])
	}
	others := slices.DeleteFunc(names[c.PCI], func(name string) bool { return name == named[0].Name })
	names[c.PCI] = append([]string{named[0].Name}, others...)
	return []prepare.Card{c}, names, nil
}

func cardOf(cards []prepare.Card, function string) (prepare.Card, bool) {
	i := slices.IndexFunc(cards, func(c prepare.Card) bool { return c.Has(function) })
	if i < 0 {
		return prepare.Card{}, false
	}
	return cards[i], true
}

func noCard(l steer.Link) error {
	switch {
	case l.Driver != "mlx5_core":
		return fmt.Errorf("%s: its driver is %s; only cards of mlx5_core have these settings", l.Name, orNone(l.Driver))
	case l.Kind == steer.VF:
		return fmt.Errorf("%s: it is a virtual function; name the card's own link, or its PCI address", l.Name)
	}
	return fmt.Errorf("%s: which card it belongs to is not known (udev's ID_PATH is %q); name its PCI address", l.Name, l.Path)
}

func orNone(s string) string {
	if s == "" {
		return "not known"
	}
	return s
}

func (a *app) printCards(cards []shownCard) error {
	if a.json {
		return a.printJSON(append([]shownCard{}, cards...))
	}
	if len(cards) == 0 {
		fmt.Fprintln(a.out, "There is no card with the driver mlx5_core.")
	}
	for i, c := range cards {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		a.printCard(c)
	}
	return nil
}

// printCard shows a card as `status` shows a link.
func (a *app) printCard(c shownCard) {
	const format = "%19s: %s\n"
	fmt.Fprintf(a.out, "● %s\n", cardName(c.Card))
	if len(c.Links) > 0 {
		fmt.Fprintf(a.out, format, "Links", strings.Join(c.Links, ", "))
	}
	if c.Part != "" && c.Part != "N/A" {
		fmt.Fprintf(a.out, format, "Part", c.Part)
	}
	fmt.Fprintf(a.out, format, "Firmware", c.Text)
	for _, s := range c.Settings {
		fmt.Fprintf(a.out, format, "Setting", settingLine(s))
	}
	if !c.AskedAt.IsZero() {
		fmt.Fprintf(a.out, format, "Asked", c.AskedAt.Local().Format("Mon 2006-01-02 15:04:05 MST"))
	}
	if c.Fix != "" {
		fmt.Fprintf(a.out, format, "Fix", c.Fix)
	}
}

func settingLine(s prepare.Setting) string {
	line := fmt.Sprintf("%-26s now %s, next boot %s, wanted %s", s.Name, orUnknown(s.Current), orUnknown(s.Next), prepare.Wanted(s.Name))
	if s.ReadOnly {
		line += " (read-only)"
	}
	return line
}

func orUnknown(value string) string {
	if value == "" {
		return "not told"
	}
	return value
}

func (a *app) firmwareBackup(args []string) error {
	cards, err := a.rootCards("firmware backup", args)
	if err != nil {
		return err
	}
	var errs []error
	for i := range cards {
		errs = append(errs, a.backUp(&cards[i]))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(append([]shownCard{}, cards...))
	}
	return nil
}

// rootCards is the chosen cards, of which there must be one, for a command that
// needs root.
func (a *app) rootCards(command string, args []string) ([]shownCard, error) {
	if !a.isRoot {
		return nil, cannot(fmt.Errorf("%s needs root: use sudo", command))
	}
	chosen, names, err := a.chooseCards(args)
	if err != nil {
		return nil, err
	}
	if len(chosen) == 0 {
		return nil, errors.New("there is no card with the driver mlx5_core")
	}
	var cards []shownCard
	for _, c := range chosen {
		cards = append(cards, show(c, names[c.PCI]))
	}
	return cards, nil
}

// backUp saves what the card stores into a file that did not exist.
func (a *app) backUp(c *shownCard) error {
	dir := a.real(prepare.BackupDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file := path.Join(dir, strings.ReplaceAll(c.PCI, ":", "-")+"-"+time.Now().UTC().Format("20060102T150405.000Z")+".conf")
	empty, err := a.preparer(0).Asker.Backup(context.Background(), c.Card, file)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", cardName(c.Card), err)
	case empty:
		a.say("%s stores no settings: all are the firmware's defaults, and mstconfig -d %s reset brings them back", cardName(c.Card), c.PCI)
		return nil
	}
	c.Backup = file
	a.say("The settings of %s are saved in %s; mstconfig -d %s -f %s set_raw brings them back", cardName(c.Card), file, c.PCI, file)
	return nil
}

// say tells a person, and keeps out of JSON.
func (a *app) say(format string, args ...any) {
	if !a.json {
		fmt.Fprintf(a.out, format+".\n", args...)
	}
}

func (a *app) firmwareSet(args []string, yes bool) error {
	if _, err := a.rootCards("firmware set", args); err != nil {
		return err
	}
	cards, err := a.askCards(args)
	if err != nil {
		return err
	}
	var errs []error
	for i := range cards {
		errs = append(errs, a.setCard(&cards[i], yes))
	}
	if a.json {
		errs = append(errs, a.printJSON(cards))
	}
	return errors.Join(errs...)
}

// setCard makes the settings of one card, if they are not made.
func (a *app) setCard(c *shownCard, yes bool) error {
	switch {
	case c.NextRight():
		a.say("%s: nothing was set: %s", cardName(c.Card), c.Text)
		a.next(c)
		return nil
	case !c.Settable():
		return fmt.Errorf("%s: nothing was set: %s\n    Fix: %s", cardName(c.Card), c.Text, c.Fix)
	}
	if err := a.backUp(c); err != nil {
		return fmt.Errorf("%w; nothing was set", err)
	}
	if err := a.confirmSet(c, yes); err != nil {
		return err
	}
	end, said, err := a.preparer(0).Asker.Set(context.Background(), c.Card)
	if err != nil {
		return fmt.Errorf("%s: mstconfig set: %w", cardName(c.Card), err)
	}
	return a.afterSet(c, end, said)
}

func (a *app) confirmSet(c *shownCard, yes bool) error {
	if yes {
		return nil
	}
	a.note("Profile 4 of the flex parser takes the place of the profile that the card has now, and of the protocols which that one parses.")
	ok, err := a.ask(fmt.Sprintf("Set %s on %s? [y/N] ", strings.Join(prepare.Assignments(), " "), cardName(c.Card)), false)
	if err != nil {
		return cannot(fmt.Errorf("%w; --yes sets without asking", err))
	}
	if !ok {
		return errors.New("nothing was set")
	}
	return nil
}

// afterSet asks the card what it has now, and says what must happen next. A boot
// that was not enough before may be enough now.
func (a *app) afterSet(c *shownCard, end prepare.Ending, said string) error {
	now, err := a.preparer(0).Renew(context.Background(), c.Card, end)
	backup := c.Backup
	*c = show(now, c.Links)
	c.Backup, c.Ending = backup, said
	if !c.NextRight() {
		return errors.Join(fmt.Errorf("%s: mstconfig said that it set them, but now: %s", cardName(c.Card), c.Text), err)
	}
	a.say("%s: set; %s", cardName(c.Card), c.Text)
	a.next(c)
	return err
}

func (a *app) next(c *shownCard) {
	if c.Fix != "" && !a.json {
		fmt.Fprintf(a.out, "    Next: %s\n", c.Fix)
	}
}
