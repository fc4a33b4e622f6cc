// SPDX-License-Identifier: Apache-2.0

package steering

import "github.com/flexsteer/flexsteer/sim/prm"

// MatchBytes is the size of a Match.
const MatchBytes = 512

// Match is fte_match_param: seven sections of 64 bytes (outer headers, misc,
// inner headers, misc2, misc3, misc4, misc5) and one reserved, as the bits of
// a group's criteria or the values of an entry.
type Match [MatchBytes]byte

// The sections that a group's criteria may use: match_criteria_enable. The
// model knows nothing of inner headers, misc2 and misc5.
const (
	EnableOuter uint8 = 1 << iota
	EnableMisc
	EnableInner
	EnableMisc2
	EnableMisc3
	EnableMisc4
	EnableMisc5
)

// Where the sections begin, in bits.
const (
	outer = 0
	misc  = 0x200
	misc3 = 0x800
	misc4 = 0xa00
)

const sectionBytes = 64

var sections = [8]string{"outer headers", "misc", "inner headers", "misc2", "misc3", "misc4", "misc5", "reserved"}

// manner is how people write a field.
type manner int

const (
	decimal manner = iota
	hexadecimal
	hardware // MAC address
	address  // IPv4 in the last four bytes, or IPv6
	tag      // one bit of a VLAN qualifier; see vlanTags
)

// field is a part of Match that the model compares.
type field struct {
	prm.Field
	name   string
	manner manner
}

// fields is what the criteria may have ones in, besides misc4, in the order that people read it.
var fields = []field{
	{prm.Field{Bit: outer + 0x40, Width: 48}, "dmac", hardware},
	{prm.Field{Bit: outer + 0x00, Width: 48}, "smac", hardware},
	{firstCVLAN, "cvlan_tag", tag},
	{firstSVLAN, "svlan_tag", tag},
	{prm.Field{Bit: outer + 0x74, Width: 12}, "first_vid", decimal},
	{prm.Field{Bit: outer + 0x70, Width: 3}, "first_prio", decimal},
	{prm.Field{Bit: outer + 0x73, Width: 1}, "first_cfi", decimal},
	{secondCVLAN, "outer_second_cvlan_tag", tag},
	{secondSVLAN, "outer_second_svlan_tag", tag},
	{prm.Field{Bit: misc + 0x44, Width: 12}, "outer_second_vid", decimal},
	{prm.Field{Bit: misc + 0x40, Width: 3}, "outer_second_prio", decimal},
	{prm.Field{Bit: misc + 0x43, Width: 1}, "outer_second_cfi", decimal},
	{prm.Field{Bit: outer + 0x30, Width: 16}, "ethertype", hexadecimal},
	{prm.Field{Bit: outer + 0x93, Width: 4}, "ip_version", decimal},
	{prm.Field{Bit: outer + 0x100, Width: 128}, "src_ip", address},
	{prm.Field{Bit: outer + 0x180, Width: 128}, "dst_ip", address},
	{prm.Field{Bit: outer + 0x80, Width: 8}, "ip_protocol", decimal},
	{prm.Field{Bit: outer + 0x88, Width: 6}, "ip_dscp", decimal},
	{prm.Field{Bit: outer + 0x8e, Width: 2}, "ip_ecn", decimal},
	{prm.Field{Bit: outer + 0xd8, Width: 8}, "ttl_hoplimit", decimal},
	{prm.Field{Bit: outer + 0xd0, Width: 4}, "ipv4_ihl", decimal},
	{prm.Field{Bit: misc + 0xec, Width: 20}, "outer_ipv6_flow_label", hexadecimal},
	{prm.Field{Bit: outer + 0x92, Width: 1}, "frag", decimal},
	{prm.Field{Bit: outer + 0xc0, Width: 2}, "l4_type", decimal},
	{prm.Field{Bit: outer + 0xa0, Width: 16}, "tcp_sport", decimal},
	{prm.Field{Bit: outer + 0xb0, Width: 16}, "tcp_dport", decimal},
	{prm.Field{Bit: outer + 0x97, Width: 9}, "tcp_flags", hexadecimal},
	{prm.Field{Bit: outer + 0xe0, Width: 16}, "udp_sport", decimal},
	{prm.Field{Bit: outer + 0xf0, Width: 16}, "udp_dport", decimal},
	{prm.Field{Bit: misc3 + 0x100, Width: 8}, "icmp_type", decimal},
	{prm.Field{Bit: misc3 + 0x108, Width: 8}, "icmp_code", decimal},
	{prm.Field{Bit: misc3 + 0xc0, Width: 32}, "icmp_header_data", hexadecimal},
	{prm.Field{Bit: misc3 + 0x110, Width: 8}, "icmpv6_type", decimal},
	{prm.Field{Bit: misc3 + 0x118, Width: 8}, "icmpv6_code", decimal},
	{prm.Field{Bit: misc3 + 0xe0, Width: 32}, "icmpv6_header_data", hexadecimal},
	{prm.Field{Bit: misc + 0x00, Width: 1}, "gre_c_present", decimal},
	{prm.Field{Bit: misc + 0x02, Width: 1}, "gre_k_present", decimal},
	{prm.Field{Bit: misc + 0x03, Width: 1}, "gre_s_present", decimal},
	{prm.Field{Bit: misc + 0x70, Width: 16}, "gre_protocol", hexadecimal},
	{prm.Field{Bit: misc + 0x80, Width: 32}, "gre_key", hexadecimal},
	{prm.Field{Bit: misc + 0x180, Width: 32}, "outer_esp_spi", hexadecimal},
}

