// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/flexsteer/flexsteer/pkg/steer"
	"github.com/google/go-cmp/cmp"
)

var testLinks = []steer.Link{
	{
		Index: 2, Name: "ens1f1np1", AltNames: []string{"enp3s0f1np1", "storage"}, Driver: "mlx5_core", MAC: "02:00:00:00:00:01",
		Path: "pci-0000:03:00.1", PCI: "15b3:a2dc", Kind: steer.Physical,
	},
	{Index: 3, Name: "ens1f1v0", Driver: "mlx5_core", MAC: "02:00:00:00:00:02", Path: "pci-0000:03:08.2", PCI: "15b3:101e", Kind: steer.VF},
	{Index: 4, Name: "pf1vf0", Driver: "mlx5e_rep", Kind: steer.Representor},
	{Index: 5, Name: "eth0", Driver: "ice", MAC: "02:00:00:00:00:05", Path: "pci-0000:81:00.0", PCI: "8086:1592", Kind: steer.Physical},
}

func TestGoodFilesSayWhatTheyMean(t *testing.T) {
	for file, data := range testFiles(t, 8, "testdata/good/*.yaml") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			c, err := loadOne(etcName(file), data)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", printConfig(c, testLinks))
		})
	}
}

// policyNamed is a policy with one entry of that name.
func policyNamed(name string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("match: {driver: mlx5_core}\nsteer:\n  - {name: " + name + ", protocol: udp, queue: 1}\n")}
}

func entryNames(t *testing.T, fsys fs.FS) []string {
	t.Helper()
	c, err := Load(fsys, SearchPath)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range c.Resolve(testLinks[:1]) {
		for _, e := range d.Entries {
			out = append(out, e.Name)
		}
	}
	return out
}

