// SPDX-License-Identifier: Apache-2.0

package steer

import "encoding/binary"

// RSS is the default path: a Toeplitz hash over the addresses, and the ports
// where the NIC parses them, looked up in an indirection table of queues. Make
// it with NewRSS.
type RSS struct {
	input HashInput
	table []uint32
	// hash holds, for each byte of the input and each of its values, the part
	// that it contributes to the hash (the hash is linear).
	hash [inputBytes][256]uint32
}

// HashInput is what a NIC makes of a packet before it hashes it.
type HashInput struct {
	Transform Transform
	SPI       bool // the SPI of ESP and AH packets takes part
}

// inputBytes is the longest input: two IPv6 addresses and two ports.
const inputBytes = 16 + 16 + 4

// verificationKey is the key of the published RSS test vectors. Drivers take a
// random one at each boot; a fixed one makes simulations repeatable.
var verificationKey = [40]byte{
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
	0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
	0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
}

// DefaultRSS spreads over queues 0 to queues-1 by turns, as
// ethtool_rxfh_indir_default does, with the key of the published test vectors.
func DefaultRSS(queues uint32, input HashInput) *RSS {
	size := uint32(128)
	for size < queues {
		size *= 2
	}
	table := make([]uint32, size)
	for i := range table {
		table[i] = uint32(i) % max(queues, 1)
	}
	return NewRSS(verificationKey, table, input)
}

// NewRSS hashes the input with key, and looks the low bits up in table, whose
// length is a power of two and at least 1.
func NewRSS(key [40]byte, table []uint32, input HashInput) *RSS {
	r := &RSS{input: input, table: table}
	for i := range inputBytes {
		var from [8]byte
		copy(from[:], key[i:])
		window := binary.BigEndian.Uint64(from[:])
		for v := range 256 {
			for bit := range 8 {
				if v&(0x80>>bit) != 0 {
					r.hash[i][v] ^= uint32(window << bit >> 32)
				}
			}
		}
	}
	return r
}

// Queue is the queue of p on the default path. What is not IP is on queue 0,
// whatever the table says, as mlx5 has it (en_fs.c: MLX5_TT_ANY leads to the
// direct TIR of channel 0).
func (r *RSS) Queue(p *Packet) uint32 {
	if p.Family == 0 {
		return 0
	}
	return r.table[r.Hash(p)&uint32(len(r.table)-1)]
}

// Hash is the Toeplitz hash of p: over the addresses, and for TCP and UDP that
// are not fragments also the ports, or the SPI where the NIC hashes it; 0 for what
// is not IP.
func (r *RSS) Hash(p *Packet) uint32 {
	n := 4
	switch p.Family {
	case IPv4:
	case IPv6:
		n = 16
	default:
		return 0
	}
	h := r.pair(0, p.Source[:n], p.Destination[:n])
	var word [4]byte
	switch {
	case p.HasL4 && (p.Protocol == 6 || p.Protocol == 17):
		binary.BigEndian.PutUint32(word[:], p.L4)
		h ^= r.pair(2*n, word[:2], word[2:])
	case r.input.SPI && p.HasSPI:
		binary.BigEndian.PutUint32(word[:], p.SPI)
		for i, b := range word {
			h ^= r.hash[2*n+i][b]
		}
	}
	return h
}

// pair is what a source and a destination of equal length contribute to the hash
// from byte at of its input.
func (r *RSS) pair(at int, source, destination []byte) (h uint32) {
	n := len(source)
	first, second := r.hash[at:at+n], r.hash[at+n:at+2*n]
	for i, s := range source {
		a, b := r.input.Transform.of(s, destination[i])
		h ^= first[i][a] ^ second[i][b]
	}
	return h
}
