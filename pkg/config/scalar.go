// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// plain reports whether n is a scalar without quotes.
func plain(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Style == 0 }

// isNull is true for the values that YAML 1.2 reads as null.
func isNull(n *yaml.Node) bool {
	return plain(n) && slices.Contains([]string{"", "~", "null", "Null", "NULL"}, n.Value)
}

// isBool is true for the values that YAML 1.2 reads as true or false.
func isBool(n *yaml.Node) bool {
	return plain(n) && slices.Contains([]string{"true", "True", "TRUE", "false", "False", "FALSE"}, n.Value)
}

// notText matches the plain values that YAML 1.2 reads as a number.
var notText = pattern(`^[-+]?([0-9]+|0o[0-7]+|0x[0-9a-fA-F]+|(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|\.(inf|Inf|INF))$|^\.(nan|NaN|NAN)$`)

// text reads a value that is text.
func (f *faults) text(n *yaml.Node, what string) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		f.node(n, ruleShape, what+" is one value, not a list or keys", "")
	case isNull(n):
		f.node(n, ruleText, what+" has no value", "write a value, or remove the key")
	case isBool(n), plain(n) && notText.MatchString(n.Value):
		f.node(n, ruleText, fmt.Sprintf("%s is text, but YAML reads %s as something else", what, clip(n.Value)), fmt.Sprintf("quote it: %q", clip(n.Value)))
	case n.Value == "":
		f.node(n, ruleText, what+" is empty", "write a value, or remove the key")
	default:
		return n.Value, true
	}
	return "", false
}

// word reads a value that is one of some words.
func (f *faults) word(n *yaml.Node, what string, words []string) (string, bool) {
	s, ok := f.text(n, what)
	if !ok {
		return "", false
	}
	for _, w := range words {
		if w == s {
			return s, true
		}
	}
	hint := "write " + either(words)
	if strings.ContainsAny(s, ", ") {
		hint = separatorHint(s)
	}
	if near := f.nearest(s, words); near != "" {
		hint = "did you mean " + near + "?"
	}
	f.node(n, ruleWord, fmt.Sprintf("%s cannot be %s", what, clip(printable(s))), hint)
	return "", false
}

func either(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// yes reads a value that is true or false.
func (f *faults) yes(n *yaml.Node, what string) (value, ok bool) {
	if plain(n) && (n.Value == "true" || n.Value == "false") {
		return n.Value == "true", true
	}
	hint := "write true or false"
	switch strings.ToLower(n.Value) {
	case "yes", "on", "true", "y", "1":
		hint = "write true"
	case "no", "off", "false", "n", "0":
		hint = "write false"
	}
	f.node(n, f.notation(n), what+" is true or false", hint)
	return false, false
}

// notation is ruleNotation for the spellings of true and false that YAML knows
// but the format does not.
func (f *faults) notation(n *yaml.Node) rule {
	if isBool(n) {
		return ruleNotation
	}
	return ruleShape
}

// bounds is the least and the largest value of a number.
type bounds struct{ min, max uint64 }

func (b bounds) String() string { return fmt.Sprintf("from %d to %d", b.min, b.max) }

// Bounds of the numbers of the format.
var (
	boundsProtocol  = bounds{0, 255}
	boundsPort      = bounds{0, 65535}
	boundsQueue     = bounds{0, 65535}
	boundsChannels  = bounds{1, 65535}
	boundsLocation  = bounds{0, 65535}
	boundsVLAN      = bounds{1, 4094}
	boundsEtherType = bounds{0x600, 0xffff}
	boundsWeight    = bounds{1, 65535}
	boundsBuckets   = bounds{1, 65536}
	boundsWord      = bounds{0, 0xffffffff}
)

// number reads a plain decimal or 0x hexadecimal number.
func (f *faults) number(n *yaml.Node, what string, b bounds) (uint64, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		f.node(n, ruleShape, what+" is one number, not a list or keys", "")
		return 0, false
	case isNull(n):
		f.node(n, ruleNumber, what+" has no value", "write a number "+b.String())
		return 0, false
	case !plain(n):
		f.node(n, ruleNotation, fmt.Sprintf("%s: %q is text, not a number", what, clip(printable(n.Value))), unquoteHint(n.Value, b))
		return 0, false
	}
	return f.numeral(n, 0, n.Value, what, b)
}

func unquoteHint(s string, b bounds) string {
	if _, ok := parseNumber(s); ok {
		return "write " + s + ", without quotes"
	}
	return "write a number " + b.String()
}

