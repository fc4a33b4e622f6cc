// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// Error is one fault of one file.
type Error struct {
	At   steer.Origin // Line 0: the file as a whole
	Text string       // what is wrong
	Hint string       // what to write instead, or ""
	Also steer.Origin // the other place, such as the first of two equal keys; zero: none

	rule rule
	err  error // of the file system
}

// Unwrap is the error of the file system behind a file that cannot be read.
func (e *Error) Unwrap() error { return e.err }

// Errors is every fault found, in the order of the files and their lines.
type Errors []*Error

// Error prints all faults, one below the other.
func (es Errors) Error() string {
	parts := make([]string, len(es))
	for i, e := range es {
		parts[i] = e.Error()
	}
	return strings.Join(parts, "\n")
}

// Unwrap makes every *Error visible to errors.As.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// Error prints the fault in several lines: FILE:LINE:COL: text, the source
// line, a caret below the column, the other place and the hint.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Summary() + "\n" + e.At.Caret("    "))
	if e.Also.File != "" {
		fmt.Fprintf(&b, "    the other one is at %s\n%s", e.Also, e.Also.Caret("    "))
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "    hint: %s", e.Hint)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Summary is the fault in one line: FILE:LINE:COL: text.
func (e *Error) Summary() string { return e.At.String() + ": " + e.Text }

// printable makes a line safe for a terminal and keeps its columns: an invalid
// byte or an unprintable character becomes one U+FFFD, a space that is not
// U+0020 becomes a visible one.
func printable(line string) string {
	if isPlainASCII(line) {
		return line
	}
	var b strings.Builder
	for _, c := range line {
		b.WriteRune(shown(c))
	}
	return b.String()
}

func isPlainASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf || (s[i] < ' ' && s[i] != '\t') || s[i] == 0x7f {
			return false
		}
	}
	return true
}