func expect[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestFilesOfAllDirectoriesAreSortedTogether(t *testing.T) {
	expect(t, "entries", entryNames(t, fstest.MapFS{
		"etc/flexsteer/20-b.yaml":           policyNamed("b"),
		"run/flexsteer/10-a.yaml":           policyNamed("a"),
		"usr/lib/flexsteer/30-c.yaml":       policyNamed("c"),
		"usr/local/lib/flexsteer/25-x.yaml": policyNamed("x"),
	}), []string{"a", "b", "x", "c"})
}

func TestTheMoreImportantDirectoryReplacesAFile(t *testing.T) {
	fsys := fstest.MapFS{"usr/lib/flexsteer/10-a.yaml": policyNamed("lib")}
	expect(t, "usr/lib", entryNames(t, fsys), []string{"lib"})
	fsys["usr/local/lib/flexsteer/10-a.yaml"] = policyNamed("local")
	expect(t, "usr/local", entryNames(t, fsys), []string{"local"})
	fsys["run/flexsteer/10-a.yaml"] = policyNamed("run")
	expect(t, "run", entryNames(t, fsys), []string{"run"})
	fsys["etc/flexsteer/10-a.yaml"] = policyNamed("etc")
	expect(t, "etc", entryNames(t, fsys), []string{"etc"})
}

func TestAnEmptyFileOrALinkToDevNullMasks(t *testing.T) {
	for what, mask := range map[string]*fstest.MapFile{
		"empty file":        {},
		"link to /dev/null": {Mode: fs.ModeSymlink | 0o777, Data: []byte("/dev/null")},
		"character device":  {Mode: fs.ModeDevice | fs.ModeCharDevice | 0o666},
	} {
		fsys := fstest.MapFS{
			"usr/lib/flexsteer/10-a.yaml":          policyNamed("a"),
			"usr/lib/flexsteer/10-a.yaml.d/1.yaml": dropIn("{name: more, protocol: tcp, queue: 1}"),
			"usr/lib/flexsteer/20-b.yaml":          policyNamed("b"),
			"etc/flexsteer/10-a.yaml":              mask,
		}
		expect(t, what, entryNames(t, fsys), []string{"b"})
	}
}

func TestMaskingOnARealFileSystem(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"etc/flexsteer", "usr/lib/flexsteer"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"10-a.yaml", "20-b.yaml", "30-c.yaml"} {
		if err := os.WriteFile(filepath.Join(root, "usr/lib/flexsteer", name), policyNamed(name[3:4]).Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"10-a.yaml": "/dev/null", "null": "/dev/null", "20-b.yaml": "null"} {
		if err := os.Symlink(target, filepath.Join(root, "etc/flexsteer", link)); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, "entries", entryNames(t, os.DirFS(root)), []string{"c"})
}

func dropIn(entries ...string) *fstest.MapFile {
	text := "steer:\n"
	for _, e := range entries {
		text += "  - " + e + "\n"
	}
	return &fstest.MapFile{Data: []byte(text)}
}

func TestDropInsAppendListsAndReplaceScalars(t *testing.T) {
	fsys := fstest.MapFS{
		"usr/lib/flexsteer/10-a.yaml": {Data: []byte(`
match: {name: [ens1f1np1], driver: [mlx5_core, ice], kind: physical}
channels: 4
locations: 0-99
steer:
  - {name: base, protocol: udp, queue: 1}
`)},
		"usr/lib/flexsteer/10-a.yaml.d/10-less.yaml": dropIn("{name: hidden, protocol: tcp, queue: 1}"),
		"etc/flexsteer/10-a.yaml.d/10-less.yaml":     {Data: []byte("match: {name: [eth0], driver: ice}\nchannels: 8\n")},
		"run/flexsteer/10-a.yaml.d/20-more.yaml":     {Data: []byte("locations: 5-50\nsteer:\n  - {protocol: tcp, queue: 1}\n")},
		"run/flexsteer/10-a.yaml.d/30-none.yaml":     {},
	}
	c, err := Load(fsys, SearchPath)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/drop-ins.txt", printConfig(c, testLinks))
	expect(t, "files", c.Files, []string{
		"/usr/lib/flexsteer/10-a.yaml", "/etc/flexsteer/10-a.yaml.d/10-less.yaml", "/run/flexsteer/10-a.yaml.d/20-more.yaml",
	})
}

func TestAnErrorOfADropInNamesTheDropIn(t *testing.T) {
	_, err := Load(fstest.MapFS{
		"etc/flexsteer/10-a.yaml":          policyNamed("dns"),
		"run/flexsteer/10-a.yaml.d/x.yaml": dropIn("{protocol: udp, queue: 99999}", "{name: dns, protocol: udp, queue: 9}"),
	}, SearchPath)
	golden(t, "testdata/drop-in-errors.txt", err.Error()+"\n")
}

func TestErrorsOfAllFilesComeTogether(t *testing.T) {
	_, err := Load(fstest.MapFS{
		"etc/flexsteer/10-a.yaml":            {Data: []byte("match: {nam: a}\nsteer: [{protocol: 300, queue: x}]\n")},
		"run/flexsteer/05-b.yaml":            {Data: []byte("match:\n\tname: a\n")},
		"usr/lib/flexsteer/flexsteerd.yaml":  {Data: []byte("daemon: {resync: 3}\n")},
		"etc/flexsteer/20-dir.yaml/x":        {},
		"etc/flexsteer/30-fifo.yaml":         {Mode: fs.ModeNamedPipe},
		"etc/flexsteer/40-dangling.yaml":     {Mode: fs.ModeSymlink, Data: []byte("missing")},
		"etc/flexsteer/10-a.yaml.d/bad.yaml": {Data: []byte("steer: 3\n")},
	}, SearchPath)
	golden(t, "testdata/all-files.txt", err.Error()+"\n")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("the error of the file system is lost")
	}
}

func TestADirectoryThatCannotBeReadIsAnError(t *testing.T) {
	c, err := Load(fstest.MapFS{"etc/flexsteer": {Mode: 0o644}}, SearchPath)
	if c != nil || err == nil {
		t.Fatal(c, err)
	}
	expect(t, "error", strings.HasPrefix(err.Error(), "/etc/flexsteer: "), true)
}

func TestNoDirectoryIsNotFoundAndNoError(t *testing.T) {
	c, err := Load(fstest.MapFS{}, SearchPath)
	if err != nil || c.Found || len(c.Policies) > 0 {
		t.Fatal(c, err)
	}
	expect(t, "daemon", c.Daemon, DefaultDaemon())
	c, err = Load(fstest.MapFS{"run/flexsteer": {Mode: fs.ModeDir | 0o755}}, SearchPath)
	if err != nil || !c.Found || len(c.Policies) > 0 {
		t.Fatal(c, err)
	}
}

func TestFilesThatSeemMeantAreWarnedAbout(t *testing.T) {
	c, err := Load(fstest.MapFS{
		"etc/flexsteer/10-a.yml":           policyNamed("a"),
		"etc/flexsteer/README":             {},
		"etc/flexsteer/.10-a.yaml.swp":     {},
		"etc/flexsteer/.#10-a.yaml":        {Mode: fs.ModeSymlink, Data: []byte("nowhere")},
		"etc/flexsteer/20-b.yaml.d/x.yaml": dropIn("{protocol: udp, queue: 1}"),
		"etc/flexsteer/20-b.yaml.d/y.YML":  {},
	}, SearchPath)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/warnings.txt", c.Warnings.Error()+"\n")
	expect(t, "policies", len(c.Policies), 0)
}

