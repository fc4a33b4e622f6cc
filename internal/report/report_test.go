// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flexsteer/flexsteer/internal/report"
	"github.com/flexsteer/flexsteer/pkg/reconcile"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

var update = flag.Bool("update", false, "write the golden files anew")

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// sample has every field set on some link.
func sample() reconcile.Status {
	return reconcile.Status{
		Version: "1.2.3", PID: 4711, Generation: 3, Reloads: 4, LoadedAt: noon,
		Links: []reconcile.LinkStatus{
			{
				Link: steer.Link{Index: 3, Name: "ens1f0np0", AltNames: []string{"enp3s0f0np0"}, Driver: "mlx5_core", MAC: "02:00:00:00:00:01",
					Path: "pci-0000:03:00.0", PCI: "15b3:a2dc", Kind: steer.Physical, Ready: true},
				State: reconcile.Configured, Generation: 3, Policies: []string{"/etc/flexsteer/10-homa.yaml", "/etc/flexsteer/10-homa.yaml.d/site.yaml"},
				Own: steer.DefaultOwn, Wanted: 82, InPlace: 82, Foreign: 2, Channels: steer.Channels{Combined: 16, Max: 32}, Queues: 16,
				Usage:     []reconcile.EntryUsage{{Entry: "homa", Rules: 64, Imbalance: 0.0625}, {Entry: "homa-server", Rules: 16}, {Entry: "dns", Rules: 2}},
				ChangedAt: noon.Add(-5 * time.Minute),
			},
			{
				Link:  steer.Link{Index: 4, Name: "ens1f1np1", Driver: "mlx5_core", Kind: steer.Physical, Ready: true},
				State: reconcile.Failed, Generation: 2, Policies: []string{"/etc/flexsteer/10-homa.yaml"},
				Own: steer.Range{First: 100, Last: 199}, Wanted: 16, InPlace: 7, ChangedAt: noon.Add(-26 * time.Hour), RetryAt: noon.Add(8 * time.Second),
				Problems: []steer.Problem{
					{Severity: steer.Blocked, Entry: "homa", At: steer.Origin{File: "/etc/flexsteer/10-homa.yaml", Line: 14, Column: 14, Text: "      queue: 64"},
						Text: "queue 64: ens1f1np1 has 32 receive queues", Fix: "use queues 0-31"},
					{Severity: steer.Failed, Entry: "raw", Text: "ens1f1np1: location 107: insert ip4 proto 253 l4data 0x3/0xf -> queue 3: no space left on device: the table is full",
						Fix: "free locations"},
					{Severity: steer.Notice, Needs: steer.NeedL4Data, Text: "the imbalance is 25 %"},
				},
			},
			{Link: steer.Link{Index: 5, Name: "veth0", Driver: "veth", Kind: steer.Physical, Ready: true}, State: reconcile.Unmanaged, ChangedAt: noon},
		},
	}
}

func TestDecodeGivesBackWhatWasEncoded(t *testing.T) {
	refused := sample()
	refused.ConfigErrors = []string{"10-homa.yaml:3:1: unknown key\n    stear:\n    ^"}
	refused.Problems = []steer.Problem{{Severity: steer.Failed, Text: "list links: too many open files"}}
	for name, s := range map[string]reconcile.Status{"empty": {}, "sample": sample(), "configuration refused": refused} {
		data, err := report.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := report.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, got); diff != "" {
			t.Errorf("%s: encoded and decoded (-want +got):\n%s", name, diff)
		}
	}
}

