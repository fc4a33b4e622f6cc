// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ethtool

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flexsteer/flexsteer/pkg/steer"
)

// flowTypes is every flow type that a rule can be made of.
var flowTypes = []steer.FlowType{
	steer.Ether, steer.IP4, steer.IP6, steer.TCP4, steer.TCP6,
	steer.UDP4, steer.UDP6, steer.SCTP4, steer.SCTP6,
}

func TestWhatIsEncodedDecodesToTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		r := randomRule(rng)
		loc := steer.Loc(rng.Uint32())
		x, err := Encode(loc, r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		gotLoc, got := Decode(x[:])
		if got != r || gotLoc != loc {
			t.Fatalf("location %d: %s", gotLoc, cmp.Diff(r, got))
		}
	}
}

func TestEncodeMakesARuleCanonical(t *testing.T) {
	loose := steer.Rule{
		Match: steer.Match{
			Flow:     steer.IP4,
			Source:   steer.AddrBits{Value: [16]byte{192, 0, 2, 9}, Mask: [16]byte{255, 255, 255}},
			Protocol: steer.Bits8{Value: 253},
			L4Data:   steer.Bits32{Value: 0xff, Mask: 0x0f},
		},
		Action: steer.Action{Drop: true, Queue: 5, VF: 2, Context: 3},
	}
	x, err := Encode(0, loose)
	if err != nil {
		t.Fatal(err)
	}
	want := steer.Rule{Match: loose.Match.Canonical(), Action: steer.Drop}
	if _, got := Decode(x[:]); got != want {
		t.Error(cmp.Diff(want, got))
	}
}

