// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// have is a world in which DKMS has brought version 0.1.0 this far.
func (w *world) have(state State) *world {
	w.sources = []string{"0.1.0"}
	if state == Built || state == Installed {
		w.built = w.sources
	}
	if state == Installed {
		w.installed = w.sources
	}
	return w
}

func TestModule(t *testing.T) {
	for name, row := range map[string]struct {
		given     func(*world)
		verdict   ModuleVerdict
		severity  steer.Severity // 0: no problem
		text, fix string         // parts
	}{
		"loaded":                           {func(w *world) { w.have(Installed).load(true) }, ModuleLoaded, 0, "", ""},
		"loaded, DKMS knows nothing of it": {func(w *world) { w.load(true); w.installed = []string{"0.1.0"} }, ModuleLoaded, 0, "", ""},
		"loaded, and removed since": {func(w *world) { w.load(true) }, ModuleLoaded, steer.Notice,
			"the next boot loads the stock one (/lib/modules/6.1.0-41-amd64/kernel/", "dkms install"},
		"loaded, and another is installed": {func(w *world) {
			w.have(Installed).load(true)
			w.write("sys/module/mlx5_core/srcversion", "OLDER")
		}, ModuleLoaded, steer.Notice, "another build of the patched module is installed (0.1.0)", "next boot loads it"},
		"installed, stock from the disk": {func(w *world) { w.have(Installed) }, ModuleInstalled, steer.Blocked, "but the stock one is loaded", "reboot; or"},
		"installed, stock from the initramfs": {func(w *world) {
			w.have(Installed).initramfs = InitramfsStock
			w.write("boot/initrd.img-"+kernel, "")
		}, ModuleInstalled, steer.Blocked, "loaded from the initramfs", "update-initramfs -u -k " + kernel + ", then reboot"},
		"installed, stock from the initramfs, which is dracut's": {func(w *world) {
			w.have(Installed).initramfs, w.dracut = InitramfsStock, true
			w.write("boot/initrd.img-"+kernel, "")
			w.remove("usr/sbin/update-initramfs")
			w.write("usr/bin/dracut", "")
		}, ModuleInstalled, steer.Blocked, "loaded from the initramfs", "dracut -f --kver " + kernel + ", then reboot"},
		"installed, and used by more modules": {func(w *world) {
			w.have(Installed)
			w.write("sys/module/mlx5_core/holders/mlx5_dpll/x", "")
			w.write("sys/module/mlx5_dpll/refcnt", "0")
		}, ModuleInstalled, steer.Blocked, "but the stock one is loaded", "modprobe -r mlx5_dpll mlx5_ib mlx5_core && modprobe mlx5_core"},
		"installed, and the initramfs is new": {func(w *world) {
			w.have(Installed).initramfs = InitramfsPatched
			w.write("boot/initrd.img-"+kernel, "")
		}, ModuleInstalled, steer.Blocked, "but the stock one is loaded", "reboot"},
		"installed, none loaded": {func(w *world) { w.have(Installed); w.remove("sys/module/mlx5_core") }, ModuleInstalled, steer.Blocked,
			"no mlx5_core is loaded at all", "modprobe mlx5_core"},
		"installed, unsigned under Secure Boot": {func(w *world) {
			w.have(Installed)
			w.write("sys/kernel/security/lockdown", "none [integrity] confidentiality")
		}, ModuleInstalled, steer.Blocked, "it is not signed", "mokutil --import"},
		"installed, the key is not enrolled": {func(w *world) {
			w.have(Installed).signed = true
			w.write("sys/module/module/parameters/sig_enforce", "Y")
			w.write("var/lib/dkms/mok.pub", "")
		}, ModuleInstalled, steer.Blocked, "key of its signature is not enrolled", "mokutil --import"},
		"installed, the key is enrolled": {func(w *world) {
			w.have(Installed).signed, w.enrolled = true, true
			w.write("sys/module/module/parameters/sig_enforce", "Y")
			w.write("var/lib/dkms/mok.pub", "")
		}, ModuleInstalled, steer.Blocked, "but the stock one is loaded", "reboot"},
		"built":       {func(w *world) { w.have(Built) }, ModuleBuilt, steer.Blocked, "built for " + kernel + ", but not installed", "dkms install flexsteer-mlx5/0.1.0 -k " + kernel},
		"added":       {func(w *world) { w.have(Added) }, ModuleMissing, steer.Blocked, "0.1.0 is not built for " + kernel, "dkms install flexsteer-mlx5/0.1.0 -k " + kernel},
		"not present": {func(*world) {}, ModuleMissing, steer.Blocked, "the patched module is not installed", "apt install ./flexsteer-mlx5-dkms_*_all.deb (Debian, Ubuntu) or dnf install ./flexsteer-mlx5-dkms-*.noarch.rpm"},
		"no DKMS":     {func(w *world) { w.noDKMS = true }, ModuleMissing, steer.Blocked, "neither is DKMS", "apt install ./flexsteer-mlx5-dkms_*_all.deb"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			row.given(w)
			m := w.machine().Look(context.Background())
			p, wrong := m.Problem()
			if m.Verdict != row.verdict || p.Severity != row.severity || wrong != (row.severity != 0) {
				t.Errorf("%s %v, want %s %v\n%+v", m.Verdict, p, row.verdict, row.severity, m)
			}
			if !strings.Contains(p.Text, row.text) || !strings.Contains(p.Fix, row.fix) {
				t.Errorf("%q, fix %q; want %q, %q", p.Text, p.Fix, row.text, row.fix)
			}
		})
	}
}