func TestSettingsOfTheDaemonAreNoPolicy(t *testing.T) {
	c, err := Load(fstest.MapFS{
		"usr/lib/flexsteer/flexsteerd.yaml":         {Data: []byte("daemon: {resync: 10s, firmware: {check: false}}\n")},
		"etc/flexsteer/flexsteerd.yaml.d/10-a.yaml": {Data: []byte("daemon: {resync: 20s}\n")},
	}, SearchPath)
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultDaemon()
	want.Resync, want.Firmware.Check = 20e9, false
	expect(t, "daemon", c.Daemon, want)
	expect(t, "policies", len(c.Policies), 0)
}

func TestDropInsOfTheDaemonNeedNoMainFile(t *testing.T) {
	fsys := fstest.MapFS{"etc/flexsteer/flexsteerd.yaml.d/10-a.yaml": {Data: []byte("daemon: {resync: 20s}\n")}}
	c, err := Load(fsys, SearchPath)
	if err != nil || c.Daemon.Resync != 20e9 {
		t.Error(c, err)
	}
	fsys["etc/flexsteer/flexsteerd.yaml"] = &fstest.MapFile{}
	if c, err = Load(fsys, SearchPath); err != nil || c.Daemon.Resync != DefaultDaemon().Resync {
		t.Error("masked:", c, err)
	}
}

func TestLoadFilesReadsWhatIsNamedOnly(t *testing.T) {
	fsys := fstest.MapFS{
		"home/me/20-b.yaml":          policyNamed("b"),
		"home/me/10-a.yaml":          policyNamed("a"),
		"home/me/10-a.yaml.d/x.yaml": dropIn("{name: x, protocol: tcp, queue: 1}"),
		"home/me/30-c.yaml":          policyNamed("c"),
		"home/me/flexsteerd.yaml":    {Data: []byte("daemon: {resync: 10s}\n")},
		"home/me/off.yaml":           {},
	}
	load := func(files ...string) (out []string) {
		t.Helper()
		c, err := LoadFiles(fsys, files)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range c.Policies {
			for _, e := range p.Entries {
				out = append(out, e.Name)
			}
		}
		return out
	}
	expect(t, "two files", load("/home/me/20-b.yaml", "/home/me/10-a.yaml"), []string{"a", "b"})
	expect(t, "twice", load("/home/me/20-b.yaml", "/home/me/20-b.yaml"), []string{"b"})
	expect(t, "with drop-in", load("/home/me/10-a.yaml.d/x.yaml", "home/me/10-a.yaml"), []string{"a", "x"})
	expect(t, "drop-in alone", load("/home/me/10-a.yaml.d/x.yaml"), []string(nil))
	expect(t, "empty", load("/home/me/off.yaml"), []string(nil))
	c, err := LoadFiles(fsys, []string{"/home/me/flexsteerd.yaml"})
	if err != nil || c.Daemon.Resync != 10e9 {
		t.Error(c, err)
	}
	if _, err := LoadFiles(fsys, []string{"/home/me/none.yaml"}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestFilesAreTheFilesInEffectWhateverTheyHold(t *testing.T) {
	fsys := fstest.MapFS{
		"etc/flexsteer/10-a.yaml":          {Data: []byte("broken: [")},
		"etc/flexsteer/10-a.yaml.d/x.yaml": {Data: []byte("channels: 4")},
		"etc/flexsteer/20-b.yaml":          {Data: nil}, // masks
		"usr/lib/flexsteer/20-b.yaml":      {Data: []byte("steer: []")},
		"usr/lib/flexsteer/30-c.yaml":      {Data: []byte("steer: []")},
	}
	got, err := Files(fsys, SearchPath)
	want := []string{"/etc/flexsteer/10-a.yaml", "/etc/flexsteer/10-a.yaml.d/x.yaml", "/usr/lib/flexsteer/30-c.yaml"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Files = %v, %v, want %v", got, err, want)
	}
}

func TestProtocolsByNameAndNumber(t *testing.T) {
	for name, number := range protocols {
		if n, ok := Protocol(name); !ok || n != number {
			t.Errorf("Protocol(%q) = %d, %v", name, n, ok)
		}
		if back, ok := ProtocolName(number); !ok || back != name {
			t.Errorf("ProtocolName(%d) = %q, want %q", number, back, name)
		}
	}
	if _, ok := ProtocolName(253); ok {
		t.Error("253 has a name")
	}
}
