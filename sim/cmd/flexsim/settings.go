// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/flexsteer/flexsteer/sim/mlx5"
	"github.com/flexsteer/flexsteer/sim/nv"
)

var errNoSettings = errors.New("this card has no settings")

// settle makes the card's settings those of a new one, or those that a file
// keeps, and has the file keep them. complain gets what cannot be written later.
func (c *card) settle(o options, complain func(error)) error {
	if !o.factory && o.nv == "" {
		return nil
	}
	if c.firmware == nil {
		return errNoSettings
	}
	if o.factory {
		c.firmware.Forget()
	}
	if o.nv != "" {
		if err := c.keep(o.nv, complain); err != nil {
			return err
		}
	}
	c.obey()
	c.device.Reset()
	return nil
}

func (c *card) keep(file string, complain func(error)) error {
	stored, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = replace(file, c.firmware.Stored())
	case err == nil:
		err = c.firmware.Recall(stored)
	}
	if err != nil {
		return fmt.Errorf("--nv %s: %w", file, err)
	}
	c.firmware.OnChange(func(stored []byte) { complain(replace(file, stored)) })
	return nil
}

// replace writes a file in one step, so that a card that is killed has the old or
// the new settings.
func replace(file string, text []byte) error {
	beside := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".new")
	if err := os.WriteFile(beside, text, 0o644); err != nil {
		return err
	}
	return os.Rename(beside, file)
}

// nvSetRequest is values by name, for the next start in place of all that is stored.
type nvSetRequest struct {
	Stored map[string]uint64 `json:"stored"`
}

func (r nvSetRequest) do(c *card) (any, error) {
	if c.firmware == nil {
		return nil, errNoSettings
	}
	return nil, c.firmware.Store(r.Stored)
}

// nvFaultRequest is nv.Faults, which take the place of those that there were.
type nvFaultRequest nv.Faults

func (r nvFaultRequest) do(c *card) (any, error) {
	if c.firmware == nil {
		return nil, errNoSettings
	}
	return nil, c.firmware.SetFaults(nv.Faults(r))
}

func (c *card) clearFaults() {
	c.device.ClearFaults()
	if c.firmware != nil {
		c.firmware.SetFaults(nv.Faults{}) // none cannot be wrong
	}
}

// report is what the card thinks of those who use it: its driver, and tools.
type report struct {
	mlx5.Report
	Settings *nv.Report `json:"settings,omitempty"`
}

// report counts the violations of tools among those of drivers.
func (c *card) report() report {
	r := report{Report: c.device.Report()}
	if c.firmware == nil {
		return r
	}
	s := c.firmware.Report()
	r.Settings = &s
	for _, text := range s.List() {
		r.Violations = append(r.Violations, mlx5.Violation{Text: "settings: " + text})
		r.Total++
	}
	return r
}
