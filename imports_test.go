// SPDX-License-Identifier: Apache-2.0

package flexsteer_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/flexsteer/flexsteer/"

// rooms says what of ours each room may import; docs/architecture.md says why.
var rooms = map[string][]string{
	"pkg/steer":              {},
	"pkg/config":             {"pkg/steer"},
	"pkg/reconcile":          {"pkg/steer"},
	"internal/ethtool":       {"pkg/steer"},
	"internal/host":          {"pkg/steer", "internal/ethtool"},
	"internal/host/hosttest": {"pkg/steer", "pkg/reconcile"},
	"internal/prepare":       {"pkg/steer"},
	"internal/report":        {"pkg/steer", "pkg/reconcile"},
	"internal/capture":       {},
	"internal/simulate":      {"pkg/steer", "internal/capture"},
}

// core is what decides: it sees no files, sockets, clocks or logs.
var (
	core      = []string{"pkg/steer"}
	forbidden = []string{"os", "net", "time", "log", "log/slog", "io/fs", "syscall"}
)

func TestEachRoomImportsOnlyWhatItMay(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./pkg/...", "./internal/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		imports := strings.Fields(line)
		room := strings.TrimPrefix(imports[0], module)
		allowed, known := rooms[room]
		if !known {
			t.Errorf("%s is not in the table of rooms", room)
		}
		for _, path := range imports[1:] {
			if other, ours := strings.CutPrefix(path, module); ours && !slices.Contains(allowed, other) {
				t.Errorf("%s imports %s, which it may not", room, other)
			}
			if slices.Contains(core, room) && slices.Contains(forbidden, path) {
				t.Errorf("%s imports %s: the core is pure", room, path)
			}
		}
	}
}
