// SPDX-License-Identifier: Apache-2.0

// Package vfiouser is the server side of the vfio-user protocol, as QEMU's
// vfio-user-pci device is a client of it: a PCI device that is another process,
// reached over a UNIX socket.
//
// The client hands over guest memory as file descriptors to map, and an eventfd
// for each interrupt; of both Server makes the bus.Bus that a device is lent.
// Accesses to configuration space and to BAR 0 come as messages, one by one and
// in order, and end in a Device.
//
// The protocol is QEMU's docs/interop/vfio-user.rst; structures and flags in it
// are those of <linux/vfio.h>. Numbers are little-endian here: it says "of the
// host", and QEMU and we share one.
//
// Nothing that a client sends is trusted. A message that is wrong in itself gets
// an errno and a line in the log; a byte stream that cannot be followed any more
// ends the connection with an error that says why.
package vfiouser
