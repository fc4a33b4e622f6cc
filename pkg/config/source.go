// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// Limits of one file. They keep the time and memory that a file can cost in
// proportion; no configuration that a person writes comes near them.
const (
	maxFile   = 1 << 20 // bytes
	maxLine   = 8192    // bytes
	maxDepth  = 16      // levels of lists and mappings; the format uses 5
	maxValues = 100_000 // keys, values, lists and mappings
	maxQueues = 1 << 18 // queues that ranges and lists name, counted again for each entry
	maxErrors = 100     // errors told of one file
)

// source is the text of one file by lines, without line ends and byte order mark.
type source struct {
	name  string // as a person would name it
	lines []string
}

// origin is the place at line and column, both from 1.
func (s *source) origin(line, column int) steer.Origin {
	text := ""
	if line <= len(s.lines) {
		text = printable(s.lines[line-1])
	}
	return steer.Origin{File: s.name, Line: line, Column: column, Text: text}
}

// faults collects the errors of one file.
type faults struct {
	src    *source
	list   []*Error
	missed int // errors beyond maxErrors
	queues int // see maxQueues
}

func (f *faults) add(e *Error) {
	if len(f.list) >= maxErrors {
		f.missed++
		return
	}
	f.list = append(f.list, e)
}

func (f *faults) at(line, column int, r rule, text, hint string) {
	if len(f.list) >= maxErrors {
		f.missed++ // without making a place of it
		return
	}
	f.add(&Error{At: f.src.origin(line, column), Text: text, Hint: hint, rule: r})
}

func (f *faults) whole(r rule, text, hint string) {
	f.add(&Error{At: steer.Origin{File: f.src.name}, Text: text, Hint: hint, rule: r})
}

// broke reports whether some fault is of rule r.
func (f *faults) broke(r rule) bool {
	return slices.ContainsFunc(f.list, func(e *Error) bool { return e.rule == r })
}

// errors is what was found, and how much more there was.
func (f *faults) errors() []*Error {
	if f.missed == 0 {
		return f.list
	}
	return append(f.list, &Error{
		At:   steer.Origin{File: f.src.name},
		Text: fmt.Sprintf("%d more errors in this file are not shown", f.missed),
		rule: ruleFile,
	})
}

const byteOrderMark = "\ufeff"

// newSource splits the bytes of a file into lines and checks that they are
// text. With faults the lines serve for messages only.
func newSource(name string, data []byte) (*source, *faults) {
	s := &source{name: name}
	f := &faults{src: s}
	if len(data) > maxFile {
		f.whole(ruleFile, "the file is larger than 1 MiB", "split it: all files in the directory are read")
		return s, f
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		f.whole(ruleFile, "the file is UTF-16", "save it as UTF-8")
		return s, f
	}
	text := strings.TrimPrefix(string(data), byteOrderMark)
	text = strings.ReplaceAll(text, "\r\n", "\n")
	s.lines = strings.Split(text, "\n")
	for i, line := range s.lines {
		f.checkLine(i+1, line)
	}
	return s, f
}

// checkLine reports the first character of a line that cannot be in a text file.
func (f *faults) checkLine(number int, line string) {
	if len(line) > maxLine {
		f.at(number, 1, ruleFile, fmt.Sprintf("the line is %d bytes long; the limit is %d", len(line), maxLine),
			"a list may go over several lines")
		return
	}
	if isPlainASCII(line) {
		return
	}
	column := 1
	for i, c := range line {
		if text, hint := badCharacter(c, line[i:]); text != "" {
			f.at(number, column, ruleFile, text, hint)
			return
		}
		column++
	}
}

// badCharacter says why c, at the start of rest, cannot be in a file; "" if it can.
func badCharacter(c rune, rest string) (text, hint string) {
	switch {
	case c == utf8.RuneError && !strings.HasPrefix(rest, "\ufffd"):
		return fmt.Sprintf("byte 0x%02x is not UTF-8", rest[0]), latin1Hint(rest[0])
	case c == 0:
		return "NUL byte", "the file is damaged or not a text file"
	case c == '\r':
		return "carriage return inside a line", "end lines with a line feed, or with both"
	case c == '\u0085', c == '\u2028', c == '\u2029':
		return fmt.Sprintf("line separator U+%04X", c), "end the line with a line feed"
	case unicode.IsControl(c) && c != '\t':
		return fmt.Sprintf("control character U+%04X", c), "remove it"
	case c == '\ufeff', 0xfffe <= c && c <= 0xffff:
		return fmt.Sprintf("character U+%04X inside the text", c), "remove it"
	case 0x202a <= c && c <= 0x202e, 0x2066 <= c && c <= 0x2069:
		return fmt.Sprintf("U+%04X makes text look as if in another order", c), "remove it"
	}
	return "", ""
}

// latin1Hint says what the byte is in ISO 8859-1, where it is a letter there.
func latin1Hint(b byte) string {
	if c := rune(b); unicode.IsLetter(c) {
		return fmt.Sprintf("it is %c in Latin-1; save the file as UTF-8", c)
	}
	return "save the file as UTF-8"
}

// shown is how a character appears in a message.
func shown(c rune) rune {
	switch {
	case c == '\t' || c == ' ' || unicode.IsPrint(c):
		return c
	case unicode.IsSpace(c):
		return '␣'
	}
	return utf8.RuneError
}

// columns is the number of characters in a part of a line.
func columns(s string) int { return utf8.RuneCountInString(s) }
