// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math/rand/v2"
	"strings"
)

// generator writes random files, most of them nearly right.
type generator struct{ *rand.Rand }

func (g *generator) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g *generator) chance(oneIn int) bool { return g.IntN(oneIn) == 0 }

// odd are values that are wrong in most places, and right in a few.
var odd = []string{
	"~", "", "null", "true", "True", "false", "0", "1", "-1", "+1", "5", "007", "0146", "08", "0x0", "0x1f", "0X1F", "0o17", "0b1", "1_6", "1e3", "3.0",
	"3.5", ".5", ".inf", ".nan", "4294967295", "4294967296", "99999999999999999999999", "\"3\"", "'0x3'", "\"\"", "0-15", "\"0-15\"", "15-0", "0-", "0-65535", "1-65536",
	"3 - 4", "1-2-3", "0x0-0xf", "a", "homa", "HOMA", "ipv4", "ipv6", "ipv4-", "192.0.2.0/24", "192.0.2.1/24", "2001:db8::/32", "\"::\"", "\"::1\"", "1.2.3", "192.0.2.1/33",
	"02:00:00:00:00:01", "52:54:00:12:34:56", "\"52:54:00:12:34:56\"", "01:00:5e:00:00:00/ff:ff:ff:00:00:00", "01:00:5e:00:00:00/00:00:00:00:00:00", "0x3/0xf", "0x13/0x3", "3/15", "0/0", "\"0x3/0xf\"",
	"\"*\"", "\"!a\"", "\"!!a\"", "\"!\"", "\"a b\"", "\"a,b\"", "\"[a\"", "\"a[0-9]\"", "ü", "\"\\t\"", "{}", "[]", "[[]]", "[1]", "[1, 1]", "[0-3, 2]", "{0: 1}", "{0: 1, 0x0: 2}", "{\"0\": 1}", "{a: 1}", "{0: 0}",
	"15b3:a2dc", "15B3:A2DC", "03:00.1", "pci-0000:03:00.1", "physical", "\"!vf\"", "source-port", "destination-port", "\"0x0000000f\"", "30s", "25h", "0s", "30", "never", "at-boot",
	strings.Repeat("x", 65), strings.Repeat("y", 300), "2001-01-01", "yes", "\"true\"", "0x100000000", "\"0x100000000\"", "\"0x0\"", "64", "128", "6", "17", "132", "58", "\"1-70000\"", "70000-70001",
}

// value writes a good value, and now and then an odd one.
func (g *generator) value(good ...string) string {
	if g.chance(40) {
		return g.pick(odd...)
	}
	return g.pick(good...)
}

