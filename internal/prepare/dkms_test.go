// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

func TestSavedStatus(t *testing.T) {
	for name, row := range map[string]struct {
		kernel, want string // version and state of the best entry
		entries      int
		differs      bool
	}{
		"2.8.4.txt":       {"6.1.0-40-amd64", "0.3.1 installed", 2, false},
		"3.0-diff.txt":    {"6.1.0-40-amd64", "0.3.1 installed", 2, true},
		"3.1.3+-diff.txt": {"6.12.40+deb13-amd64", "0.3.1 installed", 1, true},
		"added.txt":       {"6.1.0-40-amd64", "0.3.1 added", 1, false},
		"broken.txt":      {"6.12.40+deb13-amd64", "0.3.1 installed", 2, false},
		"empty.txt":       {"6.1.0-40-amd64", " ", 0, false},
		// What DKMS complains about comes on standard error, and is no state.
		"broken.stderr.txt": {"6.1.0-40-amd64", " ", 0, false},
	} {
		entries := ParseStatus(contents(t, "dkms/"+name))
		e, _ := at(entries, row.kernel)
		if got := e.Version + " " + string(e.State); got != row.want || len(entries) != row.entries || e.differs() != row.differs {
			t.Errorf("%s: %q of %+v, want %q", name, got, entries, row.want)
		}
	}
	other := ParseStatus(contents(t, "dkms/3.0-diff.txt"))
	if e, _ := at(other, "6.1.0-41-amd64"); e.State != Built {
		t.Errorf("built for another kernel: %+v", e)
	}
	if e, ok := at(other, "6.1.0-42-amd64"); ok {
		t.Errorf("nothing for this kernel: %+v", e)
	}
}

// TestRealStatus reads what these versions of dkms themselves print of one tree:
// 0.1.0 built for one kernel and installed, with another file, for the next, 0.2.0
// added, and 0.3.0 without its source.
func TestRealStatus(t *testing.T) {
	files, _ := filepath.Glob("testdata/dkms/real/*.txt")
	if len(files) < 10 {
		t.Fatalf("%d files", len(files))
	}
	for _, file := range files {
		entries := ParseStatus(contents(t, strings.TrimPrefix(file, "testdata/")))
		for kernel, want := range map[string]State{"6.1.0-40-amd64": Built, "6.1.0-41-amd64": Installed, "6.1.0-42-amd64": Added} {
			if e, _ := at(entries, kernel); e.State != want || e.differs() != (want == Installed) {
				t.Errorf("%s: %s: %+v, want %s", file, kernel, e, want)
			}
		}
		release := strings.TrimSuffix(filepath.Base(file), ".txt")
		young := release >= "3.0.13" && release != "3.0.10"
		if len(entries) != 4 || (newest(entries) == "0.2.0") != young {
			t.Errorf("%s: newest %q of %+v", file, newest(entries), entries)
		}
	}
}

// dkmsLine is a line of `dkms status` as a version prints it: the separator behind
// the name became a slash for built modules at 2.8.6, for added ones at 2.8.7.
func dkmsLine(release, state, version, kernel, remark string) string {
	separator := "/"
	if release < "2.8.6" || release < "2.8.7" && state == "added" || strings.HasPrefix(state, "installed-weak") {
		separator = ", "
	}
	line := Package + separator + version
	if kernel != "" {
		line += ", " + kernel + ", x86_64"
	}
	return line + ": " + state + remark + "\n"
}

