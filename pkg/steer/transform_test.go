// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"math/big"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// packetBetween is one with these addresses and ports.
func packetBetween(src, dst string, protocol uint8, l4 uint32) (p Packet) {
	a, b := netip.MustParseAddr(src), netip.MustParseAddr(dst)
	p = Packet{Family: IPv4, Protocol: protocol, HasL4: true, L4: l4}
	if a.Is6() {
		p.Family = IPv6
	}
	copy(p.Source[:], a.AsSlice())
	copy(p.Destination[:], b.AsSlice())
	return p
}

// Of each field only the first bit is set, so the hash is the exclusive or of a
// few words of the key: byte 0 6d5a56da, 4 255b0ec2, 8 4167253d, 10 253d43a3,
// 16 d0ca2bcb, 32 6a42b73b, 34 b73bbeac.
func TestTransformedHashesWorkedOutByHand(t *testing.T) {
	const source4, both4, source6, both6 = 0x6d5a56da ^ 0x255b0ec2, 0x6d5a56da, 0x6d5a56da ^ 0xd0ca2bcb, 0x6d5a56da
	const tcp, udp, homa = 6, 17, 146
	for _, c := range []struct {
		name                string
		p                   Packet
		none, xor, orAndXor uint32
	}{
		{"only the source", packetBetween("128.0.0.0", "0.0.0.0", homa, 0), 0x6d5a56da, source4, source4},
		{"only the destination", packetBetween("0.0.0.0", "128.0.0.0", homa, 0), 0x255b0ec2, source4, source4},
		{"source and destination", packetBetween("128.0.0.0", "128.0.0.0", homa, 0), source4, 0, both4},
		{"only the source, IPv6", packetBetween("8000::", "::", homa, 0), 0x6d5a56da, source6, source6},
		{"source and destination, IPv6", packetBetween("8000::", "8000::", homa, 0), source6, 0, both6},
		{"source port", packetBetween("0.0.0.0", "0.0.0.0", tcp, 0x80000000), 0x4167253d, 0x4167253d ^ 0x253d43a3, 0x4167253d ^ 0x253d43a3},
		{"destination port", packetBetween("0.0.0.0", "0.0.0.0", udp, 0x00008000), 0x253d43a3, 0x4167253d ^ 0x253d43a3, 0x4167253d ^ 0x253d43a3},
		{"both ports", packetBetween("0.0.0.0", "0.0.0.0", udp, 0x80008000), 0x4167253d ^ 0x253d43a3, 0, 0x4167253d},
		{"both ports, IPv6", packetBetween("::", "::", tcp, 0x80008000), 0x6a42b73b ^ 0xb73bbeac, 0, 0x6a42b73b},
		{"all of them", packetBetween("128.0.0.0", "128.0.0.0", tcp, 0x80000000), source4 ^ 0x4167253d,
			0x4167253d ^ 0x253d43a3, both4 ^ 0x4167253d ^ 0x253d43a3},
		{"ports of a protocol that is not parsed", packetBetween("128.0.0.0", "128.0.0.0", homa, 0x80008000), source4, 0, both4},
	} {
		for transform, want := range map[Transform]uint32{NoTransform: c.none, SymmetricXor: c.xor, SymmetricOrXor: c.orAndXor} {
			if got := DefaultRSS(1, HashInput{Transform: transform}).Hash(&c.p); got != want {
				t.Errorf("%s, %v: %#08x, want %#08x", c.name, transform, got, want)
			}
		}
	}
}

// anyPacket is of any family, with ports or without.
func anyPacket(r *rand.Rand) (p Packet) {
	p = Packet{Family: IPv4, Protocol: []uint8{6, 17, 146}[r.IntN(3)], HasL4: r.IntN(4) > 0, L4: r.Uint32()}
	width := 4
	if r.IntN(2) == 0 {
		p.Family, width = IPv6, 16
	}
	for i := range width {
		p.Source[i], p.Destination[i] = byte(r.Uint32()), byte(r.Uint32())
	}
	return p
}

// naiveToeplitz is the definition: for each bit of the input that is set, the 32
// bits of the key from there.
func naiveToeplitz(key, input []byte) (hash uint32) {
	number := new(big.Int).SetBytes(key)
	for i := range 8 * len(input) {
		if input[i/8]>>(7-i%8)&1 != 0 {
			hash ^= uint32(new(big.Int).Rsh(number, uint(8*len(key)-32-i)).Uint64())
		}
	}
	return hash
}

