// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/flexsteer/flexsteer/test/lab/card"
)

// What the driver does with a location that is used already, and with a match
// that is there already.

// server3 is the fields of a rule for protocol 253, port 3.
var server3 = fields("ip4", 253, "0x3", "0xffff0000")

// rule is arguments of ethtool -N for a rule of those fields at a location.
func rule(fields []string, queue, location int) []string {
	return slices.Concat(fields, []string{"action", fmt.Sprint(queue), "loc", fmt.Sprint(location)})
}

var _ = add(Experiment{
	Name: "a match at two locations: the driver takes both, each packet comes once, and locations decide nothing",
	Run: func(m *Machine) {
		frames := slices.Repeat([][]byte{m.IPv4(253, nil, toPort(3)...)}, 100)
		usual := m.Fates(frames...)
		if slices.ContainsFunc(usual, func(f Fate) bool { return f != usual[0] }) {
			m.Fatalf("one flow is on several queues without a rule: %v", usual)
		}
		a := awayFrom(usual)
		b := Away(a, int(usual[0]))
		decides := func(want int, when string) {
			m.Helper()
			// Fates also sees that the guest counts each packet once.
			if got := perQueueOf(m.Fates(frames...)); got != Only(want, len(frames)) {
				m.Errorf("%s: the queues get %v, want all on queue %d", when, got, want)
			}
		}
		for _, at := range [][2]int{{10, 20}, {20, 10}} {
			first, second := at[0], at[1]
			m.Ethtool("-N", rule(server3, a, first)...)
			m.Ethtool("-N", rule(server3, b, second)...)
			if got := m.Rules(); len(got) != 2 {
				m.Fatalf("rules at %v, want two", got)
			}
			// The driver gives the card the lowest entry that is free, and the card
			// takes the lowest that matches.
			decides(a, fmt.Sprintf("%d, then %d", first, second))
			m.Ethtool("-N", "delete", fmt.Sprint(first))
			decides(b, "the first deleted")
			m.Ethtool("-N", rule(server3, a, first)...)
			decides(a, "the first made again, into its old entry")
			m.Ethtool("-N", "delete", fmt.Sprint(second))
			decides(a, "the second deleted")
			m.Ethtool("-N", "delete", fmt.Sprint(first))
			if got := m.Fates(frames...); !slices.Equal(got, usual) {
				m.Errorf("both deleted: %v, want %v", perQueueOf(got), perQueueOf(usual))
			}
		}

		// So flexsteerd has no match at two locations: it waits for the other one.
		m.Ethtool("-N", rule(server3, b, 1000)...)
		m.Daemon(policy(fmt.Sprintf("  - {name: web, protocol: 253, family: ipv4, destination-port: 3, queue: %d}\n", a)))
		m.Blocked(0, "location 1000: a rule that is not ours matches the same packets", "ethtool -N "+m.Link+" delete 1000")
		decides(b, "beside a rule of somebody else")
	},
})

var _ = add(Experiment{
	Name: "a rule is replaced in place: the old one is gone before the card has the new one, and packets take the default path",
	Run: func(m *Machine) {
		frames := slices.Repeat([][]byte{m.IPv4(253, nil, toPort(3)...)}, 50)
		usual := m.Fates(frames...)
		a := awayFrom(usual)
		b := Away(a, int(usual[0]))
		m.Ethtool("-N", rule(server3, a, 10)...)
		m.Arrive(m.Capture(frames...), Only(a, len(frames)))

		// The card takes its time for the entry of the new rule. As ethtool waits in
		// the kernel, nobody can ask the guest meanwhile.
		for delay := 2000; ; delay *= 4 {
			before, counts := m.report(), m.QueuePackets()
			m.fault(card.Fault{Command: "SET_FLOW_TABLE_ENTRY", Nth: 1, Count: 1, DelayMS: delay})
			replacing := m.Start(m.ethtool("-N", rule(server3, b, 10))...)
			m.Eventually(func() string {
				if totals(m.report())["DELETE_FLOW_TABLE_ENTRY"] == totals(before)["DELETE_FLOW_TABLE_ENTRY"] {
					return "the old entry is still there"
				}
				return ""
			})
			sent, err := m.card.Verdicts(m.Capture(frames...))
			m.must(err)
			during := m.report()
			if code := replacing.Wait(); code != 0 {
				m.Fatalf("ethtool ended with %d and said %s", code, replacing.Output())
			}
			m.counted(counts, Only(int(usual[0]), len(frames)))
			m.Arrive(m.Capture(frames...), Only(b, len(frames)))
			if totals(during)["SET_FLOW_TABLE_ENTRY"] == totals(before)["SET_FLOW_TABLE_ENTRY"] {
				if sent.Delivered != len(frames) {
					m.Errorf("in the hole %d of %d packets are lost: %+v", len(frames)-sent.Delivered, len(frames), sent)
				}
				break
			}
			if delay > 30_000 {
				m.Fatal("this host is too slow to send 50 packets in half a minute")
			}
			m.Ethtool("-N", rule(server3, a, 10)...)
		}
	},
})

