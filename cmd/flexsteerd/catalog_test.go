// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"
)

// The journal's catalog, the manual page and the code know the same ids.
func TestMessageIDsAreTheSameEverywhere(t *testing.T) {
	want := slices.Sorted(maps.Values(messageIDs))
	for file, pattern := range map[string]string{
		"../../packaging/systemd/flexsteer.catalog": `(?m)^-- ([0-9a-f]{32})$`,
		"../../docs/man/flexsteerd.8":               `(?m)^([0-9a-f]{32})$`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			got = append(got, string(m[1]))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s has the ids\n%q\nthe code has\n%q", file, got, want)
		}
	}
}

// A field in a text of the catalog that no line has would be printed as it is.
func TestCatalogNamesFieldsThatThereAre(t *testing.T) {
	text, err := os.ReadFile("../../packaging/systemd/flexsteer.catalog")
	if err != nil {
		t.Fatal(err)
	}
	fields := slices.Collect(maps.Values(journalKeys))
	for _, m := range regexp.MustCompile(`@([A-Z_]+)@|(FLEXSTEER_[A-Z_]+)`).FindAllSubmatch(text, -1) {
		if name := string(m[1]) + string(m[2]); !slices.Contains(fields, name) {
			t.Errorf("there is no field %s", name)
		}
	}
}
