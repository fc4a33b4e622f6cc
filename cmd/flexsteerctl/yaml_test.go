// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"testing"
	"testing/fstest"

	"github.com/flexsteer/flexsteer/pkg/config"
	"github.com/flexsteer/flexsteer/pkg/steer"
)

// randomRule is one rule of the fields that entries and ethtool know.
func randomRule(r *rand.Rand) steer.Rule {
	var m steer.Match
	m.Flow = []steer.FlowType{steer.Ether, steer.IP4, steer.IP6, steer.TCP4, steer.UDP6, steer.SCTP4}[r.IntN(6)]
	family, ip := m.Flow.Family()
	if ip && r.IntN(3) == 0 {
		for i := range 4 + 12*int(family-steer.IPv4)/2 {
			m.Source.Mask[i] = 0xff
			m.Source.Value[i] = byte(r.Uint32())
		}
	}
	switch m.Flow {
	case steer.Ether:
		m.EtherType = steer.Bits16{Value: uint16(0x88f0 + r.IntN(16)), Mask: 0xffff}
		if r.IntN(2) == 0 {
			m.DestinationMAC = steer.MACBits{Value: [6]byte{2, 0, 0, 0, 0, byte(r.Uint32())}, Mask: [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, byte(r.IntN(2) * 0xff)}}
		}
	case steer.IP4, steer.IP6:
		m.Protocol = steer.Bits8{Value: 253, Mask: 0xff}
		m.L4Data = steer.Bits32{Value: r.Uint32(), Mask: r.Uint32()}
	default:
		m.DestinationPort = steer.Bits16{Value: uint16(r.Uint32()), Mask: 0xffff << r.IntN(16)}
		m.SourcePort = steer.Bits16{Value: uint16(r.Uint32()), Mask: []uint16{0, 0xffff, 0x00ff}[r.IntN(3)]}
	}
	if r.IntN(4) == 0 {
		m.VLAN = steer.Bits16{Value: uint16(1 + r.IntN(4000)), Mask: 0x0fff}
	}
	if r.IntN(8) == 0 && ip {
		m.TOS = steer.Bits8{Value: 4, Mask: 0xff}
	}
	a := steer.Drop
	if r.IntN(2) == 0 {
		a = steer.ToQueue(uint32(r.IntN(64)))
	}
	return steer.Rule{Match: m.Canonical(), Action: a}
}

// Whatever rules are shown as entries can be copied into a file, and make just
// the same rules.
func TestShownEntryMakesTheRuleItShows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	shown := 0
	for range 1500 {
		rule := randomRule(r)
		text, ok := entryOf(rule)
		if !ok {
			continue
		}
		shown++
		file := &fstest.MapFile{Data: []byte("match: {name: a}\nsteer:\n- " + text + "\n")}
		c, err := config.LoadFiles(fstest.MapFS{"a.yaml": file}, []string{"a.yaml"})
		if err != nil {
			t.Fatalf("%s\n%s\n%v", rule, text, err)
		}
		goal, problems := steer.Check(together(c.Policies, everyLink), steer.Observed{NIC: steer.NIC{RawProtocols: steer.AnyProtocols}})
		if len(problems) > 0 || len(goal.Rules) != 1 || goal.Rules[0].Rule != rule {
			t.Fatalf("%s\n%s\nmakes %v, %v", rule, text, goal.Rules, problems)
		}
	}
	if shown < 750 {
		t.Errorf("%d of 1500 rules are shown as entries", shown)
	}
}

func TestRuleThatNoEntryMakesIsNotShownAsOne(t *testing.T) {
	udp := steer.Match{Flow: steer.UDP4}
	for name, change := range map[string]func(*steer.Rule){
		"virtual function":   func(r *steer.Rule) { r.Action.VF = 1 },
		"RSS context":        func(r *steer.Rule) { r.Action.Context = 2 },
		"traffic class":      func(r *steer.Rule) { r.Match.TOS = steer.Bits8{Value: 1, Mask: 1} },
		"source address":     func(r *steer.Rule) { r.Match.SourceMAC.Mask[0] = 1 },
		"opaque":             func(r *steer.Rule) { r.Match = steer.Match{Flow: steer.Other, Opaque: "x"} },
		"mask with holes":    func(r *steer.Rule) { r.Match.Source.Mask[2] = 1 },
		"port with holes":    func(r *steer.Rule) { r.Match.SourcePort.Mask = 0x00ff },
		"VLAN priority":      func(r *steer.Rule) { r.Match.VLAN = steer.Bits16{Value: 0x2001, Mask: 0xffff} },
		"part of a protocol": func(r *steer.Rule) { r.Match.Flow, r.Match.Protocol.Mask = steer.IP4, 0x0f },
	} {
		rule := steer.Rule{Match: udp, Action: steer.ToQueue(1)}
		change(&rule)
		if text, ok := entryOf(rule); ok {
			t.Errorf("%s: %s", name, text)
		}
	}
}
