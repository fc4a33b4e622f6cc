// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package host

import (
	"io/fs"
	"strconv"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// precedences is how drivers decide between overlapping rules. A driver that
// is not here is steer.UnknownPrecedence.
var precedences = map[string]steer.Precedence{
	"mlx5_core": steer.ByFields,
}

// maxNodes is the parameter that only the patched mlx5_core has: how many
// protocols may be matched by l4data at a time.
const maxNodes = "sys/module/mlx5_core/parameters/flex_l4_max_nodes"

// cardOf is what the driver decides about the rules of a link.
func cardOf(fsys fs.FS, driver string) (card steer.NIC, missing []steer.Problem) {
	card = steer.NIC{Precedence: precedences[driver], RawProtocols: steer.AnyProtocols}
	if driver != "mlx5_core" {
		return card, nil
	}
	n, err := strconv.Atoi(readLine(fsys, maxNodes))
	if err != nil {
		return card, []steer.Problem{noPatchedModule}
	}
	card.RawProtocols = n
	return card, nil
}

var noPatchedModule = steer.Problem{
	Severity: steer.Blocked,
	Needs:    steer.NeedL4Data,
	Text:     "patched module not loaded: this mlx5_core cannot match l4data",
	Fix:      "install the flexsteer-mlx5 module (see dkms status flexsteer-mlx5), then reboot, or reload mlx5_core",
}

var takesNoRules = steer.Problem{
	Severity: steer.Blocked,
	Needs:    steer.NeedNothing,
	Text:     "this driver takes no rules",
}
