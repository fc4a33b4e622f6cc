// SPDX-License-Identifier: Apache-2.0

// Package personalities is the cards that the model can be, a JSON file each; see
// mlx5.Personality for the fields, and nv.Personality for those of "settings".
package personalities

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/flexsteer/flexsteer/sim/mlx5"
	"github.com/flexsteer/flexsteer/sim/nv"
)

//go:embed *.json
var files embed.FS

// Personality is what kind of card it is, for drivers and for tools.
type Personality struct {
	mlx5.Personality
	Settings *nv.Personality // nil: tools find no way into the card
}

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
func Load(name string) (Personality, error) {
	text, err := files.ReadFile(name + ".json")
	if err != nil {
		return Personality{}, fmt.Errorf("no personality %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return Parse(text)
}

// Parse reads and checks a file. A field that it does not know is an error.
func Parse(text []byte) (p Personality, err error) {
	settings, rest, err := split(text)
	if err != nil {
		return p, fmt.Errorf("personality: %w", err)
	}
	if p.Personality, err = mlx5.ParsePersonality(rest); err != nil || settings == nil {
		return p, err
	}
	s, err := nv.ParsePersonality(settings)
	if err != nil {
		return p, fmt.Errorf("personality %q: %w", p.Name, err)
	}
	p.Settings = &s
	return p, nil
}

// split takes the "settings" out of a file; nil: there are none.
func split(text []byte) (settings, rest []byte, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, nil, err
	}
	settings = fields["settings"]
	delete(fields, "settings")
	rest, err = json.Marshal(fields)
	return settings, rest, err
}
