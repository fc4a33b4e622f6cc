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
	b.WriteString(e.Summary())
	writeExcerpt(&b, e.At)
	if e.Also.File != "" {
		fmt.Fprintf(&b, "\n    the other one is at %s", place(e.Also))
		writeExcerpt(&b, e.Also)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "\n    hint: %s", e.Hint)
	}
	return b.String()
}

// Summary is the fault in one line: FILE:LINE:COL: text.
func (e *Error) Summary() string { return place(e.At) + ": " + e.Text }

func place(o steer.Origin) string {
	if o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d:%d", o.File, o.Line, o.Column)
}

// excerptWidth is how much of a long line is shown around the caret.
const excerptWidth = 100

func writeExcerpt(b *strings.Builder, o steer.Origin) {
	if o.Line == 0 || strings.TrimSpace(o.Text) == "" {
		return
	}
	line, column := window([]rune(o.Text), o.Column-1)
	var pad strings.Builder
	for _, c := range line[:min(column, len(line))] {
		if c == '\t' {
			pad.WriteByte('\t')
			continue
		}
		pad.WriteByte(' ')
	}
	fmt.Fprintf(b, "\n    %s\n    %s^", strings.TrimRight(string(line), " \t"), pad.String())
}

// window cuts a long line down to the neighbourhood of column (from 0).
func window(line []rune, column int) ([]rune, int) {
	if len(line) <= excerptWidth {
		return line, column
	}
	from := max(0, min(column-excerptWidth/2, len(line)-excerptWidth))
	to := min(len(line), from+excerptWidth)
	cut := append([]rune{}, line[from:to]...)
	if from > 0 {
		cut[0] = '…'
	}
	if to < len(line) {
		cut[len(cut)-1] = '…'
	}
	return cut, column - from
}

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
