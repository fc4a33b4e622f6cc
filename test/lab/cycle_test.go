// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"strings"
)

// Four protocols that no card parses by itself.
var protocols = []byte{253, 254, 146, 99}

// words is a policy's entries: one for each value of the low bits of the
// destination port of a protocol, to the queue of that place. There are a power
// of two of them.
func words(protocol byte, families string, to []int) string {
	var b strings.Builder
	for value, queue := range to {
		fmt.Fprintf(&b, "  - {name: p%d-%d, protocol: %d, family: [%s], l4data: %#x/%#x, queue: %d}\n",
			protocol, value, protocol, families, value, len(to)-1, queue)
	}
	return b.String()
}

// policy is a file for flexsteerd, for every mlx5 link.
func policy(entries ...string) string {
	return "match: {driver: mlx5_core}\nsteer:\n" + strings.Join(entries, "")
}

const bothFamilies = "ipv4, ipv6"

// toPort is what follows the IP header of a packet to a port.
func toPort(port int) []byte { return []byte{0x40, 0, byte(port >> 8), byte(port)} }

// shifted is n queues in turn, the first one by.
func shifted(n, by int) (to []int) {
	for i := range n {
		to = append(to, (i+by)%queues)
	}
	return to
}

var _ = add(Experiment{
	Name: "50 reloads from one protocol to the next leave nothing in the card",
	Run: func(m *Machine) {
		const cycles = 50
		before, err := m.card.Report()
		m.must(err)
		d := m.Daemon(policy(words(protocols[0], bothFamilies, shifted(2, 0))))
		m.Becomes("configured", 4)
		for i := 1; i <= cycles; i++ {
			protocol := protocols[i%len(protocols)]
			m.Configure("10-lab.yaml", policy(words(protocol, bothFamilies, shifted(2, i))))
			d.Reload()
			m.Becomes("configured", 4)
			// One packet for each rule; that it goes right is seen in the guest every tenth time.
			if i%10 == 0 {
				want := onQueues(2, i%queues, (i+1)%queues)
				m.Arrive(m.Capture(m.IPv4(protocol, nil, toPort(0)...), m.IPv4(protocol, nil, toPort(1)...),
					m.IPv6(protocol, toPort(0)...), m.IPv6(protocol, toPort(1)...)), want)
			}
		}
		m.Run("rm", "/etc/flexsteer/10-lab.yaml")
		d.Reload()
		m.Eventually(func() string {
			if at := m.Rules(); len(at) > 0 {
				return fmt.Sprintf("rules at %v", at)
			}
			return ""
		})
		after, err := m.card.Report()
		m.must(err)
		made := after.Commands["CREATE_GENERAL_OBJECT"]["OK"] - before.Commands["CREATE_GENERAL_OBJECT"]["OK"]
		gone := after.Commands["DESTROY_GENERAL_OBJECT"]["OK"] - before.Commands["DESTROY_GENERAL_OBJECT"]["OK"]
		if made != cycles+1 || gone != cycles+1 {
			m.Errorf("%d nodes were made and %d destroyed, want %d", made, gone, cycles+1)
		}
		if left := differences(before.Alive, after.Alive); left != "" {
			m.Errorf("the card holds, after and before: %s", left)
		}
	},
})

// onQueues is n packets on each of these queues.
func onQueues(n int, queues ...int) (p Packets) {
	for _, q := range queues {
		p[q] += n
	}
	return p
}
