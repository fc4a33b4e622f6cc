// SPDX-License-Identifier: Apache-2.0

// Package lab runs experiments: Debian's kernels in QEMU, with flexsim as the
// card, flexsteerd and ethtool in the guest, and packets from outside. It needs
// FLEXSTEER_LAB=1, root and a Debian 12 machine; docs/lab.md is its manual.
//
// An experiment is a value in a file that is named after its subject:
//
//	var _ = add(Experiment{
//		Name: "one exact port rule",
//		Run: func(m *Machine) {
//			m.Ethtool("-N", m.Link, "flow-type", "udp4", "dst-port", "53", "action", "3")
//			...
//		},
//	})
//
// Machine has the words for it. Whatever an experiment does to rules, channels,
// links, faults, files and processes is undone behind it and checked; what can
// not be undone wants Fresh. Expectations are written by hand.
package lab
