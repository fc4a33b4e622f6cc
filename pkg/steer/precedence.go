// SPDX-License-Identifier: Apache-2.0

package steer

// Precedence is how a driver decides between rules that overlap.
type Precedence uint8

const (
	// UnknownPrecedence: which rule wins is not known, so rules with different
	// actions must not overlap.
	UnknownPrecedence Precedence = iota
	// ByLocation: the rule at the lower location wins.
	ByLocation
	// ByFields: the rule that compares more fields wins, whatever its location;
	// between equals it is not known (mlx5).
	ByFields
)
