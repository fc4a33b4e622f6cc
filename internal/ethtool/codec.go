// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ethtool

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// Size is sizeof(struct ethtool_rxnfc) on 64-bit Linux, in bytes.
const Size = 192

// Offsets in struct ethtool_rxnfc. Each field of the match has its mask at the
// same place maskAfter bytes further on, for the union and for the extension.
const (
	offCmd        = 0
	offData       = 8
	offFlow       = 16
	offMatch      = 20
	offExt        = 72 // fs.h_ext, which begins with two bytes of padding
	offMAC        = 74 // fs.h_ext.h_dest
	offVLANEther  = 80 // fs.h_ext.vlan_etype
	offVLAN       = 82 // fs.h_ext.vlan_tci
	offMatchEnd   = 92
	offMaskEnd    = 164
	offCookie     = 168
	offLocation   = 176
	offRuleCount  = 184
	offRSSContext = 184 // a union with rule_cnt
	offLocations  = 188
	offVersion    = offMatch + 13 // fs.h_u.usr_ip4_spec.ip_ver

	maskAfter = offMatchEnd - offMatch
)

// Flow types and flags of fs.flow_type (linux/ethtool.h).
const (
	flowTCP4, flowUDP4, flowSCTP4 = 0x01, 0x02, 0x03
	flowTCP6, flowUDP6, flowSCTP6 = 0x05, 0x06, 0x07
	flowIP4, flowIP6, flowEther   = 0x0d, 0x0e, 0x12 // IPV4_USER_FLOW, IPV6_USER_FLOW, ETHER_FLOW

	flagExt = 1 << 31 // FLOW_EXT: VLAN and user-defined data are valid
	flagMAC = 1 << 30 // FLOW_MAC_EXT: h_ext.h_dest is valid
	flagRSS = 1 << 29 // FLOW_RSS: rss_context is valid

	versionIP4 = 1 // ETH_RX_NFC_IP4
)

// Parts of fs.ring_cookie.
const (
	cookieDrop  = ^uint64(0) // RX_CLS_FLOW_DISC
	cookieVFAt  = 32         // ETHTOOL_RX_FLOW_SPEC_RING_VF_OFF
	cookieWidth = 40         // queue and VF; nothing above has a meaning
)

var (
	errForeignField = errors.New("it compares a field, or has an action, that ethtool rules of its flow type do not have")
	errOpaque       = errors.New("it is a rule of unknown form without the kernel's bytes")
)

type rxnfc [Size]byte

// Decode reads a rule and its location from struct ethtool_rxnfc as
// ETHTOOL_GRXCLSRULE fills it. b may have any length: missing bytes are 0, and
// those after Size are ignored.
//
// The rule is canonical: value bits outside the mask, and fields that no flag
// declares valid, are not part of it. A rule that steer cannot express (another
// flow type, user-defined data, Wake-on-LAN) comes as one of Flow Other that
// holds its bytes, and its action where that is understood.
func Decode(b []byte) (steer.Loc, steer.Rule) {
	var x rxnfc
	copy(x[:], b)
	loc := steer.Loc(binary.NativeEndian.Uint32(x[offLocation:]))
	x.canonicalise()
	if r, ok := x.rule(); ok {
		return loc, r
	}
	r := steer.Rule{Match: steer.Match{Opaque: x.opaque()}}
	r.Action, _ = x.action()
	return loc, r
}

// Encode is the inverse of Decode: struct ethtool_rxnfc as
// ETHTOOL_SRXCLSRLINS takes it, but for its cmd. r need not be canonical. A
// match that compares fields which its flow type does not have is an error.
func Encode(loc steer.Loc, r steer.Rule) ([Size]byte, error) {
	x, err := encode(steer.Rule{Match: r.Match.Canonical(), Action: canonicalAction(r.Action)})
	if err != nil {
		return rxnfc{}, err
	}
	binary.NativeEndian.PutUint32(x[offLocation:], uint32(loc))
	return x, nil
}

func encode(r steer.Rule) (rxnfc, error) {
	if r.Match.Flow == steer.Other {
		return fromOpaque(r)
	}
	x := write(r)
	if back, ok := x.rule(); !ok || back != r {
		return rxnfc{}, errForeignField
	}
	return x, nil
}

func canonicalAction(a steer.Action) steer.Action {
	if a.Drop {
		return steer.Drop
	}
	return a
}

// rule is the rule in x, which is canonical; ok is false unless every bit of x
// that means something is in it.
func (x *rxnfc) rule() (r steer.Rule, ok bool) {
	r.Match.Flow = flowOf(x.flow())
	if r.Match.Flow == steer.Other {
		return r, false
	}
	if r.Action, ok = x.action(); !ok {
		return r, false
	}
	wire{x: x}.match(&r.Match)
	same := write(r)
	return r, same.spec() == x.spec()
}

