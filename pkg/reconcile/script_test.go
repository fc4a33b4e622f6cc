// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/flexsteer/flexsteer/internal/host/hosttest"
	"github.com/flexsteer/flexsteer/pkg/config"
	"github.com/flexsteer/flexsteer/pkg/reconcile"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// TestScripts runs testdata/script/*.txt: a story each, over the loop and the
// kernel of maps, with configurations as people write them.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Values[worldKey{}] = newWorld()
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"link": script(cmdLink), "nic": script(cmdNIC), "foreign": script(cmdForeign), "lose": script(cmdLose),
			"delete": script(cmdDelete), "devlink-reload": script(cmdReload), "reset": script(cmdReset), "rename": script(cmdRename),
			"config": script(cmdConfig), "restart": script(cmdRestart),
			"fail": script(cmdFail), "heal": script(cmdHeal),
			"event": script(cmdEvent), "later": script(cmdLater), "pass": script(cmdPass),
			"rules": script(cmdRules), "status": script(cmdStatus), "log": script(cmdLog),
		},
	})
}

type worldKey struct{}

// script makes a command of f: what f returns is its stdout, an error ends the script.
func script(f func(*testscript.TestScript, *world, []string) (string, error)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("! is not for this command")
		}
		out, err := f(ts, ts.Value(worldKey{}).(*world), args)
		ts.Check(err)
		fmt.Fprint(ts.Stdout(), out)
	}
}

// link NAME mlx5 CHANNELS | link NAME veth
func cmdLink(_ *testscript.TestScript, w *world, args []string) (string, error) {
	if args[1] == "veth" {
		w.AddVeth(args[0])
		return "", nil
	}
	channels, err := strconv.Atoi(args[2])
	w.AddMLX5(args[0], uint32(channels))
	return "", err
}

// nic NAME SETTING...: what kind of NIC it is, and what others do to it.
func cmdNIC(_ *testscript.TestScript, w *world, args []string) (string, error) {
	p := w.Port(args[0])
	for _, setting := range args[1:] {
		key, value, _ := strings.Cut(setting, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "stock":
			p.Patched = false
		case "patched":
			p.Patched = true
		case "parser":
			p.NoParser = value == "no"
		case "protocols":
			p.RawProtocols = n
		case "samples":
			p.Samples = n
		case "capacity":
			p.Capacity = n
		case "channels":
			p.Channels.Combined = uint32(n)
		case "loose":
			p.LooseRings = true
		case "gone":
			p.Gone = value == "yes"
		case "ready":
			p.Link.Ready = value == "yes"
		case "firmware-refuses-queue":
			p.Firmware = func(r steer.Rule) bool { return value != "none" && r.Action.Queue == uint32(n) }
		case "keeps-queue":
			p.Keeps = func(r steer.Rule) steer.Rule {
				if value != "as-given" {
					r.Action.Queue = uint32(n)
				}
				return r
			}
		case "unprivileged":
			w.Unprivileged = value == "yes"
		default:
			return "", fmt.Errorf("no setting %q", setting)
		}
	}
	return "", nil
}

// foreign NAME LOCATION PROTOCOL VALUE QUEUE: somebody inserts a rule.
func cmdForeign(_ *testscript.TestScript, w *world, args []string) (string, error) {
	var n [4]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(args[i+1]); err != nil {
			return "", err
		}
	}
	w.Port(args[0]).Rules[steer.Loc(n[0])] = raw(uint8(n[1]), uint32(n[2]), uint32(n[3]))
	return "", nil
}

// lose NAME LOCATION: somebody removes a rule.
func cmdLose(_ *testscript.TestScript, w *world, args []string) (string, error) {
	loc, err := strconv.Atoi(args[1])
	delete(w.Port(args[0]).Rules, steer.Loc(loc))
	return "", err
}

func cmdDelete(_ *testscript.TestScript, w *world, args []string) (string, error) {
	w.Delete(args[0])
	return "", nil
}

func cmdReload(_ *testscript.TestScript, w *world, args []string) (string, error) {
	w.Reload(args[0])
	return "", nil
}

func cmdReset(_ *testscript.TestScript, w *world, args []string) (string, error) {
	w.Reset(args[0])
	return "", nil
}

func cmdRename(_ *testscript.TestScript, w *world, args []string) (string, error) {
	w.Port(args[0]).Link.Name = args[1]
	return "", nil
}