// DKMS may say installed while modprobe would take another file.
func TestInstalledByWordsOnly(t *testing.T) {
	m := Module{Kernel: kernel, Disk: Build{Present: true, File: "/lib/modules/x/extra/mlx5_core.ko"},
		DKMS: ParseStatus("flexsteer-mlx5/0.1.0, " + kernel + ", x86_64: installed (Differences between built and installed modules)\n")}
	m.Verdict = m.judge()
	p, _ := m.Problem()
	if m.Verdict != ModuleBuilt || !strings.Contains(p.Text, "modprobe takes another file (/lib/modules/x/extra/mlx5_core.ko), and DKMS says: Differences") || !strings.Contains(p.Fix, "dkms install --force") {
		t.Errorf("%s %v", m.Verdict, p)
	}
	m = Module{Kernel: kernel, DKMS: ParseStatus("flexsteer-mlx5/0.1.0: broken\n")}
	m.Verdict = m.judge()
	if p, _ := m.Problem(); !strings.Contains(p.Text, "0.1.0 is gone") || !strings.Contains(p.Fix, "dkms remove flexsteer-mlx5/0.1.0 --all, then apt install --reinstall ./") {
		t.Errorf("%s %v", m.Verdict, p)
	}
}

func TestInstall(t *testing.T) {
	refusal := "flexsteer-mlx5: kernel " + kernel + ": the kernel's source is not on this machine (version 6.1.192-1)\n  Fix: apt install linux-source-6.1\n"
	for name, row := range map[string]struct {
		given     func(*world)
		calls     []string
		verdict   ModuleVerdict
		did       string
		text, fix string
	}{
		"missing": {func(w *world) { w.have(Added) }, []string{"dkms install -m flexsteer-mlx5 -v 0.1.0 -k " + kernel}, ModuleInstalled,
			"built and installed flexsteer-mlx5 0.1.0 for " + kernel, "stock one is loaded", "reboot"},
		"built": {func(w *world) { w.have(Built) }, []string{"dkms install -m flexsteer-mlx5 -v 0.1.0 -k " + kernel}, ModuleInstalled,
			"built and installed", "stock one is loaded", "reboot"},
		"not even added": {func(w *world) {
			w.write("usr/src/flexsteer-mlx5-0.9.0/dkms.conf", "")
			w.write("usr/src/flexsteer-mlx5-0.10.0/dkms.conf", "")
			w.write("usr/src/flexsteer-mlx5-0.11.0/other", "")
		}, []string{"dkms add -m flexsteer-mlx5 -v 0.10.0", "dkms install -m flexsteer-mlx5 -v 0.10.0 -k " + kernel}, ModuleInstalled,
			"told DKMS of flexsteer-mlx5 0.10.0", "", ""},
		"Secure Boot, and the key is not enrolled": {func(w *world) {
			w.have(Added)
			w.write("etc/dkms/framework.conf", `mok_certificate="/etc/keys/our.der"`)
			w.write("etc/keys/our.der", "")
			w.write("sys/kernel/security/lockdown", "none [integrity] confidentiality")
		}, []string{"mokutil --test-key /etc/keys/our.der", "dkms build -m flexsteer-mlx5 -v 0.1.0 -k " + kernel, "mokutil --test-key /etc/keys/our.der"}, ModuleBuilt, "",
			"built for " + kernel + ", but not installed: Secure Boot is on, and the key", "mokutil --import /etc/keys/our.der"},
		"Secure Boot, and that is how it was": {func(w *world) {
			w.have(Built)
			w.write(secureBoot, "\x06\x00\x00\x00\x01")
			os.Truncate(filepath.Join(w.root, secureBoot), 5)
		}, nil, ModuleBuilt, "", "whether the key that DKMS signs with is enrolled is not known", "install mokutil"},
		"Secure Boot, and the key is enrolled": {func(w *world) {
			w.have(Added).signed, w.enrolled = true, true
			w.write("var/lib/dkms/mok.pub", "")
			w.write("sys/module/module/parameters/sig_enforce", "Y")
		}, []string{"mokutil --test-key /var/lib/dkms/mok.pub", "dkms install -m flexsteer-mlx5 -v 0.1.0 -k " + kernel, "mokutil --test-key /var/lib/dkms/mok.pub"},
			ModuleInstalled, "built and installed", "stock one is loaded", "reboot"},
		"the newest has lost its source": {func(w *world) {
			w.sources = []string{"0.1.0", "0.2.0"}
			w.write("usr/src/flexsteer-mlx5-0.1.0/dkms.conf", "")
			w.link("var/lib/dkms/flexsteer-mlx5/0.1.0/source", "/usr/src/flexsteer-mlx5-0.1.0")
			w.link("var/lib/dkms/flexsteer-mlx5/0.2.0/source", "/usr/src/flexsteer-mlx5-0.2.0")
		}, []string{"dkms install -m flexsteer-mlx5 -v 0.1.0 -k " + kernel}, ModuleInstalled, "installed flexsteer-mlx5 0.1.0", "", ""},
		"nothing to build from": {func(*world) {}, nil, ModuleMissing, "", "is not installed", "apt install"},
		"there already":         {func(w *world) { w.have(Installed) }, nil, ModuleInstalled, "", "", ""},
		"no card":               {func(w *world) { w.have(Added); w.remove("sys/bus/pci") }, nil, ModuleMissing, "", "", ""},
		"refused": {func(w *world) { w.have(Added).refuses = refusal }, []string{"dkms install -m flexsteer-mlx5 -v 0.1.0 -k " + kernel}, ModuleMissing,
			"", "not built for " + kernel + ": the kernel's source is not on this machine", "apt install linux-source-6.1"},
		"failed without a word of ours": {func(w *world) { w.have(Added).refuses = "cc: not found\n" }, []string{"dkms install -m flexsteer-mlx5 -v 0.1.0 -k " + kernel},
			ModuleMissing, "", "dkms install: Bad return status for module build", "read /var/lib/dkms/flexsteer-mlx5/0.1.0/build/make.log"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			row.given(w)
			m := w.machine()
			got := m.Install(context.Background(), m.Look(context.Background()))
			if !slices.Equal(w.calls, row.calls) {
				t.Errorf("calls %q, want %q", w.calls, row.calls)
			}
			if got.Verdict != row.verdict || !strings.Contains(strings.Join(got.Did, "\n"), row.did) || (row.did == "") != (len(got.Did) == 0) {
				t.Errorf("%s, did %q; want %s, %q", got.Verdict, got.Did, row.verdict, row.did)
			}
			if p, _ := got.Problem(); !strings.Contains(p.Text, row.text) || !strings.Contains(p.Fix, row.fix) {
				t.Errorf("%q, fix %q; want %q, %q", p.Text, p.Fix, row.text, row.fix)
			}
		})
	}
}

