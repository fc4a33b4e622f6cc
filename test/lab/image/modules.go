// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// DriverPath is where a kernel package has its own mlx5_core, and PatchedPath
// where dkms installs ours, below /lib/modules/KERNEL.
const (
	DriverPath  = "kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko"
	PatchedPath = "updates/dkms/mlx5_core.ko"
)

// Modules puts modules of a kernel and what they need into t, uncompressed,
// with the lists that depmod and modprobe want. A name that is built into the
// kernel is passed over; one that is unknown is an error. The patched mlx5_core
// is not among them: see Patched.
func (r Root) Modules(t Tree, kernel string, names ...string) error {
	dir := path.Join("/usr/lib/modules", kernel)
	deps, err := r.dependencies(dir)
	if err != nil {
		return err
	}
	builtin, err := os.ReadFile(r.path(dir, "modules.builtin"))
	if err != nil {
		return err
	}
	for _, name := range names {
		file, known := deps.file(name)
		if !known {
			if strings.Contains(string(builtin), "/"+name+".ko\n") {
				continue
			}
			return fmt.Errorf("kernel %s has no module %s", kernel, name)
		}
		for _, module := range append([]string{file}, deps[file]...) {
			if err := r.module(t, dir, module); err != nil {
				return err
			}
		}
	}
	return r.lists(t, dir)
}

// moduleDeps is modules.dep without our own build: file to the files it needs.
type moduleDeps map[string][]string

func (r Root) dependencies(dir string) (moduleDeps, error) {
	data, err := os.ReadFile(r.path(dir, "modules.dep"))
	if err != nil {
		return nil, err
	}
	deps := make(moduleDeps)
	driver := DriverPath
	for line := range strings.Lines(string(data)) {
		file, needs, _ := strings.Cut(line, ":")
		deps[file] = strings.Fields(needs)
		if moduleName(file) == "mlx5_core" && !strings.HasPrefix(file, "updates/") {
			driver = file
		}
	}
	// depmod lists the one that modprobe takes. The stock driver needs the same.
	if ours, patched := deps[PatchedPath]; patched {
		delete(deps, PatchedPath)
		deps[driver] = ours
	}
	for file, needs := range deps {
		for i, need := range needs {
			if need == PatchedPath {
				deps[file][i] = driver
			}
		}
	}
	return deps, nil
}

func (d moduleDeps) file(name string) (string, bool) {
	for file := range d {
		if moduleName(file) == name {
			return file, true
		}
	}
	return "", false
}

// moduleName of .../virtio_pci.ko.xz is virtio_pci; '-' and '_' are one.
func moduleName(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

func (r Root) module(t Tree, dir, file string) error {
	at := path.Join(dir, strings.TrimSuffix(file, ".xz"))
	if _, there := t[at]; there {
		return nil
	}
	data, err := readModule(r.path(dir, file))
	if err != nil {
		return err
	}
	t[at] = File{Data: data, Mode: 0o644}
	return nil
}

// readModule reads a module, which may be compressed under either name.
func readModule(file string) ([]byte, error) {
	if _, err := os.Stat(file); err != nil && !strings.HasSuffix(file, ".xz") {
		file += ".xz"
	}
	if !strings.HasSuffix(file, ".xz") {
		return os.ReadFile(file)
	}
	data, err := exec.Command("xz", "-dc", file).Output()
	if err != nil {
		return nil, fmt.Errorf("xz -dc %s: %w", file, err)
	}
	return data, nil
}

func (r Root) lists(t Tree, dir string) error {
	for _, name := range []string{"modules.builtin", "modules.builtin.modinfo", "modules.order"} {
		data, err := os.ReadFile(r.path(dir, name))
		if err != nil {
			return err
		}
		t[path.Join(dir, name)] = File{Data: data, Mode: 0o644}
	}
	return nil
}

// Patched is our mlx5_core, as dkms has installed it for a kernel.
func (r Root) Patched(kernel string) ([]byte, error) {
	return readModule(r.path("/usr/lib/modules", kernel, PatchedPath))
}

// Kernel is the newest kernel of a line ("6.12") that is in r.
func (r Root) Kernel(line string) (string, error) {
	images, _ := filepath.Glob(r.path("/boot", "vmlinuz-"+line+".*"))
	if len(images) == 0 {
		return "", fmt.Errorf("no kernel %s in %s", line, r)
	}
	newest := slices.MaxFunc(images, func(a, b string) int { return compareVersions(a, b) })
	return strings.TrimPrefix(path.Base(newest), "vmlinuz-"), nil
}

// compareVersions compares runs of digits as numbers: 6.12.9 before 6.12.117.
func compareVersions(a, b string) int {
	number := func(s string) (string, string) {
		n := 0
		for n < len(s) && '0' <= s[n] && s[n] <= '9' {
			n++
		}
		return strings.TrimLeft(s[:n], "0"), s[n:]
	}
	for a != "" && b != "" {
		x, restA := number(a)
		y, restB := number(b)
		if len(x) != len(y) {
			return len(x) - len(y)
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
		if a, b = restA, restB; a == "" || b == "" {
			break
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

// Vmlinuz is the file of a kernel.
func (r Root) Vmlinuz(kernel string) string { return r.path("/boot", "vmlinuz-"+kernel) }
