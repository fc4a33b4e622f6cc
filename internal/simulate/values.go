// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// numbers is port numbers, to take in turn or at random.
type numbers struct {
	spans  []steer.Ports
	size   uint64 // how many numbers that is
	random bool
}

// at is the i-th number of n, from 0, beginning again at its end.
func (n numbers) at(i uint64) uint16 {
	i %= n.size
	for _, s := range n.spans {
		width := uint64(s.Last-s.First) + 1
		if i < width {
			return s.First + uint16(i)
		}
		i -= width
	}
	panic("unreachable: size is the sum of the widths")
}

// addresses is IP addresses, to take in turn or at random.
type addresses struct {
	prefixes []netip.Prefix
	size     uint64 // how many addresses that is, at most maxAddresses; set by of
	random   bool
}

// maxAddresses is where counting them ends; nobody sends as many packets.
const maxAddresses = 1 << 62

// of is the addresses of one family.
func (a addresses) of(f steer.Family) addresses {
	one := addresses{random: a.random}
	for _, p := range a.prefixes {
		if p.Addr().Is4() == (f == steer.IPv4) {
			one.prefixes = append(one.prefixes, p)
			one.size = min(one.size+prefixSize(p), maxAddresses)
		}
	}
	return one
}

func prefixSize(p netip.Prefix) uint64 { return 1 << min(p.Addr().BitLen()-p.Bits(), 62) }

// at is the i-th address of a, from 0, beginning again at its end.
func (a addresses) at(i uint64) netip.Addr {
	i %= a.size
	for _, p := range a.prefixes {
		if width := prefixSize(p); i >= width {
			i -= width
			continue
		}
		return fillHost(p, 0, i)
	}
	panic("unreachable: size is at most the sum of the prefixes")
}

// any is one address of a by chance.
func (a addresses) any(r *rand.Rand) netip.Addr {
	i := r.Uint64N(a.size)
	for _, p := range a.prefixes {
		if width := prefixSize(p); i >= width {
			i -= width
			continue
		}
		return fillHost(p, r.Uint64(), r.Uint64())
	}
	panic("unreachable: size is at most the sum of the prefixes")
}

// fillHost is p's address with the bits behind its prefix taken from hi and lo.
func fillHost(p netip.Prefix, hi, lo uint64) netip.Addr {
	b := p.Addr().As16()
	fixed := 128 - p.Addr().BitLen() + p.Bits()
	for i := range b {
		word := hi
		if i >= 8 {
			word = lo
		}
		free := byte(0xff >> min(max(fixed-8*i, 0), 8))
		b[i] |= byte(word>>(56-8*(i%8))) & free
	}
	if p.Addr().Is4() {
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return netip.AddrFrom16(b)
}

func parsePackets(v string) (uint64, error) {
	n, err := strconv.ParseUint(v, 10, 63)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("the number of packets is a whole number from 1")
	}
	return n, nil
}

func parseFamilies(v string) ([]steer.Family, error) {
	var families []steer.Family
	for _, word := range strings.Split(v, ",") {
		f, ok := map[string]steer.Family{"ipv4": steer.IPv4, "ipv6": steer.IPv6}[word]
		if !ok {
			return nil, fmt.Errorf("%q: a family is ipv4 or ipv6", word)
		}
		if !slices.Contains(families, f) {
			families = append(families, f)
		}
	}
	return families, nil
}

func parseProtocol(v string, protocols Protocols) (uint8, error) {
	if n, ok := protocols(v); ok {
		return n, nil
	}
	n, err := strconv.ParseUint(v, 10, 8)
	if err != nil {
		return 0, fmt.Errorf("a protocol is a number from 0 to 255 or a name such as udp or homa")
	}
	return uint8(n), nil
}

func parseNumbers(v string) (numbers, error) {
	if v == "random" {
		return anyPort, nil
	}
	rest, random := strings.CutPrefix(v, "random:")
	n := numbers{random: random}
	for _, word := range strings.Split(rest, ",") {
		first, last, isRange := strings.Cut(word, "-")
		if !isRange {
			last = first
		}
		a, err := strconv.ParseUint(first, 10, 16)
		b, err2 := strconv.ParseUint(last, 10, 16)
		if err != nil || err2 != nil || b < a {
			return n, fmt.Errorf("%q: ports are a number from 0 to 65535, a range such as 0-15, or a list such as 53,80,8000-8007", word)
		}
		n.spans = append(n.spans, steer.Ports{First: uint16(a), Last: uint16(b)})
		n.size += b - a + 1
	}
	return n, nil
}

func parseAddresses(v string) (addresses, error) {
	rest, random := strings.CutPrefix(v, "random:")
	a := addresses{random: random}
	for _, word := range strings.Split(rest, ",") {
		p, err := netip.ParsePrefix(word)
		if err != nil {
			addr, err := netip.ParseAddr(word)
			if err != nil || addr.Zone() != "" {
				return a, fmt.Errorf("%q: write an address or a prefix such as 192.0.2.0/24", word)
			}
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		if p.Addr().Is4In6() {
			return a, fmt.Errorf("%q: write the IPv4 address itself", word)
		}
		a.prefixes = append(a.prefixes, p.Masked())
	}
	return a, nil
}

func parseL4Data(v string) (*steer.Bits32, error) {
	value, mask, masked := strings.Cut(v, "/")
	b, err := parseUint(value, 32)
	m, err2 := uint64(0xffffffff), error(nil)
	if masked {
		m, err2 = parseUint(mask, 32)
	}
	if err != nil || err2 != nil {
		return nil, fmt.Errorf("write four bytes and a mask, such as 0x00000003/0x0000000f")
	}
	return &steer.Bits32{Value: uint32(b & m), Mask: uint32(m)}, nil
}

func parseVLAN(v string) (uint16, error) {
	n, err := strconv.ParseUint(v, 10, 16)
	if err != nil || n < 1 || n > 4094 {
		return 0, fmt.Errorf("a VLAN is a number from 1 to 4094")
	}
	return uint16(n), nil
}

func parseMAC(v string) ([6]byte, error) {
	mac, err := net.ParseMAC(v)
	if err != nil || len(mac) != 6 {
		return [6]byte{}, fmt.Errorf("write the address as 02:00:00:00:00:01")
	}
	return [6]byte(mac), nil
}

func parseEtherType(v string) (uint16, error) {
	n, err := parseUint(v, 16)
	switch {
	case err != nil || n < 0x600:
		return 0, fmt.Errorf("an EtherType is a number from 0x0600 to 0xffff")
	case n == etherIPv4 || n == etherIPv6:
		return 0, fmt.Errorf("IP packets are described by family and protocol")
	case n == etherVLAN || n == 0x88a8:
		return 0, fmt.Errorf("tagged packets are described by vlan=")
	}
	return uint16(n), nil
}

// parseUint reads a decimal number, or a hexadecimal one after 0x. A zero in
// front is refused: YAML 1.1 would read it as octal.
func parseUint(v string, bits int) (uint64, error) {
	if hex, ok := strings.CutPrefix(v, "0x"); ok {
		return strconv.ParseUint(hex, 16, bits)
	}
	if len(v) > 1 && v[0] == '0' {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseUint(v, 10, bits)
}
