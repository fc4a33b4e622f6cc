// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lexer reads the layout of a file, character by character. It accepts the
// part of YAML that the format uses: block and flow collections, plain and
// quoted scalars on one line, comments. All else is an error with its column,
// so the YAML library, whose messages have none, sees only what it can parse,
// in bounded depth and number, and without comments.
type lexer struct {
	src *source
	f   *faults
	out []string // the lines without comments

	line int    // from 1
	text string // of that line
	pos  int    // byte offset in text

	levels  []level   // block collections that are open
	opens   []bracket // flow collections that are open
	pending bool      // the line above ended with "key:" or "-"
	items   int       // values so far
	first   bool      // this line is the first with content

	last value // flow: the value just read, none after a separator

	started, ended bool // document markers
	broken         bool // nothing below makes sense any more
}

// level is an open block collection: its column from 0, list or mapping.
type level struct {
	column int
	list   bool
}

// lex checks the layout of src and returns its text for the YAML library.
func lex(src *source, f *faults) string {
	l := &lexer{src: src, f: f, out: make([]string, len(src.lines))}
	for i, text := range src.lines {
		if l.broken {
			break
		}
		l.line, l.text, l.pos = i+1, text, 0
		l.readLine()
	}
	if n := len(l.opens); n > 0 && !l.broken {
		l.unclosed(l.opens[n-1])
	}
	return strings.Join(l.out, "\n")
}

func (l *lexer) readLine() {
	if l.blankLine() || l.marker() {
		return
	}
	if len(l.opens) > 0 {
		l.flow()
		l.tail()
	} else {
		l.blockLine()
	}
	if len(l.opens) > 0 {
		l.pending = false
	}
}

// blankLine skips indentation; it is true for lines without content.
func (l *lexer) blankLine() bool {
	content := strings.TrimLeft(l.text, " \t")
	if content == "" || content[0] == '#' {
		return true
	}
	l.pos = len(l.text) - len(content)
	l.out[l.line-1] = l.text
	if tab := strings.IndexByte(l.text[:l.pos], '\t'); tab >= 0 {
		l.fail(tab, ruleLayout, "tab in the indentation", "indent with spaces")
		l.pos = len(l.text)
		return true
	}
	return false
}

// marker handles "---", "..." and "%" in the first column.
func (l *lexer) marker() bool {
	word, rest := l.text[:min(3, len(l.text))], strings.TrimLeft(l.text[min(3, len(l.text)):], " \t")
	alone := rest == "" || rest[0] == '#'
	content := len(l.levels) > 0 || l.items > 0 || l.started
	switch {
	case l.ended, word == "---" && l.blankAt(3) && content:
		l.abort(0, ruleSubset, "a second document starts here", "one file holds one document: put it into a file of its own")
	case word == "---" && l.blankAt(3) && alone:
		l.started = true
		l.out[l.line-1] = word
	case word == "..." && l.blankAt(3) && alone:
		l.ended = true
		l.out[l.line-1] = ""
		if n := len(l.opens); n > 0 {
			l.unclosed(l.opens[n-1])
		}
	case (word == "---" || word == "...") && l.blankAt(3):
		l.abort(len(l.text)-len(rest), ruleLayout, "text behind a document marker", "start a new line")
	case l.text[0] == '%':
		l.abort(0, ruleSubset, "a YAML directive", "remove the line; directives are not supported")
	default:
		return false
	}
	return true
}

func (l *lexer) unclosed(b bracket) {
	l.f.at(b.line, b.column, ruleLayout, fmt.Sprintf("%q is not closed", b.char), fmt.Sprintf("add the %q that belongs to it", closing(b.char)))
	l.broken = true
}

func closing(open byte) byte {
	if open == '[' {
		return ']'
	}
	return '}'
}

// fail reports a fault at a byte offset of the line; reading goes on.
func (l *lexer) fail(offset int, r rule, text, hint string) {
	l.f.at(l.line, columns(l.text[:offset])+1, r, text, hint)
}

