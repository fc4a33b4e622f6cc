// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"encoding/binary"
	"net/netip"
	"strings"
)

// wire is a frame as its parts; bytes puts them together and value says what the
// card finds in them. Both are written without a look at the parser.
type wire struct {
	dmac, smac [6]byte
	tags       []vlan
	etherType  uint16 // 0: as the addresses say
	src, dst   netip.Addr
	proto      uint8
	tos, ttl   uint8
	label      uint32
	options    []byte // of IPv4; a multiple of four
	offset     int    // of a fragment, in units of eight bytes
	more       bool   // fragments
	extensions []extension
	l4         []byte
	padding    int // bytes of zeros behind the packet
}

type vlan struct{ tpid, tci uint16 }

// extension is an IPv6 extension header of 8+8*more bytes.
type extension struct {
	protocol uint8
	more     uint8
}

func (w wire) bytes() []byte {
	b := append(w.dmac[:], w.smac[:]...)
	for _, t := range w.tags {
		b = binary.BigEndian.AppendUint16(b, t.tpid)
		b = binary.BigEndian.AppendUint16(b, t.tci)
	}
	b = binary.BigEndian.AppendUint16(b, w.ethertype())
	switch {
	case w.src.Is4():
		b = append(b, w.ipv4()...)
	case w.src.Is6():
		b = append(b, w.ipv6()...)
	}
	b = append(b, w.l4...)
	return append(b, make([]byte, w.padding)...)
}

func (w wire) ethertype() uint16 {
	switch {
	case w.etherType != 0:
		return w.etherType
	case w.src.Is4():
		return 0x0800
	case w.src.Is6():
		return 0x86dd
	}
	return 0x88b5
}

func (w wire) fragmentWord() (v uint16) {
	if v = uint16(w.offset); w.more {
		v |= 0x2000
	}
	return v
}

func (w wire) ipv4() []byte {
	b := make([]byte, 20+len(w.options))
	b[0], b[1], b[8], b[9] = 0x40|byte(len(b)/4), w.tos, w.ttl, w.proto
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)+len(w.l4)))
	binary.BigEndian.PutUint16(b[6:], w.fragmentWord())
	copy(b[12:], w.src.AsSlice())
	copy(b[16:], w.dst.AsSlice())
	copy(b[20:], w.options)
	return b
}

func (w wire) ipv6() []byte {
	b := make([]byte, 40)
	binary.BigEndian.PutUint32(b, 6<<28|uint32(w.tos)<<20|w.label)
	b[6], b[7] = w.proto, w.ttl
	copy(b[8:], w.src.AsSlice())
	copy(b[24:], w.dst.AsSlice())
	next := 6 // where the protocol of what comes next is told
	for _, e := range w.extensions {
		b[next] = e.protocol
		next = len(b)
		b = append(b, w.proto, e.more, 1, 4)
		b = append(b, make([]byte, 4+8*int(e.more))...)
		if e.protocol == 44 {
			v := w.fragmentWord()
			binary.BigEndian.PutUint16(b[next+2:], v<<3|v>>13)
		}
	}
	binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40+len(w.l4)))
	return b
}

func (w wire) fragment() bool {
	for _, e := range w.extensions {
		if e.protocol == 44 {
			return true
		}
	}
	return w.src.Is4() && w.fragmentWord() != 0
}

func (w wire) hasL4(proto uint8, size int) bool {
	if proto == 47 && len(w.l4) >= 2 && w.l4[1]&7 != 0 {
		return false // another version of GRE
	}
	return w.src.IsValid() && w.proto == proto && !w.fragment() && len(w.l4) >= size
}

// hasHeaderOf says whether the header is there that a field is of, if it is of one
// behind IP.
func (w wire) hasHeaderOf(field string) bool {
	kind, _, _ := strings.Cut(strings.TrimPrefix(field, "outer_"), "_")
	switch kind {
	case "tcp":
		return w.hasL4(6, 20)
	case "udp":
		return w.hasL4(17, 8)
	case "icmp":
		return w.src.Is4() && w.hasL4(1, 8)
	case "icmpv6":
		return w.src.Is6() && w.hasL4(58, 8)
	case "gre":
		return w.hasL4(47, 4)
	case "esp":
		return w.hasL4(50, 8)
	}
	return true
}

