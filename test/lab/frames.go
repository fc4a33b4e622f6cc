// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Generate makes frames of flows, described in the words of flexsteerctl
// generate, to this link's address. It returns the pcap file.
func (m *Machine) Generate(flows ...string) string {
	m.Helper()
	file := m.pcapName()
	argv := []string{"generate", file}
	for _, flow := range flows {
		argv = append(argv, "--flows", flow+" destination-mac="+m.MAC)
	}
	out, err := exec.Command(filepath.Join(m.lab.places.bin, "flexsteerctl"), argv...).CombinedOutput()
	m.note("flexsteerctl %s\n%s", strings.Join(argv, " "), out)
	if err != nil {
		m.must(fmt.Errorf("flexsteerctl %s: %w: %s", strings.Join(argv, " "), err, out))
	}
	return file
}

// pairOfHosts describes packets of one pair of hosts with sixteen destination
// ports in turn, for Generate.
func pairOfHosts(protocol, family string, packets int) string {
	hosts := "source=198.51.100.1 destination=192.0.2.1"
	if family == "ipv6" {
		hosts = "source=2001:db8:1::1 destination=2001:db8:2::1"
	}
	return fmt.Sprintf("protocol=%s family=%s %s destination-port=0-15 packets=%d", protocol, family, hosts, packets)
}

func (m *Machine) pcapName() string {
	m.Helper()
	f, err := os.CreateTemp(m.dir, "*.pcap")
	m.must(err)
	f.Close()
	return f.Name()
}

// Capture makes a pcap file of frames that were built by hand.
func (m *Machine) Capture(frames ...[]byte) string {
	m.Helper()
	// Magic, version 2.4, zone, accuracy, longest frame, Ethernet.
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0)
	for i, f := range frames {
		for _, word := range []int{0, i, len(f), len(f)} { // seconds, microseconds, kept, length
			b = binary.LittleEndian.AppendUint32(b, uint32(word))
		}
		b = append(b, f...)
	}
	file := m.pcapName()
	m.must(os.WriteFile(file, b, 0o644))
	return file
}

// Ethernet is a frame to this link: ether type and what follows.
func (m *Machine) Ethernet(etherType uint16, payload ...byte) []byte {
	m.Helper()
	var dst [6]byte
	_, err := fmt.Sscanf(m.MAC, "%02x:%02x:%02x:%02x:%02x:%02x", &dst[0], &dst[1], &dst[2], &dst[3], &dst[4], &dst[5])
	m.must(err)
	f := append(dst[:], 0x02, 0, 0, 0, 0, 0x02, byte(etherType>>8), byte(etherType))
	return append(f, payload...)
}

// IPv4 is a frame of 198.51.100.1 to 192.0.2.1 (RFC 5737) with a protocol and
// what it carries. The options are whole words, mostly none.
func (m *Machine) IPv4(protocol byte, options []byte, payload ...byte) []byte {
	m.Helper()
	h := []byte{byte(0x45 + len(options)/4), 0, 0, 0, 0, 1, 0, 0, 64, protocol, 0, 0, 198, 51, 100, 1, 192, 0, 2, 1}
	h = append(h, options...)
	binary.BigEndian.PutUint16(h[2:], uint16(len(h)+len(payload)))
	binary.BigEndian.PutUint16(h[10:], ^sum16(h))
	return m.Ethernet(0x0800, append(h, payload...)...)
}

// IPv6 is a frame of 2001:db8:1::1 to 2001:db8:2::1 (RFC 3849) with a next
// header and what follows it.
func (m *Machine) IPv6(next byte, payload ...byte) []byte {
	m.Helper()
	h := []byte{0x60, 0, 0, 0, 0, 0, next, 64,
		0x20, 0x01, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
		0x20, 0x01, 0x0d, 0xb8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}
	binary.BigEndian.PutUint16(h[4:], uint16(len(payload)))
	return m.Ethernet(0x86dd, append(h, payload...)...)
}

// sum16 is the ones' complement sum of RFC 1071 over an even number of bytes.
func sum16(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// Arrivals sends the frames of a pcap file and returns how many more packets
// each queue has got, when all that reached a queue are counted.
func (m *Machine) Arrivals(pcap string) Packets {
	m.Helper()
	before := m.QueuePackets()
	sent, err := m.card.Send(pcap)
	m.must(err)
	m.note("sent %s: %+v", filepath.Base(pcap), sent)
	put := 0 // on queues: a frame that went to two counts twice
	for _, frames := range sent.Queues {
		put += frames
	}
	var got Packets
	m.Eventually(func() string {
		got = m.QueuePackets().Minus(before)
		if got.Total() >= put {
			return ""
		}
		return fmt.Sprintf("%d packets were put on queues, the guest has counted %v", put, got)
	})
	return got
}

// Arrive sends the frames of a pcap file, and the queues must get exactly this
// many more packets.
func (m *Machine) Arrive(pcap string, want Packets) {
	m.Helper()
	if got := m.Arrivals(pcap); got != want {
		m.must(fmt.Errorf("the queues got %v more packets, want %v", got, want))
	}
}

// DefaultQueue is where the receive hash puts a frame now. The hash's key is
// another one at each load of the driver: a rule that shall be seen must name
// another queue, such as Away.
func (m *Machine) DefaultQueue(frame []byte) int {
	m.Helper()
	got := m.Arrivals(m.Capture(frame))
	for q, n := range got {
		if n == 1 && got.Total() == 1 {
			return q
		}
	}
	m.must(fmt.Errorf("one frame was sent, the queues got %v", got))
	return 0
}

// Away is a queue that is none of those.
func Away(queue ...int) int {
	for q := range queues {
		if !slices.Contains(queue, q) {
			return q
		}
	}
	panic("no queue is left")
}
