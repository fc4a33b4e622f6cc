// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

func right(t *tool) *tool { return t.with(profileName, "4", "4").with(graphName, "True(1)", "True(1)") }

func TestAsk(t *testing.T) {
	named := "-d 0000:05:00.0 -e q FLEX_PARSER_PROFILE_ENABLE PROG_PARSE_GRAPH"
	dpu := []string{"-d 0000:05:00.0 -e q INTERNAL_CPU_MODEL", "-d 0000:05:00.0 -e q INTERNAL_CPU_OFFLOAD_ENGINE"}
	version := "-v"
	alone := []string{named, "-d 0000:05:00.0 -e q FLEX_PARSER_PROFILE_ENABLE", "-d 0000:05:00.0 -e q PROG_PARSE_GRAPH"}
	for name, row := range map[string]struct {
		given     func(*world)
		verdict   Verdict
		reason    Reason
		text, fix string
		calls     []string // nil: not compared
	}{
		"right":  {func(w *world) { right(w.mst) }, Right, "", "are right", "", []string{named}},
		"to set": {func(*world) {}, ToSet, "", "not made (FLEX_PARSER_PROFILE_ENABLE is 0; PROG_PARSE_GRAPH is False(0))", "mstconfig -d 0000:05:00.0 set FLEX_PARSER_PROFILE_ENABLE=4 PROG_PARSE_GRAPH=1", append([]string{named}, dpu...)},
		"pending": {func(w *world) { w.mst.with(profileName, "", "4").with(graphName, "", "True(1)") }, Pending, "",
			"not loaded yet (FLEX_PARSER_PROFILE_ENABLE is 0, next boot 4; PROG_PARSE_GRAPH is False(0), next boot True(1))", "reboot; or run: mstfwreset -d 0000:05:00.0 reset", nil},
		"pending, DPU mode": {func(w *world) {
			w.mst.with(profileName, "", "4").with(graphName, "", "True(1)").with("INTERNAL_CPU_MODEL", "EMBEDDED_CPU(1)", "EMBEDDED_CPU(1)").
				with("INTERNAL_CPU_OFFLOAD_ENGINE", "ENABLED(0)", "ENABLED(0)")
		}, Pending, "", "not loaded yet", "power cycle the machine: the card is in DPU mode", nil},
		"pending, NIC mode": {func(w *world) {
			w.mst.with(profileName, "", "4").with("INTERNAL_CPU_MODEL", "EMBEDDED_CPU(1)", "EMBEDDED_CPU(1)").with(graphName, "", "True(1)")
		}, Pending, "", "not loaded yet", "reboot;", nil},
		"will be lost": {func(w *world) { right(w.mst).with(profileName, "", "0") }, WillBeLost, "", "the next boot undoes them", "flexsteerctl firmware set eth0", nil},
		"read-only":    {func(w *world) { w.mst.minor = 25; w.mst.rows[5].readOnly = true }, ToSet, "", "not made", "read-only", nil},
		"no current":   {func(w *world) { right(w.mst).lacks = "current" }, CurrentUnknown, "", "right for the next boot; this firmware does not tell", "if rules on l4data are refused: reboot", append([]string{named}, dpu...)},
		"no current, DPU mode": {func(w *world) {
			right(w.mst).with("INTERNAL_CPU_MODEL", "EMBEDDED_CPU(1)", "EMBEDDED_CPU(1)").with("INTERNAL_CPU_OFFLOAD_ENGINE", "ENABLED(0)", "ENABLED(0)").lacks = "current"
		}, CurrentUnknown, "", "right for the next boot", "if rules on l4data are refused: power cycle", nil},
		"neither":    {func(w *world) { w.mst.lacks = "both" }, CurrentUnknown, "", "not made for the next boot", "flexsteerctl firmware set eth0", nil},
		"no graph":   {func(w *world) { right(w.mst).without(graphName) }, Unsupported, NoParameter, "it has no PROG_PARSE_GRAPH", "a newer firmware", alone},
		"no profile": {func(w *world) { right(w.mst).without(profileName) }, Unsupported, NoParameter, "it has no FLEX_PARSER_PROFILE_ENABLE", "", alone},
		// The group is there, and both parameters depend on what the parser can do.
		"none of both": {func(w *world) { w.mst.without(graphName, profileName) }, Unsupported, NoParameter, "it has no FLEX_PARSER_PROFILE_ENABLE, so it cannot match l4data", "a newer firmware", append(alone, version, "-d 0000:05:00.0 -e q "+neighbour)},
		"no group": {func(w *world) { w.mst.without(parserGroupNames...) }, Unsupported, NoParameter,
			"so it cannot match l4data; or it has, but read-only, which this mstconfig does not tell apart", "install mstflint 4.25 or later, which tells; a newer firmware may have it", nil},
		"no group, 4.25":              {func(w *world) { w.mst.without(parserGroupNames...).minor = 25 }, Unsupported, NoParameter, "so it cannot match l4data", "a newer firmware", append(alone, version)},
		"no group, nothing is stored": {func(w *world) { w.mst.without(parserGroupNames...).empty = true }, Unsupported, NoParameter, "or it has, but read-only", "4.25", nil},
		"group read-only, right": {func(w *world) { right(w.mst).locked, w.mst.stored = true, []uint32{0x80000004} }, CurrentUnknown, "",
			"right for the next boot; they are read-only, and this mstconfig does not tell those of now", "if rules on l4data are refused", nil},
		"group read-only, profile 3": {func(w *world) { w.mst.locked, w.mst.stored = true, []uint32{0x80000003} }, CurrentUnknown, "",
			"not made for the next boot; they are read-only, and this mstconfig does not tell those of now (FLEX_PARSER_PROFILE_ENABLE next boot 3; PROG_PARSE_GRAPH next boot True(1))", "ask the administrator", nil},
		"group read-only, right by default": {func(w *world) { right(w.mst).locked = true }, Unsupported, NoParameter, "or it has, but read-only", "daemon: {firmware: {check: false}}", nil},
		"group read-only, two writers":      {func(w *world) { right(w.mst).locked, w.mst.stored = true, []uint32{0x80000004, 0} }, Unsupported, NoParameter, "or it has, but read-only", "4.25", nil},
		"group read-only, the disk is full": {func(w *world) {
			right(w.mst).locked, w.mst.stored, w.mst.full = true, []uint32{0x80000004}, true
		}, Unsupported, NoParameter, "or it has, but read-only", "4.25", nil},
		"group read-only, 4.25":      {func(w *world) { right(w.mst).locked, w.mst.minor = true, 25 }, Right, "", "are right", "", []string{named}},
		"old mstconfig":              {func(w *world) { w.mst.behind = "-E- Unknown Parameter: PROG_PARSE_GRAPH" }, Unsupported, OldMstconfig, "mstconfig does not know PROG_PARSE_GRAPH", "a newer mstflint", alone},
		"4.6, right":                 {func(w *world) { right(w.mst).minor = 6 }, Right, "", "", "", []string{named, "-d 0000:05:00.0 -e q"}},
		"4.7, missing":               {func(w *world) { right(w.mst).without(graphName).minor = 7 }, Unsupported, NoParameter, "it has no PROG_PARSE_GRAPH", "", nil},
		"an unknown table, but JSON": {func(w *world) { right(w.mst).garble, w.mst.json = true, true }, Right, "", "", "", nil},
		"an unknown table":           {func(w *world) { right(w.mst).garble = true }, Unknown, NotUnderstood, "is not understood", "mstconfig -d 0000:05:00.0 -e q", nil},
		"no mstconfig":               {func(w *world) { w.mst.missing = true }, Unknown, NoMstconfig, "mstconfig is not installed", "apt install mstflint", nil},
		"semaphore":                  {func(w *world) { w.mst.fault = "-E- Failed to open the device" }, Unknown, CannotOpen, `cannot open the card, which may be in use by another tool or resetting (mstconfig: "Failed to open the device")`, "end other tools", nil},
		"locked down": {func(w *world) {
			w.mst.fault = "-E- Failed to open the device"
			w.write("sys/kernel/security/lockdown", "none [integrity] confidentiality")
		}, Unknown, Lockdown, "locked down (Secure Boot)", "fwctl", []string{named}},
		"locked down, but fwctl": {func(w *world) {
			right(w.mst)
			w.write("sys/kernel/security/lockdown", "none [integrity] confidentiality")
		}, Right, "", "", "", nil},
		"recovery": {func(w *world) { w.mst.fault = "-E- Device in Livefish mode is not supported" }, Unknown, Recovery, "recovery mode", "mstflint -d 0000:05:00.0", []string{named}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			row.given(w)
			w.write("tmp/x", "")
			t.Setenv("TMPDIR", filepath.Join(w.root, "tmp"))
			c := w.asker().Ask(context.Background(), Cards(os.DirFS(w.root))[0])
			if c.Verdict != row.verdict || c.Reason != row.reason {
				t.Errorf("%s %s, want %s %s", c.Verdict, c.Reason, row.verdict, row.reason)
			}
			if !strings.Contains(c.Text(), row.text) || !strings.Contains(c.Fix("eth0"), row.fix) || row.verdict != Right && c.Fix("eth0") == "" {
				t.Errorf("%q, fix %q; want %q, %q", c.Text(), c.Fix("eth0"), row.text, row.fix)
			}
			if row.calls != nil && !slices.Equal(w.mst.calls, row.calls) {
				t.Errorf("calls %q, want %q", w.mst.calls, row.calls)
			}
			if left := list(os.DirFS(w.root), "tmp"); len(left) != 1 {
				t.Errorf("%q is left behind: settings are nobody else's business", left)
			}
		})
	}
}