var _ = add(Experiment{
	Name: "rules replaced under traffic by ethtool and by flexsteerd: no packet is lost, none comes twice",
	Run: func(m *Machine) {
		frame := m.IPv4(253, nil, toPort(3)...)
		usual := m.DefaultQueue(frame)
		a := Away(usual)
		b := Away(usual, a)
		m.Ethtool("-N", rule(server3, a, 10)...)
		m.underTraffic("ethtool", usual, a, b, fmt.Sprintf("ethtool -N %[1]s %[2]s; ethtool -N %[1]s %[3]s",
			m.Link, strings.Join(rule(server3, b, 10), " "), strings.Join(rule(server3, a, 10), " ")))
		m.Ethtool("-N", "delete", "10")

		text := func(queue int) string {
			return policy(fmt.Sprintf("  - {name: server, protocol: 253, family: ipv4, destination-port: 3, queue: %d}\n", queue))
		}
		m.Write("/tmp/a.yaml", text(a))
		m.Write("/tmp/b.yaml", text(b))
		m.Daemon(text(a))
		m.Becomes("configured", 1)
		m.underTraffic("flexsteerd", usual, a, b,
			"cp /tmp/b.yaml /etc/flexsteer/10-lab.yaml; flexsteerctl reload; cp /tmp/a.yaml /etc/flexsteer/10-lab.yaml; flexsteerctl reload")
	},
})

// underTraffic sends packets with numbers while the guest does something again
// and again that moves them from queue a to queue b and back. What came is
// compared, number by number, with what was sent.
func (m *Machine) underTraffic(who string, usual, a, b int, replace string) {
	m.Helper()
	const replacements, burst = 25, 10
	before, set := m.QueuePackets(), m.replaced()
	receiver := m.Start("tcpdump", "-Z", "root", "-i", m.Link, "--immediate-mode", "-U", "-B", "65536", "-s", "80", "-w", "/tmp/seen.pcap", "ip proto 253")
	m.Eventually(func() string {
		if said := receiver.Output(); !strings.Contains(said, "listening on") {
			return "tcpdump says " + said
		}
		return ""
	})
	m.Run("rm", "-f", "/tmp/stop")
	loop := m.Start("bash", "-euc", "while [ ! -e /tmp/stop ]; do "+replace+"; done")
	packets := 0
	for m.replaced() < set+replacements || packets < 10_000 {
		if packets > 1_000_000 {
			m.Fatalf("%s replaced %d rules while a million packets came: %s", who, m.replaced()-set, loop.Output())
		}
		var frames [][]byte
		for range burst {
			frames = append(frames, m.IPv4(253, nil, binary.BigEndian.AppendUint32(toPort(3), uint32(packets))...))
			packets++
		}
		pcap := m.Capture(frames...)
		sent, err := m.card.Send(pcap)
		m.must(err)
		m.must(os.Remove(pcap))
		if sent.Delivered != burst {
			m.Errorf("%s: %d of %d packets are lost in the card: %+v", who, burst-sent.Delivered, burst, sent)
		}
	}
	m.Run("touch", "/tmp/stop")
	if code := loop.Wait(); code != 0 {
		m.Fatalf("%s: ended with %d and said\n%s", who, code, loop.Output())
	}
	var got Packets
	m.Eventually(func() string {
		if got = m.QueuePackets().Minus(before); got.Total() < packets {
			return fmt.Sprintf("%s: %d packets are lost: %v", who, packets-got.Total(), got)
		}
		return ""
	})
	if got[a]+got[b]+got[usual] != packets || got.Total() != packets {
		m.Errorf("%s: the queues got %v, want %d packets on queues %d, %d and %d", who, got, packets, a, b, usual)
	}
	m.eachOnce(who, receiver, packets)
	fmt.Printf("lab: %s: %s replaced a rule %d times while %d packets came: %d on one of its queues, %d on the other, %d on the default path; none lost, none twice\n",
		m.boot.kernel, who, m.replaced()-set, packets, got[a], got[b], got[usual])
}

// replaced counts the rules that the card was given.
func (m *Machine) replaced() int { m.Helper(); return totals(m.report())["SET_FLOW_TABLE_ENTRY"] }

// eachOnce ends tcpdump, which must have seen each number once.
func (m *Machine) eachOnce(who string, receiver *Process, packets int) {
	m.Helper()
	const header, record = 24, 16 + 14 + 20 + 8 // of the file; of a packet and what goes before it
	m.Eventually(func() string {
		if n := m.number(m.Run("stat", "-c", "%s", "/tmp/seen.pcap")); n < header+packets*record {
			return fmt.Sprintf("%s: tcpdump has written %d bytes, of about %d packets", who, n, (n-header)/record)
		}
		return ""
	})
	receiver.Signal(syscall.SIGINT)
	receiver.Wait()
	if said := receiver.Output(); !strings.Contains(said, "\n0 packets dropped by kernel") {
		m.Fatalf("tcpdump says\n%s", said)
	}
	seen := make([]int, packets)
	data := []byte(m.Read("/tmp/seen.pcap"))
	for at := header; at+16 <= len(data); { // seconds, microseconds, bytes kept, length
		kept := int(binary.LittleEndian.Uint32(data[at+8:]))
		const number = 14 + 20 + 4 // behind Ethernet, IPv4 and ports
		if n := int(binary.BigEndian.Uint32(data[at+16+number:])); n < packets {
			seen[n]++
		}
		at += 16 + kept
	}
	lost, twice := 0, 0
	for _, times := range seen {
		switch {
		case times == 0:
			lost++
		case times > 1:
			twice++
		}
	}
	if lost+twice > 0 {
		m.Errorf("%s: of %d packets %d are lost, %d came more than once", who, packets, lost, twice)
	}
}
