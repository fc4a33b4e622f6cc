// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/flexsteer/flexsteer/test/lab/guest"
)

// Configure puts a file into the guest's /etc/flexsteer.
func (m *Machine) Configure(name, yaml string) {
	m.Helper()
	m.Write("/etc/flexsteer/"+name, yaml)
}

// Example is the text of a file of examples/.
func (m *Machine) Example(name string) string {
	m.Helper()
	text, err := os.ReadFile(filepath.Join(m.lab.places.tree, "examples", name))
	m.must(err)
	return string(text)
}

// Daemon is a running flexsteerd.
type Daemon struct{ *Process }

// Daemon starts flexsteerd with one configuration, as /etc/flexsteer/10-lab.yaml.
func (m *Machine) Daemon(yaml string) Daemon {
	m.Helper()
	m.Configure("10-lab.yaml", yaml)
	return Daemon{m.Start("flexsteerd")}
}

// Reload has it read its configuration again, and waits until it has, well or
// not. What that means for links comes later: Becomes waits for it.
func (d Daemon) Reload() {
	d.m.Helper()
	before := d.m.Status().Reloads
	d.Signal(syscall.SIGHUP)
	d.m.Eventually(func() string {
		if s := d.m.Status(); s.Reloads > before {
			return ""
		}
		return fmt.Sprintf("flexsteerd has not reloaded; it says\n%s", d.Output())
	})
}

// Stop ends it, which must succeed. The rules stay.
func (d Daemon) Stop() {
	d.m.Helper()
	d.Signal(syscall.SIGTERM)
	if code := d.Wait(); code != 0 {
		d.m.must(fmt.Errorf("flexsteerd ended with exit status %d and said:\n%s", code, d.Output()))
	}
}

// Status is what flexsteerd writes to status.json, as far as experiments ask.
type Status struct {
	PID           int          `json:"pid"`
	DaemonVersion string       `json:"daemon_version"`
	Reloads       int          `json:"reloads"`
	Generation    int          `json:"generation"` // of the configuration in use
	ConfigErrors  []string     `json:"config_errors"`
	Links         []LinkStatus `json:"links"`
}

// LinkStatus is one link of Status.
type LinkStatus struct {
	Name     string    `json:"name"`
	PCI      string    `json:"pci"`
	State    string    `json:"state"`      // unmanaged, pending, configuring, configured, blocked, failed
	About    int       `json:"generation"` // the configuration that the state is about
	Wanted   int       `json:"rules_wanted"`
	InPlace  int       `json:"rules_in_place"`
	Foreign  int       `json:"rules_foreign"`
	Problems []Problem `json:"problems"`
}

// Problem is what a person reads about a link that is not as it should be.
type Problem struct {
	Severity string `json:"severity"` // notice, blocked, failed
	Entry    string `json:"entry"`
	Text     string `json:"text"`
	Fix      string `json:"fix"`
}

// Status is the daemon's own; empty until it has written one.
func (m *Machine) Status() (s Status) {
	m.Helper()
	r, err := m.vm.Guest.Do(guest.Request{Do: "read", Path: "/run/flexsteerd/status.json"}, patience)
	if err != nil {
		m.must(m.vm.Fault())
		return s
	}
	if !bytes.Equal(r.Data, m.status) {
		m.status = r.Data
		m.note("status.json is now\n%s", r.Data)
	}
	m.must(json.Unmarshal(r.Data, &s))
	return s
}

// LinkStatus is the part of the card's link.
func (m *Machine) LinkStatus() LinkStatus {
	m.Helper()
	return m.Status().link(m.Link)
}

func (s Status) link(name string) LinkStatus {
	for _, l := range s.Links {
		if l.Name == name {
			return l
		}
	}
	return LinkStatus{}
}

// Becomes waits until the link is in a state with that many rules in place, by
// the configuration in use.
func (m *Machine) Becomes(state string, inPlace int) (l LinkStatus) {
	m.Helper()
	m.Eventually(func() string {
		s := m.Status()
		l = s.link(m.Link)
		if l.State == state && l.InPlace == inPlace && l.About == s.Generation {
			return ""
		}
		return fmt.Sprintf("want %s with %d rules in place, is %+v", state, inPlace, s)
	})
	return l
}

// Blocked waits until the link is blocked with inPlace rules, by a problem that
// says text and has a Fix line that says fix.
func (m *Machine) Blocked(inPlace int, text, fix string) {
	m.Helper()
	m.Tells("blocked", inPlace, "blocked", text, fix)
}

// Tells waits until the link is in a state with inPlace rules, and has a problem of
// that severity that says text and has a Fix line that says fix.
func (m *Machine) Tells(state string, inPlace int, severity, text, fix string) {
	m.Helper()
	m.Eventually(func() string {
		l := m.Becomes(state, inPlace)
		for _, p := range l.Problems {
			if p.Severity == severity && strings.Contains(p.Text, text) && strings.Contains(p.Fix, fix) {
				return ""
			}
		}
		return fmt.Sprintf("want a problem (%s) that says %q and a fix that says %q, have %+v", severity, text, fix, l.Problems)
	})
}
