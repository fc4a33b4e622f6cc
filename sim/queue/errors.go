// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"fmt"
	"slices"
)

// Kind is what is wrong with a request, as coarse as a command's status.
type Kind int

// The kinds of an Error.
const (
	NotFound    Kind = iota + 1 // names an object that is not there
	BadParam                    // a value that is not allowed, or that the model does not know
	InUse                       // the object cannot go while others need it
	BadState                    // not now: the number is taken, or not from this state to that one
	NoResources                 // a limit of the card is reached
)

// Error is the error of a create, modify, query or destroy that was not done.
type Error struct {
	Kind   Kind
	Detail string
}

func (e Error) Error() string { return e.Detail }

func refuse(k Kind, format string, a ...any) error {
	return Error{k, fmt.Sprintf(format, a...)}
}

// What became of a frame, an event or a doorbell that did not get through.
var (
	ErrNoBuffer = errors.New("no receive buffer is posted")
	ErrNotReady = errors.New("receive queue is not ready")
	ErrTooLong  = errors.New("frame is longer than the posted buffers")
	// ErrViolation wraps what Violations lists as well: the driver broke a rule,
	// or named guest memory that is not there.
	ErrViolation = errors.New("violation")
)

// A hostile guest must not fill our memory with texts.
const (
	maxViolations  = 100
	moreViolations = "more violations, of other kinds"
)

// violate keeps a violation and makes it an error. The lock is held.
func (d *Datapath) violate(format string, a ...any) error {
	text := fmt.Sprintf(format, a...)
	err := fmt.Errorf("%s: %w", text, ErrViolation)
	at, known := d.violationAt[text]
	if !known && len(d.violations) >= maxViolations {
		text = moreViolations
		at, known = d.violationAt[text]
	}
	if !known {
		at = len(d.violations)
		d.violationAt[text] = at
		d.violations = append(d.violations, Violation{Text: text})
	}
	d.violations[at].Count++
	return err
}

// Violations lists the first 100 different texts in the order of appearance,
// and behind them one line for all others.
func (d *Datapath) Violations() []Violation {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.violations)
}
