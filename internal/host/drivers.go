// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"io/fs"
	"strconv"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// precedences is how drivers decide between overlapping rules, by the name
// that sysfs or `ethtool -i` gives them. linux/ethtool.h promises that the
// lowest location wins, but many drivers hash, or choose places themselves; so
// one that is not here is steer.UnknownPrecedence, which is always safe.
var precedences = map[string]steer.Precedence{
	// More matched fields win; the location is only a handle (mlx5
	// en_fs_ethtool.c: the flow table is chosen by the number of fields).
	"mlx5_core": steer.ByFields,

	// The priority given to the firmware is the location (mlx4
	// en_ethtool.c, mlx4_en_flow_replace: MLX4_DOMAIN_ETHTOOL | location).
	"mlx4_core": steer.ByLocation, // sysfs
	"mlx4_en":   steer.ByLocation, // ethtool -i

	// Locations are indices, kept in ascending order, into a CAM of which the
	// lowest hit counts (octeontx2 otx2_flows.c, otx2_alloc_mcam_entries).
	"rvu_nicpf": steer.ByLocation, // sysfs
	"rvu_nicvf": steer.ByLocation,
	"rvu-nicpf": steer.ByLocation, // ethtool -i
	"rvu-nicvf": steer.ByLocation,
}

// PrecedenceOf is how the NICs of a driver decide between overlapping rules;
// driver is named as sysfs or `ethtool -i` does.
func PrecedenceOf(driver string) steer.Precedence { return precedences[driver] }

// hashInputs is what the NICs of drivers make of a packet before the receive hash,
// by the name that sysfs or `ethtool -i` gives them, unless somebody changed it
// (`ethtool -X LINK xfrm`). One that is not here hashes the fields as they are.
var hashInputs = map[string]steer.HashInput{
	// Every Toeplitz hash is made with rx_hash_symmetric set (mlx5 en/tir.c). Since
	// Linux 6.15 the driver reports that as RXH_XFRM_SYM_OR_XOR and lets it be
	// changed; before, it is so all the same. ESP and AH are hashed over addresses
	// and SPI, with no way to change that (en/rss.c, rss_default_config).
	"mlx5_core": {Transform: steer.SymmetricOrXor, SPI: true},
}

// HashInputOf is what the NICs of a driver make of a packet before the receive
// hash; driver is named as sysfs or `ethtool -i` does.
func HashInputOf(driver string) steer.HashInput { return hashInputs[driver] }

// maxNodes is the parameter that only the patched mlx5_core has: how many
// protocols may be matched by l4data at a time.
const maxNodes = "sys/module/mlx5_core/parameters/flex_l4_max_nodes"

// cardOf is what the driver decides about the rules of a link.
func cardOf(fsys fs.FS, driver string) (card steer.NIC, missing []steer.Problem) {
	card = steer.NIC{Precedence: PrecedenceOf(driver), RawProtocols: steer.AnyProtocols}
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
	Fix:      "dkms status flexsteer-mlx5; once it is installed, reboot or reload mlx5_core",
}

var takesNoRules = steer.Problem{
	Severity: steer.Blocked,
	Needs:    steer.NeedNothing,
	Text:     "this driver takes no rules",
}
