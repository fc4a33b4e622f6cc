// SPDX-License-Identifier: Apache-2.0

// Package personalities is the cards that the model can be, a JSON file each;
// see mlx5.Personality for the fields.
package personalities

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/flexsteer/flexsteer/sim/mlx5"
)

//go:embed *.json
var files embed.FS

// Names is every card there is, in alphabetical order.
func Names() (names []string) {
	paths, _ := fs.Glob(files, "*.json")
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(path, ".json"))
	}
	slices.Sort(names)
	return names
}

// Load is the card of that name.
func Load(name string) (mlx5.Personality, error) {
	text, err := files.ReadFile(name + ".json")
	if err != nil {
		return mlx5.Personality{}, fmt.Errorf("no personality %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return mlx5.ParsePersonality(text)
}