// TestWhatPassesIsAskedAgain: a card that opens half a minute after the driver
// was loaded is known then, and one that never opens after a minute is not.
func TestWhatPassesIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	right(w.mst).fault = "-E- Failed to open the device"
	a, tries := w.asker(), 0
	a.Sleep = func(_ context.Context, d time.Duration) error {
		w.now = w.now.Add(d)
		if tries++; tries == 6 {
			w.mst.fault = ""
		}
		return nil
	}
	if c := a.Ask(context.Background(), Card{PCI: w.mst.address}); c.Verdict != Right || tries != 6 {
		t.Errorf("%s after %d tries", c.Verdict, tries)
	}
	w.mst.fault, w.mst.calls = "-E- Error when trying to check if NV access registers are supported", nil
	start := w.now
	if c := w.asker().Ask(context.Background(), Card{PCI: w.mst.address}); c.Reason != MailboxStuck || w.now.Sub(start) < time.Minute || len(w.mst.calls) > 15 {
		t.Errorf("%s after %v, %d calls", c.Reason, w.now.Sub(start), len(w.mst.calls))
	}
	w.remove("sys/bus/pci/devices/0000:05:00.0")
	w.mst.fault, w.mst.calls = "-E- Failed to open the device", nil
	if c := w.asker().Ask(context.Background(), Card{PCI: w.mst.address}); c.Reason != Gone || len(w.mst.calls) != 1 {
		t.Errorf("%s after %d calls", c.Reason, len(w.mst.calls))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.mst.fault, w.mst.calls = "-E- Failed to get nv_flex_parser_conf settings Device is busy", nil
	if c := w.asker().Ask(ctx, Card{PCI: w.mst.address}); c.Reason != Busy || len(w.mst.calls) != 1 {
		t.Errorf("%s after %d calls", c.Reason, len(w.mst.calls))
	}
}

