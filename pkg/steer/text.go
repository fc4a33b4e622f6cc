// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// String is FILE:LINE:COL, FILE for a file as a whole, or "" for no place.
func (o Origin) String() string {
	if o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d:%d", o.File, o.Line, o.Column)
}

// Caret is the line of the file and a caret under the column, each with a final
// newline and indented by indent; "" when the line is not known. Of a long line
// only the neighbourhood of the column is shown.
func (o Origin) Caret(indent string) string {
	if o.Line == 0 || strings.TrimSpace(o.Text) == "" {
		return ""
	}
	line, column := window([]rune(o.Text), o.Column-1)
	var under strings.Builder
	for _, r := range line[:min(max(column, 0), len(line))] {
		if r != '\t' {
			r = ' '
		}
		under.WriteRune(r)
	}
	return indent + strings.TrimRight(string(line), " \t") + "\n" + indent + under.String() + "^\n"
}

// excerptWidth is how many characters of a long line are shown.
const excerptWidth = 100

// window cuts a long line down to the neighbourhood of column (from 0).
func window(line []rune, column int) ([]rune, int) {
	if len(line) <= excerptWidth {
		return line, column
	}
	from := max(0, min(column-excerptWidth/2, len(line)-excerptWidth))
	cut := slices.Clone(line[from : from+excerptWidth])
	if from > 0 {
		cut[0] = '…'
	}
	if from+excerptWidth < len(line) {
		cut[excerptWidth-1] = '…'
	}
	return cut, column - from
}

