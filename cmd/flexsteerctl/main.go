// SPDX-License-Identifier: Apache-2.0

// Flexsteerctl is the people's tool of flexsteer: it shows links and their
// steering rules, checks and plans configurations, and simulates which queue
// packets would get.
//
// It opens no socket to the daemon. `list`, `status` and `reload` read
// /run/flexsteerd/status.json; everything else looks for itself.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/flexsteer/flexsteer/internal/host"
	"github.com/flexsteer/flexsteer/internal/prepare"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// version is set by the linker.
var version = "devel"

// The exit codes, as flexsteerctl(1) documents them.
const (
	exitGood   = 0
	exitFound  = 1 // errors were found, or what was asked for failed
	exitCannot = 2 // wrong usage, or something that is needed is missing
)

func main() { os.Exit(run(openHost, os.Geteuid() == 0)) }

func openHost() (machine, error) { return host.Open(nil) }

// run executes the command line over the machine that open gives, with the
// rights of root or without.
func run(open func() (machine, error), root bool) int {
	a := &app{in: os.Stdin, out: os.Stdout, errOut: os.Stderr, open: open, exec: prepare.Exec, isRoot: root}
	err := newRoot(a).Execute()
	a.close()
	return a.finish(err)
}

// finish prints err, if there is one, and gives the exit code.
func (a *app) finish(err error) int {
	if err == nil {
		return exitGood
	}
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{exitCannot, err} // cobra's own errors are about usage
	}
	if f.err != nil {
		fmt.Fprintf(a.errOut, "flexsteerctl: %v\n", f.err)
	}
	return f.code
}

// failure is an error with its exit code. A nil err means that everything has
// been said.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// cannot makes err one of exitCannot.
func cannot(err error) error { return &failure{exitCannot, err} }

// machine is the kernel that the commands look at; *host.Host is one.
type machine interface {
	Links() ([]steer.Link, error)
	Observe(steer.Link) (steer.Observed, error)
	Apply(steer.Link, steer.Step) error
	LinkState(steer.Link) (host.LinkState, error)
	QueueCounters(steer.Link) ([]uint64, error)
	io.Closer
}
