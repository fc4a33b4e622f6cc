// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"testing/fstest"

	"github.com/flexsteer/flexsteer/pkg/config"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// Random policies and frames, and three opinions about each frame: what the
// queues of the guest have counted, the card's word, and pkg/steer's.

const (
	policiesOfAKernel = 110
	framesOfAPolicy   = 500
)

var _ = add(Experiment{
	Name:     "random policies and packets: the queues, the card and pkg/steer agree",
	MaxNodes: 2,
	Run: func(m *Machine) {
		seed := uint64(1)
		if text := os.Getenv("FLEXSTEER_LAB_SEED"); text != "" {
			var err error
			seed, err = strconv.ParseUint(text, 10, 64)
			m.must(err)
		}
		first := 0 // each kernel has policies of its own
		if m.boot.kernel != "6.1" {
			first = policiesOfAKernel
		}
		var trials []*trial
		var frames [][]byte
		for i := range policiesOfAKernel {
			t := m.trial(newChance(seed, uint64(first+i)))
			trials, frames = append(trials, t), append(frames, t.frames...)
		}
		// Without rules: what the default path makes of each frame.
		usual := m.Fates(frames...)
		m.Configure("10-lab.yaml", trials[0].policy)
		d := Daemon{m.Start("flexsteerd")}
		var total tallied
		for i, t := range trials {
			if i > 0 {
				m.Configure("10-lab.yaml", t.policy)
				d.Reload()
			}
			m.Becomes(t.state, len(t.goal.Rules))
			total.add(t.compare(m, fmt.Sprintf("policy %d of seed %d", first+i, seed), m.Fates(t.frames...), usual[:len(t.frames)]))
			usual = usual[len(t.frames):]
		}
		fmt.Printf("lab: %s: seed %d: %v\n", m.boot.kernel, seed, total)
		m.note("%v", total)
	},
})

// tallied is how much a comparison was worth.
type tallied struct{ policies, rules, frames, queued, dropped, usual int }

func (a *tallied) add(b tallied) {
	a.policies += b.policies
	a.rules += b.rules
	a.frames += b.frames
	a.queued += b.queued
	a.dropped += b.dropped
	a.usual += b.usual
}

func (a tallied) String() string {
	return fmt.Sprintf("%d policies of %d rules, %d frames: %d put on queues by a rule, %d dropped by one, %d on the default path",
		a.policies, a.rules, a.frames, a.queued, a.dropped, a.usual)
}

// trial is a policy, what pkg/steer makes of it, and frames.
type trial struct {
	policy string
	goal   steer.Goal
	state  string
	frames [][]byte
}

// trial takes the first policy that makes some rules and not too many.
func (m *Machine) trial(c chance) *trial {
	m.Helper()
	t := &trial{}
	for n := 0; n == 0 || n > 120; n = len(t.goal.Rules) {
		t.policy = c.policy()
		m.must(t.resolve())
	}
	for range framesOfAPolicy {
		t.frames = append(t.frames, c.frame(m, t.goal.Rules))
	}
	return t
}

// resolve asks pkg/config and pkg/steer for the rules of the policy on a link as
// the guest has it.
func (t *trial) resolve() error {
	loaded, err := config.LoadFiles(fstest.MapFS{"10-lab.yaml": {Data: []byte(t.policy)}}, []string{"10-lab.yaml"})
	if err != nil {
		return fmt.Errorf("a random policy does not load: %w\n%s", err, t.policy)
	}
	link := steer.Link{Index: 1, Name: "eth0", Driver: "mlx5_core", Kind: steer.Physical, Ready: true}
	desired := loaded.Resolve([]steer.Link{link})
	if len(desired) != 1 {
		return fmt.Errorf("a random policy is for %d links:\n%s", len(desired), t.policy)
	}
	var problems []steer.Problem
	t.goal, problems = steer.Check(desired[0], steer.Observed{
		NIC:      steer.NIC{Precedence: steer.ByFields, Queues: queues, Capacity: 1024, RawProtocols: 2},
		Channels: steer.Channels{Combined: queues, Max: queues},
	})
	worst := steer.Notice
	for _, p := range problems {
		worst = max(worst, p.Severity)
	}
	t.state = map[steer.Severity]string{steer.Notice: "configured", steer.Blocked: "blocked", steer.Failed: "failed"}[worst]
	return nil
}

