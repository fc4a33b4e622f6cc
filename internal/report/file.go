// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/flexsteer/flexsteer/pkg/reconcile"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// FormatVersion is the `version` field of the file. It grows when a key changes
// its meaning; new keys do not change it.
const FormatVersion = 1

// The shape of the file: snake_case keys that stay as they are, words instead
// of numbers for states and severities. It is apart from reconcile.Status so
// that a renamed Go field cannot rename a key.
type (
	statusFile struct {
		Version      int           `json:"version"`
		Daemon       string        `json:"daemon_version"`
		PID          int           `json:"pid"`
		Generation   uint64        `json:"generation"`
		Reloads      uint64        `json:"reloads"`
		LoadedAt     *time.Time    `json:"loaded_at,omitempty"`
		ConfigErrors []string      `json:"config_errors"`
		Problems     []problemFile `json:"problems"`
		Links        []linkFile    `json:"links"`
	}
	linkFile struct {
		Index      int           `json:"ifindex"`
		Name       string        `json:"name"`
		AltNames   []string      `json:"altnames,omitempty"`
		Driver     string        `json:"driver,omitempty"`
		MAC        string        `json:"mac,omitempty"`
		Path       string        `json:"path,omitempty"`
		PCI        string        `json:"pci,omitempty"`
		Kind       string        `json:"kind,omitempty"`
		Ready      bool          `json:"ready"`
		State      string        `json:"state"`
		Generation uint64        `json:"generation"`
		ChangedAt  *time.Time    `json:"state_since,omitempty"`
		RetryAt    *time.Time    `json:"retry_at,omitempty"`
		Policies   []string      `json:"policies"`
		Own        *rangeFile    `json:"locations,omitempty"`
		Wanted     int           `json:"rules_wanted"`
		InPlace    int           `json:"rules_in_place"`
		Foreign    int           `json:"rules_foreign"`
		Channels   *channelsFile `json:"channels,omitempty"`
		Queues     uint32        `json:"queues,omitempty"`
		Usage      []usageFile   `json:"entries"`
		Problems   []problemFile `json:"problems"`
	}
	rangeFile struct {
		First uint32 `json:"first"`
		Last  uint32 `json:"last"`
	}
	channelsFile struct {
		Combined uint32 `json:"combined"`
		Max      uint32 `json:"max"`
	}
	usageFile struct {
		Entry     string  `json:"name"`
		Rules     int     `json:"rules"`
		Imbalance float64 `json:"imbalance"`
	}
	problemFile struct {
		Severity string     `json:"severity"`
		Needs    string     `json:"needs,omitempty"`
		Entry    string     `json:"entry,omitempty"`
		At       *placeFile `json:"at,omitempty"`
		Text     string     `json:"text"`
		Fix      string     `json:"fix,omitempty"`
	}
	placeFile struct {
		File   string `json:"file"`
		Line   int    `json:"line,omitempty"`
		Column int    `json:"column,omitempty"`
		Text   string `json:"text,omitempty"`
	}
)

var (
	severities = []steer.Severity{steer.Notice, steer.Blocked, steer.Failed}
	states     = []reconcile.State{reconcile.Unmanaged, reconcile.Pending, reconcile.Configuring,
		reconcile.Configured, reconcile.Blocked, reconcile.Failed}
)

