// SPDX-License-Identifier: Apache-2.0

package config

import "fmt"

// bracket is an open flow collection.
type bracket struct {
	char         byte
	line, column int
	offset       int  // of column, in bytes
	colon        bool // the item being read has its colon
}

// value is a scalar or a closed collection in flow context.
type value struct {
	line   int  // where it ends; 0: no value
	start  int  // where it starts
	offset int  // in that line, in bytes
	closed bool // it ends with a quote or bracket, so a colon may touch it
}

// flow reads flow collections up to the end of the line or of the outermost one.
func (l *lexer) flow() {
	for !l.broken {
		if l.skipBlanks(); l.atEnd() {
			return
		}
		switch c := l.text[l.pos]; {
		case c == '[' || c == '{':
			l.openBracket(c)
		case c == ']' || c == '}':
			if l.closeBracket(c); len(l.opens) == 0 {
				return
			}
		case c == ',':
			l.comma()
		case c == ':' && l.last.line > 0 && (l.last.closed || l.flowEndAt(l.pos+1)):
			l.colon()
		default:
			l.flowScalar(c)
		}
	}
}

func (l *lexer) openBracket(c byte) {
	if l.missingComma() || !l.count() {
		return
	}
	l.opens = append(l.opens, bracket{char: c, line: l.line, column: columns(l.text[:l.pos]) + 1, offset: l.pos})
	l.last = value{}
	if l.checkDepth(l.pos) {
		l.pos++
	}
}

func (l *lexer) closeBracket(c byte) {
	n := len(l.opens)
	if n == 0 || c != closing(l.opens[n-1].char) {
		l.abort(l.pos, ruleLayout, fmt.Sprintf("%q closes nothing that is open", c), "")
		return
	}
	open := l.opens[n-1]
	l.opens = l.opens[:n-1]
	l.last = value{line: l.line, start: open.line, offset: open.offset, closed: true}
	if n == 1 {
		l.last = value{}
	}
	l.pos++
}

func (l *lexer) comma() {
	item := &l.opens[len(l.opens)-1]
	if l.last.line == 0 && !item.colon {
		l.abort(l.pos, ruleLayout, "nothing stands before this comma", "remove it")
		return
	}
	l.last, item.colon = value{}, false
	l.pos++
}

func (l *lexer) colon() {
	item := &l.opens[len(l.opens)-1]
	switch {
	case item.colon:
		l.abort(l.pos, ruleLayout, "a second colon in one item", "put a comma between the keys, or quote the value")
		return
	case l.last.start != l.line:
		l.abort(l.pos, ruleLayout, "a key and its colon on two lines", "write KEY: VALUE")
		return
	case !l.shortKey(l.last.offset):
		return
	}
	l.last, item.colon = value{}, true
	l.pos++
}

// shortKey wants the colon at pos within reach of its key: YAML allows 1024
// characters.
func (l *lexer) shortKey(start int) bool {
	if l.pos-start <= 1024 {
		return true
	}
	l.abort(start, ruleLayout, "a key of more than 1024 bytes", "")
	return false
}

func (l *lexer) flowScalar(c byte) {
	if l.missingComma() || !l.count() {
		return
	}
	ok := false
	v := value{line: l.line, start: l.line, offset: l.pos, closed: c == '"' || c == '\''}
	if v.closed {
		ok = l.quoted(c)
	} else {
		ok = l.mayStart(true) && l.plain(true)
	}
	l.last = v
	l.broken = l.broken || !ok
}

// missingComma reports a value right behind another one.
func (l *lexer) missingComma() bool {
	switch l.last.line {
	case 0:
		return false
	case l.line:
		l.abort(l.pos, ruleLayout, "a comma is missing before this", "")
	default:
		l.unclosed(l.opens[len(l.opens)-1])
	}
	return true
}