func TestEveryStatusLayout(t *testing.T) {
	old := []string{"", " (original_module exists)", " (WARNING! Diff between built and installed module!)", " (WARNING! Missing some built modules!)",
		" (original_module exists) (WARNING! Diff between built and installed module!) (WARNING! Diff between built and installed module!)"}
	young := []string{"", " (Original modules exist)", " (Differences between built and installed modules)", " (Built modules are missing in the kernel modules folder)"}
	for _, release := range []string{"2.8.1", "2.8.2", "2.8.3", "2.8.4", "2.8.5", "2.8.6", "2.8.7", "2.8.8", "3.0.0", "3.0.3", "3.0.10", "3.0.11",
		"3.0.12", "3.0.13", "3.1.0", "3.1.1", "3.1.2", "3.1.3", "3.1.4", "3.1.8", "3.2.0", "3.2.1", "3.2.2"} {
		remarks := old
		if release >= "3.1.3" {
			remarks = young
		}
		for _, remark := range remarks {
			t.Run(release+remark, func(t *testing.T) {
				text := dkmsLine(release, "added", "0.3.0", "", "") +
					dkmsLine(release, "installed", "0.3.1", "6.1.0-40-amd64", remark) +
					dkmsLine(release, "built", "0.3.1", "6.1.0-41-amd64", "") +
					dkmsLine(release, "installed-weak from 6.1.0-40-amd64", "0.3.1", "6.1.0-42-amd64", "") +
					"other-module/0.3.9, 6.1.0-41-amd64, x86_64: installed\nflexsteer-mlx5-extra/0.3.9, 6.1.0-41-amd64, x86_64: installed\n"
				if release >= "3.0.13" {
					text += dkmsLine(release, "broken", "0.4.0", "", "")
				}
				entries := ParseStatus(text)
				for kernel, want := range map[string]State{"6.1.0-40-amd64": Installed, "6.1.0-41-amd64": Built, "6.1.0-42-amd64": Weak, "6.1.0-43-amd64": Added} {
					if e, _ := at(entries, kernel); e.State != want {
						t.Errorf("%s: %+v, want %s\n%s", kernel, e, want, text)
					}
				}
				if weak, _ := at(entries, "6.1.0-42-amd64"); weak.From != "6.1.0-40-amd64" {
					t.Errorf("weak from %q", weak.From)
				}
				e, _ := at(entries, "6.1.0-40-amd64")
				if want := strings.Contains(remark, "Diff") || strings.Contains(strings.ToLower(remark), "missing"); e.differs() != want {
					t.Errorf("differs: %v, %q", e.differs(), e.Remarks)
				}
				if v := newest(entries); v != "0.3.1" {
					t.Errorf("newest %q: a broken one cannot be built", v)
				}
			})
		}
	}
}

func TestVersionsAreNumbers(t *testing.T) {
	for _, pair := range [][2]string{{"0.9.0", "0.10.0"}, {"0.3", "0.3.1"}, {"0.3.1", "1"}, {"", "0"}, {"0.3.1~rc1", "0.3.1~rc2"}} {
		if compareVersions(pair[0], pair[1]) >= 0 || compareVersions(pair[1], pair[0]) <= 0 {
			t.Errorf("%q is not below %q", pair[0], pair[1])
		}
	}
}

func TestRefusalsOfTheBuild(t *testing.T) {
	text := "make: Entering directory\n\nflexsteer-mlx5: kernel 6.1.0-41-amd64: its headers are of version 6.1.192-1, but /usr/src/linux-source-6.1.tar.xz is of version 6.1.176-1\n" +
		"  Fix: install the source of exactly this kernel: apt install linux-source-6.1=6.1.192-1\n  Fix: or put the archive into /usr/src/flexsteer-mlx5/sources\n" +
		"  Nothing was installed; the kernel's own mlx5_core stays in use.\n"
	f, ok := ParseRefusal(text)
	if !ok || !strings.HasPrefix(f.What, "its headers are of version 6.1.192-1, but") || len(f.Fix) != 2 || !strings.HasPrefix(f.Fix[0], "install the source") {
		t.Errorf("%v %+v", ok, f)
	}
	if f, ok := ParseRefusal("flexsteer-mlx5: kernel 6.1: Linux 6.1.192 from a.tar, patches/x.patch\n" + "  fatal: no Fix\n"); ok {
		t.Errorf("a note is no refusal: %+v", f)
	}
}

func FuzzStatus(f *testing.F) {
	for _, name := range []string{"2.8.4.txt", "3.0-diff.txt", "3.1.3+-diff.txt", "added.txt", "broken.txt", "broken.stderr.txt"} {
		f.Add(contents(f, "dkms/"+name))
	}
	f.Add(dkmsLine("3.2.2", "installed-weak from 6.1.0-40-amd64", "0.3.1", kernel, ""))
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range ParseStatus(text) {
			if e.State == Installed && (e.Kernel == "" || !strings.Contains(text, e.Kernel+", ") || !strings.Contains(text, ": installed")) {
				t.Errorf("%+v of %q", e, text)
			}
			if e.Version == "" {
				t.Errorf("no version: %+v", e)
			}
		}
		entries := ParseStatus(text)
		m := Module{Kernel: kernel, DKMS: entries}
		m.Verdict = m.judge()
		if m.Verdict == ModuleLoaded || m.Verdict == ModuleInstalled {
			t.Errorf("%s by words alone", m.Verdict)
		}
		if p, wrong := m.Problem(); !wrong || p.Text == "" || p.Fix == "" {
			t.Errorf("%s: %q, fix %q", m.Verdict, p.Text, p.Fix)
		}
		ParseRefusal(text)
		ParseModinfo(text)
		ParseInitramfs(text, kernel)
	})
}

func ExampleParseStatus() {
	for _, e := range ParseStatus("flexsteer-mlx5/0.3.1, 6.1.0-41-amd64, x86_64: installed (original_module exists)\n") {
		fmt.Println(e.Version, e.Kernel, e.State, e.Remarks)
	}
	// Output: 0.3.1 6.1.0-41-amd64 installed [original_module exists]
}