// Encode is the JSON form of s, indented, ending with a newline.
func Encode(s reconcile.Status) ([]byte, error) {
	f := statusFile{
		Version: FormatVersion, Daemon: s.Version, PID: s.PID, Generation: s.Generation, Reloads: s.Reloads,
		LoadedAt: timeOut(s.LoadedAt), ConfigErrors: list(s.ConfigErrors),
		Problems: each(s.Problems, problemOut), Links: each(s.Links, linkOut),
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(f); err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	return b.Bytes(), nil
}

// Decode reads what Encode wrote. Unknown keys are ignored, so that an older
// tool reads a newer daemon's file; another FormatVersion, an unknown state and
// an unknown severity are errors.
func Decode(data []byte) (reconcile.Status, error) {
	var f statusFile
	if err := json.Unmarshal(data, &f); err != nil {
		return reconcile.Status{}, fmt.Errorf("status file: %w", err)
	}
	if f.Version != FormatVersion {
		return reconcile.Status{}, fmt.Errorf("status file: format version %d, but this program reads version %d: use the flexsteerctl that belongs to the daemon", f.Version, FormatVersion)
	}
	s := reconcile.Status{
		Version: f.Daemon, PID: f.PID, Generation: f.Generation, Reloads: f.Reloads,
		LoadedAt: timeIn(f.LoadedAt), ConfigErrors: unlist(f.ConfigErrors),
	}
	var err error
	if s.Problems, err = eachIn(f.Problems, problemIn); err != nil {
		return reconcile.Status{}, fmt.Errorf("status file: %w", err)
	}
	if s.Links, err = eachIn(f.Links, linkIn); err != nil {
		return reconcile.Status{}, fmt.Errorf("status file: %w", err)
	}
	return s, nil
}

func linkOut(l reconcile.LinkStatus) linkFile {
	f := linkFile{
		Index: l.Link.Index, Name: l.Link.Name, AltNames: l.Link.AltNames, Driver: l.Link.Driver, MAC: l.Link.MAC,
		Path: l.Link.Path, PCI: l.Link.PCI, Kind: string(l.Link.Kind), Ready: l.Link.Ready,
		State: string(l.State), Generation: l.Generation, ChangedAt: timeOut(l.ChangedAt), RetryAt: timeOut(l.RetryAt),
		Policies: list(l.Policies), Wanted: l.Wanted, InPlace: l.InPlace, Foreign: l.Foreign, Queues: l.Queues,
		Usage:    each(l.Usage, func(u reconcile.EntryUsage) usageFile { return usageFile(u) }),
		Problems: each(l.Problems, problemOut),
	}
	if l.Own != (steer.Range{}) {
		f.Own = &rangeFile{uint32(l.Own.First), uint32(l.Own.Last)}
	}
	if l.Channels != (steer.Channels{}) {
		c := channelsFile(l.Channels)
		f.Channels = &c
	}
	return f
}

func linkIn(f linkFile) (reconcile.LinkStatus, error) {
	l := reconcile.LinkStatus{
		Link: steer.Link{Index: f.Index, Name: f.Name, AltNames: f.AltNames, Driver: f.Driver, MAC: f.MAC,
			Path: f.Path, PCI: f.PCI, Kind: steer.Kind(f.Kind), Ready: f.Ready},
		State: reconcile.State(f.State), Generation: f.Generation, ChangedAt: timeIn(f.ChangedAt), RetryAt: timeIn(f.RetryAt),
		Policies: unlist(f.Policies), Wanted: f.Wanted, InPlace: f.InPlace, Foreign: f.Foreign, Queues: f.Queues,
	}
	if !slices.Contains(states, l.State) {
		return l, fmt.Errorf("link %s: unknown state %q", f.Name, f.State)
	}
	if f.Own != nil {
		l.Own = steer.Range{First: steer.Loc(f.Own.First), Last: steer.Loc(f.Own.Last)}
	}
	if f.Channels != nil {
		l.Channels = steer.Channels(*f.Channels)
	}
	for _, u := range f.Usage {
		l.Usage = append(l.Usage, reconcile.EntryUsage(u))
	}
	var err error
	l.Problems, err = eachIn(f.Problems, problemIn)
	return l, err
}

func problemOut(p steer.Problem) problemFile {
	f := problemFile{Severity: p.Severity.String(), Needs: needOut(p.Needs), Entry: p.Entry, Text: p.Text, Fix: p.Fix}
	if p.At != (steer.Origin{}) {
		at := placeFile(p.At)
		f.At = &at
	}
	return f
}

func problemIn(f problemFile) (steer.Problem, error) {
	p := steer.Problem{Entry: f.Entry, Text: f.Text, Fix: f.Fix}
	i := slices.IndexFunc(severities, func(s steer.Severity) bool { return s.String() == f.Severity })
	if i < 0 {
		return p, fmt.Errorf("unknown severity %q", f.Severity)
	}
	p.Severity = severities[i]
	if f.Needs == needL4Data {
		p.Needs = steer.NeedL4Data
	}
	if f.At != nil {
		p.At = steer.Origin(*f.At)
	}
	return p, nil
}

const needL4Data = "l4data"

func needOut(n steer.Need) string {
	if n == steer.NeedL4Data {
		return needL4Data
	}
	return ""
}

// each makes [] of an empty list, so that readers need not tell it from null.
func each[A, B any](items []A, f func(A) B) []B {
	out := make([]B, 0, len(items))
	for _, item := range items {
		out = append(out, f(item))
	}
	return out
}

func eachIn[A, B any](items []A, f func(A) (B, error)) ([]B, error) {
	var out []B
	for _, item := range items {
		b, err := f(item)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

func list(s []string) []string {
	return append([]string{}, s...)
}

func unlist(s []string) []string {
	if len(s) == 0 {
		return nil
	}
	return s
}

func timeOut(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.Round(0).UTC()
	return &t
}

func timeIn(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
