// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"math/big"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// The table "RSS hashing verification" in Microsoft's NDIS documentation.
var published = []struct {
	dst, src         string
	dstPort, srcPort uint16
	ip, tcp          uint32
}{
	{"161.142.100.80", "66.9.149.187", 1766, 2794, 0x323e8fc2, 0x51ccc178},
	{"65.69.140.83", "199.92.111.2", 4739, 14230, 0xd718262a, 0xc626b0ea},
	{"12.22.207.184", "24.19.198.95", 38024, 12898, 0xd2d0a5de, 0x5c2b394a},
	{"209.142.163.6", "38.27.205.30", 2217, 48228, 0x82989176, 0xafc7327f},
	{"202.188.127.2", "153.39.163.191", 1303, 44251, 0x5d1809c5, 0x10e828a2},
	{"3ffe:2501:200:3::1", "3ffe:2501:200:1fff::7", 1766, 2794, 0x2cc18cd5, 0x40207d3d},
	{"ff02::1", "3ffe:501:8::260:97ff:fe40:efab", 4739, 14230, 0x0f0c461c, 0xdde51bbf},
	{"fe80::200:f8ff:fe21:67cf", "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 38024, 44251, 0x4b61e985, 0x02d1feef},
}

// spread is what a hash makes of a frame at a TIR over places queues, which have
// their places for numbers.
func spread(t *testing.T, h Hash, places int, w wire) Verdict {
	t.Helper()
	d := newDevice(t)
	root := d.table(0, 0, 0)
	d.must(d.SetRoot(root))
	queues := make([]uint32, places)
	for i := range queues {
		queues[i] = uint32(i)
	}
	r := d.id(d.CreateRQT(d.next(), RQT{places, queues}))
	to := d.id(d.CreateTIR(d.next(), TIR{Indirect: true, RQT: r, Hash: h}))
	d.entry(root, d.group(root, 0, 0, Match{}), 0, Match{}, toTIR(to))
	return d.Steer(w.bytes())
}

func TestToeplitzIsThatOfThePublishedVectors(t *testing.T) {
	for _, v := range published {
		w := wire{src: netip.MustParseAddr(v.src), dst: netip.MustParseAddr(v.dst), proto: 6, l4: tcp(v.srcPort, v.dstPort, 2, 0)}
		h := Hash{Function: HashToeplitz, Key: rssKey, Fields: HashSrcIP | HashDstIP}
		kind := uint8(1<<0 | 1<<2)
		if w.src.Is6() {
			h.L3, kind = 1, 2<<0|2<<2
		}
		if got := spread(t, h, 1, w); got.Hash != v.ip || got.HashType != kind {
			t.Errorf("%s to %s: %#x of type %#x, published is %#x", v.src, v.dst, got.Hash, got.HashType, v.ip)
		}
		h.Fields |= HashSrcPort | HashDstPort
		if got := spread(t, h, 1, w); got.Hash != v.tcp || got.HashType != kind|1<<4|1<<6 {
			t.Errorf("%s to %s with ports: %#x of type %#x, published is %#x", v.src, v.dst, got.Hash, got.HashType, v.tcp)
		}
	}
}

func TestTheLowBitsOfTheHashAreThePlace(t *testing.T) {
	v := published[0]
	w := wire{src: netip.MustParseAddr(v.src), dst: netip.MustParseAddr(v.dst), proto: 6, l4: tcp(v.srcPort, v.dstPort, 2, 0)}
	h := Hash{Function: HashToeplitz, Key: rssKey, Fields: 15}
	for _, places := range []int{1, 2, 16, 128, 2048} {
		if got := spread(t, h, places, w); got.Queues[0] != v.tcp%uint32(places) {
			t.Errorf("of %d places: %d, hash %#x", places, got.Queues[0], v.tcp)
		}
	}
}

func TestAHashLeavesOutWhatAPacketDoesNotHave(t *testing.T) {
	toeplitzOf := func(l3, l4 uint8, fields uint32) Hash {
		return Hash{Function: HashToeplitz, Key: rssKey, L3: l3, L4: l4, Fields: fields}
	}
	tcpV4, udpV4 := to4(6, tcp(1000, 80, 16, 0)), to4(17, udp(1000, 80))
	symmetric := toeplitzOf(0, 1, HashSrcIP|HashDstPort)
	symmetric.Symmetric = true
	fragment := udpV4
	fragment.more = true
	later := to6(17, udp(1000, 80))
	later.extensions, later.offset = []extension{{44, 0}}, 3
	ip4, ip6 := uint8(1|1<<2), uint8(2|2<<2)
	for _, c := range []struct {
		name string
		hash Hash
		w    wire
		kind uint8
		same Hash // the hash is what this one is
	}{
		{"TCP at a TIR for TCP", toeplitzOf(0, 0, 15), tcpV4, ip4 | 1<<4 | 1<<6, toeplitzOf(0, 0, 15)},
		{"UDP at a TIR for TCP", toeplitzOf(0, 0, 15), udpV4, ip4, toeplitzOf(0, 0, 3)},
		{"UDP at a TIR for UDP", toeplitzOf(0, 1, 15), udpV4, ip4 | 2<<4 | 2<<6, toeplitzOf(0, 1, 15)},
		{"a first fragment", toeplitzOf(0, 1, 15), fragment, ip4, toeplitzOf(0, 1, 3)},
		{"a later fragment of IPv6", toeplitzOf(1, 1, 15), later, ip6, toeplitzOf(1, 1, 3)},
		{"UDP that is cut short", toeplitzOf(0, 1, 15), to4(17, []byte{1, 2, 3, 4, 0, 9, 0}), ip4, toeplitzOf(0, 1, 3)},
		{"destination port only", toeplitzOf(0, 1, HashDstPort), udpV4, 2 << 6, toeplitzOf(0, 1, HashDstPort)},
		{"source address only", toeplitzOf(0, 1, HashSrcIP), udpV4, 1, toeplitzOf(0, 0, HashSrcIP)},
		{"symmetric, of one of each pair", symmetric, udpV4, 1 | 2<<6, toeplitzOf(0, 1, HashSrcIP|HashDstPort)},
		{"IPv6 at a TIR for IPv4", toeplitzOf(0, 1, 15), to6(17, udp(1, 2)), 0, toeplitzOf(0, 0, 0)},
		{"no IP", toeplitzOf(0, 1, 15), wire{l4: make([]byte, 50)}, 0, toeplitzOf(0, 0, 0)},
		{"no fields", toeplitzOf(0, 0, 0), tcpV4, 0, toeplitzOf(0, 1, 0)},
		{"ESP", toeplitzOf(0, 0, 3|HashSPI), to4(50, udp(1, 2)), ip4 | 3<<4 | 3<<6, toeplitzOf(0, 1, 3|HashSPI)},
		{"UDP at a TIR for ESP", toeplitzOf(0, 0, 3|HashSPI), udpV4, ip4, toeplitzOf(0, 0, 3)},
	} {
		got, same := spread(t, c.hash, 1, c.w), spread(t, c.same, 1, c.w)
		if got.HashType != c.kind || got.Hash != same.Hash {
			t.Errorf("%s: %#x of type %#x; want %#x of type %#x", c.name, got.Hash, got.HashType, same.Hash, c.kind)
		}
		if c.kind == 0 && got.Hash != 0 {
			t.Errorf("%s: hash %#x of nothing", c.name, got.Hash)
		}
	}
}

// naiveToeplitz is the definition: for each bit of the input that is set, the 32
// bits of the key from there.
func naiveToeplitz(input []byte) (hash uint32) {
	key := new(big.Int).SetBytes(rssKey[:])
	for i := range 8 * len(input) {
		if input[i/8]>>(7-i%8)&1 != 0 {
			hash ^= uint32(new(big.Int).Rsh(key, uint(320-32-i)).Uint64())
		}
	}
	return hash
}

func TestASymmetricHashIsOverOrAndXor(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var src, dst [16]byte
		for i := range src {
			src[i], dst[i] = byte(r.Uint32()), byte(r.Uint32())
		}
		sport, dport := uint16(r.Uint32()), uint16(r.Uint32())
		there := wire{src: netip.AddrFrom16(src), dst: netip.AddrFrom16(dst), proto: 17, l4: udp(sport, dport)}
		back := wire{src: there.dst, dst: there.src, proto: 17, l4: udp(dport, sport)}
		h := Hash{Function: HashToeplitz, Symmetric: true, Key: rssKey, L3: 1, L4: 1, Fields: 15}
		var input []byte
		for i := range src {
			input = append(input, src[i]|dst[i])
		}
		for i := range src {
			input = append(input, src[i]^dst[i])
		}
		or, xor := sport|dport, sport^dport
		input = append(input, byte(or>>8), byte(or), byte(xor>>8), byte(xor))
		a, b, want := spread(t, h, 1, there), spread(t, h, 1, back), naiveToeplitz(input)
		if a.Hash != want || b.Hash != want {
			t.Fatalf("there %#x, back %#x, want %#x", a.Hash, b.Hash, want)
		}
	}
}

func TestToeplitzIsItsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		input := make([]byte, r.IntN(inputBytes+1))
		for i := range input {
			input[i] = byte(r.Uint32())
		}
		if got, want := toeplitz(&rssKey, input), naiveToeplitz(input); got != want {
			t.Fatalf("%x: %#x, want %#x", input, got, want)
		}
	}
}

func TestInvertedXor8(t *testing.T) {
	w := wire{src: netip.MustParseAddr("1.2.4.8"), dst: netip.MustParseAddr("16.0.0.0"), proto: 17, l4: udp(0x2000, 0x0040)}
	h := Hash{Function: HashInvertedXor8, L4: 1, Fields: 15}
	// 0x01^0x02^0x04^0x08^0x10^0x20^0x40 = 0x7f; from the other end 0xfe.
	if v := spread(t, h, 256, w); v.Hash != 0xfe || v.Queues[0] != 0xfe {
		t.Errorf("%#x, queue %#x", v.Hash, v.Queues[0])
	}
}