// config FILE...: the daemon starts or is told to reload, and reads these.
func cmdConfig(ts *testscript.TestScript, w *world, args []string) (string, error) {
	c, err := config.LoadFiles(os.DirFS(ts.MkAbs(".")), args)
	if err == nil {
		w.loop.Load(reconcile.Loaded{Policy: c, Resync: c.Daemon.Resync})
		return "", nil
	}
	var all config.Errors
	if !errors.As(err, &all) {
		return "", err
	}
	var texts []string
	for _, e := range all {
		texts = append(texts, e.Summary())
	}
	w.loop.Load(reconcile.Loaded{Errors: texts})
	return "", nil
}

func cmdRestart(_ *testscript.TestScript, w *world, _ []string) (string, error) {
	w.restart()
	return "", nil
}

// fail KIND LOCATION|- ERRNO [after] [always]
func cmdFail(_ *testscript.TestScript, w *world, args []string) (string, error) {
	f := hosttest.Fault{Kind: args[0]}
	if n, err := strconv.Atoi(args[1]); err == nil {
		loc := steer.Loc(n)
		f.Loc = &loc
	}
	var ok bool
	if f.Errno, ok = scriptErrnos[args[2]]; !ok {
		return "", fmt.Errorf("no errno %s", args[2])
	}
	for _, word := range args[3:] {
		f.After = f.After || word == "after"
		f.Holds = f.Holds || word == "always"
	}
	w.Fail(f)
	return "", nil
}

var scriptErrnos = map[string]syscall.Errno{
	"EINVAL": syscall.EINVAL, "EOPNOTSUPP": syscall.EOPNOTSUPP, "ENOTSUPP": 524, "EBUSY": syscall.EBUSY, "ENOSPC": syscall.ENOSPC,
	"ENODEV": syscall.ENODEV, "EPERM": syscall.EPERM, "EINTR": syscall.EINTR, "EIO": syscall.EIO, "ENOENT": syscall.ENOENT, "ENOMEM": syscall.ENOMEM,
}

func cmdHeal(_ *testscript.TestScript, w *world, _ []string) (string, error) {
	w.Heal()
	return "", nil
}

// event: something happened to some link, and a second goes by.
func cmdEvent(_ *testscript.TestScript, w *world, _ []string) (string, error) {
	w.event()
	return "", nil
}

func cmdLater(_ *testscript.TestScript, w *world, args []string) (string, error) {
	d, err := time.ParseDuration(args[0])
	w.now = w.now.Add(d)
	return "", err
}

// pass does all that is due, and prints the calls of each pass.
func cmdPass(ts *testscript.TestScript, w *world, _ []string) (string, error) {
	var out strings.Builder
	for range 20 {
		next := w.loop.Pass(context.Background())
		if calls := w.Calls(); len(calls) > 0 {
			fmt.Fprintln(&out, summary(calls))
		}
		if next.After(w.now) {
			return out.String(), nil
		}
	}
	return "", fmt.Errorf("the loop spins:\n%s", out.String())
}

func cmdRules(_ *testscript.TestScript, w *world, args []string) (string, error) {
	return w.Port(args[0]).String(), nil
}

// status prints each link, its state, counts and problems.
func cmdStatus(_ *testscript.TestScript, w *world, _ []string) (string, error) {
	var b strings.Builder
	s := w.loop.Status()
	for _, text := range s.ConfigErrors {
		fmt.Fprintln(&b, "config:", text)
	}
	for _, p := range s.Problems {
		fmt.Fprintln(&b, "daemon:", p.Text)
	}
	for _, l := range s.Links {
		fmt.Fprintf(&b, "%s %s %d/%d foreign %d\n", l.Link.Name, l.State, l.InPlace, l.Wanted, l.Foreign)
		for _, p := range l.Problems {
			fmt.Fprintf(&b, "  %s: %s\n", p.Severity, p.Text)
			if p.Fix != "" {
				fmt.Fprintf(&b, "  fix: %s\n", p.Fix)
			}
		}
	}
	return b.String(), nil
}

// log prints the messages logged since it was last called.
func cmdLog(_ *testscript.TestScript, w *world, _ []string) (string, error) {
	var b strings.Builder
	for line := range strings.Lines(w.log.String()) {
		_, message, _ := strings.Cut(line, "msg=")
		if rest, ok := strings.CutPrefix(message, `"`); ok {
			message, _, _ = strings.Cut(rest, `" event=`)
		} else {
			message, _, _ = strings.Cut(message, " event=")
		}
		fmt.Fprintln(&b, strings.ReplaceAll(message, `\"`, `"`))
	}
	w.log.Reset()
	return b.String(), nil
}