// layout is where the fields of fte_match_param are, in bits, once more and by
// hand from the driver's header. Addresses are four dwords here.
var layout = map[string]struct{ bit, width int }{
	"smac": {0x00, 48}, "ethertype": {0x30, 16}, "dmac": {0x40, 48},
	"first_prio": {0x70, 3}, "first_cfi": {0x73, 1}, "first_vid": {0x74, 12},
	"ip_protocol": {0x80, 8}, "ip_dscp": {0x88, 6}, "ip_ecn": {0x8e, 2},
	"cvlan_tag": {0x90, 1}, "svlan_tag": {0x91, 1}, "frag": {0x92, 1}, "ip_version": {0x93, 4}, "tcp_flags": {0x97, 9},
	"tcp_sport": {0xa0, 16}, "tcp_dport": {0xb0, 16}, "l4_type": {0xc0, 2}, "ipv4_ihl": {0xd0, 4}, "ttl_hoplimit": {0xd8, 8},
	"udp_sport": {0xe0, 16}, "udp_dport": {0xf0, 16},
	"src0": {0x100, 32}, "src1": {0x120, 32}, "src2": {0x140, 32}, "src3": {0x160, 32},
	"dst0": {0x180, 32}, "dst1": {0x1a0, 32}, "dst2": {0x1c0, 32}, "dst3": {0x1e0, 32},
	"gre_c_present": {0x200, 1}, "gre_k_present": {0x202, 1}, "gre_s_present": {0x203, 1},
	"outer_second_prio": {0x240, 3}, "outer_second_cfi": {0x243, 1}, "outer_second_vid": {0x244, 12},
	"outer_second_cvlan_tag": {0x260, 1}, "outer_second_svlan_tag": {0x262, 1},
	"gre_protocol": {0x270, 16}, "gre_key": {0x280, 32}, "outer_ipv6_flow_label": {0x2ec, 20}, "outer_esp_spi": {0x380, 32},
	"icmp_header_data": {0x8c0, 32}, "icmpv6_header_data": {0x8e0, 32},
	"icmp_type": {0x900, 8}, "icmp_code": {0x908, 8}, "icmpv6_type": {0x910, 8}, "icmpv6_code": {0x918, 8},
	"value_0": {0xa00, 32}, "id_0": {0xa20, 32}, "value_1": {0xa40, 32}, "id_1": {0xa60, 32},
	"value_2": {0xa80, 32}, "id_2": {0xaa0, 32}, "value_3": {0xac0, 32}, "id_3": {0xae0, 32},
}

// set writes a field by its name.
func (m *Match) set(name string, v uint64) {
	f, ok := layout[name]
	if !ok {
		panic("no field " + name)
	}
	for i := range f.width {
		bit := f.bit + f.width - 1 - i
		m[bit/8] = m[bit/8]&^(0x80>>(bit%8)) | byte(v>>i&1)<<(7-bit%8)
	}
}

// match is a Match of names and values by turns.
func match(pairs ...any) (m Match) {
	for i := 0; i < len(pairs); i += 2 {
		m.set(pairs[i].(string), uint64(pairs[i+1].(int)))
	}
	return m
}

// value is what the card finds in a field.
func (w wire) value(name string) uint64 {
	if v, ok := w.link(name); ok {
		return v
	}
	if !w.src.IsValid() {
		return 0
	}
	if v, ok := w.network(name); ok {
		return v
	}
	return w.transport(name)
}

func (w wire) link(name string) (uint64, bool) {
	var first, second vlan
	if len(w.tags) > 0 {
		first = w.tags[0]
	}
	if len(w.tags) > 1 {
		second = w.tags[1]
	}
	switch name {
	case "smac":
		return mac48(w.smac), true
	case "dmac":
		return mac48(w.dmac), true
	case "ethertype":
		return uint64(w.ethertype()), true
	case "first_vid":
		return uint64(first.tci & 0xfff), true
	case "first_cfi":
		return uint64(first.tci >> 12 & 1), true
	case "first_prio":
		return uint64(first.tci >> 13), true
	case "outer_second_vid":
		return uint64(second.tci & 0xfff), true
	case "outer_second_cfi":
		return uint64(second.tci >> 12 & 1), true
	case "outer_second_prio":
		return uint64(second.tci >> 13), true
	}
	return 0, false
}

func mac48(m [6]byte) uint64 {
	return uint64(binary.BigEndian.Uint16(m[:]))<<32 | uint64(binary.BigEndian.Uint32(m[2:]))
}

