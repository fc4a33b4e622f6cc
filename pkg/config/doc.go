// SPDX-License-Identifier: Apache-2.0

// Package config reads the YAML files that people write and resolves them to
// what each link should have. Load and LoadFiles report every error of every
// file at once, each with its place, the line and a hint; Resolve is pure.
//
// The format is described in flexsteer.yaml(5) and, for editors, by the JSON
// Schema that Schema returns.
//
// A file goes through four steps, each of which trusts the one before:
//
//	source  bytes: size, encoding, control characters, lines
//	lex     layout: indentation, quotes, brackets, depth; no YAML feature that
//	        the format does not use reaches the YAML library
//	parse   gopkg.in/yaml.v3, as a tree of nodes
//	walk    keys and values, then what they say together
package config
