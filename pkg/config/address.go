// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/flexsteer/flexsteer/pkg/steer"
	"gopkg.in/yaml.v3"
)

// prefixes reads one prefix or a list of them, each at most once.
func (f *faults) prefixes(n *yaml.Node, what string) (out []netip.Prefix, nodes []*yaml.Node) {
	seen := map[netip.Prefix]*yaml.Node{}
	for _, item := range f.items(n, what) {
		p, ok := f.prefix(item, what)
		if !ok {
			continue
		}
		if first, dup := seen[p]; dup {
			f.also(item, first, ruleRepeat, fmt.Sprintf("%s: %s is in this list twice", what, p), "keep it in one place")
			continue
		}
		seen[p] = item
		out, nodes = append(out, p), append(nodes, item)
	}
	return out, nodes
}

// prefix reads an address, or a prefix without host bits.
func (f *faults) prefix(n *yaml.Node, what string) (netip.Prefix, bool) {
	s, ok := f.text(n, what)
	if !ok {
		return netip.Prefix{}, false
	}
	p, err := netip.ParsePrefix(s)
	if a, aerr := netip.ParseAddr(s); aerr == nil && a.Zone() == "" {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	switch {
	case err != nil:
		f.node(n, ruleAddress, fmt.Sprintf("%s: %s is not an IP address or prefix", what, clip(printable(s))), addressHint(s))
	case p.Addr().Is4In6():
		f.node(n, ruleAddress, fmt.Sprintf("%s: %s is an IPv4 address in IPv6 form", what, s), "write "+p.Addr().Unmap().String())
	case p != p.Masked():
		f.node(n, ruleHostBits, fmt.Sprintf("%s: %s has bits set behind its first %d", what, s, p.Bits()), "write "+p.Masked().String()+", or "+p.Addr().String()+" for one address")
	default:
		return p, true
	}
	return netip.Prefix{}, false
}

func addressHint(s string) string {
	address, mask, found := strings.Cut(s, "/")
	if m := net.ParseIP(mask).To4(); found && m != nil {
		if ones, bits := net.IPMask(m).Size(); bits == 32 {
			return fmt.Sprintf("write %s/%d", address, ones)
		}
		return "only prefixes can be matched, such as 192.0.2.0/24"
	}
	switch {
	case strings.ContainsAny(s, ", "):
		return separatorHint(s)
	case strings.Contains(s, "%"):
		return "leave the zone out"
	case strings.Contains(s, "-"):
		return "write prefixes, such as 192.0.2.0/24; a list may hold several"
	case strings.Contains(s, "*"):
		return "write a prefix, such as 192.0.2.0/24"
	case strings.ContainsAny(s, "ghijklmnopqrstuvwxyz"):
		return "names are not looked up: write the address"
	}
	return "write 192.0.2.0/24 or 2001:db8::/32, for example"
}

var (
	macAddress  = pattern(`^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$`)
	sexagesimal = pattern(`^[1-9][0-9]*(:[0-5]?[0-9])+$`) // YAML 1.1 reads it as a number
)

// destinationMAC reads an Ethernet address, with a mask if there is one; a set
// mask bit means compare.
func (f *faults) destinationMAC(n *yaml.Node) (m steer.MACBits, ok bool) {
	const what = "destination-mac"
	s, ok := f.text(n, what)
	if !ok {
		return m, false
	}
	value, mask, masked := strings.Cut(s, "/")
	if !masked {
		mask = "ff:ff:ff:ff:ff:ff"
	}
	if !f.macAddress(n, value, what) || !f.macAddress(n, mask, what+" mask") {
		return m, false
	}
	m.Value, m.Mask = parseMAC(value), parseMAC(mask)
	if m.Mask == [6]byte{} {
		f.node(n, ruleMask, what+": the mask is zero and compares nothing", "a set bit of the mask means compare")
		return m, false
	}
	for i := range m.Value {
		if m.Value[i]&^m.Mask[i] != 0 {
			f.node(n, ruleMask, what+": the value has bits set outside the mask", "a set bit of the mask means compare; clear the others in the value")
			return m, false
		}
	}
	return m, true
}

func (f *faults) macAddress(n *yaml.Node, s, what string) bool {
	switch {
	case plain(n) && sexagesimal.MatchString(n.Value):
		f.node(n, ruleNotation, fmt.Sprintf("%s: older YAML reads %s as a number to base 60", what, clip(s)), fmt.Sprintf("quote the address: %q", clip(s)))
	case !macAddress.MatchString(s):
		f.node(n, ruleText, fmt.Sprintf("%s: %s is not an Ethernet address", what, clip(printable(s))), macHint(s))
	default:
		return true
	}
	return false
}

func macHint(s string) string {
	if a, err := net.ParseMAC(s); err == nil && len(a) == 6 {
		return "write " + a.String()
	}
	return "write six bytes in hexadecimal, as in 02:00:00:00:00:01"
}

// parseMAC reads an address that macAddress matches.
func parseMAC(s string) (a [6]byte) {
	b, _ := net.ParseMAC(s)
	copy(a[:], b)
	return a
}
