// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/bits"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/flexsteer/flexsteer/internal/host"
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
		m.onDefaultQueues(frames)

		key := hashKey.FindString(m.Ethtool("-x"))
		m.Ethtool("-X", "hkey", publishedKey)
		m.onDefaultQueues(frames)
		pcap := m.Generate("protocol=tcp packets=2000 source=random:10.0.0.0/8,2001:db8::/32",
			"protocol=udp packets=2000", "protocol=homa packets=2000 source=random:10.0.0.0/8,2001:db8::/32")
		m.Arrive(pcap, m.simulated(pcap))

		m.Ethtool("-X", "start", "4", "equal", "12")
		m.onDefaultQueues(frames)
		m.Ethtool("-X", "default")
		m.Ethtool("-X", "hkey", key)
	},
})

// framesWithoutRules is packets of TCP, UDP, ESP, AH and a protocol that the card
// does not parse, of both families; then any packets, and one that is not IP.
func (m *Machine) framesWithoutRules() (frames [][]byte) {
	m.Helper()
	c := newChance(1, 0)
	for _, family := range []steer.Family{steer.IPv4, steer.IPv6} {
		for _, protocol := range []byte{6, 17, 50, 51, 253} {
			for range 100 {
				d := Datagram{Source: c.address(family, steer.AddrBits{}), Destination: c.address(family, steer.AddrBits{}), Protocol: protocol}
				d.Payload = append(c.payload(protocol, c.Uint32()), c.payload(6, c.Uint32())...)
				frames = append(frames, m.Frame(d))
			}
		}
	}
	for range 1000 {
		frames = append(frames, c.frame(m, nil))
	}
	return append(frames, m.Ethernet(0x88f7, make([]byte, 46)...))
}

// onDefaultQueues sends frames, which must be on the queues that pkg/steer names.
// Those that the link does not take (another address, a VLAN) are left out.
func (m *Machine) onDefaultQueues(frames [][]byte) {
	m.Helper()
	rss, plain := m.rss(host.HashInputOf("mlx5_core")), m.rss(steer.HashInput{})
	compared, otherwise, wrong := map[string]int{}, 0, 0
	for i, got := range m.Fates(frames...) {
		if got == Nowhere {
			continue
		}
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
}

// What ethtool -x prints: the table in rows that begin with a place, and the key.
var (
	indirection = regexp.MustCompile(`(?m)^ *\d+:((?: +\d+)+)$`)
	hashKey     = regexp.MustCompile(`(?m)^[0-9a-f]{2}(:[0-9a-f]{2}){39}$`)
)

// rss is the default path with the guest's key and table.
func (m *Machine) rss(input steer.HashInput) *steer.RSS {
	m.Helper()
	said := m.Ethtool("-x")
	var table []uint32
	for _, row := range indirection.FindAllStringSubmatch(said, -1) {
		for _, queue := range strings.Fields(row[1]) {
			table = append(table, uint32(m.number(queue)))
		}
	}
	key, err := hex.DecodeString(strings.ReplaceAll(hashKey.FindString(said), ":", ""))
	m.must(err)
	if len(key) != 40 || bits.OnesCount(uint(len(table))) != 1 {
		m.must(fmt.Errorf("ethtool -x shows a key of %d bytes and a table of %d places:\n%s", len(key), len(table), said))
	}
	return steer.NewRSS([40]byte(key), table, input)
}

// simulated is what flexsteerctl simulate says about a pcap file, without rules.
func (m *Machine) simulated(pcap string) (p Packets) {
	m.Helper()
	argv := []string{"simulate", "--root", m.TempDir(), "--pcap", pcap, "--json"}
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
