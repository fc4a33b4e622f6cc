// SPDX-License-Identifier: Apache-2.0

// Package nv is the door that tools such as mstconfig have to a ConnectX-class
// card, and the firmware's settings behind it.
//
// The door is the vendor-specific capability of PCI configuration space: a
// gateway to address spaces. In one of them is a mailbox (ICMD) for commands to
// the firmware, by which tools read and write its registers. Some of those
// registers are about settings, which are kept in groups (TLVs) and have three
// values each: the default, the current one and the one of the next boot. A
// restart of the firmware makes the next one the current one.
//
//	config space -- gateway -- mailbox -- register -- settings
//
// The model is strict as that of package mlx5 is: what it does not know is
// refused and counted.
//
// Offsets and numbers are those of the Linux driver's lib/pci_vsc.c, of mstflint
// 4.21 (mtcr_ul, tools_layouts) and of its database of parameters. Offsets of
// fields are in bits.
package nv
