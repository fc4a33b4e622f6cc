// SPDX-License-Identifier: Apache-2.0

package steering

import "slices"

// ArcIP is the arc node id of IPv4 and IPv6 together, the only one that the model knows.
const ArcIP uint8 = 3

// Node is a node of the programmable parse graph: a header behind IP of which
// some dwords are sampled. Its length is fixed and nothing is parsed behind it.
type Node struct {
	HeaderBytes int // header_length_base_value
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
	Value uint16 // IP protocol: compare_condition_value
}

type node struct {
	Node
	id uint32
}

// parsed is the IP protocols that the fixed parser follows, some of which only
// behind IPv6: a node must not take them away from it.
var parsed = map[uint16]string{
	0: "hop-by-hop options", 1: "ICMP", 4: "IPv4 in IP", 6: "TCP", 17: "UDP", 41: "IPv6 in IP", 43: "routing", 44: "fragment",
	47: "GRE", 50: "ESP", 51: "AH", 58: "ICMPv6", 59: "no next header", 60: "destination options", 135: "mobility",
	137: "MPLS in IP", 139: "HIP", 140: "Shim6",
}

// CreateNode adds a parse graph node and gives its samples their ids; see Node.
// A protocol that the fixed parser follows is a BadParam, one that another node
// follows is InUse.
func (s *State) CreateNode(id uint32, n Node) error {
	if s.nodes[id] != nil {
		return refuse(BadState, "parse graph node %#x exists already", id)
	}
	for _, check := range []func(uint32, Node) error{s.checkHeader, s.checkArcs} {
		if err := check(id, n); err != nil {
			return err
		}
	}
	if len(s.nodes) >= s.limits.Nodes {
		return refuse(NoResources, "parse graph node %#x: there are %d nodes already", id, s.limits.Nodes)
	}
	if free := s.FreeSamples(); len(n.Samples) > free {
		return refuse(NoResources, "parse graph node %#x: %d samples; %d of %d are free", id, len(n.Samples), free, s.limits.Samples)
	}
	made := &node{Node{n.HeaderBytes, slices.Clone(n.Samples), slices.Clone(n.In)}, id}
	for i := range made.Samples {
		made.Samples[i].ID = s.freeSample()
		s.samples[made.Samples[i].ID] = true
	}
	for _, arc := range made.In {
		s.byProto[arc.Value] = made
	}
	s.nodes[id] = made
	return nil
}

func (s *State) checkHeader(id uint32, n Node) error {
	if n.HeaderBytes < 1 || n.HeaderBytes > s.limits.HeaderBytes {
		return refuse(BadParam, "parse graph node %#x: a header of %d bytes; it must have 1 to %d", id, n.HeaderBytes, s.limits.HeaderBytes)
	}
	if len(n.Samples) > s.limits.SamplesPerNode {
		return refuse(BadParam, "parse graph node %#x: %d samples; a node may have %d", id, len(n.Samples), s.limits.SamplesPerNode)
	}
	for i, sample := range n.Samples {
		if sample.Offset < 0 || sample.Offset > n.HeaderBytes-4 {
			return refuse(BadParam, "parse graph node %#x: sample %d takes four bytes at %d of a header of %d bytes", id, i, sample.Offset, n.HeaderBytes)
		}
		if sample.ID != 0 {
			return refuse(BadParam, "parse graph node %#x: sample %d has the id %d; ids are the card's to give", id, i, sample.ID)
		}
	}
	return nil
}

func (s *State) checkArcs(id uint32, n Node) error {
	if len(n.In) < 1 || len(n.In) > s.limits.ArcsIn {
		return refuse(BadParam, "parse graph node %#x: %d input arcs; it must have 1 to %d", id, len(n.In), s.limits.ArcsIn)
	}
	for i, arc := range n.In {
		switch {
		case arc.Node != ArcIP:
			return refuse(BadParam, "parse graph node %#x: an arc from node type %d; only IP (%d) is modelled", id, arc.Node, ArcIP)
		case arc.Value > 0xff:
			return refuse(BadParam, "parse graph node %#x: IP protocol %d", id, arc.Value)
		case parsed[arc.Value] != "":
			return refuse(BadParam, "parse graph node %#x: the fixed parser follows IP protocol %d (%s)", id, arc.Value, parsed[arc.Value])
		case slices.Contains(n.In[:i], arc):
			return refuse(BadParam, "parse graph node %#x: two arcs for IP protocol %d", id, arc.Value)
		case s.byProto[arc.Value] != nil:
			return refuse(InUse, "parse graph node %#x: node %#x follows IP protocol %d already", id, s.byProto[arc.Value].id, arc.Value)
		}
	}
	return nil
}

// sampleIDs is how many ids there are: 0 to 7 name the card's flex parsers
// (DR_NUM_OF_FLEX_PARSERS in the driver).
const sampleIDs = 8

// freeSample is the highest free id, so that 0, which a driver that forgets to
// set the id would use, comes last.
func (s *State) freeSample() uint32 {
	id := uint32(max(sampleIDs, s.limits.Samples)) - 1
	for s.samples[id] {
		id--
	}
	return id
}

// FreeSamples is how many samples new nodes can have, all together.
func (s *State) FreeSamples() int { return s.limits.Samples - len(s.samples) }

// Node is a node with the ids of its samples.
func (s *State) Node(id uint32) (Node, error) {
	n, ok := s.nodes[id]
	if !ok {
		return Node{}, refuse(NotFound, "parse graph node %#x does not exist", id)
	}
	return Node{n.HeaderBytes, slices.Clone(n.Samples), slices.Clone(n.In)}, nil
}

// DestroyNode takes a node away. It is InUse while a group's criteria name a sample of it.
func (s *State) DestroyNode(id uint32) error {
	n, ok := s.nodes[id]
	if !ok {
		return refuse(NotFound, "parse graph node %#x does not exist", id)
	}
	for _, sample := range n.Samples {
		if g := s.groupThatSamples(sample.ID); g != nil {
			return refuse(InUse, "parse graph node %#x: group %d of table %d compares sample %d", id, g.id, g.table.id, sample.ID)
		}
	}
	for _, sample := range n.Samples {
		delete(s.samples, sample.ID)
	}
	for _, arc := range n.In {
		s.byProto[arc.Value] = nil
	}
	delete(s.nodes, id)
	return nil
}

// groupThatSamples is the first group, by id, whose criteria name a sample.
func (s *State) groupThatSamples(sample uint32) *group {
	for _, id := range sortedKeys(s.groups) {
		g := s.groups[id]
		if slices.ContainsFunc(g.compare.samples, func(m maskedSample) bool { return m.id == sample }) {
			return g
		}
	}
	return nil
}
