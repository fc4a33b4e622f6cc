// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// String is the step in words, as in "table 7 (level 12) entry 3: ip_protocol
// 253, sample 5 = 0x3/0xf -> TIR 0x13 -> RQ 0x1c".
func (s Step) String() string {
	at := fmt.Sprintf("table %d (level %d)", s.Table, s.Level)
	if s.entry == nil {
		return at + ": no entry matches" + s.onward()
	}
	text := fmt.Sprintf("%s entry %d: %s", at, s.Entry, s.entry.matchText())
	if s.Rival >= 0 {
		text += fmt.Sprintf(" (entry %d has the same value; the lower index decides)", s.Rival)
	}
	text += s.entry.effectsText()
	for _, l := range s.legs {
		text += l.String()
	}
	if s.entry.Action&Drop != 0 {
		return text + " -> dropped"
	}
	if s.next == nil {
		return text
	}
	return text + s.onward()
}

func (s Step) onward() string {
	if s.next == nil {
		return " -> nobody"
	}
	return fmt.Sprintf(" -> table %d", s.next.id)
}

// MarshalText makes encoding/json and its like write the step in words.
func (s Step) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (l leg) String() string {
	text := fmt.Sprintf(" -> TIR %#x", l.tir)
	if l.size > 1 {
		text += fmt.Sprintf(" (hash %#08x) -> RQT %#x place %d of %d", l.hash, l.rqt, l.place, l.size)
	}
	return text + fmt.Sprintf(" -> RQ %#x", l.queue)
}

func (e *entry) effectsText() (text string) {
	for _, c := range e.Counters {
		text += fmt.Sprintf(", counted in %#x", c)
	}
	if e.Tag != 0 {
		text += fmt.Sprintf(", tag %#x", e.Tag)
	}
	return text
}

// matchText is what an entry compares and with what.
func (e *entry) matchText() string {
	parts := conditions(&e.group.Criteria, &e.Value)
	for _, m := range e.group.compare.samples {
		value := sampleFields[m.pair].value.Get(e.Value[:])
		parts = append(parts, fmt.Sprintf("sample %d = %#x/%#x", m.id, value, m.mask))
	}
	if len(parts) == 0 {
		return "everything"
	}
	return strings.Join(parts, ", ")
}

// conditions is everything that criteria compare, but for samples.
func conditions(criteria, value *Match) (parts []string) {
	names := [2][3]string{{"untagged", "C-tag", "S-tag"}, {"no second tag", "second C-tag", "second S-tag"}}
	for i, bits := range vlanTags {
		if bits[0].Get(criteria[:])|bits[1].Get(criteria[:]) != 0 {
			parts = append(parts, names[i][bits[0].Get(value[:])+2*bits[1].Get(value[:])])
		}
	}
	for _, f := range fields {
		if text := f.condition(criteria, value); text != "" && f.manner != tag {
			parts = append(parts, f.name+" "+text)
		}
	}
	return parts
}

// condition is empty where the criteria do not compare the field.
func (f field) condition(criteria, value *Match) string {
	if f.manner == address {
		from := f.Bit / 8
		return addressText([16]byte(criteria[from:]), [16]byte(value[from:]))
	}
	mask, v := f.Get(criteria[:]), f.Get(value[:])
	whole := mask == 1<<f.Width-1
	switch {
	case mask == 0:
		return ""
	case f.manner == hardware && whole:
		return hardwareText(v)
	case f.manner == hardware:
		return hardwareText(v) + "/" + hardwareText(mask)
	case !whole:
		return fmt.Sprintf("%#x/%#x", v, mask)
	case f.manner == hexadecimal:
		return fmt.Sprintf("%#x", v)
	}
	return fmt.Sprint(v)
}

func hardwareText(v uint64) string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", byte(v>>40), byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

// addressText takes an address for IPv4 if only its last four bytes are compared.
func addressText(mask, value [16]byte) string {
	if mask == ([16]byte{}) {
		return ""
	}
	m, v := netip.AddrFrom16(mask), netip.AddrFrom16(value)
	if [12]byte(mask[:]) == ([12]byte{}) {
		m, v = netip.AddrFrom4([4]byte(mask[12:])), netip.AddrFrom4([4]byte(value[12:]))
	}
	ones := prefixLength(m.AsSlice())
	switch ones {
	case m.BitLen():
		return v.String()
	case -1:
		return v.String() + "/" + m.String()
	}
	return fmt.Sprintf("%s/%d", v, ones)
}

