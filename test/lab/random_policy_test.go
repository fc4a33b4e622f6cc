// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/flexsteer/flexsteer/pkg/config"
)

// chance makes policies and frames. Values are from a few, so that entries
// overlap and frames are near to them.
type chance struct {
	*rand.Rand
	raw [2]int // protocols that the card does not parse
}

func newChance(seed, n uint64) chance {
	c := chance{Rand: rand.New(rand.NewPCG(seed, n))}
	c.raw = pick(c, [2]int{253, 146}, [2]int{146, 99}, [2]int{253, 254})
	return c
}

func pick[T any](c chance, from ...T) T { return from[c.IntN(len(from))] }

// one is true one time in n.
func (c chance) one(n int) bool { return c.IntN(n) == 0 }

var (
	prefixes4 = []string{"10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.128/25", "10.1.2.3", "10.1.2.131", "192.0.2.0/28", "192.0.2.7", "0.0.0.0/1"}
	prefixes6 = []string{"2001:db8::/32", "2001:db8:1::/48", "2001:db8:1:2::/64", "2001:db8:1:2::3", "2001:db8:1:2:8000::/65", "2001:db8:ffff::7", "::/1"}
	macs      = []string{"02:00:00:00:00:0a", "02:00:00:00:00:0b", `02:00:00:00:00:00/ff:ff:ff:ff:ff:00`}
	vlans     = []int{100, 101, 3}
	ports     = []int{0, 22, 53, 80, 443, 4000, 4007, 8000, 65535}
	spans     = []string{"4000-4007", "4004-4011", "80-443", "0-1023", "8000-8015", "1000-1002", "65528-65535"}
)

// policy is a file of flexsteer. What compares nothing or cannot be is not
// among the entries; what cannot be kept apart may be.
func (c chance) policy() string {
	var b strings.Builder
	b.WriteString("match: {driver: mlx5_core}\nsteer:\n")
	for i := range 2 + c.IntN(9) {
		fmt.Fprintf(&b, "  - {name: e%d, %s}\n", i, strings.Join(c.entry(), ", "))
	}
	return b.String()
}

func (c chance) entry() []string {
	if c.one(12) {
		return append(c.ethernet(), c.simple())
	}
	keys := []string{"family: [ipv4, ipv6]"}
	lists := [][]string{prefixes4, prefixes6}
	switch c.IntN(4) {
	case 0:
		keys, lists = []string{"family: ipv4"}, lists[:1]
	case 1:
		keys, lists = []string{"family: ipv6"}, lists[1:]
	}
	for _, key := range []string{"source", "destination"} {
		if c.one(3) {
			keys = append(keys, key+": ["+c.prefixes(lists)+"]")
		}
	}
	if c.one(8) {
		keys = append(keys, fmt.Sprintf("vlan: %d", pick(c, vlans...)))
	}
	if c.one(10) {
		keys = append(keys, fmt.Sprintf("destination-mac: %q", pick(c, macs...)))
	}
	if len(keys) > 1 && c.one(8) {
		return append(keys, c.simple())
	}
	return append(keys, c.behindIP()...)
}

func (c chance) ethernet() (keys []string) {
	if c.one(2) {
		keys = append(keys, fmt.Sprintf("ether-type: %#x", pick(c, 0x88f7, 0x0806, 0x88cc)))
	}
	if c.one(3) {
		keys = append(keys, fmt.Sprintf("vlan: %d", pick(c, vlans...)))
	}
	if len(keys) == 0 || c.one(4) {
		keys = append(keys, fmt.Sprintf("destination-mac: %q", pick(c, macs...)))
	}
	return keys
}

func (c chance) prefixes(lists [][]string) string {
	var all []string
	for _, list := range lists {
		first := c.IntN(len(list))
		all = append(all, list[first])
		if second := c.IntN(len(list)); second != first && c.one(3) {
			all = append(all, list[second])
		}
	}
	for i := range all {
		all[i] = fmt.Sprintf("%q", all[i])
	}
	return strings.Join(all, ", ")
}

// behindIP is the protocol, what is compared of its ports, and the action.
func (c chance) behindIP() []string {
	protocol := pick(c, 6, 6, 17, 17, 17, c.raw[0], c.raw[0], c.raw[0], c.raw[1], 103, 47, 89)
	keys := []string{fmt.Sprintf("protocol: %d", protocol)}
	if protocol == 103 || protocol == 47 || protocol == 89 {
		return append(keys, c.simple())
	}
	switch c.IntN(7) {
	case 0:
		return append(keys, pick(c, "source-port", "destination-port")+": "+pick(c, spans...), c.simple())
	case 1:
		return append(keys, "source-port: "+c.port(), "destination-port: "+c.port(), c.simple())
	case 2:
		first := pick(c, 0, 4000, 8000)
		queue := c.IntN(9)
		return append(keys, fmt.Sprintf("destination-port: %d-%d, queues: %d-%d", first, first+7, queue, queue+7))
	case 3, 4:
		by := pick(c, "destination-port", "source-port", "destination-port")
		return append(keys, fmt.Sprintf("spread: {by: %s, over: %s}", by, pick(c, "0-3", "0-15", "4-6", "{0: 2, 5: 1}", "[1, 3, 9, 14]")))
	case 5:
		if protocol == c.raw[0] || protocol == c.raw[1] {
			mask := pick[uint32](c, 0xf, 0x3, 0xffff0000, 0x00010001, 0xffffffff, 0xff00ff00)
			return append(keys, fmt.Sprintf("l4data: %#x/%#x", c.word()&mask, mask), c.simple())
		}
	}
	return append(keys, "destination-port: "+c.port(), c.simple())
}

func (c chance) port() string { return fmt.Sprint(pick(c, ports...)) }

// word is a pair of ports that entries have, or nearly.
func (c chance) word() uint32 {
	w := uint32(pick(c, ports...)+c.IntN(3))<<16 | uint32(pick(c, ports...)+c.IntN(16))&0xffff
	if c.one(6) {
		return c.Uint32()
	}
	return w
}

func (c chance) simple() string {
	if c.one(4) {
		return "drop: true"
	}
	return fmt.Sprintf("queue: %d", c.IntN(queues))
}

func TestRandomPoliciesLoad(t *testing.T) {
	for i := range 5000 {
		text := newChance(7, uint64(i)).policy()
		if _, err := config.LoadFiles(fstest.MapFS{"10-lab.yaml": {Data: []byte(text)}}, []string{"10-lab.yaml"}); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
}
