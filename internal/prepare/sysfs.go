// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

const (
	driver     = "mlx5_core"
	vendor     = "0x15b3"
	pciDevices = "sys/bus/pci/devices"
)

// line is the first line of a file, "" if it is missing or unreadable.
func line(fsys fs.FS, name string) string {
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(first)
}

func exists(fsys fs.FS, name string) bool {
	_, err := fs.Stat(fsys, name)
	return err == nil
}

// linkBase is the last part of where a symbolic link points, "" if there is none.
func linkBase(fsys fs.FS, name string) string {
	target, err := fs.ReadLink(fsys, name)
	if err != nil {
		return ""
	}
	return path.Base(target)
}

// list is the names in a directory, nil without one.
func list(fsys fs.FS, dir string) (names []string) {
	entries, _ := fs.ReadDir(fsys, dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// cards groups the physical functions that mlx5_core has, or could have, by
// card. The functions of one PCI device share one store of settings.
func cards(fsys fs.FS) (all [][]string) {
	at := map[string]int{}
	for _, address := range list(fsys, pciDevices) {
		dir := path.Join(pciDevices, address)
		if !drivable(fsys, dir) {
			continue
		}
		device, _, _ := strings.Cut(address, ".")
		i, known := at[device]
		if !known {
			i = len(all)
			at[device] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], address)
	}
	for _, functions := range all {
		slices.Sort(functions)
	}
	return all
}

// drivable reports whether a device is a physical function that mlx5_core has
// bound. A function that no driver has, or another one (VFIO), has no link here.
func drivable(fsys fs.FS, dir string) bool {
	return line(fsys, path.Join(dir, "vendor")) == vendor &&
		linkBase(fsys, path.Join(dir, "driver")) == driver && !exists(fsys, path.Join(dir, "physfn"))
}

// hasCard reports whether there is an Ethernet or InfiniBand controller of
// NVIDIA, whatever its driver: without the module it may have none.
func hasCard(fsys fs.FS) bool {
	return slices.ContainsFunc(list(fsys, pciDevices), func(address string) bool {
		dir := path.Join(pciDevices, address)
		// PCI class 02: network controllers; 0x0207 is InfiniBand.
		return line(fsys, path.Join(dir, "vendor")) == vendor && strings.HasPrefix(line(fsys, path.Join(dir, "class")), "0x02")
	})
}

func bootID(fsys fs.FS) string { return line(fsys, "proc/sys/kernel/random/boot_id") }

func kernelRelease(fsys fs.FS) string { return line(fsys, "proc/sys/kernel/osrelease") }

// lockdown is the kernel's mode, which the file has in brackets: none,
// integrity or confidentiality; "" where the kernel knows of none.
func lockdown(fsys fs.FS) string {
	_, rest, _ := strings.Cut(line(fsys, "sys/kernel/security/lockdown"), "[")
	mode, _, _ := strings.Cut(rest, "]")
	return mode
}

func lockedDown(mode string) bool { return mode == "integrity" || mode == "confidentiality" }