// prefixLength is -1 for a mask that is no prefix.
func prefixLength(mask []byte) int {
	ones, ended := 0, false
	for _, b := range mask {
		for bit := 7; bit >= 0; bit-- {
			if b>>bit&1 == 0 {
				ended = true
				continue
			}
			if ended {
				return -1
			}
			ones++
		}
	}
	return ones
}

// Text is all tables, TIRs, RQTs and parse graph nodes in words, for people.
func (s *State) Text() string {
	var b strings.Builder
	if s.root == nil {
		b.WriteString("no root table\n")
	} else {
		fmt.Fprintf(&b, "root: table %d\n", s.root.id)
	}
	// In the order of packets.
	for _, t := range slices.SortedFunc(maps.Values(s.tables), func(a, b *table) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.id, b.id))
	}) {
		t.write(&b)
	}
	for _, id := range sortedKeys(s.tirs) {
		fmt.Fprintf(&b, "TIR %#x: %s\n", id, s.tirs[id].text())
	}
	for _, id := range sortedKeys(s.rqts) {
		fmt.Fprintf(&b, "RQT %#x: %s\n", id, s.rqts[id].text())
	}
	for _, id := range sortedKeys(s.nodes) {
		fmt.Fprintf(&b, "parse graph node %#x: %s\n", id, s.nodes[id].text())
	}
	return b.String()
}

func (t *table) write(b *strings.Builder) {
	miss := "nobody"
	if t.next != nil {
		miss = fmt.Sprintf("table %d", t.next.id)
	}
	fmt.Fprintf(b, "table %d (level %d): %d of 2^%d entries, misses -> %s\n", t.id, t.Level, len(t.entries), t.LogSize, miss)
	rest := sortedKeys(t.entries)
	for _, g := range t.groups {
		fmt.Fprintf(b, "  group %d, entries %d to %d: %s\n", g.id, g.Start, g.End, g.text())
		for _, index := range rest[:g.used] {
			fmt.Fprintf(b, "    entry %d: %s\n", index, t.entries[index].text())
		}
		rest = rest[g.used:]
	}
}

// text is the names of what a group compares.
func (g *group) text() string {
	var parts []string
	for _, f := range fields {
		if f.condition(&g.Criteria, &g.Criteria) != "" {
			parts = append(parts, f.name)
		}
	}
	for _, m := range g.compare.samples {
		parts = append(parts, fmt.Sprintf("sample %d", m.id))
	}
	if len(parts) == 0 {
		return "compares nothing"
	}
	return "compares " + strings.Join(parts, ", ")
}

func (e *entry) text() string {
	text := e.matchText() + e.effectsText()
	if e.Action&Drop != 0 {
		return text + " -> dropped"
	}
	for _, d := range e.Destinations {
		if d.Type == ToTIR {
			text += fmt.Sprintf(" -> TIR %#x", d.ID)
		} else {
			text += fmt.Sprintf(" -> table %d", d.ID)
		}
	}
	return text
}

func (t *tir) text() string {
	if !t.Indirect {
		return fmt.Sprintf("-> RQ %#x", t.Queue)
	}
	return fmt.Sprintf("%s -> RQT %#x", t.Hash.text(), t.RQT)
}

// text writes a list that repeats itself once.
func (r *rqt) text() string {
	period := 1
	for i := 1; i < len(r.Queues); i++ {
		if r.Queues[i] != r.Queues[i-period] {
			period = i + 1
		}
	}
	text := fmt.Sprintf("%d of at most %d places:", len(r.Queues), r.MaxSize)
	for _, q := range r.Queues[:period] {
		text += fmt.Sprintf(" %#x", q)
	}
	if period < len(r.Queues) {
		text += ", and again"
	}
	return text
}

func (h *Hash) text() string {
	if h.Fields == 0 {
		return "no hash"
	}
	text := "xor8 of "
	if h.Function == HashToeplitz {
		text = "Toeplitz of "
	}
	if h.Symmetric {
		text = "symmetric " + text
	}
	l3, l4 := [2]string{"IPv4", "IPv6"}[h.L3], [2]string{"TCP", "UDP"}[h.L4]
	names := [5]string{l3 + " source", l3 + " destination", l4 + " source port", l4 + " destination port", "SPI"}
	var parts []string
	for i, name := range names {
		if h.Fields>>i&1 != 0 {
			parts = append(parts, name)
		}
	}
	return text + strings.Join(parts, ", ")
}

func (n *node) text() string {
	text := fmt.Sprintf("%d bytes behind IP protocol", n.HeaderBytes)
	for _, arc := range n.In {
		text += fmt.Sprintf(" %d", arc.Value)
	}
	for _, sample := range n.Samples {
		text += fmt.Sprintf(", sample %d at byte %d", sample.ID, sample.Offset)
	}
	return text
}