// exchange is what a reload does when nothing is in its way.
var exchange = []string{"rmmod mlx5_ib", "rmmod mlx5_core", "modprobe mlx5_core", "modprobe mlx5_ib"}

func TestReload(t *testing.T) {
	for name, row := range map[string]struct {
		given    func(*world)
		calls    []string
		verdict  ModuleVerdict
		obstacle string
	}{
		"safe":             {func(*world) {}, exchange, ModuleLoaded, ""},
		"a link is up":     {func(w *world) { w.write("sys/class/net/ens1f1np1/flags", "0x1003") }, nil, ModuleInstalled, "ens1f1np1 is up"},
		"flags unreadable": {func(w *world) { w.remove("sys/class/net/ens1f1np1/flags") }, nil, ModuleInstalled, "ens1f1np1 is up"},
		"another link is up": {func(w *world) {
			w.write("sys/class/net/eno1/flags", "0x1003")
			w.link("sys/class/net/eno1/device/driver", "../drivers/igb")
		}, exchange, ModuleLoaded, ""},
		"RDMA is in use":     {func(w *world) { w.write("sys/module/mlx5_ib/refcnt", "1") }, nil, ModuleInstalled, "mlx5_ib is in use"},
		"something holds it": {func(w *world) { w.write("sys/module/mlx5_core/refcnt", "2") }, nil, ModuleInstalled, "mlx5_core is in use"},
		"virtual functions":  {func(w *world) { w.write("sys/bus/pci/devices/0000:05:00.0/sriov_numvfs", "4") }, nil, ModuleInstalled, "virtual functions"},
		"still loading":      {func(w *world) { w.write("sys/module/mlx5_core/initstate", "coming") }, nil, ModuleInstalled, "still coming"},
		"built in":           {func(w *world) { w.remove("sys/module/mlx5_core/refcnt") }, nil, ModuleInstalled, "built into the kernel"},
		"not signed":         {func(w *world) { w.write("sys/module/module/parameters/sig_enforce", "Y") }, nil, ModuleInstalled, "not signed"},
		"the key is not known": {func(w *world) {
			w.signed = true
			w.write("sys/module/module/parameters/sig_enforce", "Y")
		}, nil, ModuleInstalled, "whether it knows the key is not known"},
		"signed and enrolled": {func(w *world) {
			w.signed, w.enrolled = true, true
			w.write("sys/module/module/parameters/sig_enforce", "Y")
			w.write("var/lib/dkms/mok.pub", "")
		}, append([]string{"mokutil --test-key /var/lib/dkms/mok.pub"}, exchange...), ModuleLoaded, ""},
		"nothing installed": {func(w *world) { w.installed = nil }, nil, ModuleBuilt, ""},
		"loaded already":    {func(w *world) { w.load(true) }, nil, ModuleLoaded, ""},
		"the user does not go": {func(w *world) { w.unloadable = "mlx5_ib" }, []string{"rmmod mlx5_ib", "modprobe mlx5_core", "modprobe mlx5_ib"}, ModuleInstalled,
			"rmmod mlx5_ib: rmmod: ERROR: Module mlx5_ib is in use"},
		"the kernel refuses it": {func(w *world) {
			w.rejected = true
			w.write("lib/modules/"+kernel+"/kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko.xz", "")
		}, []string{"rmmod mlx5_ib", "rmmod mlx5_core", "modprobe mlx5_core",
			"insmod /lib/modules/" + kernel + "/kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko.xz", "modprobe mlx5_ib"}, ModuleInstalled, "Key was rejected by service"},
		"a chain of users": {func(w *world) {
			w.write("sys/module/mlx5_ib/refcnt", "1")
			w.write("sys/module/mlx5_ib/holders/other/x", "")
			w.write("sys/module/other/refcnt", "0")
		}, []string{"rmmod other", "rmmod mlx5_ib", "rmmod mlx5_core", "modprobe mlx5_core", "modprobe mlx5_ib", "modprobe other"}, ModuleLoaded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).have(Installed)
			row.given(w)
			m, err := w.preparer().Reload(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			calls := slices.DeleteFunc(slices.Compact(w.calls), func(c string) bool { return strings.HasPrefix(c, "mokutil") && row.obstacle != "" })
			if name == "signed and enrolled" {
				calls = calls[:5] // looked at again afterwards
			}
			if !slices.Equal(calls, row.calls) {
				t.Errorf("calls %q, want %q", calls, row.calls)
			}
			if m.Verdict != row.verdict || (m.Failure == nil) != (row.obstacle == "") || m.Failure != nil && !strings.Contains(m.Failure.What, row.obstacle) {
				t.Errorf("%s %+v, want %s %q", m.Verdict, m.Failure, row.verdict, row.obstacle)
			}
			if !strings.Contains(strings.Join(m.Did, ""), "loaded the patched module") != (row.obstacle != "" || len(row.calls) == 0) {
				t.Errorf("did %q", m.Did)
			}
		})
	}
}