// compare holds the fates against pkg/steer. A frame that no rule is for must
// have its usual fate.
func (t *trial) compare(m *Machine, name string, got, usual []Fate) tallied {
	m.Helper()
	table := steer.Table{}
	for i, w := range t.goal.Rules {
		table[steer.Loc(i)] = w.Rule
	}
	c := steer.NewClassifier(table, steer.ByFields, steer.DefaultRSS(queues, steer.HashInput{}))
	n := tallied{policies: 1, rules: len(t.goal.Rules), frames: len(got)}
	wrong := 0
	for i, frame := range t.frames {
		p := steer.ParseEthernet(frame)
		v := c.Classify(&p)
		want, why := usual[i], "no rule is for it"
		switch {
		case !v.Matched:
			n.usual++
		case v.Drop:
			n.dropped++
			want, why = Dropped, table[v.Loc].String()
		default:
			n.queued++
			want, why = Fate(v.Queue), table[v.Loc].String()
		}
		if got[i] == want {
			continue
		}
		if wrong++; wrong <= 3 {
			m.Errorf("%s, frame %d (%s), %+v: %v, want %v: %s", name, i, hex.EncodeToString(frame), p, got[i], want, why)
			m.explain(frame)
		}
	}
	if wrong > 0 {
		m.Fatalf("%s: %d of %d frames went otherwise than pkg/steer says; the policy is\n%s", name, wrong, len(got), t.policy)
	}
	return n
}

// explain logs how the card decides about a frame now.
func (m *Machine) explain(frame []byte) {
	m.Helper()
	var answer struct{ Path []string }
	m.must(m.card.Do(map[string]any{"do": "steer", "frame": hex.EncodeToString(frame)}, &answer))
	for _, step := range answer.Path {
		m.Log(step)
	}
}

// frame is near to one of the rules, or anything.
func (c chance) frame(m *Machine, rules []steer.Wanted) []byte {
	var match steer.Match
	if len(rules) > 0 && !c.one(5) {
		match = rules[c.IntN(len(rules))].Rule.Match
	}
	var f []byte
	d := c.datagram(&match)
	if match.Flow == steer.Ether && !c.one(3) || c.one(25) {
		etherType := pick[uint16](c, 0x88f7, 0x0806, 0x88cc, 0x9999)
		if match.EtherType.Mask != 0 && !c.one(4) {
			etherType = match.EtherType.Value
		}
		f = m.Tagged(d.Tags, etherType, d.Payload...)
	} else {
		f = m.Frame(d)
	}
	switch {
	case match.DestinationMAC.Mask != [6]byte{} && !c.one(6):
		for i, mask := range match.DestinationMAC.Mask {
			f[i] = match.DestinationMAC.Value[i] | byte(c.IntN(256))&^mask
		}
	case c.one(12):
		copy(f, []byte{2, 0, 0, 0, 0, pick[byte](c, 0xa, 0xb, 0xc)})
	}
	return append(f, make([]byte, max(0, 60-len(f)))...) // as short as Ethernet lets it be
}