// String is the problem as a person reads it: place, text, the line with a caret
// under it, and what to do.
func (p Problem) String() string {
	var b strings.Builder
	if p.At.File != "" {
		b.WriteString(p.At.String() + ": ")
	}
	b.WriteString(p.Text + "\n" + p.At.Caret("    "))
	if p.Fix != "" {
		b.WriteString("  Fix: " + p.Fix + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var severityNames = map[Severity]string{Notice: "notice", Blocked: "blocked", Failed: "failed"}

func (s Severity) String() string { return severityNames[s] }

var flowNames = map[FlowType]string{
	Other: "other", Ether: "ether", IP4: "ip4", IP6: "ip6", TCP4: "tcp4", TCP6: "tcp6",
	UDP4: "udp4", UDP6: "udp6", SCTP4: "sctp4", SCTP6: "sctp6",
}

// String is the flow type in the words of ethtool(8).
func (t FlowType) String() string { return flowNames[t] }

// String is "queue N" or "drop", with the virtual function or RSS context of
// rules that have one.
func (a Action) String() string {
	switch {
	case a.Drop:
		return "drop"
	case a.Context != NoContext:
		return fmt.Sprintf("rss context %d from queue %d", a.Context, a.Queue)
	case a.VF != 0:
		return fmt.Sprintf("vf %d queue %d", a.VF-1, a.Queue)
	}
	return "queue " + strconv.FormatUint(uint64(a.Queue), 10)
}

// String is a rule such as "ip4 proto 253 l4data 0x3/0xf -> queue 3".
func (r Rule) String() string { return r.Match.String() + " -> " + r.Action.String() }

// String is the match in value/mask form; a mask of all ones is left out. A log
// may have a thousand of them, so it goes without fmt.
func (m Match) String() string {
	if m.Flow == Other {
		return fmt.Sprintf("other %x", m.Opaque)
	}
	family, _ := m.Flow.Family()
	b := append(make([]byte, 0, 128), m.Flow.String()...)
	b = m.Source.append(b, " src ", family)
	b = m.Destination.append(b, " dst ", family)
	b = appendBits(b, " proto ", 10, uint64(m.Protocol.Value), uint64(m.Protocol.Mask), 0xff)
	b = appendBits(b, " l4data 0x", 16, uint64(m.L4Data.Value), uint64(m.L4Data.Mask), 0) // always with its mask
	b = appendBits(b, " src-port ", 10, uint64(m.SourcePort.Value), uint64(m.SourcePort.Mask), 0xffff)
	b = appendBits(b, " dst-port ", 10, uint64(m.DestinationPort.Value), uint64(m.DestinationPort.Mask), 0xffff)
	b = appendBits(b, " tos 0x", 16, uint64(m.TOS.Value), uint64(m.TOS.Mask), 0xff)
	b = appendEtherType(b, " ether-type ", m.EtherType)
	b = m.SourceMAC.append(b, " src-mac ")
	b = m.DestinationMAC.append(b, " dst-mac ")
	b = appendBits(b, " vlan ", 10, uint64(m.VLAN.Value), uint64(m.VLAN.Mask), 0x0fff)
	b = appendEtherType(b, " vlan-ether-type ", m.VLANEtherType)
	return string(b)
}

// appendBits appends name and value, and the mask unless it is ones; nothing
// where the mask is 0.
func appendBits(b []byte, name string, base int, value, mask, ones uint64) []byte {
	if mask == 0 {
		return b
	}
	b = strconv.AppendUint(append(b, name...), value, base)
	if mask != ones {
		b = strconv.AppendUint(append(b, "/0x"...), mask, 16)
	}
	return b
}

// appendEtherType has four digits, as people write EtherTypes.
func appendEtherType(b []byte, name string, t Bits16) []byte {
	if t.Mask == 0 {
		return b
	}
	b = fmt.Appendf(b, "%s0x%04x", name, t.Value)
	if t.Mask != 0xffff {
		b = fmt.Appendf(b, "/0x%x", t.Mask)
	}
	return b
}

func (a AddrBits) append(b []byte, name string, f Family) []byte {
	if a.Mask == [16]byte{} {
		return b
	}
	return append(append(b, name...), a.text(f)...)
}

func (m MACBits) append(b []byte, name string) []byte {
	if m.Mask == [6]byte{} {
		return b
	}
	return append(append(b, name...), m.text()...)
}

// text is a prefix where the mask is one, else address/mask.
func (a AddrBits) text(f Family) string {
	if p, ok := a.Prefix(f); ok {
		return p.String()
	}
	return a.ip(a.Value, f) + "/" + a.ip(a.Mask, f)
}

func (AddrBits) ip(b [16]byte, f Family) string {
	if f == IPv4 {
		return netip.AddrFrom4([4]byte(b[:4])).String()
	}
	return netip.AddrFrom16(b).String()
}

func (m MACBits) text() string {
	s := colons(m.Value[:])
	if m.Mask != [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff} {
		s += "/" + colons(m.Mask[:])
	}
	return s
}

// colons is an Ethernet address such as 02:00:00:00:00:01.
func colons(b []byte) string { return strings.ReplaceAll(fmt.Sprintf("% x", b), " ", ":") }

// Ethtool is the rule as arguments of `ethtool -N LINK`, without a location. In
// ethtool(8) a mask bit 1 means "ignore", the inverse of Match. nil for a rule
// of Flow Other.
func (r Rule) Ethtool() []string {
	m := &r.Match
	if m.Flow == Other {
		return nil
	}
	args := []string{"flow-type", m.Flow.String()}
	bits := func(name, format string, value, mask, ones uint64) {
		if mask == 0 {
			return
		}
		args = append(args, name, fmt.Sprintf(format, value))
		if mask != ones {
			args = append(args, "m", fmt.Sprintf("0x%x", ^mask&ones))
		}
	}
	args = append(args, m.ethtoolAddresses()...)
	bits("l4proto", "%d", uint64(m.Protocol.Value), uint64(m.Protocol.Mask), 0xff)
	bits("l4data", "0x%x", uint64(m.L4Data.Value), uint64(m.L4Data.Mask), 0xffffffff)
	bits("src-port", "%d", uint64(m.SourcePort.Value), uint64(m.SourcePort.Mask), 0xffff)
	bits("dst-port", "%d", uint64(m.DestinationPort.Value), uint64(m.DestinationPort.Mask), 0xffff)
	tos := "tos"
	if f, _ := m.Flow.Family(); f == IPv6 {
		tos = "tclass"
	}
	bits(tos, "0x%x", uint64(m.TOS.Value), uint64(m.TOS.Mask), 0xff)
	bits("proto", "0x%x", uint64(m.EtherType.Value), uint64(m.EtherType.Mask), 0xffff)
	bits("vlan", "0x%x", uint64(m.VLAN.Value), uint64(m.VLAN.Mask), 0xffff)
	bits("vlan-etype", "0x%x", uint64(m.VLANEtherType.Value), uint64(m.VLANEtherType.Mask), 0xffff)
	return append(args, r.Action.ethtool()...)
}

func (m *Match) ethtoolAddresses() (args []string) {
	family, _ := m.Flow.Family()
	for _, a := range []struct {
		name string
		addr AddrBits
	}{{"src-ip", m.Source}, {"dst-ip", m.Destination}} {
		if a.addr.Mask == [16]byte{} {
			continue
		}
		args = append(args, a.name, a.addr.ip(a.addr.Value, family))
		ignored := inverted(a.addr.Mask[:])
		if family == IPv4 {
			clear(ignored[4:])
		}
		if [16]byte(ignored) != [16]byte{} {
			args = append(args, "m", a.addr.ip([16]byte(ignored), family))
		}
	}
	dst := "dst-mac"
	if m.Flow == Ether {
		dst = "dst"
	}
	for _, a := range []struct {
		name string
		mac  MACBits
	}{{"src", m.SourceMAC}, {dst, m.DestinationMAC}} {
		if a.mac.Mask == [6]byte{} {
			continue
		}
		args = append(args, a.name, colons(a.mac.Value[:]))
		if ignored := inverted(a.mac.Mask[:]); [6]byte(ignored) != [6]byte{} {
			args = append(args, "m", colons(ignored))
		}
	}
	return args
}

func inverted(mask []byte) []byte {
	ignored := make([]byte, len(mask))
	for i, b := range mask {
		ignored[i] = ^b
	}
	return ignored
}

func (a Action) ethtool() (args []string) {
	if a.Drop {
		return []string{"action", "-1"}
	}
	if a.VF != 0 {
		args = append(args, "vf", fmt.Sprint(a.VF-1), "queue", fmt.Sprint(a.Queue))
	} else {
		args = append(args, "action", fmt.Sprint(a.Queue))
	}
	if a.Context != NoContext {
		args = append(args, "context", fmt.Sprint(a.Context))
	}
	return args
}
