// SPDX-License-Identifier: Apache-2.0

// Package sim_test keeps the rooms of the virtual card apart.
package sim_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	module  = "github.com/flexsteer/flexsteer/sim/"
	product = "github.com/flexsteer/flexsteer/"
)

// rooms says what of ours each room may import. None imports the product: a field
// that was misread once must not agree with itself.
var rooms = map[string][]string{
	"bus":           {},
	"prm":           {},
	"steering":      {"prm"},
	"queue":         {"bus", "prm"},
	"mlx5":          {"bus", "prm", "steering", "queue"},
	"nv":            {"prm"},
	"personalities": {"mlx5", "nv"},
	"wire":          {},
	"pci":           {"bus"},
	"vfiouser":      {"bus"},
	"cmd/flexsim":   {"mlx5", "nv", "personalities", "steering", "queue", "wire", "pci", "vfiouser"},
}

// impure is what steering, which only decides, does not see.
var impure = []string{"os", "net", "time", "log", "log/slog", "io/fs", "syscall", "sync"}

// outside is what the device, which knows its registers and the bus that it is
// lent, does not see: files, and how a machine reaches it.
var (
	outside = []string{"os", "io/fs", "syscall", "golang.org/x/sys/unix"}
	device  = []string{"bus", "prm", "steering", "queue", "mlx5", "nv", "pci"}
)

func TestEachRoomImportsOnlyWhatItMay(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		imports := strings.Fields(line)
		room, inside := strings.CutPrefix(imports[0], module)
		if !inside {
			continue // this package
		}
		may, known := rooms[room]
		if !known {
			t.Errorf("%s is not in the table of rooms", room)
		}
		for _, path := range imports[1:] {
			other, ours := strings.CutPrefix(path, module)
			switch {
			case ours && !slices.Contains(may, other), !ours && strings.HasPrefix(path, product):
				t.Errorf("%s imports %s, which it may not", room, path)
			case room == "steering" && slices.Contains(impure, path):
				t.Errorf("%s imports %s: it is pure", room, path)
			case slices.Contains(device, room) && slices.Contains(outside, path):
				t.Errorf("%s imports %s: it is of the device", room, path)
			}
		}
	}
}
