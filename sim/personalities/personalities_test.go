// SPDX-License-Identifier: Apache-2.0

package personalities

import (
	"slices"
	"strings"
	"testing"
)

func TestEachFileIsTheCardOfItsName(t *testing.T) {
	want := []string{"bluefield-3", "bluefield-3-samples-1", "bluefield-3-samples-3", "connectx-6-dx"}
	if got := Names(); !slices.Equal(got, want) {
		t.Fatalf("cards %q, want %q", got, want)
	}
	for _, name := range Names() {
		p, err := Load(name)
		if err != nil || p.Name != name {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

func TestACardThatIsMissingIsToldWithThoseThatAreThere(t *testing.T) {
	if _, err := Load("bluefield-4"); err == nil || !strings.Contains(err.Error(), "bluefield-3, ") {
		t.Error(err)
	}
}

func TestSettings(t *testing.T) {
	for _, name := range Names() {
		p, err := Load(name)
		if err != nil || p.Settings == nil || p.Settings.ParseGraph != (p.ParseGraph != nil) {
			t.Errorf("%s: %+v, %v", name, p.Settings, err)
		}
	}
	text, _ := files.ReadFile("bluefield-3.json")
	without := strings.NewReplacer(`"settings"`, `"nothing"`)
	if _, err := Parse([]byte(without.Replace(string(text)))); err == nil || !strings.Contains(err.Error(), `unknown field "nothing"`) {
		t.Error(err)
	}
	odd := strings.NewReplacer(`"ports": 2`, `"ports": 9`)
	if _, err := Parse([]byte(odd.Replace(string(text)))); err == nil || !strings.Contains(err.Error(), `personality "bluefield-3": settings: ports is 9`) {
		t.Error(err)
	}
}

// Without settings a card has no door for tools.
func TestACardWithoutSettings(t *testing.T) {
	text, _ := files.ReadFile("bluefield-3.json")
	start, end := strings.Index(string(text), `	"settings"`), strings.Index(string(text), `	"parse_graph": {`)
	p, err := Parse([]byte(string(text[:start]) + string(text[end:])))
	if err != nil || p.Settings != nil || p.ParseGraph == nil {
		t.Errorf("%+v, %v", p, err)
	}
}
