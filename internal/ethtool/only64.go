// SPDX-License-Identifier: Apache-2.0

//go:build !(linux && (amd64 || arm64))

package ethtool

// struct ethtool_rxnfc is 192 bytes on 64-bit Linux and 180 on 386, so other
// targets must not build at all.
const _ int = "flexsteer knows the layout of struct ethtool_rxnfc on 64-bit Linux only: build with GOOS=linux and GOARCH=amd64 or arm64"