// numeral reads a number that is the part s of a value, offset characters
// behind its start.
func (f *faults) numeral(n *yaml.Node, offset int, s, what string, b bounds) (uint64, bool) {
	v, ok := parseNumber(s)
	outside := ruleNumber
	if s != n.Value || !plain(n) {
		outside = ruleBounds
	}
	switch {
	case !ok && overlong(s):
		f.inside(n, offset, outside, fmt.Sprintf("%s: %s is too large", what, clip(s)), "write a number "+b.String())
	case !ok:
		r, hint := otherNotation(s, b)
		f.inside(n, offset, r, fmt.Sprintf("%s: %s is not a plain number", what, clip(printable(s))), hint)
	case v < b.min || v > b.max:
		f.inside(n, offset, outside, fmt.Sprintf("%s: %s is not %s", what, s, b), "")
	default:
		return v, true
	}
	return 0, false
}

var (
	decimal     = pattern(`^(0|[1-9][0-9]*)$`)
	hexadecimal = pattern(`^0x[0-9a-fA-F]+$`)
)

// parseNumber reads decimal without leading zeros, or hexadecimal behind 0x.
func parseNumber(s string) (uint64, bool) {
	switch {
	case decimal.MatchString(s):
		v, err := strconv.ParseUint(s, 10, 64)
		return v, err == nil
	case hexadecimal.MatchString(s):
		v, err := strconv.ParseUint(s[2:], 16, 64)
		return v, err == nil
	}
	return 0, false
}

func overlong(s string) bool { return decimal.MatchString(s) || hexadecimal.MatchString(s) }

// notations are the other ways in which people and YAML write whole numbers.
var notations = []struct {
	form *lazyRegexp
	hint func(s string) string
}{
	{pattern(`^0[0-7]+$`), func(s string) string {
		octal, _ := strconv.ParseUint(s, 8, 64)
		return fmt.Sprintf("YAML reads %s as octal %d: write %s, or %d", s, octal, unpadded(s), octal)
	}},
	{pattern(`^0[0-9]+$`), func(s string) string { return "write " + unpadded(s) }},
	{pattern(`^0o[0-7]+$`), func(s string) string { return "write " + inDecimal(s[2:], 8) }},
	{pattern(`^0b[01]+$`), func(s string) string { return "write " + inDecimal(s[2:], 2) }},
	{pattern(`^0X[0-9a-fA-F]+$`), func(s string) string { return "write 0x" + s[2:] }},
	{pattern(`^[0-9]+(_[0-9]+)+$`), func(s string) string { return "write " + strings.ReplaceAll(s, "_", "") }},
	{pattern(`^\+[0-9]+$`), func(s string) string { return "write " + unpadded(s[1:]) }},
	{pattern(`^[0-9]+(\.[0-9]+)?[eE]\+?[0-9]+$`), scientific},
	{pattern(`^[0-9]+\.0*$`), func(s string) string { return "write " + unpadded(s[:strings.IndexByte(s, '.')]) }},
}

var (
	negative   = pattern(`^-[0-9]`)
	withColons = pattern(`^[0-9]+(:[0-9]+)+$`)
	hexDigits  = pattern(`^[0-9a-fA-F]*[a-fA-F][0-9a-fA-F]*$`)
)

// otherNotation says how to write the number that s stands for.
func otherNotation(s string, b bounds) (rule, string) {
	for _, n := range notations {
		if len(s) < 24 && n.form.MatchString(s) {
			return ruleNotation, n.hint(s)
		}
	}
	hint := "write a whole number " + b.String()
	switch {
	case negative.MatchString(s):
		return ruleNumber, hint + ", without a sign"
	case withColons.MatchString(s):
		return ruleNumber, "numbers with colons are not supported: " + hint
	case hexDigits.MatchString(s) && strings.ContainsAny(s, "0123456789"):
		return ruleNumber, "write 0x" + s + " if it is hexadecimal"
	}
	return ruleNumber, hint
}

func unpadded(s string) string {
	if s = strings.TrimLeft(s, "0"); s == "" {
		return "0"
	}
	return s
}

func inDecimal(digits string, base int) string {
	v, _ := strconv.ParseUint(digits, base, 64)
	return strconv.FormatUint(v, 10)
}

func scientific(s string) string {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v != float64(uint64(v)) || v > 1e15 {
		return "write a whole number"
	}
	return "write " + strconv.FormatUint(uint64(v), 10)
}