// TestASignalAmidAReload leaves no card without a driver.
func TestASignalAmidAReload(t *testing.T) {
	w := newWorld(t).have(Installed)
	ctx, signal := context.WithCancel(context.Background())
	p := w.preparer()
	p.Machine.Run = func(ctx context.Context, name string, args ...string) Output {
		if ctx.Err() != nil {
			return Output{Err: ctx.Err()}
		}
		if name == "rmmod" {
			signal()
		}
		return w.run(ctx, name, args...)
	}
	m, err := p.Reload(ctx)
	if err != nil || m.Verdict != ModuleLoaded {
		t.Errorf("%s %+v %v, calls %q", m.Verdict, m.Failure, err, w.calls)
	}
	// And one before it changes nothing.
	w.load(false)
	w.calls = nil
	if _, err = p.Reload(ctx); !errors.Is(err, context.Canceled) || slices.Contains(w.calls, "rmmod mlx5_core") {
		t.Errorf("%v, calls %q", err, w.calls)
	}
}

// TestAUserThatDoesNotComeBack is told: RDMA is gone then.
func TestAUserThatDoesNotComeBack(t *testing.T) {
	w := newWorld(t).have(Installed)
	p := w.preparer()
	p.Machine.Run = func(ctx context.Context, name string, args ...string) Output {
		if name == "modprobe" && args[0] == "mlx5_ib" {
			return Output{Stderr: "modprobe: ERROR: could not insert 'mlx5_ib': Invalid argument\n", Code: 1}
		}
		return w.run(ctx, name, args...)
	}
	m, err := p.Reload(context.Background())
	if did := strings.Join(m.Did, "\n"); err != nil || m.Verdict != ModuleLoaded || !strings.Contains(did, "could not load mlx5_ib again: modprobe mlx5_ib: ") {
		t.Errorf("%s %v, did %q", m.Verdict, err, did)
	}
}
