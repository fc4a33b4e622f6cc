// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file of testdata.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// etcName is where a file of testdata goes: daemon-*.yaml are settings of the
// daemon, but for daemon-in-policy.yaml.
func etcName(file string) string {
	base := filepath.Base(file)
	if strings.HasPrefix(base, "daemon-") && base != "daemon-in-policy.yaml" {
		base = daemonFile
	}
	return "etc/flexsteer/" + base
}

// testFiles is the content of the files that match, at least so many.
func testFiles(t testing.TB, least int, patterns ...string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if out[file], err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(out) < least {
		t.Fatalf("%d files of %v", len(out), patterns)
	}
	return out
}

func loadOne(name string, data []byte) (*Config, error) {
	return Load(fstest.MapFS{name: &fstest.MapFile{Data: data}}, SearchPath)
}

func TestBadFilesSayWhereWhatAndWhatToDo(t *testing.T) {
	for file, data := range testFiles(t, 40, "testdata/bad/*.yaml") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			c, err := loadOne(etcName(file), data)
			if err == nil || c != nil {
				t.Fatal("accepted")
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
			checkPlaces(t, data, err)
		})
	}
}

// checkPlaces wants every place inside the file, and messages that are safe
// for a terminal.
func checkPlaces(t *testing.T, data []byte, err error) {
	t.Helper()
	var errs Errors
	if !errors.As(err, &errs) || len(errs) == 0 {
		t.Fatalf("%T is not Errors", err)
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), byteOrderMark), "\r\n", "\n")
	lines := strings.Split(text, "\n")
	for _, e := range errs {
		if e.Text == "" || e.rule == "" || e.At.File == "" {
			t.Errorf("incomplete: %+v", e)
		}
		if e.At.Line > 0 {
			checkPlace(t, lines, e)
		}
		if !safe(e.Error()) {
			t.Errorf("not safe to print: %q", e.Error())
		}
	}
}

func checkPlace(t *testing.T, lines []string, e *Error) {
	t.Helper()
	if e.At.Line > len(lines) {
		t.Errorf("line %d of %d: %s", e.At.Line, len(lines), e.Text)
		return
	}
	width := utf8.RuneCountInString(lines[e.At.Line-1])
	if e.At.Column < 1 || e.At.Column > width+1 {
		t.Errorf("column %d of %d: %s", e.At.Column, width, e.Text)
	}
	if shown := utf8.RuneCountInString(e.At.Text); shown != width {
		t.Errorf("the line of the message has %d characters, that of the file %d", shown, width)
	}
}

func safe(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool {
		return c != '\n' && c != '\t' && shown(c) != c
	})
}