func TestEncodeRefusesFieldsThatTheFlowTypeDoesNotHave(t *testing.T) {
	full := steer.Match{
		Source:          steer.AddrBits{Mask: [16]byte{255}},
		TOS:             steer.Bits8{Mask: 0xfc},
		Protocol:        steer.Bits8{Value: 253, Mask: 0xff},
		L4Data:          steer.Bits32{Value: 1, Mask: 0xf},
		SourcePort:      steer.Bits16{Mask: 0xffff},
		DestinationPort: steer.Bits16{Mask: 0xffff},
		SourceMAC:       steer.MACBits{Mask: [6]byte{255}},
		EtherType:       steer.Bits16{Mask: 0xffff},
	}
	long := steer.Match{Flow: steer.TCP4, Source: steer.AddrBits{Mask: [16]byte{7: 255}}}
	rows := map[string]steer.Match{
		"addresses of Ether":              {Flow: steer.Ether, Source: full.Source},
		"tos of Ether":                    {Flow: steer.Ether, TOS: full.TOS},
		"protocol of tcp4":                {Flow: steer.TCP4, Protocol: full.Protocol},
		"l4data of udp6":                  {Flow: steer.UDP6, L4Data: full.L4Data},
		"source port of ip4":              {Flow: steer.IP4, SourcePort: full.SourcePort},
		"destination port of ip6":         {Flow: steer.IP6, DestinationPort: full.DestinationPort},
		"source MAC of sctp4":             {Flow: steer.SCTP4, SourceMAC: full.SourceMAC},
		"EtherType of ip4":                {Flow: steer.IP4, EtherType: full.EtherType},
		"an IPv4 address of 8 bytes":      long,
		"kernel's bytes of a known type":  {Flow: steer.IP4, Opaque: "x"},
		"unknown type without the bytes":  {},
		"unknown type with other bytes":   {Opaque: string(make([]byte, specSize-1))},
		"kernel's bytes that are known":   {Opaque: "\x01" + string(make([]byte, specSize-1))},
		"a flow type that does not exist": {Flow: 99},
	}
	for name, m := range rows {
		if _, err := Encode(0, steer.Rule{Match: m}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// kernelRule builds what a driver would answer.
func kernelRule(flow uint32, change func(x *rxnfc)) rxnfc {
	var x rxnfc
	x.setFlow(flow)
	change(&x)
	return x
}

func TestRulesOfOtherFormsKeepTheirBytes(t *testing.T) {
	rows := map[string]struct {
		x      rxnfc
		action steer.Action
	}{
		"esp4":     {kernelRule(0x0a, func(x *rxnfc) { x[28], x[100] = 7, 0xff; x.setAction(steer.ToQueue(3)) }), steer.ToQueue(3)},
		"ah6":      {kernelRule(0x0b, func(x *rxnfc) { x.setAction(steer.Drop) }), steer.Drop},
		"hash v4":  {kernelRule(0x10, func(*rxnfc) {}), steer.ToQueue(0)},
		"unknown":  {kernelRule(0x1234, func(x *rxnfc) { x[50], x[122] = 9, 9 }), steer.ToQueue(0)},
		"userdata": {kernelRule(flowTCP4|flagExt, func(x *rxnfc) { x[91], x[163] = 1, 0xff }), steer.ToQueue(0)},
		"ether with an extended MAC": {kernelRule(flowEther|flagMAC, func(x *rxnfc) {
			x[offMAC+5], x[offMAC+maskAfter+5] = 1, 0xff
		}), steer.ToQueue(0)},
		"byte behind the fields": {kernelRule(flowTCP4, func(x *rxnfc) { x[60], x[132] = 1, 1 }), steer.ToQueue(0)},
		"ip_ver compared": {kernelRule(flowIP4, func(x *rxnfc) {
			x[offVersion], x[offVersion+maskAfter] = 1, 1
		}), steer.ToQueue(0)},
		"wake": {kernelRule(flowTCP4, func(x *rxnfc) {
			binary.NativeEndian.PutUint64(x[offCookie:], ^uint64(1))
		}), steer.Action{}},
		"high cookie": {kernelRule(flowTCP4, func(x *rxnfc) {
			binary.NativeEndian.PutUint64(x[offCookie:], 1<<40)
		}), steer.Action{}},
		"context 0": {kernelRule(flowTCP4|flagRSS, func(*rxnfc) {}), steer.Action{}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			binary.NativeEndian.PutUint32(row.x[offLocation:], 17)
			loc, r := Decode(row.x[:])
			if r.Match.Flow != steer.Other || r.Action != row.action || loc != 17 {
				t.Fatalf("decoded to location %d, flow %d, %+v", loc, r.Match.Flow, r.Action)
			}
			back, err := Encode(17, r)
			if err != nil || back != row.x {
				t.Errorf("bytes changed, or error %v", err)
			}
			elsewhere := row.x
			binary.NativeEndian.PutUint32(elsewhere[offLocation:], 900)
			if _, again := Decode(elsewhere[:]); again != r {
				t.Error("the location is part of the match")
			}
		})
	}
}

func TestFormsThatTheKernelTakesForOneAreOne(t *testing.T) {
	want, err := Encode(5, steer.Rule{
		Match:  steer.Match{Flow: steer.IP4, Protocol: steer.Bits8{Value: 253, Mask: 0xff}},
		Action: steer.ToQueue(1),
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]func(x *rxnfc){
		"ip_ver left 0":                   func(x *rxnfc) { x[offVersion] = 0 },
		"ip_ver of another IP":            func(x *rxnfc) { x[offVersion] = 6 },
		"value outside the mask":          func(x *rxnfc) { x[28] = 7 },
		"FLOW_EXT without a mask":         func(x *rxnfc) { x.setFlow(x.flow() | flagExt) },
		"FLOW_MAC_EXT without a mask":     func(x *rxnfc) { x.setFlow(x.flow() | flagMAC) },
		"VLAN without FLOW_EXT":           func(x *rxnfc) { x[offVLAN], x[offVLAN+maskAfter] = 1, 0xf },
		"MAC without FLOW_MAC_EXT":        func(x *rxnfc) { x[offMAC], x[offMAC+maskAfter] = 1, 0xf },
		"padding of the extension":        func(x *rxnfc) { x[offExt], x[offExt+maskAfter] = 1, 0xf },
		"rule count in the RSS context":   func(x *rxnfc) { x.setContext(12) },
		"padding before the cookie":       func(x *rxnfc) { x[offMaskEnd] = 1 },
		"command and data of the request": func(x *rxnfc) { x[0], x[offData] = 0x2f, 9 },
	}
	dropped := rxnfc(want)
	dropped.setAction(steer.Drop)
	_, drop := Decode(dropped[:])
	dropped.setFlow(dropped.flow() | flagRSS)
	dropped.setContext(2)
	if _, got := Decode(dropped[:]); got != drop || got.Action != steer.Drop {
		t.Errorf("a drop within an RSS context is %+v", got.Action)
	}
	_, rule := Decode(want[:])
	for name, change := range rows {
		x := rxnfc(want)
		change(&x)
		loc, got := Decode(x[:])
		if got != rule || loc != 5 {
			t.Errorf("%s: location %d: %s", name, loc, cmp.Diff(rule, got))
		}
	}
}

func TestAnyLengthDecodes(t *testing.T) {
	full, err := Encode(3, steer.Rule{Match: steer.Match{Flow: steer.TCP4}, Action: steer.ToQueue(2)})
	if err != nil {
		t.Fatal(err)
	}
	for n := range Size {
		Decode(full[:n])
	}
	_, want := Decode(full[:])
	if _, got := Decode(append(full[:], 1, 2, 3)); got != want {
		t.Error("bytes behind the structure are part of the rule")
	}
}

func FuzzDecode(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 32 {
		x, err := Encode(steer.Loc(rng.IntN(1024)), randomRule(rng))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(x[:])
	}
	f.Add([]byte{})
	f.Add(make([]byte, Size))
	f.Add(make([]byte, Size-1))
	f.Fuzz(func(t *testing.T, b []byte) {
		loc, r := Decode(b)
		if r.Match != r.Match.Canonical() {
			t.Fatalf("not canonical: %+v", r)
		}
		x, err := Encode(loc, r)
		if err != nil {
			t.Fatalf("%+v does not encode: %v", r, err)
		}
		if loc2, r2 := Decode(x[:]); r2 != r || loc2 != loc {
			t.Fatalf("changed on the way: %s", cmp.Diff(r, r2))
		}
		y := rxnfc{}
		copy(y[:], b)
		y.canonicalise()
		z := rxnfc(x)
		if y.spec() != z.spec() {
			t.Fatalf("lost bytes:\n%x\n%x", y.spec(), z.spec())
		}
	})
}

// randomRule makes a canonical rule of any flow type.
func randomRule(rng *rand.Rand) steer.Rule {
	m := steer.Match{Flow: flowTypes[rng.IntN(len(flowTypes))]}
	family, ip := m.Flow.Family()
	if ip {
		m.Source, m.Destination = randomAddr(rng, family), randomAddr(rng, family)
		m.TOS = randomBits8(rng)
	}
	switch {
	case m.Flow == steer.Ether:
		m.SourceMAC, m.EtherType = randomMAC(rng), randomBits16(rng)
	case m.Flow == steer.IP4 || m.Flow == steer.IP6:
		m.Protocol = steer.Bits8{Value: uint8(rng.Uint32()), Mask: 0xff * uint8(rng.IntN(2))}
		m.L4Data = steer.Bits32{Value: rng.Uint32(), Mask: rng.Uint32() * uint32(rng.IntN(2))}
	default:
		m.SourcePort, m.DestinationPort = randomBits16(rng), randomBits16(rng)
	}
	m.DestinationMAC = randomMAC(rng)
	m.VLAN, m.VLANEtherType = randomBits16(rng), randomBits16(rng)
	return steer.Rule{Match: m.Canonical(), Action: randomAction(rng)}
}

func randomAction(rng *rand.Rand) steer.Action {
	var a steer.Action
	switch rng.IntN(5) {
	case 0:
		return steer.Drop
	case 1:
		a.Queue, a.VF = rng.Uint32N(64), uint8(1+rng.IntN(255))
	default:
		a.Queue = rng.Uint32N(64)
	}
	if rng.IntN(6) == 0 {
		a.Context = 1 + rng.Uint32N(8)
	}
	return a
}

func randomBits8(rng *rand.Rand) steer.Bits8 {
	b := randomBits16(rng)
	return steer.Bits8{Value: uint8(b.Value), Mask: uint8(b.Mask)}
}

// randomBits16 compares nothing, everything or anything.
func randomBits16(rng *rand.Rand) steer.Bits16 {
	mask := [...]uint16{0, 0, 0xffff, uint16(rng.Uint32())}[rng.IntN(4)]
	return steer.Bits16{Value: uint16(rng.Uint32()), Mask: mask}
}

func randomMAC(rng *rand.Rand) (m steer.MACBits) {
	binary.BigEndian.PutUint32(m.Value[2:], rng.Uint32())
	mask := [...]uint32{0, 0, 0xffffffff, rng.Uint32()}[rng.IntN(4)]
	binary.BigEndian.PutUint32(m.Mask[2:], mask)
	if mask == 0xffffffff {
		m.Mask[0], m.Mask[1] = 0xff, 0xff
	}
	return m
}

func randomAddr(rng *rand.Rand, f steer.Family) (a steer.AddrBits) {
	var b [16]byte
	binary.NativeEndian.PutUint64(b[:], rng.Uint64())
	binary.NativeEndian.PutUint64(b[8:], rng.Uint64())
	addr, width := netip.AddrFrom16(b), 128
	if f == steer.IPv4 {
		addr, width = netip.AddrFrom4([4]byte(b[:4])), 32
	}
	if rng.IntN(2) == 0 {
		return a
	}
	return steer.AddrFromPrefix(netip.PrefixFrom(addr, rng.IntN(width+1)))
}

func BenchmarkEncode(b *testing.B) {
	r := homaRule(3)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Encode(17, r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	x, err := Encode(17, homaRule(3))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		Decode(x[:])
	}
}

// homaRule is one of the sixteen rules of the shared case: queue by the low
// bits of the destination port of protocol 146.
func homaRule(queue uint32) steer.Rule {
	return steer.Rule{
		Match: steer.Match{
			Flow:     steer.IP4,
			Protocol: steer.Bits8{Value: 146, Mask: 0xff},
			L4Data:   steer.Bits32{Value: queue, Mask: 0xf},
		},
		Action: steer.ToQueue(queue),
	}
}