// items is the values of a list, or the one value that stands for a list.
func (f *faults) items(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		return []*yaml.Node{n}
	}
	if len(n.Content) == 0 {
		f.node(n, ruleShape, what+" is an empty list", "write a value, or remove the key")
	}
	return n.Content
}

// span is the numbers from first to last, and the value that says so.
type span struct {
	first, last uint64
	node        *yaml.Node
}

func (s span) size() int { return int(s.last-s.first) + 1 }

func (s span) String() string {
	if s.first == s.last {
		return strconv.FormatUint(s.first, 10)
	}
	return fmt.Sprintf("%d-%d", s.first, s.last)
}

// span reads a number or a range FIRST-LAST.
func (f *faults) span(n *yaml.Node, what string, b bounds) (span, bool) {
	first, last, found := strings.Cut(n.Value, "-")
	if n.Kind != yaml.ScalarNode || !found || first == "" {
		if plain(n) && strings.ContainsAny(n.Value, ":, ") {
			f.node(n, ruleNumber, fmt.Sprintf("%s: %s is not a number or a range", what, clip(printable(n.Value))), separatorHint(n.Value))
			return span{}, false
		}
		v, ok := f.number(n, what, b)
		return span{v, v, n}, ok
	}
	if strings.ContainsAny(n.Value, " \t") {
		f.node(n, ruleRange, fmt.Sprintf("%s: spaces in the range %s", what, clip(printable(n.Value))), "write it without spaces, as in 0-15")
		return span{}, false
	}
	offset := columns(first) + 1
	quote := 0
	if !plain(n) {
		quote = 1
	}
	from, ok1 := f.numeral(n, quote, first, what, b)
	to, ok2 := f.numeral(n, quote+offset, last, what, b)
	if !ok1 || !ok2 {
		return span{}, false
	}
	if from > to {
		f.node(n, ruleRange, fmt.Sprintf("%s: the range %s ends before it starts", what, n.Value), fmt.Sprintf("write %s-%s", last, first))
		return span{}, false
	}
	return span{from, to, n}, true
}

func separatorHint(s string) string {
	if strings.ContainsAny(s, ", ") {
		items := strings.FieldsFunc(s, func(c rune) bool { return c == ',' || c == ' ' })
		return "for several, write a list: [" + clip(printable(strings.Join(items, ", "))) + "]"
	}
	return "write a range with a hyphen: " + clip(strings.ReplaceAll(s, ":", "-"))
}

// spans reads a number, a range, or a list of them; none may overlap another
// when distinct is set.
func (f *faults) spans(n *yaml.Node, what string, b bounds, distinct bool) ([]span, bool) {
	var out []span
	good := true
	for _, item := range f.items(n, what) {
		s, ok := f.span(item, what, b)
		good = good && ok
		if ok {
			out = append(out, s)
		}
	}
	if distinct {
		good = f.disjoint(out, what) && good
	}
	return out, good && len(out) > 0
}

// disjoint reports spans that overlap.
func (f *faults) disjoint(spans []span, what string) bool {
	sorted := slices.Clone(spans)
	slices.SortStableFunc(sorted, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	good := true
	for i := 1; i < len(sorted); i++ {
		widest, this := sorted[i-1], sorted[i]
		if this.first > widest.last {
			continue
		}
		good = false
		f.overlap(widest, this, what)
		if widest.last > this.last {
			sorted[i] = widest
		}
	}
	return good
}

func (f *faults) overlap(a, b span, what string) {
	if after(a.node, b.node) {
		a, b = b, a
	}
	both := span{max(a.first, b.first), min(a.last, b.last), nil}
	f.also(b.node, a.node, ruleRepeat, fmt.Sprintf("%s: %s is in this list twice", what, both), "keep it in one place")
}

// after reports whether a stands behind b in the file.
func after(a, b *yaml.Node) bool {
	return a.Line > b.Line || a.Line == b.Line && a.Column > b.Column
}

// expand lists the queues of spans, nil when the file has too many of them.
func (f *faults) expand(n *yaml.Node, spans []span) (queues []uint32) {
	total := 0
	for _, s := range spans {
		total += s.size()
	}
	if f.queues += total; f.queues > maxQueues {
		f.node(n, ruleCount, fmt.Sprintf("more than %d queues listed in one file", maxQueues), "")
		return nil
	}
	queues = make([]uint32, 0, total)
	for _, s := range spans {
		for q := s.first; q <= s.last; q++ {
			queues = append(queues, uint32(q))
		}
	}
	return queues
}
