// SPDX-License-Identifier: Apache-2.0

package steering

// ArcIP is the arc node id of IPv4 and IPv6 together, the only one that the model knows.
const ArcIP uint8 = 3

// Node is a node of the programmable parse graph: a header behind IP of which
// some dwords are sampled. Its next header is never parsed.
type Node struct {
	HeaderBytes uint16 // header_length_base_value, with the fixed header length mode
	Samples     []Sample
	In          []Arc
}

// Sample is four bytes of a node's header, at a fixed offset.
type Sample struct {
	Offset int    // bytes from the header's start: field_base_offset
	ID     uint32 // field_id: given by CreateNode, what misc4 of criteria and entries names
}

// Arc leads into a node.
type Arc struct {
	Node  uint8  // ArcIP
	Value uint16 // IP protocol
}

// CreateNode adds a parse graph node and gives its samples their ids; see Node.
// A protocol that the fixed parser or another node follows is refused.
func (s *State) CreateNode(id uint32, n Node) error { return unfinished }

// Node is a node with the ids of its samples.
func (s *State) Node(id uint32) (Node, error) { return Node{}, unfinished }

// DestroyNode takes a node away. It is InUse while a group's criteria name a sample of it.
func (s *State) DestroyNode(id uint32) error { return unfinished }
