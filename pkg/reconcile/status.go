// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"time"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// State is the state of a link in the words of networkctl(1).
type State string

const (
	Unmanaged   State = "unmanaged"   // no policy matches
	Pending     State = "pending"     // not ready yet: udev, or the device is resetting
	Configuring State = "configuring" // steps remain
	Configured  State = "configured"  // every rule wanted is in place
	Blocked     State = "blocked"     // something outside flexsteer must change first
	Failed      State = "failed"      // the kernel or the driver refused
)

// LinkStatus is one link as the last pass left it.
type LinkStatus struct {
	Link       steer.Link
	State      State
	Generation uint64 // of the configuration that this is about; Status.Generation is ahead of it until the link's next visit
	Policies   []string
	Own        steer.Range
	Wanted     int // rules the configuration wants
	InPlace    int // those of them that are in the NIC
	Foreign    int // rules outside our locations
	Channels   steer.Channels
	Queues     uint32
	Usage      []EntryUsage
	Problems   []steer.Problem
	ChangedAt  time.Time // of State
	RetryAt    time.Time // the next attempt after a failure; zero when none is planned but the resync
}

// EntryUsage is steer.Usage by the entry's name.
type EntryUsage struct {
	Entry     string
	Rules     int
	Imbalance float64
}

// Status is everything a person may ask of the daemon.
type Status struct {
	Version      string
	PID          int             // process id of the daemon
	Generation   uint64          // counts configurations taken into use, from 1; 0: none yet
	Reloads      uint64          // counts attempts to load one, good and bad, from 1
	LoadedAt     time.Time       // of the configuration in use
	ConfigErrors []string        // of the last attempt to load; empty when it is in use
	Problems     []steer.Problem // of the daemon as a whole
	Links        []LinkStatus    // every link, by name; those no policy matches are Unmanaged
}
