// SPDX-License-Identifier: Apache-2.0

// Package reconcile is the loop that keeps the rules of every managed link as
// the configuration wants them: wake, observe, check, diff, apply, report.
//
// It remembers no rule between passes. What a pass decides comes from what it
// has just read, so a restart, a lost event and a rule that somebody else
// removed are all the same case. Kept in memory are only the times of the next
// attempts, what was last reported, and the location ranges that this very
// process has managed.
//
// Links are handled one after the other. The kernel takes the RTNL lock for
// every ethtool ioctl, so several at a time would wait there anyway; instead,
// links whose last attempt failed go last.
package reconcile