// abort reports a fault behind which the layout is not known.
func (l *lexer) abort(offset int, r rule, text, hint string) {
	l.fail(offset, r, text, hint)
	l.broken = true
}

func (l *lexer) blockLine() {
	column := l.pos
	l.first = len(l.levels) == 0 && l.items == 0
	for l.at("-") && l.blankAt(l.pos+1) {
		if !l.count() || !l.open(l.pos, true, l.pos > column) {
			return
		}
		behind := l.pos + 1
		l.pos = behind
		l.skipBlanks()
		l.pending = true
		if tab := strings.IndexByte(l.text[behind:l.pos], '\t'); tab >= 0 {
			l.fail(behind+tab, ruleLayout, "tab behind \"-\"", "use spaces")
			return
		}
	}
	if l.atEnd() {
		return
	}
	inItem := l.pos > column
	start := l.pos
	isScalar, ok := l.scalar()
	if !ok {
		l.pending = true
		return
	}
	if isScalar && l.at(":") && l.blankAt(l.pos+1) {
		if l.shortKey(start) && l.open(start, false, inItem) {
			l.pos++
			l.behindKey()
		}
		return
	}
	l.bare(start, inItem)
}

// bare checks a value that stands where a key or the value of the line above may be.
func (l *lexer) bare(start int, inItem bool) {
	n := len(l.levels)
	deeper := n > 0 && start > l.levels[n-1].column
	flow := l.text[start] == '[' || l.text[start] == '{'
	word, rest, glued := strings.Cut(l.text[start:l.pos], ":")
	switch {
	case glued && homeOf(word) != "":
		l.pending = true
		l.fail(start+len(word), ruleLayout, "no space behind the colon", "write "+word+": "+clip(printable(rest)))
	case inItem, l.pending && deeper, l.first && flow:
		l.pending = false
		l.tail()
	default:
		l.pending = true
		l.fail(start, ruleLayout, "a key with a colon is expected here", "write KEY: VALUE, with a space behind the colon")
	}
}

// behindKey reads what stands behind "key:" on the same line.
func (l *lexer) behindKey() {
	l.skipBlanks()
	if l.pending = l.atEnd(); l.pending {
		return
	}
	if l.at("-") && l.blankAt(l.pos+1) {
		l.fail(l.pos, ruleLayout, "a list cannot start on the line of its key", "start a new line, or write [A, B]")
		return
	}
	if _, ok := l.scalar(); !ok {
		l.pending = true
		return
	}
	l.tail()
}

// tail checks that nothing but a comment follows.
func (l *lexer) tail() {
	if len(l.opens) > 0 || l.broken {
		return
	}
	l.skipBlanks()
	switch {
	case l.atEnd():
	case l.at(":"):
		l.fail(l.pos, ruleLayout, "a second colon with a space on this line", "quote the value, or start a new line for the next key")
	default:
		l.fail(l.pos, ruleLayout, "text behind the end of the value", "remove it, or put a # before a comment")
	}
}

// open enters the list or mapping at a column, or goes on with it. Behind a
// "-" on the same line a collection may start at any column.
func (l *lexer) open(column int, list, inItem bool) bool {
	before := len(l.levels)
	for n := before; n > 0; n = len(l.levels) {
		top := l.levels[n-1]
		if top.column < column || (top.column == column && (list || !top.list)) {
			break
		}
		l.levels = l.levels[:n-1]
	}
	expected := l.pending && len(l.levels) == before || inItem || l.first
	l.pending = false
	top := level{column: -1}
	if n := len(l.levels); n > 0 {
		top = l.levels[n-1]
	}
	if top.column == column && top.list == list {
		return true
	}
	if !expected {
		l.misplaced(column, list, top)
	}
	l.levels = append(l.levels, level{column, list})
	return l.checkDepth(column)
}

