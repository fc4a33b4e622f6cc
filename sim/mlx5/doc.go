// SPDX-License-Identifier: Apache-2.0

// Package mlx5 is one PCI function of a ConnectX-class card as Linux's mlx5
// driver sees it behind its BAR: the initialization segment, the command
// queue, capabilities, and every object that the driver makes with commands.
// The tables that steer frames are in package steering and the rings in
// package queue; this package reads the driver's commands and keeps the rules
// between objects of all kinds.
//
// The model is strict. It offers little, does what it offers, and refuses
// everything else: an opcode that is not in its list, a bit of a command's
// input that it does not know, an object that is gone, in use or in the wrong
// state. What a correct driver would never provoke is also a Violation in the
// Report; so is an object that is still alive when the driver says goodbye.
//
// Numbers and layouts are those of NVIDIA's Programmer's Reference Manual
// (PRM) and of the driver's header mlx5_ifc.h. Offsets are written in bits.
package mlx5
