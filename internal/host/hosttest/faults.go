// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"syscall"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// Call is one call of a reconcile.Kernel method.
type Call struct {
	Kind string // links, observe, channels, remove, replace or insert
	Link string // "" for links
	Loc  steer.Loc
}

// Fault makes one call fail.
type Fault struct {
	Kind  string     // of the call; "": any
	Loc   *steer.Loc // of the rule; nil: any
	Nth   int        // the how-manieth such call from now, from 1
	Errno syscall.Errno
	After bool // the call has its effect all the same
	Holds bool // all later such calls fail too

	seen int
}

// Killed is what a call panics with once KillAfter has been reached: the
// program that uses the kernel is gone at that point.
type Killed struct{}

// Fail adds a fault.
func (k *Kernel) Fail(f Fault) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f.Nth = max(f.Nth, 1)
	k.faults = append(k.faults, &f)
}

// Heal removes all faults and KillAfter.
func (k *Kernel) Heal() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.faults, k.killAfter = nil, 0
}

// KillAfter lets n more calls happen, from 1; the n-th has its effect and then panics
// with Killed.
func (k *Kernel) KillAfter(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.killAfter = n
}

// Calls returns the calls since it was called last.
func (k *Kernel) Calls() []Call {
	k.mu.Lock()
	defer k.mu.Unlock()
	calls := k.calls
	k.calls = nil
	return calls
}

func (k *Kernel) call(c Call, effect func() error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls = append(k.calls, c)
	err := k.withFault(c, effect)
	if k.killAfter > 0 {
		if k.killAfter--; k.killAfter == 0 {
			panic(Killed{})
		}
	}
	return err
}

func (k *Kernel) withFault(c Call, effect func() error) error {
	f := k.faultFor(c)
	if f == nil {
		return effect()
	}
	if f.After {
		if err := effect(); err != nil {
			return err
		}
	}
	return f.Errno
}

func (k *Kernel) faultFor(c Call) (hit *Fault) {
	for _, f := range k.faults {
		if (f.Kind != "" && f.Kind != c.Kind) || (f.Loc != nil && *f.Loc != c.Loc) {
			continue
		}
		f.seen++
		if hit == nil && (f.seen == f.Nth || f.Holds && f.seen > f.Nth) {
			hit = f
		}
	}
	return hit
}