func TestUnknownKeysAreIgnored(t *testing.T) {
	data, _ := report.Encode(sample())
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	tree["colour_of_the_sky"] = "blue"
	tree["links"].([]any)[0].(map[string]any)["mood"] = 7
	data, _ = json.Marshal(tree)
	got, err := report.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), got); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, row := range map[string]struct{ data, want string }{
		"no JSON":               {"{", "unexpected end"},
		"another format":        {`{"version": 2}`, "format version 2"},
		"an unknown state":      {`{"version": 1, "links": [{"name": "eth0", "state": "happy"}]}`, `link eth0: unknown state "happy"`},
		"an unknown severity":   {`{"version": 1, "problems": [{"severity": "mild"}]}`, `unknown severity "mild"`},
		"a word for a number":   {`{"version": 1, "pid": "many"}`, "pid"},
		"nothing":               {"", "unexpected end"},
		"a list for the object": {"[]", "array"},
	} {
		if _, err := report.Decode([]byte(row.data)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, row.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	data, _ := report.Encode(sample())
	f.Add(data)
	f.Add([]byte(`{"version":1,"links":[{"state":"failed","problems":[{"severity":"notice","at":{"line":-1,"column":-9,"text":"\u001b"}}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := report.Decode(data)
		if err != nil {
			return
		}
		var out bytes.Buffer
		for _, o := range []report.Options{{}, {Width: 1, Now: noon}, {Width: 80, Now: noon}} {
			report.List(&out, s, o)
			for _, l := range s.Links {
				report.LinkStatus(&out, l, o)
			}
		}
		if strings.ContainsAny(out.String(), "\x1b\x07\x00") {
			t.Errorf("control characters reach the terminal:\n%q", out.String())
		}
		if line := report.Line(s); strings.ContainsAny(line, "\n\x1b\x00") {
			t.Errorf("STATUS line %q", line)
		}
		report.Metrics(s)
	})
}

// TestGoldens pins what programs parse and people read.
func TestGoldens(t *testing.T) {
	t.Setenv("TZ", "UTC")
	time.Local = time.UTC
	s := sample()
	data, err := report.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	var status bytes.Buffer
	for _, l := range s.Links {
		if err := report.LinkStatus(&status, l, report.Options{Now: noon}); err != nil {
			t.Fatal(err)
		}
	}
	list := func(o report.Options) []byte {
		var b bytes.Buffer
		if err := report.List(&b, s, o); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, got := range map[string][]byte{
		"status.json": data, "metrics.prom": report.Metrics(s), "status.txt": status.Bytes(),
		"list.txt": list(report.Options{}), "list-80.txt": list(report.Options{Width: 80}), "list-colour.txt": list(report.Options{Width: 80, Colour: true}),
	} {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNoRowIsWiderThanTheTerminal(t *testing.T) {
	for _, width := range []int{60, 80, 120} {
		var b bytes.Buffer
		report.List(&b, sample(), report.Options{Width: width})
		for _, line := range strings.Split(b.String(), "\n") {
			if n := len([]rune(line)); n > width {
				t.Errorf("%d columns in a terminal of %d: %q", n, width, line)
			}
		}
	}
}

func TestLine(t *testing.T) {
	blocked := sample().Links[1]
	blocked.State, blocked.Problems = reconcile.Blocked, []steer.Problem{{Severity: steer.Blocked, Text: "patched module not loaded"}}
	good := sample().Links[0]
	for name, row := range map[string]struct {
		s    reconcile.Status
		want string
	}{
		"nothing":     {reconcile.Status{}, "no link is managed"},
		"all is well": {reconcile.Status{Links: []reconcile.LinkStatus{good}}, "1 link configured"},
		"one blocked": {reconcile.Status{Links: []reconcile.LinkStatus{good, good, blocked}}, "2 links configured, 1 blocked: ens1f1np1: patched module not loaded"},
		"worst first": {sample(), "1 link configured, 1 failed: ens1f1np1: location 107: insert ip4 proto 253 l4data 0x3/0xf -> queue 3: no space left on device: the table is full"},
		"not loaded":  {reconcile.Status{ConfigErrors: []string{"a.yaml:1:2: bad\n  line", "other"}, Links: []reconcile.LinkStatus{good}}, "configuration not loaded, 2 errors: a.yaml:1:2: bad; 1 link configured"},
		"own problem": {reconcile.Status{Problems: []steer.Problem{{Severity: steer.Failed, Text: "list links: too many open files"}}}, "no link is managed: list links: too many open files"},
		"odd names":   {reconcile.Status{Links: []reconcile.LinkStatus{{Link: steer.Link{Name: "e\x1b[31m"}, State: reconcile.Blocked, Problems: blocked.Problems}}}, "1 link blocked: e?[31m: patched module not loaded"},
	} {
		if got := report.Line(row.s); got != row.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, row.want)
		}
	}
}

func TestFilesAreReplacedWhole(t *testing.T) {
	dir := t.TempDir()
	if _, err := report.Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before there is one: %v, want fs.ErrNotExist", err)
	}
	for range 2 {
		if err := report.Write(dir, sample()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := report.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), got); diff != "" {
		t.Error(diff)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 2 {
		t.Errorf("%d files, want 2: %v", len(entries), entries)
	}
	for _, e := range entries {
		if info, _ := e.Info(); info.Mode() != 0o644 {
			t.Errorf("%s has mode %v, want 0644", e.Name(), info.Mode())
		}
	}
	if err := errors.Join(report.Remove(dir), report.Remove(dir)); err != nil {
		t.Error(err)
	}
	if err := report.Write(filepath.Join(dir, "missing"), sample()); err == nil {
		t.Error("no error for a directory that does not exist")
	}
}

// TestMetricsAreInTheExpositionFormat checks each line against the format's
// grammar, with a link name that needs escapes.
func TestMetricsAreInTheExpositionFormat(t *testing.T) {
	s := sample()
	s.Links[0].Link.Name = "e\"\\\nx"
	typed := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSuffix(string(report.Metrics(s)), "\n"), "\n") {
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "# TYPE "):
			if typed[fields[2]] {
				t.Errorf("second TYPE of %s", fields[2])
			}
			typed[fields[2]] = true
		case strings.HasPrefix(line, "# HELP "):
		default:
			name, rest, labelled := strings.Cut(line, "{")
			if !labelled {
				name, rest = fields[0], "} "+fields[1]
			}
			if !typed[name] || !strings.Contains(rest, "} ") {
				t.Errorf("line %q", line)
			}
		}
	}
	if !bytes.Contains(report.Metrics(s), []byte(`link="e\"\\\nx"`)) {
		t.Error("the link's name is not escaped")
	}
}
