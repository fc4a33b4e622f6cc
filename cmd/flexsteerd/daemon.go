// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/internal/host"
	"github.com/flexsteer/flexsteer/internal/prepare"
	"github.com/flexsteer/flexsteer/internal/report"
	"github.com/flexsteer/flexsteer/pkg/reconcile"
)

// serve runs until a signal ends it. The rules stay as they are then.
func serve(s settings, log *slog.Logger, signals <-chan os.Signal) error {
	machine, release, err := s.open(log)
	if err != nil {
		return err
	}
	defer release()

	d := &daemon{settings: s, log: log, notify: newNotifier(log)}
	started, start := context.WithTimeout(context.Background(), startPatience)
	defer start()
	d.loop = reconcile.New(machine, reconcile.Options{
		Version: version, Log: log, Report: d.report, Alive: d.notify.alive, Beat: d.notify.beat(),
		Rest: func() { start(); releaseMemory() },
	})
	defer func() {
		if err := report.Remove(s.runtimeDir); err != nil {
			log.Warn(err.Error())
		}
	}()

	ctx, stop := context.WithCancel(context.Background())
	looped, watched, factsWatched := make(chan struct{}), make(chan error, 1), make(chan struct{})
	d.load()
	go func() { d.loop.Run(ctx); close(looped) }()
	go func() { watched <- host.Watch(ctx, d.loop.Wake) }()
	go func() { d.watchFacts(ctx, machine.store); close(factsWatched) }()
	defer func() { stop(); <-looped; <-factsWatched }()

	return d.wait(started.Done(), signals, watched)
}

// startPatience is how long the start may take for the links that are there. Who
// comes after it finds their rules in place; but a card that resets keeps every
// ioctl waiting, and must not keep the boot.
const startPatience = 10 * time.Second

// watchFacts wakes the loop when the prerequisites are found out anew. Without
// that they are read at the next event or resync.
func (d *daemon) watchFacts(ctx context.Context, store prepare.Store) {
	if err := store.Watch(ctx, d.loop.Wake); err != nil {
		d.log.Warn("changes of prerequisites are seen at the next resync only: " + err.Error())
	}
}

// open makes this the one daemon of the runtime directory and opens the machine.
func (s *settings) open(log *slog.Logger) (m *machine, release func(), err error) {
	held, err := lock(s.runtimeDir)
	if err != nil {
		return nil, nil, err
	}
	h, err := host.Open(os.DirFS(s.rootDir()))
	if err != nil {
		held.Close()
		return nil, nil, err
	}
	m = &machine{Host: h, store: prepare.Store{Root: s.rootDir()}, log: log}
	return m, func() { h.Close(); held.Close() }, nil
}

type daemon struct {
	settings settings
	log      *slog.Logger
	notify   *notifier
	loop     *reconcile.Loop
	loaded   bool  // a configuration was taken into use once
	writing  error // the last failure to write the status, so that it is told once
}

// wait tells when the daemon has started, and serves signals until one ends it.
func (d *daemon) wait(started <-chan struct{}, signals <-chan os.Signal, watched <-chan error) error {
	for {
		select {
		case <-started:
			d.notify.ready()
			started = nil
		case sig := <-signals:
			if sig != unix.SIGHUP {
				d.notify.send("STOPPING=1\nSTATUS=stopping; the rules stay in place")
				return nil
			}
			d.reload()
		case err := <-watched:
			// Without its events the loop would see changes late. Start again
			// (Restart=on-failure) rather than go on half blind.
			d.notify.send("STOPPING=1")
			return fmt.Errorf("watching for links has ended: %w", err)
		}
	}
}

// reload is the protocol of sd_notify(3) for Type=notify-reload, which does no
// harm to Type=notify: both lines of RELOADING in one datagram, then READY.
func (d *daemon) reload() {
	d.notify.send(fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", monotonic()))
	<-d.load()
	d.notify.ready()
}

// report is called by the loop whenever the status has changed.
func (d *daemon) report(s reconcile.Status) {
	d.notify.status(report.Line(s))
	err := report.Write(d.settings.runtimeDir, s)
	if err != nil && (d.writing == nil || d.writing.Error() != err.Error()) {
		d.log.Warn("the status cannot be written: " + err.Error())
	}
	d.writing = err
}

// once brings all links to their goal, as far as that goes without waiting for
// events, and prints where they are.
func once(s settings, log *slog.Logger, stdout io.Writer) int {
	status, err := converge(s, log)
	if err != nil {
		log.Error(err.Error())
		return exitBad
	}
	report.List(stdout, status, report.Options{})
	for _, l := range status.Links {
		if l.State != reconcile.Configured && l.State != reconcile.Unmanaged {
			return exitBad
		}
	}
	return exitGood
}

func converge(s settings, log *slog.Logger) (reconcile.Status, error) {
	machine, release, err := s.open(log)
	if err != nil {
		return reconcile.Status{}, err
	}
	defer release()
	loaded := s.loadConfig(log, false)
	if loaded.Policy == nil {
		return reconcile.Status{}, errors.New("the configuration was not loaded, nothing is changed")
	}
	loop := reconcile.New(machine, reconcile.Options{Version: version, Log: log})
	loop.Load(loaded)
	loop.Settle(context.Background())
	return loop.Status(), nil
}
