// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"time"

	"gopkg.in/yaml.v3"
)

// Daemon is the settings of flexsteerd itself.
type Daemon struct {
	Resync time.Duration // between passes without an event; 1 s to 24 h
	Module struct {
		Install bool   // build and install the patched module when it is missing
		Reload  string // ReloadNever or ReloadAtBoot
	}
	Firmware struct {
		Check bool // read the firmware settings
	}
}

// When a module that is installed but not loaded is loaded instead of the
// stock one, which takes the links down for some seconds.
const (
	ReloadNever  = "never"
	ReloadAtBoot = "at-boot"
)

// DefaultDaemon is the settings without any file.
func DefaultDaemon() Daemon {
	var d Daemon
	d.Resync = 30 * time.Second
	d.Module.Install = true
	d.Module.Reload = ReloadNever
	d.Firmware.Check = true
	return d
}

// daemonPart is a `daemon:` while it is read, over the values so far.
type daemonPart struct {
	*faults
	out *Daemon
}

func daemonKeys() []key[daemonPart] {
	return []key[daemonPart]{
		{"resync", (*daemonPart).readResync},
		{"module", func(d *daemonPart, n *yaml.Node) { walk(d.faults, n, whatModule, moduleKeys(), d) }},
		{"firmware", func(d *daemonPart, n *yaml.Node) { walk(d.faults, n, whatFirmware, firmwareKeys(), d) }},
	}
}

func moduleKeys() []key[daemonPart] {
	return []key[daemonPart]{
		{"install", func(d *daemonPart, n *yaml.Node) { d.set(n, "install", &d.out.Module.Install) }},
		{"reload", func(d *daemonPart, n *yaml.Node) {
			if s, ok := d.word(n, "reload", []string{ReloadNever, ReloadAtBoot}); ok {
				d.out.Module.Reload = s
			}
		}},
	}
}

func firmwareKeys() []key[daemonPart] {
	return []key[daemonPart]{
		{"check", func(d *daemonPart, n *yaml.Node) { d.set(n, "check", &d.out.Firmware.Check) }},
	}
}

func (d *daemonPart) set(n *yaml.Node, what string, to *bool) {
	if v, ok := d.yes(n, what); ok {
		*to = v
	}
}

var duration = pattern(`^[1-9][0-9]{0,5}(s|m|h)$`)

func (d *daemonPart) readResync(n *yaml.Node) {
	if v, ok := parseNumber(n.Value); plain(n) && ok {
		d.node(n, ruleText, "resync: "+clip(n.Value)+" has no unit", fmt.Sprintf("write %ds", v))
		return
	}
	s, ok := d.text(n, "resync")
	if !ok {
		return
	}
	if !duration.MatchString(s) {
		d.node(n, ruleText, "resync: "+clip(printable(s))+" is not a time", "write a number and s, m or h, such as 30s")
		return
	}
	v, err := time.ParseDuration(s)
	if err != nil || v > 24*time.Hour {
		d.node(n, ruleRange, "resync: "+s+" is not from 1s to 24h", "")
		return
	}
	d.out.Resync = v
}

// daemonRoot is flexsteerd.yaml or a drop-in of it.
type daemonRoot struct {
	*faults
	out *Daemon
}

func daemonFileKeys() []key[daemonRoot] {
	return []key[daemonRoot]{
		{"daemon", func(r *daemonRoot, n *yaml.Node) {
			walk(r.faults, n, whatDaemon, daemonKeys(), &daemonPart{r.faults, r.out})
		}},
	}
}

// readDaemon reads one file over the settings so far; nil root is a file
// without content.
func readDaemon(f *faults, root *yaml.Node, into *Daemon) {
	if root == nil || isNull(root) {
		return
	}
	for _, k := range names(policyKeys()) {
		if n := valueOf(root, k); n != nil {
			f.node(n, ruleHome, k+" belongs into a policy, not into "+daemonFile, "move it to a file of its own, such as 10-"+k+".yaml")
			root = without(root, k)
		}
	}
	walk(f, root, daemonFile, daemonFileKeys(), &daemonRoot{f, into})
}
