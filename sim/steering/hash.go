// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"encoding/binary"
	"math/bits"
)

// HashFunction is rx_hash_fn.
type HashFunction uint8

// The hash functions.
const (
	HashNone         HashFunction = 0
	HashInvertedXor8 HashFunction = 1
	HashToeplitz     HashFunction = 2
)

// The fields that a hash can take in: selected_fields.
const (
	HashSrcIP   uint32 = 1 << 0
	HashDstIP   uint32 = 1 << 1
	HashSrcPort uint32 = 1 << 2
	HashDstPort uint32 = 1 << 3
	HashSPI     uint32 = 1 << 4 // of ESP and AH
)

// Hash is how an indirect TIR computes its hash from a packet's outer headers.
type Hash struct {
	Function  HashFunction
	Symmetric bool     // rx_hash_symmetric: with Toeplitz, both directions of a flow hash alike
	Key       [40]byte // of Toeplitz
	L3        uint8    // l3_prot_type: 0 IPv4, 1 IPv6
	L4        uint8    // l4_prot_type: 0 TCP, 1 UDP; counts only if ports are selected
	Fields    uint32   // Hash* bits
}

func checkHash(tir uint32, h Hash) error {
	switch {
	case h.Function != HashInvertedXor8 && h.Function != HashToeplitz:
		return refuse(BadParam, "TIR %#x: hash function %d of an indirect TIR", tir, h.Function)
	case h.L3 > 1 || h.L4 > 1:
		return refuse(BadParam, "TIR %#x: layer 3 type %d, layer 4 type %d; there are 0 and 1", tir, h.L3, h.L4)
	case h.Fields >= HashSPI<<1:
		return refuse(BadParam, "TIR %#x: selected fields %#x; only %#x are modelled", tir, h.Fields, HashSPI<<1-1)
	case h.Fields&HashSPI != 0 && h.Fields&(HashSrcPort|HashDstPort) != 0:
		return refuse(BadParam, "TIR %#x: selected fields %#x: a packet has no ports and an SPI", tir, h.Fields)
	}
	return nil
}

// inputBytes is the longest input of a hash: two IPv6 addresses and two ports.
// The key's 40 bytes are just enough for it.
const inputBytes = 16 + 16 + 2 + 2

// of is the hash of p and rss_hash_type, which says what went into it: source
// and destination address in bits 1:0 and 3:2 (1 IPv4, 2 IPv6), source and
// destination port in bits 5:4 and 7:6 (1 TCP, 2 UDP, 3 SPI). A field that p
// does not have is left out: the ports of a fragment, or of UDP at a TIR for
// TCP. A packet of the other IP version has hash 0.
func (h *Hash) of(p *packet) (hash uint32, hashType uint8) {
	var room [inputBytes]byte
	input, hashType := h.input(room[:0], p)
	if len(input) == 0 {
		return 0, 0
	}
	if h.Function == HashInvertedXor8 {
		return invertedXor8(input), hashType
	}
	return toeplitz(&h.Key, input), hashType
}

func (h *Hash) input(b []byte, p *packet) (input []byte, hashType uint8) {
	if p.version != [2]uint8{4, 6}[h.L3] {
		return b, 0
	}
	src, dst := p.addresses()
	ipType := [2]uint8{1, 2}[h.L3]
	b, hashType = h.pair(b, src, dst, HashSrcIP, ipType)
	if h.Fields&HashSPI != 0 && p.hasSPI {
		return binary.BigEndian.AppendUint32(b, p.spi), hashType | 3<<4 | 3<<6
	}
	wanted := [2]uint8{protocolTCP, protocolUDP}[h.L4]
	if !p.hasPorts || p.protocol != wanted {
		return b, hashType
	}
	b, portType := h.pair(b, p.srcPort[:], p.dstPort[:], HashSrcPort, [2]uint8{1, 2}[h.L4])
	return b, hashType | portType<<4
}

// pair appends the selected ones of two fields and gives their two bits of type
// each. A symmetric hash takes "a or b" and "a xor b" in place of a and b: that
// is what the kernel calls RXH_XFRM_SYM_OR_XOR, which mlx5's rx_hash_symmetric
// is since Linux 6.15. The older driver sets it for every Toeplitz hash. Assumed:
// it has no effect on a field whose counterpart is not selected.
func (h *Hash) pair(b, src, dst []byte, srcBit uint32, kind uint8) (input []byte, hashType uint8) {
	withSrc, withDst := h.Fields&srcBit != 0, h.Fields&(srcBit<<1) != 0
	if withSrc && withDst && h.Symmetric && h.Function == HashToeplitz {
		for i := range src {
			b = append(b, src[i]|dst[i])
		}
		for i := range src {
			b = append(b, src[i]^dst[i])
		}
		return b, kind | kind<<2
	}
	if withSrc {
		b, hashType = append(b, src...), kind
	}
	if withDst {
		b, hashType = append(b, dst...), hashType|kind<<2
	}
	return b, hashType
}

// toeplitz is the RSS hash of "RSS Hashing Types" in Microsoft's NDIS
// documentation. The input has at most 36 bytes.
func toeplitz(key *[40]byte, input []byte) (hash uint32) {
	for i, b := range input {
		// 39 bits from byte i on: one window of 32 bits for each bit of b.
		window := uint64(binary.BigEndian.Uint32(key[i:]))<<8 | uint64(key[i+4])
		for ; b != 0; b <<= 1 {
			if b&0x80 != 0 {
				hash ^= uint32(window >> 8)
			}
			window <<= 1
		}
	}
	return hash
}

// invertedXor8 is the exclusive or of all bytes, its bits in reverse. Assumed
// from the driver alone, which reverses the places of an RQT for it.
func invertedXor8(input []byte) uint32 {
	var x byte
	for _, b := range input {
		x ^= b
	}
	return uint32(bits.Reverse8(x))
}
