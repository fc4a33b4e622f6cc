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
