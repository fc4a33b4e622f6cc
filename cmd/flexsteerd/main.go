// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

// Flexsteerd keeps the receive steering rules of network cards as the files in
// /etc/flexsteer want them. See flexsteerd(8).
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/flexsteer/flexsteer/pkg/config"
)

// version is set by the build: -ldflags "-X main.version=1.2.3".
var version = "unreleased"

// Exit statuses; sysexits(3) and systemd agree that 2 is a usage error.
const (
	exitGood  = 0
	exitBad   = 1 // could not run; with --once: some link is not configured
	exitUsage = 2
)

func main() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGHUP, unix.SIGTERM, unix.SIGINT)
	beSmall()
	os.Exit(run(os.Args[1:], signals, os.Stdout, os.Stderr))
}

func run(args []string, signals <-chan os.Signal, stdout, stderr io.Writer) int {
	s, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitGood
	case err != nil:
		fmt.Fprintf(stderr, "flexsteerd: %v\nTry: flexsteerd --help\n", err)
		return exitUsage
	case s.version:
		fmt.Fprintln(stdout, "flexsteerd "+version)
		return exitGood
	}
	log := newLogger(stderr)
	if s.once {
		return once(s, log, stdout)
	}
	if err := serve(s, log, signals); err != nil {
		log.Error(err.Error())
		return exitBad
	}
	return exitGood
}

// settings is what the command line and the environment say.
type settings struct {
	root       string   // "" or the directory that stands for /
	configDirs []string // absolute, below root; most important first
	runtimeDir string   // with root
	once       bool
	version    bool
}

const usage = `Usage: flexsteerd [OPTION]...
Keep the receive steering rules of network cards as the files in /etc/flexsteer
want them.

  --config-dir DIR   read the files of DIR instead of the search path; may be
                     given more than once, the most important first
  --root DIR         let DIR stand for /, for trials: all paths are below it,
                     links are those of this machine
  --runtime-dir DIR  write status.json and metrics.prom there, instead of
                     $RUNTIME_DIRECTORY or /run/flexsteerd
  --once             bring all links to their goal, print them and exit; status 0
                     if every link is configured, 1 if not
  --version          print the version
  --help             print this help

Signals: SIGHUP loads the configuration again. SIGTERM and SIGINT end the daemon
and leave the rules in place.
`

func parse(args []string, stdout io.Writer) (s settings, err error) {
	f := flag.NewFlagSet("flexsteerd", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Func("config-dir", "", func(dir string) error {
		s.configDirs = append(s.configDirs, dir)
		return nonEmpty(dir)
	})
	f.Func("root", "", func(dir string) error { s.root = dir; return nonEmpty(dir) })
	f.Func("runtime-dir", "", func(dir string) error { s.runtimeDir = dir; return nonEmpty(dir) })
	f.BoolVar(&s.once, "once", false, "")
	f.BoolVar(&s.version, "version", false, "")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			io.WriteString(stdout, usage)
		}
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return s, s.complete()
}

func nonEmpty(dir string) error {
	if dir == "" {
		return errors.New("want a directory")
	}
	return nil
}

// complete fills in what was not given and makes all paths absolute.
func (s *settings) complete() (err error) {
	if len(s.configDirs) == 0 {
		s.configDirs = config.SearchPath
	}
	if s.runtimeDir == "" {
		// systemd separates several directories by colons; ours is the first.
		s.runtimeDir, _, _ = strings.Cut(os.Getenv("RUNTIME_DIRECTORY"), ":")
	}
	if s.runtimeDir == "" {
		s.runtimeDir = "/run/flexsteerd"
	}
	if s.root != "" {
		s.runtimeDir = filepath.Join(s.root, s.runtimeDir)
		return nil
	}
	for i, dir := range s.configDirs {
		if s.configDirs[i], err = filepath.Abs(dir); err != nil {
			return err
		}
	}
	return nil
}

// rootDir is the directory that stands for /.
func (s *settings) rootDir() string {
	if s.root == "" {
		return "/"
	}
	return s.root
}

// lock keeps a second daemon off the same links: the two would undo each
// other's work if their files differ. The lock ends with the process.
func lock(runtimeDir string) (*os.File, error) {
	if err := os.MkdirAll(runtimeDir, 0o755); err != nil {
		return nil, fmt.Errorf("runtime directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(runtimeDir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("runtime directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("another flexsteerd runs with %s", runtimeDir)
		}
		return nil, fmt.Errorf("lock %s: %w", runtimeDir, err)
	}
	return f, nil
}
