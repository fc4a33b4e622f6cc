// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/reconcile"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// Metrics is the status in the Prometheus text exposition format, version 0.0.4.
// Links that no policy matches are left out.
func Metrics(s reconcile.Status) []byte {
	var m metrics
	m.family("flexsteer_build_info", "gauge", "The version of the daemon.")
	m.sample("flexsteer_build_info", 1, "version", s.Version)
	m.single("flexsteer_config_generation", "gauge", "Configurations taken into use since the start.", float64(s.Generation))
	m.single("flexsteer_config_loads_total", "counter", "Attempts to load the configuration, good and bad.", float64(s.Reloads))
	m.single("flexsteer_config_errors", "gauge", "Errors of the last attempt to load the configuration; 0 when it is in use.", float64(len(s.ConfigErrors)))
	if !s.LoadedAt.IsZero() {
		m.single("flexsteer_config_loaded_timestamp_seconds", "gauge", "When the configuration in use was loaded.", float64(s.LoadedAt.Unix()))
	}
	m.links(managed(s.Links))
	return m.Bytes()
}

func managed(links []reconcile.LinkStatus) (out []reconcile.LinkStatus) {
	for _, l := range links {
		if l.State != reconcile.Unmanaged {
			out = append(out, l)
		}
	}
	return out
}

type metrics struct{ bytes.Buffer }

func (m *metrics) links(links []reconcile.LinkStatus) {
	m.family("flexsteer_link_state", "gauge", "1 for the state that the link is in, 0 for the others.")
	for _, l := range links {
		for _, state := range states[1:] {
			m.sample("flexsteer_link_state", b2f(l.State == state), "link", l.Link.Name, "state", string(state))
		}
	}
	m.perLink(links, "flexsteer_rules_wanted", "Rules that the configuration wants.", func(l reconcile.LinkStatus) int { return l.Wanted })
	m.perLink(links, "flexsteer_rules_in_place", "Rules wanted that are in the NIC.", func(l reconcile.LinkStatus) int { return l.InPlace })
	m.perLink(links, "flexsteer_rules_foreign", "Rules outside the locations of flexsteer.", func(l reconcile.LinkStatus) int { return l.Foreign })
	m.family("flexsteer_link_problems", "gauge", "Problems of the link by severity.")
	for _, l := range links {
		for _, severity := range severities {
			m.sample("flexsteer_link_problems", float64(countOf(l.Problems, severity)), "link", l.Link.Name, "severity", severity.String())
		}
	}
	m.family("flexsteer_entry_rules", "gauge", "Rules of an entry of the configuration.")
	for _, l := range links {
		for _, u := range l.Usage {
			m.sample("flexsteer_entry_rules", float64(u.Rules), "link", l.Link.Name, "entry", u.Entry)
		}
	}
	m.family("flexsteer_entry_imbalance", "gauge", "The busiest queue's share over its fair share, minus 1, for uniform traffic.")
	for _, l := range links {
		for _, u := range l.Usage {
			m.sample("flexsteer_entry_imbalance", u.Imbalance, "link", l.Link.Name, "entry", u.Entry)
		}
	}
}

func (m *metrics) perLink(links []reconcile.LinkStatus, name, help string, value func(reconcile.LinkStatus) int) {
	m.family(name, "gauge", help)
	for _, l := range links {
		m.sample(name, float64(value(l)), "link", l.Link.Name)
	}
}

func (m *metrics) single(name, kind, help string, value float64) {
	m.family(name, kind, help)
	m.sample(name, value)
}

func (m *metrics) family(name, kind, help string) {
	fmt.Fprintf(m, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// sample writes one line; labels are name, value, name, value.
func (m *metrics) sample(name string, value float64, labels ...string) {
	m.WriteString(name)
	for i := 0; i < len(labels); i += 2 {
		m.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		fmt.Fprintf(m, `%s="%s"`, labels[i], labelEscapes.Replace(strings.ToValidUTF8(labels[i+1], "?")))
	}
	if len(labels) > 0 {
		m.WriteByte('}')
	}
	m.WriteByte(' ')
	m.WriteString(strconv.FormatFloat(value, 'f', -1, 64))
	m.WriteByte('\n')
}

func countOf(problems []steer.Problem, severity steer.Severity) (n int) {
	for _, p := range problems {
		if p.Severity == severity {
			n++
		}
	}
	return n
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
