// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// device is what sysfs says of the device behind an interface. The zero value
// is a link without one (veth, bond, ...).
type device struct {
	driver  string // last part of the driver link, "" if none
	pci     string // vendor:device, "" outside PCI
	virtual bool   // it is a virtual function: it has a physfn
}

// readDevice looks under /sys/class/net. ok is false when the name means
// another interface there by now, or none: sysfs goes by name, and a rename
// may come in between.
func readDevice(fsys fs.FS, name string, index int) (d device, ok bool) {
	dir := path.Join("sys/class/net", name)
	d = deviceAt(fsys, path.Join(dir, "device"))
	n, err := strconv.Atoi(readLine(fsys, path.Join(dir, "ifindex")))
	if err != nil || n != index {
		return device{}, false
	}
	return d, true
}

func deviceAt(fsys fs.FS, dir string) (d device) {
	d.driver = linkBase(fsys, path.Join(dir, "driver"))
	// virtio devices have files of the same names, which are not PCI ids.
	if linkBase(fsys, path.Join(dir, "subsystem")) == "pci" {
		d.pci = pciID(readLine(fsys, path.Join(dir, "vendor")), readLine(fsys, path.Join(dir, "device")))
	}
	_, err := fs.Stat(fsys, path.Join(dir, "physfn"))
	d.virtual = err == nil
	return d
}

// pciID turns 0x15b3 and 0xa2dc into 15b3:a2dc.
func pciID(vendor, device string) string {
	v, okV := strings.CutPrefix(vendor, "0x")
	d, okD := strings.CutPrefix(device, "0x")
	if !okV || !okD {
		return ""
	}
	return v + ":" + d
}

// linkBase is the last part of where a symbolic link points, "" if there is none.
func linkBase(fsys fs.FS, name string) string {
	target, err := fs.ReadLink(fsys, name)
	if err != nil {
		return ""
	}
	return path.Base(target)
}

// readLine is the first line of a file, "" if it is missing, empty or
// unreadable: in sysfs those say the same, "the driver does not tell".
func readLine(fsys fs.FS, name string) string {
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}

// kindOf tells a virtual function by its physfn, and a representor by a port
// name of PCI form (pf0, pf0vf3, c1pf0sf2; an uplink is p0) within a switch.
// Source: Documentation/networking/devlink/devlink-port.rst.
func kindOf(f facts, d device) steer.Kind {
	switch {
	case d.virtual:
		return steer.VF
	case f.switchID != "" && pciPort(f.portName):
		return steer.Representor
	}
	return steer.Physical
}

// pciPort reports whether a port name is that of a PCI function: an optional
// controller (c1), then pf and a number.
func pciPort(name string) bool {
	if rest, ok := strings.CutPrefix(name, "c"); ok {
		name = strings.TrimLeft(rest, "0123456789")
		if name == rest {
			return false
		}
	}
	rest, ok := strings.CutPrefix(name, "pf")
	return ok && strings.TrimLeft(rest, "0123456789") != rest
}

// udev is what udev's database says of an interface.
type udev struct {
	ready bool
	path  string // ID_PATH
}

// readUdev decides as systemd-networkd does: without udev a link is ready at
// once; with udev when its entry exists and says neither that rules still run
// nor that a rename is under way.
func readUdev(fsys fs.FS, index int) (u udev) {
	b, err := fs.ReadFile(fsys, "run/udev/data/n"+strconv.Itoa(index))
	if err != nil {
		return udev{ready: !udevRuns(fsys)}
	}
	u.ready = true
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "E:")), "=")
		switch key {
		case "ID_PATH":
			u.path = value
		case "ID_PROCESSING", "ID_RENAMING":
			u.ready = u.ready && value != "1"
		}
	}
	return u
}

// udevRuns looks for the socket that udevd makes, or systemd for it. Its
// database alone may be a leftover or somebody else's, as in a container.
func udevRuns(fsys fs.FS) bool {
	_, err := fs.Stat(fsys, "run/udev/control")
	return err == nil
}

// describe joins the facts to a link. driver is asked last, when sysfs has no
// driver, or names an auxiliary one (mlx5_core.sf) instead of the card's.
func describe(f facts, d device, u udev, driver func() string) steer.Link {
	l := steer.Link{
		Index: f.index, Name: f.name, AltNames: f.altNames,
		Driver: d.driver, MAC: f.permanent, Path: u.path, PCI: d.pci,
		Kind: kindOf(f, d), Ready: u.ready,
	}
	if l.Driver == "" || strings.Contains(l.Driver, ".") {
		if asked := driver(); asked != "" {
			l.Driver = asked
		}
	}
	return l
}
