// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// entryOf is the policy entry, as a YAML flow mapping, that makes exactly rule
// r. ok is false for rules that no entry makes.
func entryOf(r steer.Rule) (text string, ok bool) {
	e := entryText{ok: true}
	m := r.Match
	family, ip := m.Flow.Family()
	if ip {
		e.add("family", fmt.Sprintf("ipv%d", family))
	}
	e.protocol(m)
	e.address("source", m.Source, family)
	e.address("destination", m.Destination, family)
	e.port("source-port", m.SourcePort)
	e.port("destination-port", m.DestinationPort)
	if m.L4Data.Mask != 0 {
		e.add("l4data", fmt.Sprintf("0x%08x/0x%08x", m.L4Data.Value, m.L4Data.Mask))
	}
	e.number("vlan", m.VLAN, 0x0fff, "%d")
	e.mac("destination-mac", m.DestinationMAC)
	e.number("ether-type", m.EtherType, 0xffff, "0x%04x")
	e.action(r.Action)
	if m.Flow == steer.Other || m.TOS.Mask != 0 || m.SourceMAC.Mask != [6]byte{} || m.VLANEtherType.Mask != 0 {
		e.ok = false
	}
	return "{" + strings.Join(e.pairs, ", ") + "}", e.ok
}

// entryText collects the pairs of a mapping; ok turns false at the first field
// that the configuration has no words for.
type entryText struct {
	pairs []string
	ok    bool
}

func (e *entryText) add(key, value string) { e.pairs = append(e.pairs, key+": "+value) }

var flowProtocols = map[steer.FlowType]string{
	steer.TCP4: "tcp", steer.TCP6: "tcp", steer.UDP4: "udp", steer.UDP6: "udp", steer.SCTP4: "sctp", steer.SCTP6: "sctp",
}

func (e *entryText) protocol(m steer.Match) {
	if name := flowProtocols[m.Flow]; name != "" {
		e.add("protocol", name)
		return
	}
	switch m.Protocol.Mask {
	case 0:
	case 0xff:
		e.add("protocol", fmt.Sprint(m.Protocol.Value))
	default:
		e.ok = false
	}
}

func (e *entryText) address(key string, a steer.AddrBits, f steer.Family) {
	if a.Mask == [16]byte{} {
		return
	}
	p, ok := a.Prefix(f)
	if !ok {
		e.ok = false
		return
	}
	text := p.String()
	if p.IsSingleIP() {
		text = p.Addr().String()
	}
	if strings.HasPrefix(text, ":") || strings.HasSuffix(text, ":") {
		text = `"` + text + `"`
	}
	e.add(key, text)
}

// port writes a mask that leaves low bits open as a range.
func (e *entryText) port(key string, p steer.Bits16) {
	open := ^p.Mask
	switch {
	case p.Mask == 0:
	case open == 0:
		e.add(key, fmt.Sprint(p.Value))
	case open&(open+1) == 0:
		e.add(key, fmt.Sprintf("%d-%d", p.Value, p.Value|open))
	default:
		e.ok = false
	}
}

func (e *entryText) number(key string, v steer.Bits16, mask uint16, format string) {
	switch v.Mask {
	case 0:
	case mask:
		e.add(key, fmt.Sprintf(format, v.Value))
	default:
		e.ok = false
	}
}

func (e *entryText) mac(key string, a steer.MACBits) {
	if a.Mask == [6]byte{} {
		return
	}
	text := net.HardwareAddr(a.Value[:]).String()
	if mask := net.HardwareAddr(a.Mask[:]); mask.String() != "ff:ff:ff:ff:ff:ff" {
		text += "/" + mask.String()
	}
	e.add(key, `"`+text+`"`)
}

func (e *entryText) action(a steer.Action) {
	switch {
	case a.Drop:
		e.add("drop", "true")
	case a.VF != 0 || a.Context != steer.NoContext:
		e.ok = false
	default:
		e.add("queue", fmt.Sprint(a.Queue))
	}
}
