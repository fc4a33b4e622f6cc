// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/flexsteer/flexsteer/test/lab/image"
)

// places are the folders and programs that the lab uses.
type places struct {
	tree    string // this source tree
	cache   string // FLEXSTEER_CACHE
	bin     string // what was built of this tree
	results string // a folder for each experiment
	flexsim string

	progress func(format string, args ...any) // tells of what takes long; nil: print
}

// programs of the guest that are Debian's; busybox has the rest.
var debianPrograms = []string{"bash", "bridge", "depmod", "devlink", "ethtool", "ip", "modinfo", "modprobe", "ping", "rmmod", "ss", "strace", "tc", "tcpdump"}

// modules of the guest: those that the lab needs, and links that experiments make.
var kernelModules = []string{"virtio_pci", "virtio_console", "mlx5_core", "mlx5_ib", "veth", "dummy", "8021q", "bridge"}

func findPlaces() (places, error) {
	dir, err := os.Getwd()
	if err != nil {
		return places{}, err
	}
	p := places{tree: filepath.Dir(filepath.Dir(dir)), cache: os.Getenv("FLEXSTEER_CACHE"), flexsim: os.Getenv("FLEXSTEER_LAB_FLEXSIM")}
	if p.cache == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return places{}, err
		}
		p.cache = filepath.Join(cache, "flexsteer")
	}
	p.bin = filepath.Join(p.tree, "build/lab/bin")
	p.results = filepath.Join(p.tree, "build/lab")
	return p, nil
}

func (p places) kernels() image.Root { return image.Root(filepath.Join(p.cache, "kernel/bookworm")) }
func (p places) guest() image.Root   { return image.Root(filepath.Join(p.cache, "lab/guest")) }
func (p places) tools() image.Root   { return image.Root(filepath.Join(p.cache, "lab/tools")) }
func (p places) newer() image.Root   { return image.Root(filepath.Join(p.cache, "lab/tools-trixie")) }
func (p places) qemu() string        { return filepath.Join(p.tree, "test/lab/scripts/qemu") }

// prepare makes all that is needed and not there: Debian roots, modules with our
// patch for these lines of kernels, and our programs, which are static.
func (p *places) prepare(lines ...string) error {
	if os.Geteuid() != 0 {
		return errors.New("the lab needs root, to lay private Debian roots")
	}
	if err := p.told("downloading and unpacking QEMU and the programs of the guest, 120 MB, once", func() error {
		return p.say("test/lab/scripts/roots")
	}); err != nil {
		return err
	}
	what := "downloading Linux " + strings.Join(lines, " and ") + " with source and compilers, 700 MB, and compiling mlx5, once: some five minutes for each on two idle CPUs"
	if err := p.told(what, func() error { return p.say(append([]string{"test/lab/scripts/modules"}, lines...)...) }); err != nil {
		return err
	}
	return p.told("compiling flexsteer and the card", p.build)
}

// told does something, and tells what if that takes longer than a moment.
func (p *places) told(what string, do func() error) error {
	progress := p.progress
	if progress == nil {
		progress = func(format string, args ...any) { fmt.Printf("lab: "+format+"\n", args...) }
	}
	start := time.Now()
	slow := time.AfterFunc(2*time.Second, func() { progress("%s", what) })
	defer slow.Stop()
	err := do()
	if took := time.Since(start); err == nil && took > 2*time.Second {
		progress("that took %v", took.Round(time.Second))
	}
	return err
}

func (p *places) build() error {
	if err := os.MkdirAll(p.bin, 0o755); err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"go", "build", "-trimpath", "-buildvcs=false", "-o", p.bin + "/", "./cmd/flexsteerd", "./cmd/flexsteerctl", "./test/lab/guest/init", "./test/lab/guest/linkwatch"},
		{"go", "test", "-c", "-o", p.bin + "/hosttest", "./internal/host/hosttest"},
		{"gcc", "-O2", "-static", "-Wall", "-o", p.bin + "/rules", "test/lab/guest/rules/rules.c"},
	} {
		if err := p.say(argv...); err != nil {
			return err
		}
	}
	if p.flexsim != "" {
		return nil
	}
	p.flexsim = filepath.Join(p.bin, "flexsim")
	return p.say("go", "build", "-C", "sim", "-o", p.flexsim, "./cmd/flexsim")
}

