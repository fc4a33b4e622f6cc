// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/config"
	"github.com/flexsteer/flexsteer/pkg/reconcile"
)

// load reads the configuration and hands it to the loop; the channel closes
// when the loop has taken it.
func (d *daemon) load() <-chan struct{} {
	l := d.settings.loadConfig(d.log, d.loaded)
	d.loaded = d.loaded || l.Policy != nil
	return d.loop.Load(l)
}

// loadConfig logs every error of every file. A search path without any
// directory is an empty configuration at the start; later it is an error, as a
// file system that is not mounted is no permission to remove rules.
func (s *settings) loadConfig(log *slog.Logger, before bool) reconcile.Loaded {
	c, err := config.Load(os.DirFS(s.rootDir()), s.configDirs)
	if err == nil && !c.Found {
		missing := "no configuration directory exists: " + strings.Join(s.configDirs, ", ")
		if before {
			err = errors.New(missing)
		} else {
			log.Warn(missing, keyEvent, eventConfig)
		}
	}
	if err != nil {
		return refused(log, err)
	}
	for _, w := range c.Warnings {
		log.Warn(w.Error(), keyEvent, eventConfig, reconcile.KeyFile, w.At.File)
	}
	log.Info(fmt.Sprintf("configuration loaded, files: %d", len(c.Files)), keyEvent, eventConfig)
	return reconcile.Loaded{Policy: c, Resync: c.Daemon.Resync}
}

func refused(log *slog.Logger, err error) reconcile.Loaded {
	var all config.Errors
	if !errors.As(err, &all) {
		log.Error(err.Error(), keyEvent, eventConfig)
		return reconcile.Loaded{Errors: []string{err.Error()}}
	}
	var texts []string
	for _, e := range all {
		texts = append(texts, e.Error())
		log.Error(e.Error(), keyEvent, eventConfig, reconcile.KeyFile, e.At.String())
	}
	log.Error("configuration not loaded: what was in use stays", keyEvent, eventConfig)
	return reconcile.Loaded{Errors: texts}
}
