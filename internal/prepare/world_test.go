// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const kernel = "6.1.0-41-amd64"

// world is a machine of files below a directory, and of the programs that prepare
// runs. Its programs behave as theirs do, as far as prepare can see.
type world struct {
	t    *testing.T
	root string
	mst  *tool
	now  time.Time

	sources    []string // versions in DKMS
	built      []string
	installed  []string
	refuses    string // what the build of the module prints before it fails
	initramfs  Initramfs
	dracut     bool // makes it
	noDKMS     bool
	enrolled   bool
	signed     bool
	unloadable string   // what rmmod refuses
	rejected   bool     // the kernel does not take the patched module
	calls      []string // but those of mstconfig
}

// newWorld has one BlueField-3 with two functions, the stock driver, and no more.
func newWorld(t *testing.T) *world {
	w := &world{t: t, root: t.TempDir(), mst: newTool(21), now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	w.write("proc/sys/kernel/osrelease", kernel)
	w.write("sys/kernel/security/lockdown", "[none] integrity confidentiality")
	w.write("usr/sbin/update-initramfs", "")
	w.boot()
	w.load(false)
	for _, f := range []string{"0", "1"} {
		w.function("0000:05:00."+f, "ens1f"+f+"np"+f)
	}
	return w
}

func (w *world) write(name, text string) {
	w.t.Helper()
	file := filepath.Join(w.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text+"\n"), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) link(name, target string) {
	w.t.Helper()
	file := filepath.Join(w.root, name)
	os.MkdirAll(filepath.Dir(file), 0o755)
	os.Remove(file)
	if err := os.Symlink(target, file); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(name string) { os.RemoveAll(filepath.Join(w.root, name)) }

// function is a PCI function of the card, with its link, which is down.
func (w *world) function(address, name string) {
	dir := "sys/bus/pci/devices/" + address
	w.write(dir+"/vendor", "0x15b3")
	w.write(dir+"/class", "0x020000")
	w.write(dir+"/sriov_numvfs", "0")
	w.link(dir+"/driver", "../../../../bus/pci/drivers/mlx5_core")
	w.link("sys/class/net/"+name+"/device", "../../../bus/pci/devices/"+address)
	w.write("sys/class/net/"+name+"/flags", "0x1002")
}

// load is the module getting loaded.
func (w *world) load(patched bool) {
	w.remove("sys/module/mlx5_core")
	w.write("sys/module/mlx5_core/initstate", "live")
	w.write("sys/module/mlx5_core/refcnt", "1")
	w.write("sys/module/mlx5_core/holders/mlx5_ib/x", "")
	w.write("sys/module/mlx5_ib/refcnt", "0")
	w.write("sys/module/mlx5_core/srcversion", map[bool]string{true: "OURS", false: "STOCK"}[patched])
	if patched {
		w.write("sys/module/mlx5_core/version", "0.1.0")
		w.write("sys/module/mlx5_core/parameters/flex_l4_max_nodes", "1")
	}
}

var boots int

// boot is a new boot id, an empty /run, the next module and the next settings.
func (w *world) boot() {
	boots++
	w.write("proc/sys/kernel/random/boot_id", fmt.Sprint("boot-", boots))
	w.remove("run")
}

func (w *world) run(_ context.Context, name string, args ...string) Output {
	if name == "mstconfig" {
		return w.mst.run(args...)
	}
	line := name + " " + strings.Join(args, " ")
	if name != "modinfo" && line != "dkms status -m "+Package {
		w.calls = append(w.calls, line)
	}
	switch name {
	case "modinfo":
		return Output{Stdout: w.modinfo()}
	case "dkms":
		return w.dkms(args)
	case "lsinitramfs", "lsinitrd":
		if w.dracut != (name == "lsinitrd") {
			return Output{Err: &exec.Error{Name: name, Err: exec.ErrNotFound}}
		}
		return Output{Stdout: w.files()}
	case "mokutil":
		return Output{Stdout: args[1] + map[bool]string{true: " is already enrolled\n", false: " is not enrolled\n"}[w.enrolled]}
	case "rmmod":
		if args[0] == w.unloadable {
			return Output{Stderr: "rmmod: ERROR: Module " + args[0] + " is in use\n", Code: 1}
		}
		w.remove("sys/module/" + args[0])
	case "modprobe":
		if args[0] != driver || exists(os.DirFS(w.root), moduleDir) {
			return Output{}
		}
		if w.rejected {
			return Output{Stderr: "modprobe: ERROR: could not insert 'mlx5_core': Key was rejected by service\n", Code: 1}
		}
		w.load(len(w.installed) > 0)
	case "insmod":
		w.load(false)
	default:
		return Output{Err: &exec.Error{Name: name, Err: exec.ErrNotFound}}
	}
	return Output{}
}

func (w *world) modinfo() string {
	if len(w.installed) == 0 {
		return "filename:       /lib/modules/" + kernel + "/kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko\n" +
			"license:        Dual BSD/GPL\nsrcversion:     STOCK\nsigner:         Debian Secure Boot CA\nparm:           prof_sel:profile selector. Valid range 0 - 2 (uint)\n"
	}
	text := "filename:       /lib/modules/" + kernel + "/updates/dkms/mlx5_core.ko\nversion:        " + w.installed[0] +
		"\nsrcversion:     OURS\nparm:           flex_l4_max_nodes:protocols matched by l4data at a time, 1 to 8 (uint)\n"
	if w.signed {
		text += "sig_id:         PKCS#7\nsigner:         DKMS module signing key\n"
	}
	return text
}

func (w *world) files() string {
	text := "usr/lib/modules/" + kernel + "/kernel/drivers/net/ethernet/intel/e1000e/e1000e.ko\n"
	switch w.initramfs {
	case InitramfsStock:
		text += "usr/lib/modules/" + kernel + "/kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko\n"
	case InitramfsPatched:
		text += "usr/lib/modules/" + kernel + "/updates/dkms/mlx5_core.ko\n"
	}
	return text
}

func (w *world) dkms(args []string) Output {
	if w.noDKMS {
		return Output{Err: &exec.Error{Name: "dkms", Err: exec.ErrNotFound}}
	}
	switch args[0] {
	case "add":
		w.sources = append(w.sources, args[4])
	case "install", "build":
		version := args[4]
		if !slices.Contains(w.sources, version) {
			return Output{Stderr: "Error! DKMS tree does not contain: " + Package + "/" + version + "\n", Code: 3}
		}
		if w.refuses != "" {
			w.write("var/lib/dkms/"+Package+"/"+version+"/build/make.log", w.refuses)
			return Output{Stdout: "Building module:\n", Stderr: "Error! Bad return status for module build on kernel: " + kernel + " (x86_64)\n", Code: 10}
		}
		if w.built = append(w.built, version); args[0] == "install" {
			w.installed = append(w.installed, version)
		}
	case "status":
		return Output{Stdout: w.status()}
	}
	return Output{}
}

func (w *world) status() (text string) {
	for _, v := range w.sources {
		switch {
		case slices.Contains(w.installed, v):
			text += Package + "/" + v + ", " + kernel + ", x86_64: installed\n"
		case slices.Contains(w.built, v):
			text += Package + "/" + v + ", " + kernel + ", x86_64: built\n"
		default:
			text += Package + "/" + v + ": added\n"
		}
	}
	return text
}

func (w *world) machine() *Machine {
	return &Machine{FS: os.DirFS(w.root), Run: w.run, Root: true}
}

func (w *world) asker() *Asker {
	return &Asker{FS: os.DirFS(w.root), Run: w.run, Root: true, Wait: time.Minute,
		Now:   func() time.Time { w.now = w.now.Add(time.Millisecond); return w.now },
		Sleep: func(_ context.Context, d time.Duration) error { w.now = w.now.Add(d); return nil }}
}

func (w *world) preparer() *Preparer {
	return &Preparer{Store: Store{w.root}, Machine: w.machine(), Asker: w.asker()}
}

// prepare is a run as at boot.
func (w *world) prepare() Facts {
	w.t.Helper()
	f, err := w.preparer().Run(context.Background(), Plan{Install: true, Checked: true, Ask: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}
