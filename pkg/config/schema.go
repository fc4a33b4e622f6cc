// SPDX-License-Identifier: Apache-2.0

package config

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of the files, for editors. It says
// everything that can be said of one file without arithmetic.
func Schema() []byte { return slices.Clone(schema) }