func write(r steer.Rule) (x rxnfc) {
	wire{x: &x, write: true}.match(&r.Match)
	x.setFlow(wireFlow(r.Match.Flow) | x.extFlags())
	x.setAction(r.Action)
	if r.Match.Flow == steer.IP4 {
		x[offVersion] = versionIP4
	}
	return x
}

// wire carries the fields of a match to x or from x: one description of the
// layout serves both ways.
type wire struct {
	x     *rxnfc
	write bool
}

func (w wire) match(m *steer.Match) {
	const at = offMatch
	w.mac(offMAC, m)
	w.bits16(offVLANEther, &m.VLANEtherType)
	w.bits16(offVLAN, &m.VLAN)
	switch m.Flow {
	case steer.Ether: // struct ethhdr
		w.bytes(at, m.DestinationMAC.Value[:], m.DestinationMAC.Mask[:])
		w.bytes(at+6, m.SourceMAC.Value[:], m.SourceMAC.Mask[:])
		w.bits16(at+12, &m.EtherType)
	case steer.IP4: // struct ethtool_usrip4_spec
		w.addresses(at, 4, m)
		w.bits32(at+8, &m.L4Data)
		w.bits8(at+12, &m.TOS)
		w.bits8(at+14, &m.Protocol)
	case steer.IP6: // struct ethtool_usrip6_spec
		w.addresses(at, 16, m)
		w.bits32(at+32, &m.L4Data)
		w.bits8(at+36, &m.TOS)
		w.bits8(at+37, &m.Protocol)
	case steer.TCP4, steer.UDP4, steer.SCTP4: // struct ethtool_tcpip4_spec
		w.addresses(at, 4, m)
		w.ports(at+8, m)
		w.bits8(at+12, &m.TOS)
	case steer.TCP6, steer.UDP6, steer.SCTP6: // struct ethtool_tcpip6_spec
		w.addresses(at, 16, m)
		w.ports(at+32, m)
		w.bits8(at+36, &m.TOS)
	}
}

// mac is the destination address of FLOW_MAC_EXT, which Ether rules do not
// need: theirs is in struct ethhdr.
func (w wire) mac(at int, m *steer.Match) {
	if m.Flow != steer.Ether {
		w.bytes(at, m.DestinationMAC.Value[:], m.DestinationMAC.Mask[:])
	}
}

func (w wire) addresses(at, size int, m *steer.Match) {
	w.bytes(at, m.Source.Value[:size], m.Source.Mask[:size])
	w.bytes(at+size, m.Destination.Value[:size], m.Destination.Mask[:size])
}

func (w wire) ports(at int, m *steer.Match) {
	w.bits16(at, &m.SourcePort)
	w.bits16(at+2, &m.DestinationPort)
}

func (w wire) bytes(at int, value, mask []byte) {
	if w.write {
		copy(w.x[at:], value)
		copy(w.x[at+maskAfter:], mask)
		return
	}
	copy(value, w.x[at:])
	copy(mask, w.x[at+maskAfter:])
}

func (w wire) bits8(at int, b *steer.Bits8) {
	if w.write {
		w.x[at], w.x[at+maskAfter] = b.Value, b.Mask
		return
	}
	b.Value, b.Mask = w.x[at], w.x[at+maskAfter]
}

func (w wire) bits16(at int, b *steer.Bits16) {
	value, mask := w.x[at:at+2], w.x[at+maskAfter:at+maskAfter+2]
	if w.write {
		binary.BigEndian.PutUint16(value, b.Value)
		binary.BigEndian.PutUint16(mask, b.Mask)
		return
	}
	b.Value, b.Mask = binary.BigEndian.Uint16(value), binary.BigEndian.Uint16(mask)
}

func (w wire) bits32(at int, b *steer.Bits32) {
	value, mask := w.x[at:at+4], w.x[at+maskAfter:at+maskAfter+4]
	if w.write {
		binary.BigEndian.PutUint32(value, b.Value)
		binary.BigEndian.PutUint32(mask, b.Mask)
		return
	}
	b.Value, b.Mask = binary.BigEndian.Uint32(value), binary.BigEndian.Uint32(mask)
}