// TestFromNothingToRight is the story of a new machine, boot by boot.
func TestFromNothingToRight(t *testing.T) {
	w := newWorld(t).have(Added)
	w.initramfs = InitramfsStock
	w.write("boot/initrd.img-"+kernel, "")
	link := steer.Link{Name: "ens1f1np1", Driver: driver, Path: "pci-0000:05:00.1"}
	stock := steer.Observed{Prerequisites: []steer.Problem{{Severity: steer.Blocked, Needs: steer.NeedL4Data, Text: "patched module not loaded"}}}
	expect := func(when string, f Facts, have steer.Observed, want ...string) {
		t.Helper()
		read, err := Store{w.root}.Facts()
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		got := read.Complete(link, have)
		if len(got.Prerequisites) != len(want) {
			t.Fatalf("%s: %v, want %q", when, got.Prerequisites, want)
		}
		for i, p := range got.Prerequisites {
			if text := p.Text + " fix: " + p.Fix; !strings.Contains(text, want[i]) || p.Needs != steer.NeedL4Data {
				t.Errorf("%s: %q, want %q in it", when, text, want[i])
			}
		}
		if got.FirmwareRight != (f.Firmware.Cards[0].Verdict == Right) {
			t.Errorf("%s: firmware right: %v", when, got.FirmwareRight)
		}
	}

	f := w.prepare()
	expect("the first boot", f, stock, "loaded from the initramfs fix: update-initramfs -u -k "+kernel+", then reboot", "fix: flexsteerctl firmware set ens1f1np1")
	if len(f.Module.Did) != 1 || len(f.Firmware.Cards) != 1 || !slices.Equal(f.Firmware.Cards[0].Functions, []string{"0000:05:00.0", "0000:05:00.1"}) {
		t.Errorf("did %q, cards %+v", f.Module.Did, f.Firmware.Cards)
	}

	w.initramfs = InitramfsPatched
	if _, _, err := w.asker().Set(context.Background(), f.Firmware.Cards[0]); err != nil {
		t.Fatal(err)
	}
	if f = w.prepare(); len(f.Module.Did) != 1 {
		t.Errorf("what was done in this boot is forgotten: %q", f.Module.Did)
	}
	expect("set", f, stock, "stock one is loaded fix: reboot", "not loaded yet")

	w.boot()
	w.load(true)
	if _, err := (Store{w.root}).Facts(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("facts before the first run of this boot: %v", err)
	}
	f = w.prepare()
	expect("a reboot that did not reload the firmware", f, steer.Observed{}, "a reboot was not enough to load them (FLEX_PARSER_PROFILE_ENABLE is 0, next boot 4; PROG_PARSE_GRAPH is False(0), next boot True(1)) fix: power cycle the machine, or run: mstfwreset -d 0000:05:00.0 reset")
	f = w.prepare()
	if !f.Firmware.Cards[0].Stuck {
		t.Error("asked twice in one boot, it is as if it were new")
	}

	w.boot()
	w.mst.boot()
	f = w.prepare()
	expect("a power cycle", f, steer.Observed{})
	w.mst.with(profileName, "0", "4")
	if f = w.prepare(); f.Firmware.Cards[0].Stuck {
		t.Error("it was right in between")
	}
	w.boot()
	w.mst.boot()
	w.mst.with(graphName, "", "False(0)")
	f = w.prepare()
	expect("somebody resets it", f, steer.Observed{}, "the next boot undoes them")
	if p := f.Firmware.Cards[0]; p.Verdict != WillBeLost {
		t.Error(p)
	}
}

