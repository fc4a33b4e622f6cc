// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"errors"
	"io/fs"
	"log/slog"

	"github.com/flexsteer/flexsteer/internal/host"
	"github.com/flexsteer/flexsteer/internal/prepare"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// machine is the host, and what `flexsteerctl prepare` has found out about it.
type machine struct {
	*host.Host
	store prepare.Store
	log   *slog.Logger

	facts prepare.Facts // as last read; none: all are unknown, and the driver's errors speak
	told  string        // the last failure to read them, so that it is told once
}

// Links reads the facts again, once for each pass.
func (m *machine) Links() ([]steer.Link, error) {
	m.read()
	return m.Host.Links()
}

func (m *machine) read() {
	var err error
	m.facts, err = m.store.Facts()
	text := ""
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		text = err.Error()
	}
	if text != "" && text != m.told {
		m.log.Warn(text + "; going on without them")
	}
	m.told = text
}

// Observe adds the facts to what the host sees.
func (m *machine) Observe(l steer.Link) (steer.Observed, error) {
	o, err := m.Host.Observe(l)
	if err != nil {
		return o, err
	}
	return m.facts.Complete(l, o), nil
}
