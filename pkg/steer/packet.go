// SPDX-License-Identifier: Apache-2.0

package steer

// Packet is what the parser of a NIC sees of a received frame.
type Packet struct {
	SourceMAC, DestinationMAC [6]byte
	Tagged                    bool
	VLAN                      uint16 // TCI of the tag, when Tagged
	EtherType                 uint16 // behind the tag

	Family      Family   // 0: not IP
	Source      [16]byte // as in AddrBits
	Destination [16]byte
	TOS         uint8
	Protocol    uint8 // IPv4 protocol, or the Next Header of the fixed IPv6 header

	L4    uint32 // the first four bytes behind the IP header, big endian
	HasL4 bool   // false for a later fragment, or a frame cut short before that
}

// Verdict is where a packet goes.
type Verdict struct {
	Matched bool // false: no rule took it, and Queue is the default path's (RSS)
	Loc     Loc  // the rule that decided, when Matched
	Drop    bool
	Queue   uint32 // when not Drop
}

// RSS is the default path: a Toeplitz hash over the addresses, and the ports
// where the NIC parses them, looked up in an indirection table of queues.
type RSS struct {
	Key   [40]byte
	Table []uint32
}