func (l *lexer) misplaced(column int, list bool, top level) {
	switch {
	case top.column < 0:
		l.fail(column, ruleLayout, "this line belongs to nothing above it", "give all keys of a mapping the same indentation")
	case list && !top.list && top.column == column:
		l.fail(column, ruleLayout, "a list item where a key is expected", "indent it below the key that it belongs to")
	case top.list && !list:
		l.fail(column, ruleLayout, "this line belongs to no key and to no list item above it",
			"align it with the first key of its item, behind the \"- \"")
	default:
		l.fail(column, ruleLayout, "the indentation fits no line above", "align it with the keys that it belongs to")
	}
}

func (l *lexer) checkDepth(offset int) bool {
	if len(l.levels)+len(l.opens) <= maxDepth {
		return true
	}
	l.abort(offset, ruleLayout, fmt.Sprintf("lists and mappings nested more than %d deep", maxDepth), "")
	return false
}

// scalar reads the value at pos, in block context; isScalar is false for a flow
// collection.
func (l *lexer) scalar() (isScalar, ok bool) {
	if !l.count() {
		return false, false
	}
	switch c := l.text[l.pos]; c {
	case '[', '{':
		l.flow()
		return false, !l.broken
	case '"', '\'':
		return true, l.quoted(c)
	}
	if !l.mayStart(false) {
		return false, false
	}
	return true, l.plain(false)
}

func (l *lexer) count() bool {
	if l.items++; l.items <= maxValues {
		return true
	}
	l.abort(l.pos, ruleFile, fmt.Sprintf("more than %d values in one file", maxValues), "split the file: all files in the directory are read")
	return false
}

// quoted skips a quoted scalar, which ends on its line.
func (l *lexer) quoted(quote byte) bool {
	start := l.pos
	for l.pos++; l.pos < len(l.text); l.pos++ {
		c := l.text[l.pos]
		if c == '\\' && quote == '"' {
			if !l.escape() {
				return false
			}
			continue
		}
		if c != quote {
			continue
		}
		if quote == '\'' && l.pos+1 < len(l.text) && l.text[l.pos+1] == quote {
			l.pos++
			continue
		}
		l.pos++
		return true
	}
	l.pos = len(l.text)
	l.abort(start, ruleLayout, "the closing quote is missing on this line", "")
	return false
}

// escapes are the characters behind a backslash in double quotes, and how many
// hexadecimal digits follow.
var escapes = map[byte]int{
	'0': 0, 'a': 0, 'b': 0, 't': 0, 'n': 0, 'v': 0, 'f': 0, 'r': 0, 'e': 0, ' ': 0, '"': 0, '\'': 0, '\\': 0,
	'N': 0, '_': 0, 'L': 0, 'P': 0, 'x': 2, 'u': 4, 'U': 8,
}

// escape skips all of an escape sequence but its last character.
func (l *lexer) escape() bool {
	rest := l.text[l.pos+1:]
	if rest == "" {
		return true // the closing quote is missing
	}
	digits, ok := escapes[rest[0]]
	if ok && digits > 0 {
		v, err := strconv.ParseUint(rest[1:min(len(rest), 1+digits)], 16, 32)
		ok = err == nil && len(rest) > digits && utf8.ValidRune(rune(v))
	}
	if !ok {
		l.abort(l.pos, ruleLayout, "unknown escape sequence", "write \\\\ for a backslash, or use single quotes")
		return false
	}
	l.pos += 1 + digits
	return true
}

// plain skips a plain scalar: in block context up to ": " or " #", in flow
// context also up to a separator or bracket.
func (l *lexer) plain(flow bool) bool {
	for l.pos < len(l.text) {
		c, size := utf8.DecodeRuneInString(l.text[l.pos:])
		switch {
		case c == ':' && l.blankAt(l.pos+1), flow && strings.ContainsRune(",[]{}", c):
			return true
		case c == '#' && (l.text[l.pos-1] == ' ' || l.text[l.pos-1] == '\t'):
			return true
		case flow && c == ':' && l.flowEndAt(l.pos+1):
			l.abort(l.pos, ruleLayout, "unquoted value that ends with a colon", "quote it")
			return false
		case flow && c == '?':
			l.abort(l.pos, ruleLayout, "unquoted \"?\" inside brackets", "quote the value")
			return false
		case c > utf8.RuneSelf && oddSpace(c):
			l.fail(l.pos, ruleLayout, fmt.Sprintf("U+%04X looks like a space but is not one", c), "replace it by an ordinary space")
			return false
		}
		l.pos += size
	}
	return true
}

