// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// 1,024 rules, which is all that mlx5 takes, by flexsteerd, by a loop of
// ethtool(8), and by a loop of nothing but the ioctl. Times of emulated CPUs mean
// nothing; their ratios within one guest mean something, and counts all. So
// counts are asserted, and times printed.

const manyRules = 1024

// maker is a way to make the same rules, in words of bash; $link is the link.
type maker struct{ name, script string }

var makers = []maker{
	{"flexsteerd --once", `flexsteerd --once >/tmp/said 2>&1 || { cat /tmp/said; exit 1; }`},
	{"bare loop of the ioctl, in C", `/lab/rules $link insert 1024 >/tmp/said`},
	{"loop of ethtool -N", `for ((i = 0; i < 1024; i++)); do
		ethtool -N $link flow-type ip4 l4proto 253 l4data $((4096 + i)) m 0xffff0000 action $(((i ^ i >> 4 ^ i >> 8) & 15)) loc $i || exit 1
	done >/tmp/said 2>&1`},
}

var _ = add(Experiment{
	Name: "1,024 rules: two ioctls and one firmware command each, and how long they take",
	Run: func(m *Machine) {
		m.Configure("10-lab.yaml", "locations: 0-1023\n"+policy(everyPort()))
		took, calls := map[string][]time.Duration{}, map[string]int{}
		for round := range 3 {
			for _, by := range makers {
				if round > 0 && by.name == makers[2].name {
					continue // it takes as long as all the rest
				}
				took[by.name] = append(took[by.name], m.made(by))
			}
		}
		for _, by := range makers {
			calls[by.name] = m.ioctls(by)
		}
		m.tellSpeed(took, calls)

		// Each rule is inserted by one call, and read back by another. What else
		// there is does not grow with them: counts, a list, channels, drivers.
		if n := calls[makers[0].name]; n < 2*manyRules || n > 2*manyRules+32 {
			m.Errorf("flexsteerd made %d ioctls for %d rules", n, manyRules)
		}
		if n := calls[makers[1].name]; n != manyRules {
			m.Errorf("the loop of the ioctl made %d of them for %d rules", n, manyRules)
		}
	},
})

// everyPort is one entry that makes the rules of guest/rules: no two ports that
// differ in one bit go to one queue, so that each needs its own.
func everyPort() string {
	var to []string
	for i := range manyRules {
		to = append(to, fmt.Sprint((i^i>>4^i>>8)%queues))
	}
	return fmt.Sprintf("  - {name: servers, protocol: 253, family: ipv4, destination-port: 4096-%d, queues: [%s]}\n", 4096+manyRules-1, strings.Join(to, ", "))
}

// made makes the rules, checks them and what the card was told, and removes
// them. It returns how long they took.
func (m *Machine) made(by maker) (took time.Duration) {
	m.Helper()
	commands := m.commands(func() {
		said := m.Script("link=" + m.Link + "\nstart=$EPOCHREALTIME\n" + by.script + "\nend=$EPOCHREALTIME\necho $((${end/./} - ${start/./}))")
		took = time.Duration(m.number(said)) * time.Microsecond
	})
	total := 0
	for _, n := range commands {
		total += n
	}
	// A node, a table and a group of them, besides the rules.
	if commands["SET_FLOW_TABLE_ENTRY"] != manyRules || total > manyRules+10 {
		m.Errorf("%s: %d rules took the firmware commands %v", by.name, manyRules, commands)
	}
	m.Arrive(m.Capture(m.IPv4(253, nil, toPort(4096)...), m.IPv4(253, nil, toPort(4096+manyRules-1)...)), onQueues(1, 0, 3))
	m.Script("/lab/rules " + m.Link + " delete 1024 >/dev/null")
	return took
}

// ioctls counts the calls for ethtool that a maker makes, by itself and its children.
func (m *Machine) ioctls(by maker) int {
	m.Helper()
	said := m.Script("link=" + m.Link + `
cd /sys/kernel/tracing
echo 0 >tracing_on
echo 1024 >buffer_size_kb
echo >trace
echo 1 >options/event-fork
echo $$ >set_event_pid
event=events/syscalls/sys_enter_ioctl
echo 'cmd == 0x8946' >$event/filter # SIOCETHTOOL
echo 1 >$event/enable
echo 1 >tracing_on
` + by.script + `
echo 0 >tracing_on
echo 0 >$event/enable
echo >set_event_pid
grep -c 'sys_ioctl(' trace
if grep -q 'LOST' trace; then echo "events were lost" >&2; exit 1; fi
echo >trace`)
	m.Script("/lab/rules " + m.Link + " delete 1024 >/dev/null")
	return m.number(said)
}

func (m *Machine) tellSpeed(took map[string][]time.Duration, calls map[string]int) {
	m.Helper()
	bare := middle(took[makers[1].name])
	var b strings.Builder
	fmt.Fprintf(&b, "lab: %s: %d rules, by the guest's clock (emulated CPUs, a busy host: look at the ratios)\n", m.boot.kernel, manyRules)
	fmt.Fprintf(&b, "%-30s %10s %12s %16s\n", "", "time", "of the bare", "ioctls per rule")
	for _, by := range makers {
		t := middle(took[by.name])
		fmt.Fprintf(&b, "%-30s %8.2f s %10.2f x %16.2f\n", by.name, t.Seconds(), t.Seconds()/bare.Seconds(), float64(calls[by.name])/manyRules)
	}
	fmt.Print(b.String())
	m.note("%s%v", b.String(), took)
}

func middle(of []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
