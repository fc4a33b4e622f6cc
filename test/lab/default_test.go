// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/flexsteer/flexsteer/internal/host"
	"github.com/flexsteer/flexsteer/internal/simulate"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// The default path: what pkg/steer and flexsteerctl simulate say about packets
// that no rule is for.

// publishedKey is the key of the published RSS test vectors, which simulate has.
const publishedKey = "6d:5a:56:da:25:5b:0e:c2:41:67:25:3d:43:a3:8f:b0:d0:ca:2b:cb:ae:7b:30:b4:77:cb:2d:a3:80:30:f2:0c:6a:42:b7:3b:be:ac:01:fa"

var _ = add(Experiment{
	Name: "the default path is pkg/steer's RSS, with the key and the table that ethtool -x shows",
	Run: func(m *Machine) {
		frames := m.framesWithoutRules()
		m.asSimulatedFor(m.onDefaultQueues(frames))

		key := strings.ReplaceAll(fmt.Sprintf("% x", m.linkRSS().Key), " ", ":")
		m.Ethtool("-X", "hkey", publishedKey)
		m.onDefaultQueues(frames)
		pcap := m.Generate("protocol=tcp packets=2000 source=random:10.0.0.0/8,2001:db8::/32",
			"protocol=udp packets=2000", "protocol=homa packets=2000 source=random:10.0.0.0/8,2001:db8::/32")
		m.Arrive(pcap, m.simulated(pcap))

		m.Ethtool("-X", "start", "4", "equal", "12")
		m.asSimulatedFor(m.onDefaultQueues(frames))
		m.Ethtool("-X", "default")
		m.Ethtool("-X", "hkey", key)
	},
})

// framesWithoutRules is packets of TCP, UDP, ESP, AH and a protocol that the card
// does not parse, of both families, the last ten of each too short for ports or an
// SPI, which the padding seems to have; then any packets, and one that is not IP.
func (m *Machine) framesWithoutRules() (frames [][]byte) {
	m.Helper()
	c := newChance(1, 0)
	for _, family := range []steer.Family{steer.IPv4, steer.IPv6} {
		for _, protocol := range []byte{6, 17, 50, 51, 253} {
			for i := range 110 {
				d := Datagram{Source: c.address(family, steer.AddrBits{}), Destination: c.address(family, steer.AddrBits{}), Protocol: protocol}
				d.Payload = append(c.payload(protocol, c.Uint32()), c.payload(6, c.Uint32())...)
				var padding []byte
				if i >= 100 {
					d.Payload, padding = d.Payload[:3], d.Payload[3:]
				}
				frames = append(frames, append(m.Frame(d), padding...))
			}
		}
	}
	for range 1500 {
		frames = append(frames, c.frame(m, nil))
	}
	return append(frames, m.Ethernet(0x88f7, make([]byte, 46)...))
}

// onDefaultQueues sends frames, which must be on the queues that pkg/steer names.
// Those that the link does not take (another address, a VLAN) are left out; the
// others are returned.
func (m *Machine) onDefaultQueues(frames [][]byte) (taken [][]byte) {
	m.Helper()
	said := m.linkRSS()
	rss, plain := steer.NewRSS(said.Key, said.Table, host.HashInputOf("mlx5_core")), steer.NewRSS(said.Key, said.Table, steer.HashInput{})
	compared, otherwise, wrong := map[string]int{}, 0, 0
	for i, got := range m.Fates(frames...) {
		if got == Nowhere {
			continue
		}
		taken = append(taken, frames[i])
		p := steer.ParseEthernet(frames[i])
		compared[fmt.Sprintf("family %d, protocol %d", p.Family, p.Protocol)]++
		want := rss.Queue(&p)
		if want != plain.Queue(&p) {
			otherwise++
		}
		if got == Fate(want) {
			continue
		}
		if wrong++; wrong <= 3 {
			m.Errorf("frame %d (%s), %+v: %v, want queue %d", i, hex.EncodeToString(frames[i]), p, got, want)
			m.explain(frames[i])
		}
	}
	m.note("compared %v; %d frames would be on other queues without the transformation", compared, otherwise)
	if wrong > 0 || otherwise == 0 || len(compared) < 12 {
		m.Fatalf("%d frames are on other queues than pkg/steer says; %d would be without the transformation; of each kind: %v", wrong, otherwise, compared)
	}
	return taken
}

// linkRSS is what the guest's ethtool prints about the default path.
func (m *Machine) linkRSS() simulate.LinkRSS {
	m.Helper()
	said, err := simulate.ParseRSS(m.Ethtool("-x"))
	m.must(err)
	return said
}

// asSimulatedFor sends 2,000 frames or more, and the queues must get what
// flexsteerctl simulate says, given what the guest's ethtool -x prints.
func (m *Machine) asSimulatedFor(frames [][]byte) {
	m.Helper()
	if len(frames) < 2000 {
		m.Fatalf("only %d frames", len(frames))
	}
	said := filepath.Join(m.TempDir(), "ethtool-x.txt")
	m.must(os.WriteFile(said, []byte(m.Ethtool("-x")), 0o644))
	pcap := m.Capture(frames...)
	m.Arrive(pcap, m.simulated(pcap, "--rss", said))
}

// simulated is what flexsteerctl simulate says about a pcap file, without rules.
func (m *Machine) simulated(pcap string, more ...string) (p Packets) {
	m.Helper()
	argv := append([]string{"simulate", "--root", m.TempDir(), "--pcap", pcap, "--json"}, more...)
	out, err := exec.Command(filepath.Join(m.lab.places.bin, "flexsteerctl"), argv...).CombinedOutput()
	m.note("flexsteerctl %s\n%s", strings.Join(argv, " "), out)
	m.must(err)
	var said struct {
		Before struct {
			Packets Packets `json:"packets_by_queue"`
		}
	}
	m.must(json.Unmarshal(out, &said))
	return said.Before.Packets
}
