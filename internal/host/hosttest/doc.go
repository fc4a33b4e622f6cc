// SPDX-License-Identifier: Apache-2.0

// Package hosttest holds a kernel made of maps, for tests of everything that
// stands on reconcile.Kernel, and the suite of tests that it and the real host
// both pass.
//
// The fake is wrong in the same places as mlx5_core: it loses the old rule when
// the firmware refuses a replacement, accepts one match at two locations, loses
// rules at a reset without a word, and comes back from a reload under a new
// ifindex. Each such place names its fact in a comment.
package hosttest