// some writes one good value, or a list of up to three.
func (g *generator) some(good ...string) string {
	if g.chance(2) {
		return g.value(good...)
	}
	var list []string
	for range 1 + g.IntN(3) {
		list = append(list, g.value(good...))
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// mapping writes the keys that were chosen, with faults now and then.
func (g *generator) mapping(keys ...string) string {
	var out []string
	for i := 0; i+1 < len(keys); i += 2 {
		name, value := keys[i], keys[i+1]
		switch {
		case g.chance(200):
			name = g.pick("quue", "name", "queue", "protocol", "match", "by", "over", "vlan", "steer", "install")
		case g.chance(200):
			continue
		case g.chance(400):
			out = append(out, name+": "+value)
		}
		out = append(out, name+": "+value)
	}
	return "{" + strings.Join(out, ", ") + "}"
}

func (g *generator) policy() string {
	keys := []string{}
	if !g.chance(30) {
		keys = append(keys, "match", g.match())
	}
	if g.chance(4) {
		keys = append(keys, "channels", g.value("1", "16", "0x10", "65535"))
	}
	if g.chance(4) {
		keys = append(keys, "locations", g.value("0-895", "0x0-0xff", "896-1023", "\"5-5\""))
	}
	if !g.chance(20) {
		var entries []string
		for range g.IntN(3) {
			entries = append(entries, g.entry())
		}
		keys = append(keys, "steer", "["+strings.Join(entries, ", ")+"]")
	}
	if g.chance(300) {
		return g.pick(odd...)
	}
	return g.mapping(keys...)
}

func (g *generator) match() string {
	if g.chance(100) {
		return "{}"
	}
	keys := []string{}
	add := func(name string, good ...string) {
		if g.chance(3) {
			keys = append(keys, name, g.some(good...))
		}
	}
	keys = append(keys, "name", g.some("ens1f1np1", "\"ens*\"", "\"!eth0\"", "\"eth[0-9]\"", "\"e?h\""))
	add("driver", "mlx5_core", "\"!veth\"", "ice")
	add("path", "pci-0000:03:00.1", "\"pci-*\"")
	add("mac", "02:00:00:00:00:01", "AA:bb:cc:dd:ee:ff", "\"02:00:*\"")
	add("pci", "15b3:a2dc", "15B3:101d", "\"15b3:*\"")
	add("kind", "physical", "vf", "representor", "\"!vf\"")
	return g.mapping(keys...)
}

var somePorts = []string{"53", "0", "65535", "4000-4003", "0x10", "8000-8001", "\"1-4\""}

func (g *generator) entry() string {
	keys := []string{}
	add := func(oneIn int, name, value string) {
		if g.chance(oneIn) {
			keys = append(keys, name, value)
		}
	}
	add(3, "name", g.value("homa", "dns", "a.b:c/d@e+f-g_h", "x1", "y2", "z3"))
	if g.chance(6) {
		keys = append(keys, g.pick("ether-type", "vlan", "destination-mac"), g.value("0x88f7", "10", "4094", "02:00:00:00:00:01", "0x0800"))
		add(2, g.pick("queue", "drop"), g.value("3", "true"))
		return g.mapping(keys...)
	}
	add(4, "family", g.some("ipv4", "ipv6"))
	if !g.chance(12) {
		keys = append(keys, "protocol", g.value("tcp", "udp", "sctp", "homa", "146", "253", "0xfd", "udplite", "icmp", "icmpv6", "gre", "ah", "6", "17", "1", "58", "0", "255"))
	}
	add(5, "source", g.some("192.0.2.0/24", "198.51.100.7", "\"2001:db8::/32\""))
	add(5, "destination", g.some("203.0.113.0/24", "\"2001:db8:1::/48\""))
	add(8, "vlan", g.value("1", "4094", "0x10"))
	add(8, "destination-mac", g.value("02:00:00:00:00:01", "01:00:5e:00:00:00/ff:ff:ff:80:00:00"))
	g.behindIP(&keys)
	return g.mapping(keys...)
}

// behindIP adds ports or raw bytes, and an action.
func (g *generator) behindIP(keys *[]string) {
	switch g.IntN(8) {
	case 0:
		*keys = append(*keys, "destination-port", g.some(somePorts...), "queue", g.value("0", "3", "0x3"))
	case 1:
		*keys = append(*keys, g.pick("source-port", "destination-port"), g.value("4000-4003", "[1, 2, 3, 4]", "[1-2, 8-9]"), "queues", g.value("0-3", "[0, 1, 0, 1]", "[0-1, 5-6]"))
	case 2:
		*keys = append(*keys, "l4data", g.value("0x3/0xf", "0x00000003/0x0000000f", "3/15", "7", "0xffffffff", "\"0x10/0xf0\""), "queue", "3")
	case 3, 4:
		*keys = append(*keys, "spread", g.spread())
	case 5:
		*keys = append(*keys, "drop", g.value("true"))
	default:
		*keys = append(*keys, "source-port", g.some(somePorts...), "queue", g.value("1"))
	}
	if g.chance(15) {
		*keys = append(*keys, g.pick("queue", "drop", "queues", "spread", "l4data", "source-port", "ether-type"), g.pick(odd...))
	}
}

func (g *generator) spread() string {
	keys := []string{
		"by", g.value("source-port", "destination-port", "\"0x0000000f\"", "0x0000ffff", "\"0x00030003\"", "15"),
		"over", g.value("0-3", "0-15", "[0, 1, 5]", "[0-1, 4-5]", "{0: 2, 1: 1}", "{0x0: 3}", "[3]"),
	}
	if g.chance(3) {
		keys = append(keys, "buckets", g.value("16", "64", "4", "12", "0x10", "65536"))
	}
	return g.mapping(keys...)
}

func (g *generator) daemon() string {
	module := g.mapping("install", g.value("true", "false"), "reload", g.value("never", "at-boot"))
	firmware := g.mapping("check", g.value("true", "false"))
	daemon := g.mapping("resync", g.value("30s", "5m", "1h", "24h"), "module", g.value(module), "firmware", g.value(firmware))
	return g.mapping("daemon", g.value(daemon))
}