// canonicalise clears what the kernel ignores, so that two forms of one rule
// become the same bytes.
func (x *rxnfc) canonicalise() {
	flow := x.flow()
	if flow&flagMAC == 0 {
		x.clear(offMAC, offVLANEther)
	}
	if flow&flagExt == 0 {
		x.clear(offVLANEther, offMatchEnd)
	}
	x.clear(offExt, offMAC)
	for i := offMatch; i < offMatchEnd; i++ {
		x[i] &= x[i+maskAfter]
	}
	if flowType(flow) == flowIP4 && x[offVersion+maskAfter] == 0 {
		x[offVersion] = versionIP4
	}
	if x.cookie() == cookieDrop {
		flow &^= flagRSS // a dropped packet is not spread
	}
	if flow&flagRSS == 0 {
		x.setContext(0)
	}
	x.setFlow(flow&^(flagExt|flagMAC) | x.extFlags())
}

// clear zeroes value and mask of the bytes from first up to end of the match.
func (x *rxnfc) clear(first, end int) {
	clear(x[first:end])
	clear(x[first+maskAfter : end+maskAfter])
}

// extFlags is the flags that the masks of the extension call for.
func (x *rxnfc) extFlags() (flags uint32) {
	if anySet(x[offMAC+maskAfter : offVLANEther+maskAfter]) {
		flags |= flagMAC
	}
	if anySet(x[offVLANEther+maskAfter : offMaskEnd]) {
		flags |= flagExt
	}
	return flags
}

func anySet(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return true
		}
	}
	return false
}

// action reads ring_cookie and the RSS context; ok is false for a cookie
// without a meaning here, and for context 0, which steer has no word for.
func (x *rxnfc) action() (a steer.Action, ok bool) {
	cookie := x.cookie()
	if cookie == cookieDrop {
		return steer.Drop, true
	}
	if x.flow()&flagRSS != 0 {
		a.Context = binary.NativeEndian.Uint32(x[offRSSContext:])
		if a.Context == steer.NoContext {
			return steer.Action{}, false
		}
	}
	if cookie>>cookieWidth != 0 {
		return steer.Action{}, false
	}
	a.Queue, a.VF = uint32(cookie), uint8(cookie>>cookieVFAt)
	return a, true
}

func (x *rxnfc) setAction(a steer.Action) {
	cookie := uint64(a.VF)<<cookieVFAt | uint64(a.Queue)
	if a.Drop {
		cookie = cookieDrop
	}
	binary.NativeEndian.PutUint64(x[offCookie:], cookie)
	if a.Context != steer.NoContext {
		x.setFlow(x.flow() | flagRSS)
		x.setContext(a.Context)
	}
}

func (x *rxnfc) cookie() uint64 { return binary.NativeEndian.Uint64(x[offCookie:]) }

func (x *rxnfc) setContext(c uint32) { binary.NativeEndian.PutUint32(x[offRSSContext:], c) }

func (x *rxnfc) flow() uint32     { return binary.NativeEndian.Uint32(x[offFlow:]) }
func (x *rxnfc) setFlow(f uint32) { binary.NativeEndian.PutUint32(x[offFlow:], f) }

func flowType(f uint32) uint32 { return f &^ (flagExt | flagMAC | flagRSS) }

// specSize is the bytes of a rule without its location: flow type and match,
// ring_cookie, RSS context.
const specSize = offMaskEnd - offFlow + 8 + 4

func (x *rxnfc) spec() (s [specSize]byte) {
	n := copy(s[:], x[offFlow:offMaskEnd])
	n += copy(s[n:], x[offCookie:offCookie+8])
	copy(s[n:], x[offRSSContext:offRSSContext+4])
	return s
}

func (x *rxnfc) opaque() string {
	s := x.spec()
	return string(s[:])
}

func fromOpaque(r steer.Rule) (x rxnfc, err error) {
	o := r.Match.Opaque
	if len(o) != specSize {
		return rxnfc{}, errOpaque
	}
	n := copy(x[offFlow:offMaskEnd], o)
	n += copy(x[offCookie:offCookie+8], o[n:])
	copy(x[offRSSContext:offRSSContext+4], o[n:])
	if _, back := Decode(x[:]); back != r {
		return rxnfc{}, errForeignField
	}
	return x, nil
}

// wireFlows is the kernel's number of each flow type; 0 stands for none.
var wireFlows = [...]uint32{
	steer.Ether: flowEther,
	steer.IP4:   flowIP4, steer.IP6: flowIP6,
	steer.TCP4: flowTCP4, steer.TCP6: flowTCP6,
	steer.UDP4: flowUDP4, steer.UDP6: flowUDP6,
	steer.SCTP4: flowSCTP4, steer.SCTP6: flowSCTP6,
}

func flowOf(f uint32) steer.FlowType {
	// An unknown type gives -1, and 0 is Other's own place.
	return steer.FlowType(max(0, slices.Index(wireFlows[:], flowType(f))))
}

func wireFlow(t steer.FlowType) uint32 {
	if int(t) >= len(wireFlows) {
		return 0
	}
	return wireFlows[t]
}