func TestACardThatCannotBeAskedKeepsTheMemory(t *testing.T) {
	w := newWorld(t)
	w.mst.with(profileName, "", "4").with(graphName, "", "True(1)")
	w.prepare()
	w.boot()
	w.mst.fault = "-E- Failed to open the device"
	if f := w.prepare(); f.Firmware.Cards[0].Verdict != Unknown {
		t.Fatal(f)
	}
	w.boot()
	w.mst.fault = ""
	if f := w.prepare(); !f.Firmware.Cards[0].Stuck {
		t.Error("two boots are forgotten over one that could not ask")
	}
	m := Store{w.root}.Memory()
	c := Card{PCI: w.mst.address, Verdict: Pending, Settings: m.Waiting[w.mst.address].Settings, Stuck: true}
	m.Renew("boot-now", &c, PowerCycle)
	if c.Stuck || !c.Cold || m.Waiting[c.PCI].Since != "boot-now" {
		t.Errorf("set anew, one boot may be tried: %+v %+v", c, m)
	}
}

func TestOnlyOneCard(t *testing.T) {
	w := newWorld(t)
	w.function("0000:81:00.0", "ens8")
	p := w.preparer()
	f, err := p.Run(context.Background(), Plan{Checked: true, Ask: true, Only: []string{"0000:05:00.1"}})
	if err != nil || len(f.Firmware.Cards) != 1 || f.Firmware.Cards[0].PCI != "0000:05:00.0" || f.Module.Verdict != "" {
		t.Fatalf("%v %+v", err, f)
	}
	f = w.prepare()
	if len(f.Firmware.Cards) != 2 || f.Module.Verdict != ModuleMissing {
		t.Errorf("%+v", f)
	}
	w.remove("sys/bus/pci/devices/0000:81:00.0")
	if f = w.prepare(); len(f.Firmware.Cards) != 1 {
		t.Errorf("a card that is gone is still there: %+v", f.Firmware.Cards)
	}
}

