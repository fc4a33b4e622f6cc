// SPDX-License-Identifier: Apache-2.0

package steering

// RQT is a receive queue table, over which RSS spreads.
type RQT struct {
	MaxSize int      // a power of two; what ModifyRQT may grow to
	Queues  []uint32 // RQ numbers; a power of two of them
}

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
	HashSPI     uint32 = 1 << 4
)

// Hash is how a TIR computes its hash from a packet's outer headers.
type Hash struct {
	Function  HashFunction
	Symmetric bool     // both directions of a flow hash alike
	Key       [40]byte // of Toeplitz
	L3        uint8    // l3_prot_type: 0 IPv4, 1 IPv6
	L4        uint8    // l4_prot_type: 0 TCP, 1 UDP; counts only if ports are selected
	Fields    uint32   // Hash* bits
}

// TIR (transport interface receive) turns a packet that reached it into a queue.
type TIR struct {
	Indirect bool   // disp_type: through RQT, else to Queue
	Queue    uint32 // direct: inline_rqn
	RQT      uint32 // indirect
	Hash     Hash
}

// CreateRQT adds a receive queue table.
func (s *State) CreateRQT(id uint32, r RQT) error { return unfinished }

// ModifyRQT replaces all of its queues.
func (s *State) ModifyRQT(id uint32, queues []uint32) error { return unfinished }

// DestroyRQT takes an RQT away. It is InUse while a TIR uses it.
func (s *State) DestroyRQT(id uint32) error { return unfinished }

// CreateTIR adds a TIR.
func (s *State) CreateTIR(id uint32, t TIR) error { return unfinished }

// ModifyTIR replaces its hash; what a TIR leads to never changes.
func (s *State) ModifyTIR(id uint32, h Hash) error { return unfinished }

// DestroyTIR takes a TIR away. It is InUse while an entry leads to it.
func (s *State) DestroyTIR(id uint32) error { return unfinished }

// QueueUsers names the TIRs and RQTs that lead to a receive queue, as in "rqt 0x10"; none: the queue may go.
func (s *State) QueueUsers(rq uint32) []string { return nil }