func (w wire) network(name string) (uint64, bool) {
	src, dst := w.dwords(w.src), w.dwords(w.dst)
	switch name {
	case "src0", "src1", "src2", "src3":
		return src[name[3]-'0'], true
	case "dst0", "dst1", "dst2", "dst3":
		return dst[name[3]-'0'], true
	case "ip_protocol":
		return uint64(w.proto), true
	case "ip_dscp":
		return uint64(w.tos >> 2), true
	case "ip_ecn":
		return uint64(w.tos & 3), true
	case "ttl_hoplimit":
		return uint64(w.ttl), true
	case "ip_version":
		return map[bool]uint64{true: 4, false: 6}[w.src.Is4()], true
	case "frag":
		return map[bool]uint64{true: 1}[w.fragment()], true
	case "ipv4_ihl":
		return map[bool]uint64{true: uint64(5 + len(w.options)/4)}[w.src.Is4()], true
	case "outer_ipv6_flow_label":
		return map[bool]uint64{true: uint64(w.label)}[w.src.Is6()], true
	}
	return 0, false
}

func (w wire) dwords(a netip.Addr) (d [4]uint64) {
	if a.Is4() {
		d[3] = uint64(binary.BigEndian.Uint32(a.AsSlice()))
		return d
	}
	b := a.As16()
	for i := range d {
		d[i] = uint64(binary.BigEndian.Uint32(b[4*i:]))
	}
	return d
}

func (w wire) transport(name string) uint64 {
	l4 := func(proto uint8, size, at, n int) uint64 {
		if !w.hasL4(proto, size) {
			return 0
		}
		var v uint64
		for _, b := range w.l4[at : at+n] {
			v = v<<8 | uint64(b)
		}
		return v
	}
	icmp, icmp6 := uint8(1), uint8(58)
	if w.src.Is6() {
		icmp = 255 // in no frame of these tests
	} else {
		icmp6 = 255
	}
	switch name {
	case "tcp_sport":
		return l4(6, 20, 0, 2)
	case "tcp_dport":
		return l4(6, 20, 2, 2)
	case "tcp_flags":
		return l4(6, 20, 12, 2) & 0x1ff
	case "udp_sport":
		return l4(17, 8, 0, 2)
	case "udp_dport":
		return l4(17, 8, 2, 2)
	case "l4_type":
		return map[bool]uint64{true: 1}[w.hasL4(6, 20)] + map[bool]uint64{true: 2}[w.hasL4(17, 8)]
	case "icmp_type":
		return l4(icmp, 8, 0, 1)
	case "icmp_code":
		return l4(icmp, 8, 1, 1)
	case "icmp_header_data":
		return l4(icmp, 8, 4, 4)
	case "icmpv6_type":
		return l4(icmp6, 8, 0, 1)
	case "icmpv6_code":
		return l4(icmp6, 8, 1, 1)
	case "icmpv6_header_data":
		return l4(icmp6, 8, 4, 4)
	case "outer_esp_spi":
		return l4(50, 8, 0, 4)
	case "gre_c_present":
		return l4(47, 4, 0, 1) >> 7
	case "gre_k_present":
		return l4(47, 4, 0, 1) >> 5 & 1
	case "gre_s_present":
		return l4(47, 4, 0, 1) >> 4 & 1
	case "gre_protocol":
		return l4(47, 4, 2, 2)
	case "gre_key":
		return w.greKey()
	}
	panic("no value for " + name)
}

func (w wire) greKey() uint64 {
	if !w.hasL4(47, 4) || w.l4[0]&0x20 == 0 {
		return 0
	}
	at := 4
	if w.l4[0]&0x80 != 0 {
		at = 8
	}
	if len(w.l4) < at+4 {
		return 0
	}
	return uint64(binary.BigEndian.Uint32(w.l4[at:]))
}

// ports is a header of size bytes that begins with two ports.
func ports(src, dst uint16, size int) []byte {
	b := make([]byte, size)
	binary.BigEndian.PutUint16(b, src)
	binary.BigEndian.PutUint16(b[2:], dst)
	return b
}

func udp(src, dst uint16) []byte { return ports(src, dst, 12) }

func tcp(src, dst uint16, flags uint8, data int) []byte {
	b := ports(src, dst, 20+data)
	b[12], b[13] = 0x50, flags
	return b
}

var (
	host4, peer4 = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	host6, peer6 = netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")
	hostMAC      = [6]byte{2, 0xaa, 0xbb, 0xcc, 0xdd, 1}
	peerMAC      = [6]byte{2, 0, 0, 0, 0, 2}
)

// to4 is a frame of the peer for the host over IPv4, and to6 over IPv6.
func to4(proto uint8, l4 []byte) wire {
	return wire{dmac: hostMAC, smac: peerMAC, src: peer4, dst: host4, ttl: 64, proto: proto, l4: l4}
}

func to6(proto uint8, l4 []byte) wire {
	return wire{dmac: hostMAC, smac: peerMAC, src: peer6, dst: host6, ttl: 64, proto: proto, l4: l4}
}