func TestHashIsToeplitzOverTheTransformedFields(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	apply := map[Transform]func(a, b byte) (byte, byte){
		NoTransform:    func(a, b byte) (byte, byte) { return a, b },
		SymmetricXor:   func(a, b byte) (byte, byte) { return a ^ b, a ^ b },
		SymmetricOrXor: func(a, b byte) (byte, byte) { return a | b, a ^ b },
	}
	for range 300 {
		p := anyPacket(r)
		var key [40]byte
		for i := range key {
			key[i] = byte(r.Uint32())
		}
		width := map[Family]int{IPv4: 4, IPv6: 16}[p.Family]
		pairs := [][2][]byte{{p.Source[:width], p.Destination[:width]}}
		if p.HasL4 && p.Protocol != 146 {
			pairs = append(pairs, [2][]byte{{byte(p.L4 >> 24), byte(p.L4 >> 16)}, {byte(p.L4 >> 8), byte(p.L4)}})
		}
		for transform, f := range apply {
			var input []byte
			for _, pair := range pairs {
				first, second := slices.Clone(pair[0]), slices.Clone(pair[1])
				for i := range first {
					first[i], second[i] = f(first[i], second[i])
				}
				input = append(append(input, first...), second...)
			}
			want := naiveToeplitz(key[:], input)
			if got := NewRSS(key, []uint32{0}, HashInput{Transform: transform}).Hash(&p); got != want {
				t.Fatalf("%v of %+v: %#x, want %#x", transform, p, got, want)
			}
		}
	}
}

func TestSymmetricTransformsPutBothDirectionsOnOneQueue(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	differ := 0
	for range 300 {
		there := anyPacket(r)
		back := there
		back.Source, back.Destination, back.L4 = there.Destination, there.Source, there.L4<<16|there.L4>>16
		for _, transform := range []Transform{SymmetricXor, SymmetricOrXor} {
			rss := DefaultRSS(16, HashInput{Transform: transform})
			if a, b := rss.Hash(&there), rss.Hash(&back); a != b {
				t.Fatalf("%v of %+v: %#x there, %#x back", transform, there, a, b)
			}
			if a, b := rss.Queue(&there), rss.Queue(&back); a != b {
				t.Fatalf("%v of %+v: queue %d there, %d back", transform, there, a, b)
			}
		}
		if rss := DefaultRSS(16, HashInput{}); rss.Queue(&there) != rss.Queue(&back) {
			differ++
		}
	}
	if differ < 250 {
		t.Errorf("without a transformation only %d of 300 flows come back on another queue", differ)
	}
}

// The SPI stands where ports do, as it is. Its first two bits are set here: the
// key from byte 8, and that from one bit behind.
func TestSPITakesPartWhereTheNICHashesIt(t *testing.T) {
	p := packetBetween("128.0.0.0", "128.0.0.0", 50, 0xc0000000)
	p.SPI, p.HasSPI = p.L4, true
	const addresses, spi = 0x6d5a56da, 0x4167253d ^ 0x82ce4a7a
	for input, want := range map[HashInput]uint32{
		{SymmetricOrXor, true}: addresses ^ spi, {SymmetricOrXor, false}: addresses,
		{SymmetricXor, true}: spi, {NoTransform, true}: addresses ^ 0x255b0ec2 ^ spi,
	} {
		if got := DefaultRSS(1, input).Hash(&p); got != want {
			t.Errorf("%+v: %#08x, want %#08x", input, got, want)
		}
	}
	p.HasSPI = false
	if got := DefaultRSS(1, HashInput{SymmetricOrXor, true}).Hash(&p); got != addresses {
		t.Errorf("a fragment: %#08x, want %#08x", got, addresses)
	}
}

func TestWhatIsNotIPIsOnQueue0(t *testing.T) {
	p := Packet{EtherType: 0x0806}
	if got := NewRSS(verificationKey, []uint32{7, 8}, HashInput{Transform: SymmetricOrXor}).Queue(&p); got != 0 {
		t.Errorf("queue %d", got)
	}
}

func TestTransformsHaveTheNamesOfEthtool(t *testing.T) {
	for transform, name := range map[Transform]string{NoTransform: "none", SymmetricXor: "symmetric-xor", SymmetricOrXor: "symmetric-or-xor"} {
		if got, ok := TransformNamed(name); !ok || got != transform || transform.String() != name {
			t.Errorf("%q: %v, %v", name, got, ok)
		}
	}
	if got, ok := TransformNamed("symmetric"); ok {
		t.Errorf("symmetric: %v", got)
	}
}
