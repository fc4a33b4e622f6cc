// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

// Package ethtool reads and writes the receive rules, queues and channels of a
// network interface by the SIOCETHTOOL ioctl, the only way the kernel has for
// rules.
//
// The codec (Encode, Decode) turns the bytes of struct ethtool_rxnfc into
// steer.Rule and back. It is pure, and any bytes decode to something: a rule
// that steer cannot express becomes one of Flow Other that keeps its bytes.
// The Client speaks to one kernel through an Ioctl, which tests replace.
//
// Sources: linux/ethtool.h, ethtool(8), net/ethtool/ioctl.c of Linux 6.1-7.3.
package ethtool
