// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// hostile are files that cost some YAML parsers much time or memory.
func hostile() map[string]string {
	entry := "match: {name: a}\nsteer:\n"
	return map[string]string{
		"20,000 brackets":        strings.Repeat("[", 20_000),
		"20,000 braces":          strings.Repeat("{a: ", 20_000),
		"20,000 closed brackets": strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000),
		"brackets by lines":      strings.Repeat("[\n", 20_000),
		"brackets and comments":  strings.Repeat("[ # ]\n", 20_000),
		"brackets and quotes":    strings.Repeat("[\"]\", ", 20_000),
		"brackets after a key":   "match: " + strings.Repeat("[a, ", 20_000),
		"nested items":           strings.Repeat("- ", 4_000),
		"nested items by lines":  nestedLines("- ", 1400),
		"nested keys by lines":   nestedLines("a:", 1400),
		"long form keys":         strings.Repeat("? ", 4_000),
		"2 MiB":                  strings.Repeat("# 456789abcdef\n", 2<<20/15),
		"1 MiB on one line":      "match: {name: [" + strings.Repeat("a, ", 349_000) + "]}",
		"1 MiB of commas":        "match: {name: [\n" + strings.Repeat(strings.Repeat(",", 500)+"\n", 2000) + "]}",
		"1 MiB of values":        "match: {name: [\n" + strings.Repeat(strings.Repeat("a,", 250)+"\n", 2000) + "]}",
		"1 MiB of keys":          strings.Repeat("a:\n", 349_000),
		"1 MiB of items":         "match:\n" + strings.Repeat("-\n", 500_000),
		"1 MiB of comments":      strings.Repeat("#\n", 500_000),
		"1 MiB of blank lines":   strings.Repeat("\n", 1<<20),
		"1 MiB of spaces":        strings.Repeat(strings.Repeat(" ", 8000)+"\n", 130),
		"1 MiB of faults":        entry + strings.Repeat("  - {}\n", 149_000),
		"1 MiB of bytes 0xff":    strings.Repeat("\xff", 1<<20),
		"1 MiB of bad lines":     strings.Repeat("\xff\n", 500_000),
		"1 MiB of NULs":          strings.Repeat("\x00", 1<<20),
		"1 MiB of document ends": strings.Repeat("...\n", 262_000),
		"1 MiB of markers":       strings.Repeat("---\n", 262_000),
		"1 MiB of entries":       entry + strings.Repeat("  - {protocol: 146, queue: 1}\n", 33_000),
		"many queues":            entry + strings.Repeat("  - {protocol: 146, spread: {by: source-port, over: 0-65535}}\n", 16_000),
		"many queues in a list":  entry + "  - {protocol: 146, source-port: 0-65535, queues: [\n" + strings.Repeat("0-65535,\n", 10_000) + "]}\n",
		"many ports":             entry + "  - {protocol: 146, queue: 1, source-port: [\n" + strings.Repeat("1,\n", 99_000) + "]}\n",
		"aliases":                "a: &a [x]\n" + strings.Repeat("b: [*a, *a, *a]\n", 1000),
		"long key":               "\"" + strings.Repeat("k", 4000) + "\": 1\n",
		"long unknown words":     strings.Repeat(strings.Repeat("k", 4000)+": 1\n", 200),
		"distinct unknown keys":  distinct(entry, "  - {unknown-key-of-many-letters-%d: 1}\n", 20_000),
		"distinct protocols":     distinct(entry, "  - {protocol: homb%d, queue: 1}\n", 20_000),
		"almost a glob":          "match: {name: \"" + strings.Repeat("[a-", 80) + "\"}",
	}
}

func distinct(start, format string, n int) string {
	var b strings.Builder
	b.WriteString(start)
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func nestedLines(line string, depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat(" ", i) + line + "\n")
	}
	return b.String()
}

// allocated is the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestHostileFilesCostLittle(t *testing.T) {
	const limit = 256 << 20 // bytes allocated in all; the largest file that is valid needs about half
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			var err error
			n := allocated(func() { _, err = loadOne("etc/flexsteer/10-a.yaml", []byte(text)) })
			if n > limit {
				t.Errorf("allocated %d MiB for %d KiB", n>>20, len(text)>>10)
			}
			checkHostile(t, text, err)
		})
	}
}

func checkHostile(t *testing.T, text string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var errs Errors
	if !errors.As(err, &errs) || len(errs) == 0 || len(errs) > maxErrors+1 {
		t.Fatalf("%T of %d", err, len(errs))
	}
	if n := len(err.Error()); n > 1<<20 {
		t.Errorf("the message has %d bytes", n)
	}
	if len(text) <= maxFile {
		checkPlaces(t, []byte(text), err)
	}
}

func TestDepthIsCheckedBeforeTheYAMLLibrary(t *testing.T) {
	for name, text := range hostile() {
		if !strings.Contains(name, "nested") && !strings.Contains(name, "20,000 b") {
			continue
		}
		src, f := newSource(name, []byte(text))
		if lex(src, f); len(f.list) == 0 {
			t.Errorf("%s: passed on to the library", name)
		}
	}
}

func TestErrorsBeyondTheLimitAreCounted(t *testing.T) {
	_, err := loadOne("etc/flexsteer/10-a.yaml", []byte("match: {name: a}\nsteer:\n"+strings.Repeat("  - {}\n", 250)))
	var errs Errors
	if !errors.As(err, &errs) || len(errs) != maxErrors+1 {
		t.Fatal(len(errs))
	}
	expect(t, "last", errs[maxErrors].Summary(), fmt.Sprintf("/etc/flexsteer/10-a.yaml: %d more errors in this file are not shown", 250-maxErrors))
}
