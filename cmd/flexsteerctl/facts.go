// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"

	"github.com/flexsteer/flexsteer/internal/prepare"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// informed is a machine with what `flexsteerctl prepare` has found out about it.
type informed struct {
	machine
	facts prepare.Facts
}

// Observe adds the facts to what the machine shows, as the daemon does.
func (i informed) Observe(l steer.Link) (steer.Observed, error) {
	o, err := i.machine.Observe(l)
	if err != nil {
		return o, err
	}
	return i.facts.Complete(l, o), nil
}

func (a *app) store() prepare.Store { return prepare.Store{Root: a.root} }

// facts are those of this boot, or none; they are read once.
func (a *app) facts() prepare.Facts {
	if a.known != nil {
		return *a.known
	}
	f, err := a.store().Facts()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.note("%v; going on without them", err)
	}
	a.known = &f
	return f
}