// headers are those behind IP that the fixed parser reads.
type headers uint8

const (
	hasTCP headers = 1 << iota
	hasUDP
	hasICMP
	hasICMPv6
	hasGRE
	hasESP
)

// headerOf is the header that a field is of. Where it is not there, as in every
// fragment, the field matches nothing, not even 0 (DPDK's mlx5 guide, "Limitations":
// a fragment misses rules that match on what is behind the IP header).
var headerOf = map[string]headers{
	"tcp_sport": hasTCP, "tcp_dport": hasTCP, "tcp_flags": hasTCP, "udp_sport": hasUDP, "udp_dport": hasUDP,
	"icmp_type": hasICMP, "icmp_code": hasICMP, "icmp_header_data": hasICMP,
	"icmpv6_type": hasICMPv6, "icmpv6_code": hasICMPv6, "icmpv6_header_data": hasICMPv6,
	"gre_c_present": hasGRE, "gre_k_present": hasGRE, "gre_s_present": hasGRE, "gre_protocol": hasGRE, "gre_key": hasGRE,
	"outer_esp_spi": hasESP,
}

var (
	firstCVLAN  = prm.Field{Bit: outer + 0x90, Width: 1}
	firstSVLAN  = prm.Field{Bit: outer + 0x91, Width: 1}
	secondCVLAN = prm.Field{Bit: misc + 0x60, Width: 1}
	secondSVLAN = prm.Field{Bit: misc + 0x62, Width: 1}
)

// vlanTags are the pairs of bits that are one field in the card: no tag, a C-tag
// or an S-tag. Comparing one bit compares both: the driver's table takes
// "cvlan_tag 0" for untagged, and its software steering (dr_ste_v1.c) writes
// the pair into the one field first_vlan_qualifier.
var vlanTags = [2][2]prm.Field{{firstCVLAN, firstSVLAN}, {secondCVLAN, secondSVLAN}}

// sampleFields are misc4's pairs.
var sampleFields = [4]struct{ value, id prm.Field }{
	{prm.Field{Bit: misc4 + 0x00, Width: 32}, prm.Field{Bit: misc4 + 0x20, Width: 32}},
	{prm.Field{Bit: misc4 + 0x40, Width: 32}, prm.Field{Bit: misc4 + 0x60, Width: 32}},
	{prm.Field{Bit: misc4 + 0x80, Width: 32}, prm.Field{Bit: misc4 + 0xa0, Width: 32}},
	{prm.Field{Bit: misc4 + 0xc0, Width: 32}, prm.Field{Bit: misc4 + 0xe0, Width: 32}},
}

// modelled has ones where criteria may have them.
var modelled = func() (m Match) {
	ones := func(f prm.Field) {
		for bit := range f.Width {
			prm.Field{Bit: f.Bit + bit, Width: 1}.Set(m[:], 1)
		}
	}
	for _, f := range fields {
		ones(f.Field)
	}
	for _, p := range sampleFields {
		ones(p.value)
		ones(p.id)
	}
	return m
}()