// datagram is one that match takes, or would but for one field.
func (c chance) datagram(match *steer.Match) Datagram {
	family, isIP := match.Flow.Family()
	if !isIP {
		family = pick(c, steer.IPv4, steer.IPv6)
	}
	d := Datagram{
		Source: c.address(family, match.Source), Destination: c.address(family, match.Destination),
		Protocol: byte(pick(c, 6, 17, c.raw[0], c.raw[1], 1, 47, 89, 103, 132)),
	}
	word := c.word()
	compare := func(value, mask uint32) { word = word&^mask | value }
	switch match.Flow {
	case steer.TCP4, steer.TCP6, steer.UDP4, steer.UDP6:
		d.Protocol = 6
		if match.Flow == steer.UDP4 || match.Flow == steer.UDP6 {
			d.Protocol = 17
		}
		compare(uint32(match.SourcePort.Value)<<16, uint32(match.SourcePort.Mask)<<16)
		compare(uint32(match.DestinationPort.Value), uint32(match.DestinationPort.Mask))
	case steer.IP4, steer.IP6:
		if match.Protocol.Mask != 0 {
			d.Protocol = match.Protocol.Value
		}
		compare(match.L4Data.Value, match.L4Data.Mask)
	}
	switch {
	case match.VLAN.Mask != 0:
		d.Tags = []Tag{{0x8100, match.VLAN.Value | pick[uint16](c, 0, 0, 0x6000, 0x1000)}}
	case c.one(6):
		d.Tags = []Tag{{pick[uint16](c, 0x8100, 0x8100, 0x88a8), uint16(pick(c, vlans...))}}
	}
	c.miss(&d, &word)
	c.decorate(&d)
	d.Payload = c.payload(d.Protocol, word)
	return d
}

// address is one that a rule takes. Where it compares nothing, it is one that
// some rule might.
func (c chance) address(family steer.Family, a steer.AddrBits) netip.Addr {
	list := prefixes4
	if family == steer.IPv6 {
		list = prefixes6
	}
	text := pick(c, list...)
	p, err := netip.ParsePrefix(text)
	if err != nil {
		addr := netip.MustParseAddr(text)
		p = netip.PrefixFrom(addr, addr.BitLen())
	}
	if a.Mask == [16]byte{} {
		a = steer.AddrFromPrefix(p)
	}
	var b [16]byte
	for i := range b {
		b[i] = a.Value[i] | byte(c.IntN(256))&^a.Mask[i]
	}
	if family == steer.IPv4 {
		return netip.AddrFrom4([4]byte(b[:4]))
	}
	return netip.AddrFrom16(b)
}

// miss changes one thing, in a third of all cases.
func (c chance) miss(d *Datagram, word *uint32) {
	switch c.IntN(15) {
	case 0:
		d.Source = c.flip(d.Source)
	case 1:
		d.Destination = c.flip(d.Destination)
	case 2:
		*word ^= 1 << c.IntN(32)
	case 3:
		d.Protocol = byte(pick(c, 6, 17, c.raw[0], c.raw[1]))
	case 4:
		d.Tags = nil
	}
}

func (c chance) flip(a netip.Addr) netip.Addr {
	b := a.AsSlice()
	b[c.IntN(len(b))] ^= 1 << c.IntN(8)
	flipped, _ := netip.AddrFromSlice(b)
	return flipped
}

// decorate adds what changes the place of ports, or takes them away.
func (c chance) decorate(d *Datagram) {
	if c.one(10) {
		d.Fragment = &Fragment{pick[uint16](c, 0, 1, 185), c.one(2)}
		if *d.Fragment == (Fragment{}) {
			d.Fragment.More = true
		}
	}
	if c.one(8) && d.Source.Is4() {
		for range 4 * (1 + c.IntN(10)) {
			d.Options = append(d.Options, 1)
		}
	}
	if c.one(10) && len(d.Tags) == 1 {
		d.Tags = append(d.Tags, Tag{0x8100, uint16(pick(c, vlans...))})
	}
}

// payload begins with word, and is a header where one is needed.
func (c chance) payload(protocol byte, word uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, word)
	switch protocol {
	case 6:
		return append(b, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0x10, 0, 0, 0, 0, 0)
	case 17:
		return append(b, 0, 12, 0, 0, 1, 2, 3, 4)
	}
	for range c.IntN(20) {
		b = append(b, byte(c.IntN(256)))
	}
	return b
}
