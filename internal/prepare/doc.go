// SPDX-License-Identifier: Apache-2.0

// Package prepare finds out whether this machine can do what rules on l4data
// need: is the patched mlx5_core built, installed and loaded, and are the two
// firmware settings of each card right. What it finds are Facts: values that
// root writes into one file and that flexsteerd, without privileges, reads.
//
// Reading what tools print, and judging it, are pure functions. Commands go
// through a Run, and files through an fs.FS, so that a whole machine can be made
// of text. Nothing here resets a card, reboots, or changes a setting by itself.
package prepare
