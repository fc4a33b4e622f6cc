// SPDX-License-Identifier: Apache-2.0

// Package steer holds the nouns of receive steering (Match, Action, Rule,
// Table, Desired, Observed, Plan, Problem) and the pure decisions about them:
//
//   - Compile turns policy entries into the ntuple rules of one link;
//   - Check says which entries this link can have now, and why not the others;
//   - Diff gives the steps from the rules in place to the rules wanted;
//   - Classifier says which queue a packet would get.
//
// Nothing here opens a file or a socket, reads a clock or writes a log: every
// function is a function of its arguments.
package steer
