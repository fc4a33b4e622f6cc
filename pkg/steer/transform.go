// SPDX-License-Identifier: Apache-2.0

package steer

import "slices"

// Transform is what a NIC makes of source and destination, of addresses and of
// ports, before it hashes them: RXH_XFRM_* of linux/ethtool.h, "xfrm" of
// ethtool(8). With the symmetric ones both directions of a flow are on one queue.
type Transform uint8

const (
	// NoTransform: source, then destination.
	NoTransform Transform = iota
	// SymmetricXor: twice their exclusive or (RXH_XFRM_SYM_XOR, since Linux 6.8).
	SymmetricXor
	// SymmetricOrXor: "source or destination", then their exclusive or
	// (RXH_XFRM_SYM_OR_XOR, since Linux 6.15; "Symmetric-OR-XOR" in the kernel's
	// networking/scaling.rst).
	SymmetricOrXor
)

// transformNames are the words of `ethtool -X LINK xfrm`.
var transformNames = [...]string{NoTransform: "none", SymmetricXor: "symmetric-xor", SymmetricOrXor: "symmetric-or-xor"}

// String is the transformation's name in ethtool(8).
func (t Transform) String() string { return transformNames[t] }

// TransformNames are those names, of all transformations.
func TransformNames() []string { return slices.Clone(transformNames[:]) }

// TransformNamed is the transformation that ethtool(8) calls name.
func TransformNamed(name string) (t Transform, ok bool) {
	for t, known := range transformNames {
		if known == name {
			return Transform(t), true
		}
	}
	return 0, false
}

// of is what t makes of a byte of the source and that of the destination.
func (t Transform) of(source, destination byte) (first, second byte) {
	switch t {
	case SymmetricXor:
		return source ^ destination, source ^ destination
	case SymmetricOrXor:
		return source | destination, source ^ destination
	}
	return source, destination
}
