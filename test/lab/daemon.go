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

// Reload has it read its configuration again.
func (d Daemon) Reload() { d.m.Helper(); d.Signal(syscall.SIGHUP) }

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
	PID          int          `json:"pid"`
	Generation   int          `json:"generation"`
	ConfigErrors []string     `json:"config_errors"`
	Links        []LinkStatus `json:"links"`
}

// LinkStatus is one link of Status.
type LinkStatus struct {
	Name     string    `json:"name"`
	PCI      string    `json:"pci"`
	State    string    `json:"state"` // unmanaged, pending, configuring, configured, blocked, failed
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
	for _, l := range m.Status().Links {
		if l.Name == m.Link {
			return l
		}
	}
	return LinkStatus{}
}

// Becomes waits until the link is in a state with that many rules in place.
func (m *Machine) Becomes(state string, inPlace int) LinkStatus {
	m.Helper()
	var l LinkStatus
	m.Eventually(func() string {
		if l = m.LinkStatus(); l.State == state && l.InPlace == inPlace {
			return ""
		}
		return fmt.Sprintf("want %s with %d rules in place, is %+v", state, inPlace, l)
	})
	return l
}

// Blocked waits until the link is blocked with inPlace rules, by a problem that
// says text and has a Fix line that says fix.
func (m *Machine) Blocked(inPlace int, text, fix string) {
	m.Helper()
	l := m.Becomes("blocked", inPlace)
	for _, p := range l.Problems {
		if p.Severity == "blocked" && strings.Contains(p.Text, text) && strings.Contains(p.Fix, fix) {
			return
		}
	}
	m.must(fmt.Errorf("want a problem that says %q and a fix that says %q, have %+v", text, fix, l.Problems))
}
