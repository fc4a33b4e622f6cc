// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// The group of settings that both parameters are in, and a parameter of it that
// does not depend on what the parser can do (mlxconfig_host.db of mstflint).
const (
	parserGroup = 0x0e // nv_flex_parser_conf
	neighbour   = "FLEX_IPV4_OVER_VXLAN_PORT"
)

// further looks further where a card shows neither parameter. Before 4.25 mstconfig
// says the same of a group that is read-only as of one that the firmware does not
// have (TLVConf::isFWSupported). If another parameter of the group is there, so is
// the group, and what the parser lacks is lacking. Else what is stored for the next
// boot, which a backup has of groups that are read-only as well, may show it.
// (get_raw would, but it arms a reset of the firmware, as set does.)
func (a *Asker) further(ctx context.Context, address string, got Answer) Answer {
	if a.showsReadOnly(ctx) || read(a.mstconfig(ctx, address, neighbour), address).Refusal.Reason == "" {
		return got
	}
	got.Hidden = true
	if rows, ok := a.storedRows(ctx, address); ok {
		got.Device.Rows, got.Refusal = rows, Refusal{}
	}
	return got
}

var mstflintVersion = regexp.MustCompile(`mstflint (\d+)\.(\d+)`)

// showsReadOnly: this mstconfig is 4.25 or later.
func (a *Asker) showsReadOnly(ctx context.Context) bool {
	found := mstflintVersion.FindStringSubmatch(a.run(ctx, []string{"-v"}).Stdout)
	if found == nil {
		return false
	}
	major, _ := strconv.Atoi(found[1])
	minor, _ := strconv.Atoi(found[2])
	return major > 4 || major == 4 && minor >= 25
}

// storedRows is both parameters as they are stored for the next boot; false: they
// are not, or it cannot be told.
func (a *Asker) storedRows(ctx context.Context, address string) (rows map[string]Setting, ok bool) {
	dir, err := os.MkdirTemp("", "flexsteer-backup-*") // settings are nobody else's business
	if err != nil {
		return nil, false
	}
	defer os.RemoveAll(dir)
	groups, err := a.backup(ctx, address, filepath.Join(dir, "card.conf"))
	if err != nil {
		return nil, false
	}
	for _, g := range groups {
		if g.Type != parserGroup || len(g.Data) == 0 {
			continue
		}
		if ok { // by two writers: which of them counts is not known
			return nil, false
		}
		rows, ok = parserRows(g.Data[0]), true
	}
	return rows, ok
}

// parserRows is the group's first word: the profile in bits 7:0, the graph in bit 31.
func parserRows(word uint32) map[string]Setting {
	graph := "False(0)"
	if word>>31 == 1 {
		graph = "True(1)"
	}
	return map[string]Setting{
		profileName: {Name: profileName, Next: strconv.Itoa(int(word & 0xff)), ReadOnly: true},
		graphName:   {Name: graphName, Next: graph, ReadOnly: true},
	}
}
