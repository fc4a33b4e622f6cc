// SPDX-License-Identifier: Apache-2.0

package reconcile

import "github.com/flexsteer/flexsteer/pkg/steer"

// Kernel is the machine whose links are steered.
//
// Links are known by their Index; a Kernel must never act on another link that
// has taken over the name meanwhile. Errors wrap a syscall.Errno where the
// kernel gave one: ENODEV means that the link is gone or resetting. Their text
// is the kernel's own words; who calls adds link, location and rule.
type Kernel interface {
	// Links lists the Ethernet links there are, in no particular order.
	Links() ([]steer.Link, error)

	// Observe reads all that is true of one link. That a driver takes no rules
	// is not an error but a Prerequisite.
	Observe(steer.Link) (steer.Observed, error)

	// Apply takes one step: one call to the kernel. After an error nothing is
	// known about the location: mlx5 frees the old rule before it tries the new one.
	Apply(steer.Link, steer.Step) error
}

// Policy is what the configuration wants. Resolve returns the links that some
// policy matches; it is a function of its argument alone.
type Policy interface {
	Resolve([]steer.Link) []steer.Desired
}
