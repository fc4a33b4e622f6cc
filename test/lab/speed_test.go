// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"os"
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
		took, calls := map[string][]effort{}, map[string]int{}
		for round := range 5 {
			for _, by := range makers {
				if by.name == makers[2].name && (round > 0 || m.boot.kernel != "6.12") {
					continue // it takes longer than all the rest
				}
				took[by.name] = append(took[by.name], m.made(by))
			}
		}
		for _, by := range makers[:2] {
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

// effort is how long rules took.
type effort struct {
	whole time.Duration // from the start of the program to its end, by the guest's clock
	rules time.Duration // from the first rule to the last, by the card's
}

// made makes the rules, checks them and what the card was told, and removes them.
func (m *Machine) made(by maker) (took effort) {
	m.Helper()
	trace, err := os.Stat(m.card.Trace())
	m.must(err)
	commands := m.commands(func() {
		said := m.Script("link=" + m.Link + "\nstart=$EPOCHREALTIME\n" + by.script + "\nend=$EPOCHREALTIME\necho $((${end/./} - ${start/./}))")
		took.whole = time.Duration(m.number(said)) * time.Microsecond
	})
	total := 0
	for _, n := range commands {
		total += n
	}
	// A node, a table and a group of them, besides the rules.
	if commands["SET_FLOW_TABLE_ENTRY"] != manyRules || total > manyRules+10 {
		m.Errorf("%s: %d rules took the firmware commands %v", by.name, manyRules, commands)
	}
	took.rules = m.span("SET_FLOW_TABLE_ENTRY", trace.Size())
	m.Arrive(m.Capture(m.IPv4(253, nil, toPort(4096)...), m.IPv4(253, nil, toPort(4096+manyRules-1)...)), onQueues(1, 0, 3))
	m.Script("/lab/rules " + m.Link + " delete 1024 >/dev/null")
	return took
}

// span is from the first to the last command of a name in the card's trace, from
// some byte on. Lines are a number, seconds, the name.
func (m *Machine) span(command string, from int64) time.Duration {
	m.Helper()
	text, err := os.ReadFile(m.card.Trace())
	m.must(err)
	var first, last time.Duration
	for line := range strings.Lines(string(text[from:])) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] == command {
			last, err = time.ParseDuration(fields[1] + "s")
			m.must(err)
			if first == 0 {
				first = last
			}
		}
	}
	return last - first
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

// tellSpeed prints a table. A busy host slows what runs at one time alike, so each
// round is compared with the bare loop of the same round.
func (m *Machine) tellSpeed(took map[string][]effort, calls map[string]int) {
	m.Helper()
	bare := took[makers[1].name]
	var b strings.Builder
	fmt.Fprintf(&b, "lab: %s: %d rules by emulated CPUs, so look at the ratios: the median of what each round took compared with the loop in C\n", m.boot.kernel, manyRules)
	fmt.Fprintf(&b, "%-30s %12s %10s   %16s %10s   %15s\n", "", "whole run", "", "first to last", "", "ioctls per rule")
	for _, by := range makers {
		if len(took[by.name]) == 0 {
			continue
		}
		var whole, rules, times, spans []float64
		for round, e := range took[by.name] {
			whole, rules = append(whole, e.whole.Seconds()), append(rules, e.rules.Seconds())
			times = append(times, e.whole.Seconds()/bare[round].whole.Seconds())
			spans = append(spans, e.rules.Seconds()/bare[round].rules.Seconds())
		}
		perRule := "-"
		if n := calls[by.name]; n > 0 {
			perRule = fmt.Sprintf("%.2f", float64(n)/manyRules)
		}
		fmt.Fprintf(&b, "%-30s %10.2f s %9.1f x   %14.2f s %9.1f x   %15s\n", by.name, middle(whole), middle(times), middle(rules), middle(spans), perRule)
	}
	fmt.Print(b.String())
	m.note("%s%v", b.String(), took)
}

// middle is the median.
func middle(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}