// TestARunThatWaitedDoesNotAskAgain what another one has asked meanwhile; whatever
// the clock says, which at boot is set back.
func TestARunThatWaitedDoesNotAskAgain(t *testing.T) {
	w := newWorld(t)
	f := w.prepare()
	w.now = w.now.Add(-time.Hour)
	w.mst.calls = nil
	if w.prepare(); len(w.mst.calls) == 0 {
		t.Error("the clock was set back, and the card is not asked any more")
	}
	p := w.preparer()
	lock, err := p.Store.Lock(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.mst.calls = nil
	done, waits := make(chan error), make(chan struct{})
	p.Waiting = func() { close(waits) }
	go func() {
		_, err := p.Run(context.Background(), Plan{Checked: true, Ask: true, Only: []string{"0000:05:00.0"}})
		done <- err
	}()
	<-waits
	f.Firmware.Cards[0].AskedAt = w.now.Add(-time.Minute)
	if err := p.Store.WriteFacts(f); err != nil {
		t.Fatal(err)
	}
	lock.Close()
	if err := <-done; err != nil || len(w.mst.calls) > 0 {
		t.Errorf("%v, calls %q", err, w.mst.calls)
	}
}

// TestASignalEndsTheWaitForALock: systemctl stop, or a Ctrl-C.
func TestASignalEndsTheWaitForALock(t *testing.T) {
	w := newWorld(t)
	lock, err := w.preparer().Store.Lock(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	ctx, signal := context.WithCancel(context.Background())
	p := w.preparer()
	p.Waiting = signal
	if _, err := p.Run(ctx, Plan{Checked: true, Ask: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestASignalAmidABuildSpoilsNoFacts: programs that were ended have told nothing.
func TestASignalAmidABuildSpoilsNoFacts(t *testing.T) {
	w := newWorld(t).have(Added)
	ctx, signal := context.WithCancel(context.Background())
	p := w.preparer()
	p.Machine.Run = func(ctx context.Context, name string, args ...string) Output {
		if name == "dkms" && args[0] == "install" {
			signal()
		}
		if ctx.Err() != nil {
			return Output{Err: ctx.Err()}
		}
		return w.run(ctx, name, args...)
	}
	_, err := p.Run(ctx, Plan{Install: true, Checked: true, Ask: true})
	f, _ := p.Store.Facts()
	if p, _ := f.Module.Problem(); !errors.Is(err, context.Canceled) || !strings.HasSuffix(p.Text, "the patched module 0.1.0 is not built for "+kernel) {
		t.Errorf("%v, %q", err, p.Text)
	}
}

// TestWithoutARoomForTheMemory: a /var that is full or read-only keeps no card from
// being asked, and is told only where there is something to remember.
func TestWithoutARoomForTheMemory(t *testing.T) {
	w := newWorld(t)
	w.function("0000:81:00.0", "ens8")
	w.write("var/lib/flexsteer", "in the way") // root writes into any directory
	if f := w.prepare(); len(f.Firmware.Cards) != 2 {
		t.Errorf("%+v", f.Firmware.Cards)
	}
	w.mst.with(profileName, "", "4").with(graphName, "", "True(1)")
	w.remove("run")
	f, err := w.preparer().Run(context.Background(), Plan{Checked: true, Ask: true})
	if err == nil || !strings.Contains(err.Error(), "which cards wait for a boot is not remembered: ") {
		t.Errorf("%v", err)
	}
	if read, err := (Store{w.root}).Facts(); err != nil || len(read.Firmware.Cards) != 2 || f.Firmware.Cards[0].Verdict != Pending {
		t.Errorf("%v %+v", err, read)
	}
}

// TestTheDaemonMayReadWhateverTheUmask of the shell in which prepare ran.
func TestTheDaemonMayReadWhateverTheUmask(t *testing.T) {
	w := newWorld(t)
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	w.prepare()
	for name, want := range map[string]os.FileMode{FactsDir: 0o755, FactsFile: 0o644, FactsDir + "/lock": 0o600} {
		if info, err := os.Stat(filepath.Join(w.root, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
		}
	}
}

func TestFactsSurviveTheFile(t *testing.T) {
	w := newWorld(t).have(Added)
	f := w.prepare()
	data, err := f.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode([]byte(strings.Replace(string(data), `"boot_id"`, `"from_the_future": {"x": [1]}, "boot_id"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := again.Encode(); string(text) != string(data) {
		t.Errorf("%s\n%s", data, text)
	}
	if _, err := Decode([]byte(`{"version": 2}`)); err == nil || !strings.Contains(err.Error(), "format version 2") {
		t.Errorf("%v", err)
	}
	if _, err := Decode([]byte(`{`)); err == nil {
		t.Error("half a file")
	}
	info, err := os.Stat(filepath.Join(w.root, FactsFile))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v %v: the daemon must read it", info.Mode(), err)
	}
	if m := ParseMemory([]byte("{")); len(m.Waiting) > 0 {
		t.Error(m)
	}
	// The configuration may say not to heed them.
	f.Firmware.Checked = false
	link := steer.Link{Name: "eth0", Driver: driver, Path: "pci-0000:05:00.0"}
	if got := f.Complete(link, steer.Observed{}); len(got.Prerequisites) > 0 {
		t.Errorf("%v", got.Prerequisites)
	}
}

func TestWhichLinksTheFactsAreAbout(t *testing.T) {
	f := newWorld(t).prepare()
	for path, known := range map[string]bool{
		"pci-0000:05:00.0": true, "pci-0000:05:00.1": true, "platform-18000000.pcie-pci-0000:05:00.0": true,
		"pci-0000:05:00.2": false, "pci-0000:06:00.0": false, "": false, "0000:05:00.0": false,
	} {
		got := f.Complete(steer.Link{Name: "eth0", Driver: driver, Path: path}, steer.Observed{})
		if (len(got.Prerequisites) == 1) != known {
			t.Errorf("%q: %v", path, got.Prerequisites)
		}
	}
	if got := f.Complete(steer.Link{Name: "eth0", Driver: "ice", Path: "pci-0000:05:00.0"}, steer.Observed{}); len(got.Prerequisites) > 0 {
		t.Errorf("another driver: %v", got.Prerequisites)
	}
}

// TestTheKernelCountsMore: facts are of the past; what is observed is now.
func TestTheKernelCountsMore(t *testing.T) {
	seen := steer.Problem{Severity: steer.Blocked, Needs: steer.NeedL4Data, Text: "patched module not loaded"}
	other := steer.Problem{Severity: steer.Blocked, Text: "this driver takes no rules"}
	link := steer.Link{Name: "eth0", Driver: driver}
	missing := Facts{Module: Module{Verdict: ModuleMissing, Kernel: kernel}}
	loaded := Facts{Module: Module{Verdict: ModuleLoaded, Kernel: kernel}}
	had := []steer.Problem{other, seen}
	got := missing.Complete(link, steer.Observed{Prerequisites: had}).Prerequisites
	if len(got) != 2 || got[0] != other || !strings.Contains(got[1].Text, "not installed") || had[1] != seen {
		t.Errorf("%v, and the caller's %v", got, had)
	}
	if got := missing.Complete(link, steer.Observed{}).Prerequisites; len(got) != 0 {
		t.Errorf("it is loaded by now: %v", got)
	}
	if got := loaded.Complete(link, steer.Observed{Prerequisites: []steer.Problem{seen}}).Prerequisites; len(got) != 1 || got[0] != seen {
		t.Errorf("it is gone by now: %v", got)
	}
	if got := (&Facts{}).Complete(link, steer.Observed{Prerequisites: []steer.Problem{seen}}).Prerequisites; len(got) != 1 || got[0] != seen {
		t.Errorf("nothing is known: %v", got)
	}
}

func TestBackup(t *testing.T) {
	file := func(t *testing.T) string { return filepath.Join(t.TempDir(), "card.conf") }
	for name, row := range map[string]struct {
		given func(*tool)
		empty bool
		fail  string
	}{
		"good":             {func(*tool) {}, false, ""},
		"nothing set yet":  {func(m *tool) { m.empty = true }, true, ""},
		"a full disk":      {func(m *tool) { m.full = true }, false, "is no backup: line 3 is cut short; is the disk full?"},
		"nothing, by word": {func(m *tool) { m.fault = "-E- NV data area may be empty, nothing to backup." }, true, ""},
		"refused":          {func(m *tool) { m.fault = "-E- Failed to open the device" }, false, "Failed to open the device"},
		"no mstconfig":     {func(m *tool) { m.missing = true }, false, "mstconfig is not installed"},
	} {
		t.Run(name, func(t *testing.T) {
			w, to := newWorld(t), file(t)
			row.given(w.mst)
			empty, err := w.asker().Backup(context.Background(), Card{PCI: w.mst.address}, to)
			if empty != row.empty || (err == nil) != (row.fail == "") || err != nil && !strings.Contains(err.Error(), row.fail) {
				t.Errorf("%v, %v; want %v, %q", empty, err, row.empty, row.fail)
			}
			if info, err := os.Stat(to); (err == nil) != (row.fail == "" && !row.empty) || err == nil && info.Mode().Perm() != 0o600 {
				t.Errorf("%v %v", info, err)
			}
		})
	}
	w := newWorld(t)
	a := w.asker()
	a.Run = func(context.Context, string, ...string) Output { return Output{Stdout: "Done!\n"} }
	if _, err := a.Backup(context.Background(), Card{PCI: w.mst.address}, file(t)); err == nil || !strings.Contains(err.Error(), "wrote nothing") {
		t.Errorf("a backup that is not there: %v", err)
	}
}

// TestExec runs real programs.
func TestExec(t *testing.T) {
	out := Exec(context.Background(), "sh", "-c", "echo out; echo $LC_ALL >&2; exit 3")
	if out.Stdout != "out\n" || out.Stderr != "C\n" || out.Code != 3 || out.Good() || out.Err != nil {
		t.Errorf("%+v", out)
	}
	if out := Exec(context.Background(), "no-such-program-here"); !out.Missing() || out.Good() {
		t.Errorf("%+v", out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if out := Exec(ctx, "sleep", "60"); out.Good() {
		t.Errorf("%+v", out)
	}
	if out := Exec(context.Background(), "sh", "-c", `printf '1 %%\r2 %%\n\033[31mred\377\n\tend\n'`); out.Stdout != "1 %\n2 %\n[31mred\ufffd\n\tend\n" {
		t.Errorf("%q", out.Stdout)
	}
	if out := Exec(context.Background(), "head", "-c", "100000000", "/dev/zero"); !out.Good() || len(out.Stdout) > mostOutput {
		t.Errorf("%d bytes of 100 MB kept, %+v", len(out.Stdout), out.Err)
	}
}

// TestExecWaitsForTheProgramOnly: what it has left behind, with its output open,
// may run for ever.
func TestExecWaitsForTheProgramOnly(t *testing.T) {
	defer func(d time.Duration) { patience = d }(patience)
	patience = 100 * time.Millisecond
	start := time.Now()
	out := Exec(context.Background(), "sh", "-c", "sleep 20 & echo done")
	if out.Stdout != "done\n" || !out.Good() || time.Since(start) > 10*time.Second {
		t.Errorf("%+v after %v", out, time.Since(start))
	}
	// One that does not heed the request to end is killed.
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	out = Exec(ctx, "sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.05; done")
	if out.Good() || time.Since(start) > 10*time.Second {
		t.Errorf("%+v after %v", out, time.Since(start))
	}
}