// oddSpace is true for spaces other than U+0020, and for characters without width.
func oddSpace(c rune) bool {
	return unicode.IsSpace(c) || 0x200b <= c && c <= 0x200f || c == 0x2060
}

// mayStart reports whether a plain scalar may start with the character at pos.
func (l *lexer) mayStart(flow bool) bool {
	text, hint, r := "", "", ruleSubset
	word := l.word(flow)
	switch c := l.text[l.pos]; {
	case c == '*':
		text, hint = "unquoted \"*\": YAML takes "+word+" for an alias", "quote a pattern: \""+word+"\"; aliases are not supported"
	case c == '&':
		text, hint = "anchor "+word, "write the value out where it is needed; anchors and aliases are not supported"
	case l.at("!!"):
		text, hint = "tag "+word, "remove it; tags are not supported"
	case c == '!':
		text, hint = "unquoted \"!\": YAML takes "+word+" for a tag", "quote the negation: \""+word+"\""
	case c == '|' || c == '>':
		text, hint = "a text of several lines", "write the value on one line"
	case c == '?' && (flow || l.blankAt(l.pos+1)):
		text, hint = "a key in the long form of YAML", "write KEY: VALUE"
	case strings.IndexByte("%@`,#", c) >= 0:
		text, hint, r = fmt.Sprintf("a value cannot start with %q", c), "quote it", ruleLayout
	case c == ']' || c == '}':
		text, r = fmt.Sprintf("%q closes nothing that is open", c), ruleLayout
	case c == ':' && (flow || l.blankAt(l.pos+1)):
		text, hint, r = "a value cannot start with a colon here", "quote it", ruleLayout
	case c == '-' && l.blankAt(l.pos+1):
		text, hint, r = "a list item where a value is expected", "", ruleLayout
	case strings.HasPrefix(l.text[l.pos:], "“"), strings.HasPrefix(l.text[l.pos:], "‘"):
		text, hint, r = "a typographic quotation mark", "use \" or '", ruleLayout
	}
	if text == "" {
		return true
	}
	l.fail(l.pos, r, text, hint)
	return false
}

// word is the unquoted text at pos, for messages.
func (l *lexer) word(flow bool) string {
	ends := " \t"
	if flow {
		ends = " \t,[]{}"
	}
	rest := l.text[l.pos:]
	if i := strings.IndexAny(rest[1:], ends); i >= 0 {
		rest = rest[:i+1]
	}
	return clip(printable(rest))
}

func (l *lexer) at(s string) bool { return strings.HasPrefix(l.text[l.pos:], s) }

// blankAt is true for a space, a tab or the end of the line.
func (l *lexer) blankAt(i int) bool {
	return i >= len(l.text) || l.text[i] == ' ' || l.text[i] == '\t'
}

// flowEndAt is blankAt, or a separator or bracket.
func (l *lexer) flowEndAt(i int) bool {
	return l.blankAt(i) || strings.IndexByte(",[]{}", l.text[i]) >= 0
}

func (l *lexer) skipBlanks() {
	for l.pos < len(l.text) && (l.text[l.pos] == ' ' || l.text[l.pos] == '\t') {
		l.pos++
	}
}

// atEnd is true at the end of the line or at a comment, which it takes out of
// the text for the YAML library.
func (l *lexer) atEnd() bool {
	if l.pos >= len(l.text) {
		return true
	}
	if l.text[l.pos] == '#' && (l.pos == 0 || l.blankAt(l.pos-1)) {
		l.out[l.line-1] = l.text[:l.pos]
		return true
	}
	return false
}
