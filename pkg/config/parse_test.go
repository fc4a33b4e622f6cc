// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"testing"
)

func TestAnErrorOfTheYAMLLibraryStaysInsideTheFile(t *testing.T) {
	text := "match:\n  name: a\n"
	for _, message := range []string{
		"yaml: line 2: did not find expected key", "yaml: line 99: found a tab", "yaml: line 0: odd", "yaml: odd", "the YAML library failed: nil map",
	} {
		_, f := newSource("a.yaml", []byte(text))
		f.syntax(errors.New(message))
		checkPlaces(t, []byte(text), Errors(f.list))
	}
	src, f := newSource("a.yaml", []byte(text))
	f.syntax(errors.New("yaml: line 2: did not find expected key"))
	expect(t, "place", f.list[0].At.String(), "a.yaml:2:3")
	expect(t, "line", f.list[0].At.Text, src.lines[1])
	expect(t, "text", f.list[0].Text, "not valid YAML: did not find expected key")
}

func TestLayoutThatIsRefusedNeverReachesTheYAMLLibrary(t *testing.T) {
	for _, text := range []string{"a: &x b\n", "a: *x\n", "a: !!str b\n", "a: |\n  b\n", "? a\n: b\n", "%YAML 1.2\n---\na: b\n", "a: b\n---\nc: d\n", "a: \"b\n  c\"\n", "a: b\n  c\n"} {
		src, f := newSource("a.yaml", []byte(text))
		if root := parse(src, f); root != nil || len(f.list) == 0 {
			t.Errorf("%q was passed on", text)
		}
	}
}
