// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"syscall"
	"time"
)

const (
	// DefaultResync is how often everything is read again without any event:
	// no kernel event announces a rule change.
	DefaultResync = 30 * time.Second

	settle     = 20 * time.Millisecond  // events come in groups: wait for the rest of the group
	passGap    = 250 * time.Millisecond // between passes that events ask for, however many they are
	firstRetry = time.Second            // after a failure; doubled each time up to the resync period
	restless   = 3                      // passes at once, one after the other, that may change the same link
)

// resyncIn spreads the resync over +/- 10 % of period, so that machines started
// together do not stay in step. r is uniform in [0, 1).
func resyncIn(period time.Duration, r float64) time.Duration {
	return time.Duration(float64(period) * (0.9 + 0.2*r))
}

// backOff is the wait after the failures-th failure in a row (from 1): it
// doubles from firstRetry up to limit, less up to a quarter by r in [0, 1).
func backOff(failures int, limit time.Duration, r float64) time.Duration {
	wait := firstRetry
	for i := 1; i < failures && wait < limit; i++ {
		wait *= 2
	}
	return time.Duration(float64(min(wait, limit)) * (1 - r/4))
}

// eventPass is when the pass for an event may run: a little later, so that its
// group is complete, and not right behind the pass before.
func eventPass(event, lastPass time.Time) time.Time {
	return later(event.Add(settle), lastPass.Add(passGap))
}

// retry says when a refused call is worth another attempt.
type retry uint8

const (
	retryBackOff retry = iota
	retryAtOnce        // the call was interrupted, or what it was about has changed meanwhile
	retryOnEvent       // asking again gives the same answer until something else changes
)

// retryFor sorts errors by what can make a second attempt succeed.
func retryFor(err error, removing bool) retry {
	switch {
	case errors.Is(err, syscall.EINTR), errors.Is(err, syscall.EAGAIN):
		return retryAtOnce
	case errors.Is(err, syscall.ENOENT) && removing:
		return retryAtOnce
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES),
		errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, enotsupp):
		return retryOnEvent
	}
	return retryBackOff
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
