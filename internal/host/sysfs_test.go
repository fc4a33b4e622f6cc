// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func link(target string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
}

// card is the sysfs and udev entries of a ConnectX port ens1f1np1, ifindex 7.
func card(change func(fstest.MapFS)) fstest.MapFS {
	const net, pci = "sys/class/net/ens1f1np1/", "sys/devices/pci0000:00/0000:03:00.1/"
	m := fstest.MapFS{
		net + "ifindex":                   file("7\n"),
		net + "device":                    link("../../../devices/pci0000:00/0000:03:00.1"),
		pci + "driver":                    link("../../../bus/pci/drivers/mlx5_core"),
		pci + "subsystem":                 link("../../../bus/pci"),
		pci + "vendor":                    file("0x15b3\n"),
		pci + "device":                    file("0xa2dc\n"),
		"sys/bus/pci/drivers/mlx5_core/x": file(""),
		"sys/bus/pci/x":                   file(""),
		"run/udev/control":                file(""),
		"run/udev/data/n7":                file("I:1234\nE:ID_NET_DRIVER=mlx5_core\nE:ID_PATH=pci-0000:03:00.1\nG:systemd\n"),
	}
	if change != nil {
		change(m)
	}
	return m
}

func TestALinkIsWhatSysfsAndUdevSay(t *testing.T) {
	const pci = "sys/devices/pci0000:00/0000:03:00.1/"
	base := steer.Link{
		Index: 7, Name: "ens1f1np1", AltNames: []string{"port1"}, Driver: "mlx5_core",
		MAC: "02:00:00:00:00:01", Path: "pci-0000:03:00.1", PCI: "15b3:a2dc", Kind: steer.Physical, Ready: true,
	}
	with := func(change func(*steer.Link)) steer.Link { l := base; change(&l); return l }
	bare := with(func(l *steer.Link) { l.Driver, l.PCI = "asked", "" })
	rows := map[string]struct {
		tree  func(fstest.MapFS)
		facts func(*facts)
		want  steer.Link
	}{
		"a card":            {want: base},
		"an uplink":         {facts: func(f *facts) { f.portName, f.switchID = "p0", "ab12" }, want: base},
		"no port name":      {facts: func(f *facts) { f.switchID = "ab12" }, want: base},
		"pf without switch": {facts: func(f *facts) { f.portName = "pf0" }, want: base},
		"a VF": {tree: func(m fstest.MapFS) { m[pci+"physfn/vendor"] = file("0x15b3\n") },
			want: with(func(l *steer.Link) { l.Kind = steer.VF })},
		"a representor of a VF": {facts: func(f *facts) { f.portName, f.switchID = "pf0vf3", "ab12" },
			want: with(func(l *steer.Link) { l.Kind = steer.Representor })},
		"a representor of another host's SF": {facts: func(f *facts) { f.portName, f.switchID = "c1pf0sf12", "ab12" },
			want: with(func(l *steer.Link) { l.Kind = steer.Representor })},
		"a representor of a host's PF": {facts: func(f *facts) { f.portName, f.switchID = "c1pf0", "ab12" },
			want: with(func(l *steer.Link) { l.Kind = steer.Representor })},
		"no permanent address": {facts: func(f *facts) { f.permanent = "" }, want: with(func(l *steer.Link) { l.MAC = "" })},
		"no sysfs at all": {tree: func(m fstest.MapFS) {
			delete(m, "sys/class/net/ens1f1np1/ifindex")
			delete(m, "sys/class/net/ens1f1np1/device")
		},
			want: bare},
		"sysfs of another link under that name": {tree: func(m fstest.MapFS) { m["sys/class/net/ens1f1np1/ifindex"] = file("8\n") },
			want: bare},
		"an empty ifindex": {tree: func(m fstest.MapFS) { m["sys/class/net/ens1f1np1/ifindex"] = file("") }, want: bare},
		"no driver bound":  {tree: func(m fstest.MapFS) { delete(m, pci+"driver") }, want: with(func(l *steer.Link) { l.Driver = "asked" })},
		"an auxiliary device": {tree: func(m fstest.MapFS) {
			m[pci+"driver"], m[pci+"subsystem"] = link("../../../bus/auxiliary/drivers/mlx5_core.sf"), link("../../../bus/auxiliary")
		}, want: with(func(l *steer.Link) { l.Driver, l.PCI = "asked", "" })},
		"a virtio device is not PCI": {tree: func(m fstest.MapFS) {
			m[pci+"driver"], m[pci+"subsystem"] = link("../../../bus/virtio/drivers/virtio_net"), link("../../../bus/virtio")
			m[pci+"vendor"], m[pci+"device"] = file("0x1af4\n"), file("0x0001\n")
		}, want: with(func(l *steer.Link) { l.Driver, l.PCI = "virtio_net", "" })},
		"empty ids":     {tree: func(m fstest.MapFS) { m[pci+"vendor"] = file("") }, want: with(func(l *steer.Link) { l.PCI = "" })},
		"odd ids":       {tree: func(m fstest.MapFS) { m[pci+"device"] = file("a2dc\n") }, want: with(func(l *steer.Link) { l.PCI = "" })},
		"a bus unknown": {tree: func(m fstest.MapFS) { delete(m, pci+"subsystem") }, want: with(func(l *steer.Link) { l.PCI = "" })},
		"udev still runs rules": {tree: func(m fstest.MapFS) { m["run/udev/data/n7"] = file("E:ID_PROCESSING=1\n") },
			want: with(func(l *steer.Link) { l.Ready, l.Path = false, "" })},
		"udev renames it": {tree: func(m fstest.MapFS) { m["run/udev/data/n7"] = file("E:ID_RENAMING=1\nE:ID_PATH=pci-0000:03:00.1\n") },
			want: with(func(l *steer.Link) { l.Ready = false })},
		"udev has not seen it": {tree: func(m fstest.MapFS) { delete(m, "run/udev/data/n7") },
			want: with(func(l *steer.Link) { l.Ready, l.Path = false, "" })},
		"an empty udev entry": {tree: func(m fstest.MapFS) { m["run/udev/data/n7"] = file("") },
			want: with(func(l *steer.Link) { l.Path = "" })},
		"no udev": {tree: func(m fstest.MapFS) { delete(m, "run/udev/data/n7"); delete(m, "run/udev/control") },
			want: with(func(l *steer.Link) { l.Path = "" })},
		"udev was done before": {tree: func(m fstest.MapFS) { m["run/udev/data/n7"] = file("E:ID_PROCESSING=0\nE:ID_PATH=pci-0000:03:00.1\n") },
			want: base},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			f := facts{index: 7, name: "ens1f1np1", altNames: []string{"port1"}, permanent: "02:00:00:00:00:01", ethernet: true}
			if row.facts != nil {
				row.facts(&f)
			}
			tree := card(row.tree)
			d, _ := readDevice(tree, f.name, f.index)
			got := describe(f, d, readUdev(tree, f.index), func() string { return "asked" })
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestADriverThatTellsNothingIsEmpty(t *testing.T) {
	got := describe(facts{name: "veth0"}, device{}, udev{ready: true}, func() string { return "" })
	if got.Driver != "" || got.Kind != steer.Physical {
		t.Errorf("%+v", got)
	}
	got = describe(facts{name: "en3f0pf0sf1"}, device{driver: "mlx5_core.sf"}, udev{}, func() string { return "" })
	if got.Driver != "mlx5_core.sf" {
		t.Errorf("%+v", got)
	}
}

func TestPortNamesOfPCIFunctions(t *testing.T) {
	for name, want := range map[string]bool{
		"pf0": true, "pf0vf0": true, "pf1sf88": true, "c1pf0": true, "c12pf0vf3": true,
		"": false, "p0": false, "p0s1": false, "pf": false, "cpf0": false, "c1": false, "c1p0": false, "n0": false, "0": false,
	} {
		if got := pciPort(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
