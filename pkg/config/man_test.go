// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// manPage is the page of the format without roff's escapes.
func manPage(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../docs/man/flexsteer.yaml.5")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(`\-`, "-", `\~`, " ", `\(dq`, `"`).Replace(string(data))
}

func TestTheManPageNamesEveryKeyAndWord(t *testing.T) {
	words := strings.FieldsFunc(manPage(t), func(c rune) bool { return strings.ContainsRune(" \n\",:", c) })
	for _, want := range slices.Concat(names(policyKeys()), names(matchKeys()), names(entryKeys()), names(spreadKeys()),
		names(daemonKeys()), names(moduleKeys()), names(firmwareKeys()), protocolNames(), kinds, []string{ReloadNever, ReloadAtBoot}) {
		if !slices.Contains(words, want) {
			t.Errorf("flexsteer.yaml(5) does not mention %s", want)
		}
	}
}

func TestTheExamplesOfTheManPageLoad(t *testing.T) {
	examples := strings.Split(manPage(t), ".EX\n")[1:]
	if len(examples) < 3 {
		t.Fatalf("%d examples", len(examples))
	}
	fsys := fstest.MapFS{}
	for i, text := range examples {
		text, _, _ = strings.Cut(text, ".EE")
		name := "etc/flexsteer/10-" + string(rune('a'+i)) + ".yaml"
		if !strings.Contains(text, "match:") {
			name = "etc/flexsteer/10-a.yaml.d/x.yaml"
		}
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	c, err := Load(fsys, SearchPath)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "policies", len(c.Policies), len(examples)-1)
	expect(t, "channels of the drop-in", c.Policies[0].Channels, uint32(16))
}
