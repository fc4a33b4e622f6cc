// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/flexsteer/flexsteer/internal/host"
	"github.com/flexsteer/flexsteer/internal/host/hosttest"
	"github.com/flexsteer/flexsteer/internal/report"
	"github.com/flexsteer/flexsteer/pkg/config"
	"github.com/flexsteer/flexsteer/pkg/reconcile"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// The scripts run the command's own main, with the machine that $KERNEL
// describes in place of the real one.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"flexsteerctl": func() { os.Exit(run(openDescribed, os.Getenv("USER") == "root")) },
		"flexsteerd":   standInDaemon,
		"replace":      standInEditor,
	})
}

func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	saved, err := filepath.Abs("../../internal/prepare/testdata/mstconfig/real-4.21")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("KERNEL", filepath.Join(e.WorkDir, "kernel"))
			e.Setenv("EXAMPLES", examples)
			e.Setenv("MSTCONFIG", saved)
			e.Setenv("LANG", "C")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exec-code": execCode, "cut": cutFile, "waitfor": waitFor,
		},
		UpdateScripts: os.Getenv("UPDATE") != "",
	})
}

// execCode runs a command that must end with an exit code: exec-code N COMMAND...
func execCode(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d (%v)", code, err)
	}
}

// cutFile copies the first bytes of a file: cut FROM BYTES TO.
func cutFile(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	data := ts.ReadFile(args[0])
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(data[:n]), 0o644))
}

// waitFor waits until a file is there.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	for range 500 {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s does not come", args[0])
}

// described is a hosttest.Kernel with wires and packet counters, for scripts.
type described struct{ *hosttest.Kernel }

func (d described) Close() error { return nil }

func (d described) LinkState(l steer.Link) (host.LinkState, error) {
	switch {
	case l.Driver != "mlx5_core":
		return host.LinkState{}, syscall.EOPNOTSUPP
	case !l.Ready:
		return host.LinkState{}, syscall.EBUSY
	}
	return host.LinkState{Carrier: true, Speed: 100000, Duplex: "full"}, nil
}

func (d described) QueueCounters(l steer.Link) ([]uint64, error) {
	if l.Driver != "mlx5_core" {
		return nil, syscall.EOPNOTSUPP
	}
	return []uint64{1000, 20, 300, 0, 5}, nil
}

// openDescribed makes the machine from the lines of $KERNEL:
//
//	mlx5 NAME CHANNELS
//	veth NAME
//	stock NAME              the driver is not patched
//	busy NAME               udev has not finished with it
//	altname NAME OTHER
//	path NAME PATH          udev's ID_PATH
//	vf NAME
//	rule NAME LOC PROTO VALUE MASK QUEUE
//	tos NAME LOC            a rule that no entry makes
//	unprivileged
func openDescribed() (machine, error) {
	k := &hosttest.Kernel{}
	f, err := os.Open(os.Getenv("KERNEL"))
	if errors.Is(err, os.ErrNotExist) {
		return described{k}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if err := describe(k, strings.Fields(lines.Text())); err != nil {
			return nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
	}
	return described{k}, nil
}

func describe(k *hosttest.Kernel, words []string) error {
	if len(words) == 0 {
		return nil
	}
	name := strings.Join(words[1:min(len(words), 2)], "")
	switch words[0] {
	case "mlx5":
		var channels uint32
		fmt.Sscan(words[2], &channels)
		k.AddMLX5(name, channels)
	case "veth":
		k.AddVeth(name)
	case "stock":
		k.Port(name).Patched = false
	case "busy":
		k.Port(name).Link.Ready = false
	case "altname":
		k.Port(name).Link.AltNames = words[2:]
	case "path":
		k.Port(name).Link.Path = words[2]
	case "vf":
		k.Port(name).Link.Kind = steer.VF
	case "rule":
		var loc steer.Loc
		var r steer.Rule
		r.Match.Flow, r.Match.Protocol.Mask = steer.IP4, 0xff
		_, err := fmt.Sscan(strings.Join(words[2:], " "), &loc, &r.Match.Protocol.Value, &r.Match.L4Data.Value, &r.Match.L4Data.Mask, &r.Action.Queue)
		k.Port(name).Rules[loc] = r
		return err
	case "tos":
		var loc steer.Loc
		_, err := fmt.Sscan(words[2], &loc)
		k.Port(name).Rules[loc] = steer.Rule{Match: steer.Match{Flow: steer.UDP4, TOS: steer.Bits8{Value: 0x20, Mask: 0xff}}, Action: steer.Drop}
		return err
	case "unprivileged":
		k.Unprivileged = true
	default:
		return errors.New("no such word")
	}
	return nil
}

// standInDaemon loads the configuration at its start and at every SIGHUP, and
// writes the status file, as flexsteerd does; it steers nothing. Arguments:
// the root, and "deaf" to do nothing at SIGHUP.
func standInDaemon() {
	root, deaf := os.Args[1], len(os.Args) > 2
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	term := make(chan os.Signal, 1)
	signal.Notify(term, os.Interrupt)
	go func() { <-term; os.Exit(0) }()
	s := reconcile.Status{Version: "1.2.3", PID: os.Getpid()}
	for {
		s.Reloads++
		s.ConfigErrors = nil
		if _, err := config.Load(os.DirFS(root), config.SearchPath); err != nil {
			s.ConfigErrors = []string{err.Error()}
		} else {
			s.Generation++
		}
		data, _ := report.Encode(s)
		file := filepath.Join(root, "run/flexsteerd/status.json")
		os.MkdirAll(filepath.Dir(file), 0o755)
		os.WriteFile(file+".new", data, 0o644)
		os.Rename(file+".new", file)
		for <-hup; deaf; <-hup {
		}
	}
}

// standInEditor puts the file of its first argument in the place of the second;
// with further files, each time the next one, as $ROUND counts.
func standInEditor() {
	from, to := os.Args[1:len(os.Args)-1], os.Args[len(os.Args)-1]
	rounds, _ := os.ReadFile("rounds")
	os.WriteFile("rounds", append(rounds, '.'), 0o644)
	text, err := os.ReadFile(from[min(len(rounds), len(from)-1)])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := os.WriteFile(to, text, 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
