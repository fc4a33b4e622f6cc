// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manText is flexsteerctl(1) without the markup between words.
func manText(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/man/flexsteerctl.1")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(`\-`, "-", `\fB`, "", `\fI`, "", `\fR`, "", `\fP`, "").Replace(string(page))
}

func TestManPageHasEveryCommandAndFlag(t *testing.T) {
	text := manText(t)
	root := newRoot(&app{})
	root.InitDefaultHelpFlag()
	check := func(f *pflag.Flag) {
		if !strings.Contains(text, "--"+f.Name) {
			t.Errorf("--%s is not in the man page", f.Name)
		}
	}
	root.PersistentFlags().VisitAll(check)
	for _, c := range root.Commands() {
		if !strings.Contains(text, "\n.SS "+c.Name()) {
			t.Errorf("%s has no section in the man page", c.Name())
		}
		section := text[max(0, strings.Index(text, "\n.SS "+c.Name())):]
		if end := strings.Index(section[1:], "\n.S"); end > 0 {
			section = section[:end+1]
		}
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !strings.Contains(section, "--"+f.Name) {
				t.Errorf("%s --%s is not in the command's section of the man page", c.Name(), f.Name)
			}
		})
	}
}

// The page names no command or flag that is gone.
func TestManPageHasNothingElse(t *testing.T) {
	flags := map[string]bool{"help": true}
	root := newRoot(&app{})
	var collect func(*cobra.Command)
	collect = func(c *cobra.Command) {
		add := func(f *pflag.Flag) { flags[f.Name] = true }
		c.LocalFlags().VisitAll(add)
		c.PersistentFlags().VisitAll(add)
		for _, sub := range c.Commands() {
			collect(sub)
		}
	}
	collect(root)
	for _, word := range strings.FieldsFunc(manText(t), func(r rune) bool { return !strings.ContainsRune("-abcdefghijklmnopqrstuvwxyz", r) }) {
		if name, ok := strings.CutPrefix(word, "--"); ok && !flags[name] {
			t.Errorf("--%s is in the man page only", name)
		}
	}
	commands := map[string]bool{"completion": true}
	for _, c := range root.Commands() {
		commands[c.Name()] = true
	}
	for _, line := range strings.Split(manText(t), "\n") {
		if rest, ok := strings.CutPrefix(line, ".SS "); ok && !commands[strings.Fields(rest)[0]] {
			t.Errorf("there is no command %q", rest)
		}
	}
}