// say runs a command in the tree. Its output is shown if it fails.
func (p *places) say(argv ...string) error {
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = p.tree
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "FLEXSTEER_CACHE="+p.cache)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
	}
	return nil
}

// images makes an initramfs for each kernel line, with and without the tools for
// cards, when it is first wanted.
type images struct {
	places places
	dir    string

	mu   sync.Mutex
	made map[string]initramfs // by name
}

type initramfs struct {
	kernel string // full version
	file   string
	err    error
}

func (i *images) of(line string, tools bool) (kernel, file string, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	name := "initrd." + line
	if tools {
		name += ".tools"
	}
	if got, ok := i.made[name]; ok {
		return got.kernel, got.file, got.err
	}
	kernel, err = i.places.kernels().Kernel(line)
	if err == nil {
		file = filepath.Join(i.dir, name)
		err = i.places.writeImage(kernel, file, tools)
	}
	if i.made == nil {
		i.made = make(map[string]initramfs)
	}
	i.made[name] = initramfs{kernel, file, err}
	return kernel, file, err
}

// patchedModule is where an image keeps our mlx5_core, out of modprobe's sight
// until an experiment wants it.
const patchedModule = "/lab/mlx5_core.ko"

func (p places) writeImage(kernel, file string, tools bool) error {
	t := make(image.Tree)
	t.Merged()
	if tools {
		if err := p.addTools(t); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/proc", "/sys", "/dev", "/run", "/tmp", "/root", "/var", "/etc"} {
		t.Dir(dir)
	}
	t["/etc/passwd"] = image.File{Data: []byte("root:x:0:0:root:/root:/bin/bash\n"), Mode: 0o644}
	t["/etc/group"] = image.File{Data: []byte("root:x:0:\n"), Mode: 0o644}
	if err := p.guest().Programs(t, debianPrograms...); err != nil {
		return err
	}
	if err := p.guest().Busybox(t); err != nil {
		return err
	}
	if err := p.kernels().Modules(t, kernel, kernelModules...); err != nil {
		return err
	}
	patched, err := p.kernels().Patched(kernel)
	if err != nil {
		return fmt.Errorf("the patched driver: %w", err)
	}
	t[patchedModule] = image.File{Data: patched, Mode: 0o644}
	for at, from := range map[string]string{
		"/init": "init", "/usr/sbin/flexsteerd": "flexsteerd", "/usr/bin/flexsteerctl": "flexsteerctl", "/lab/hosttest": "hosttest",
		"/lab/linkwatch": "linkwatch", "/lab/rules": "rules",
	} {
		data, err := os.ReadFile(filepath.Join(p.bin, from))
		if err != nil {
			return err
		}
		t[at] = image.File{Data: data}
	}
	selftest, err := os.ReadFile(filepath.Join(p.tree, "kernel/selftests/flex_l4.sh"))
	if err != nil {
		return err
	}
	t["/lab/flex_l4.sh"] = image.File{Data: selftest}
	return writeTree(t, file)
}

// addTools adds what Debian has for the firmware of cards, and what that needs: of
// mstflint the programs that flexsteer names, and of Python a bit more than enough.
func (p places) addTools(t image.Tree) error {
	if err := p.tools().Programs(t, "mstconfig", "mstfwreset", "mstmcra", "python3", "lspci", "setpci"); err != nil {
		return err
	}
	for _, dir := range []string{parameterNames, "/usr/lib/x86_64-linux-gnu/mstflint", "/usr/lib/python3.11"} {
		if err := p.tools().Folder(t, dir); err != nil {
			return err
		}
	}
	newer := make(image.Tree)
	if err := p.newer().Programs(newer, "mstconfig"); err != nil {
		return err
	}
	if err := p.newer().Folder(newer, parameterNames); err != nil {
		return err
	}
	for at, file := range newer {
		t[newerTools+at] = file
	}
	return nil
}

// parameterNames is where mstconfig has its database, and newerTools where an image
// keeps the mstconfig of Debian 13 with all that it needs.
const (
	parameterNames = "/usr/share/mstflint/mlxconfig_dbs"
	newerTools     = "/lab/debian-13"
)

func writeTree(t image.Tree, file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := t.WriteTo(f); err != nil {
		return err
	}
	return f.Close()
}
