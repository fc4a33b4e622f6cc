// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"syscall"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// refused is a step that the kernel refused.
type refused struct {
	step steer.Step
	err  error
}

// tolerated is how many rules may be refused in one visit, each for a reason of
// its own, before the visit ends.
const tolerated = 8

// ofRule: the driver refuses what the rule asks for, so that others may go in.
// Any other error is about the link, its table, or us.
func (r refused) ofRule() bool {
	switch {
	case r.step.Kind != steer.Insert && r.step.Kind != steer.Replace:
		return false
	case errors.Is(r.err, syscall.EBUSY):
		return r.raw()
	}
	return errors.Is(r.err, syscall.EINVAL) || r.unsupported()
}

func (r refused) raw() bool { return r.step.Rule.Match.L4Data.Mask != 0 }

func (r refused) unsupported() bool {
	return errors.Is(r.err, syscall.EOPNOTSUPP) || errors.Is(r.err, enotsupp)
}

// alike: s would be refused for the same reason. A driver may write a line to
// the kernel's log for each attempt.
func (r refused) alike(s steer.Step) bool {
	if s.Kind != steer.Insert && s.Kind != steer.Replace {
		return false
	}
	was, is := r.step.Rule.Match, s.Rule.Match
	if r.raw() && is.L4Data.Mask != 0 && (r.unsupported() || was.Protocol == is.Protocol) {
		return true
	}
	return was.Flow == is.Flow && (r.step.Entry == s.Entry || r.unsupported() && !r.raw())
}

// refusals are those of one visit.
type refusals []refused

func (all refusals) cover(s steer.Step) bool {
	for _, r := range all {
		if r.alike(s) {
			return true
		}
	}
	return false
}

// end reports whether the visit is over.
func (all refusals) end() bool {
	return len(all) >= tolerated || !all[len(all)-1].ofRule()
}

// decisive is the one that says when to try again: that which ended the visit,
// or one that time may cure.
func (all refusals) decisive() refused {
	last := all[len(all)-1]
	if !last.ofRule() {
		return last
	}
	for _, r := range all {
		if retryFor(r.err, false) == retryBackOff {
			return r
		}
	}
	return last
}
