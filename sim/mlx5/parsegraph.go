// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"github.com/flexsteer/flexsteer/sim/prm"
	"github.com/flexsteer/flexsteer/sim/steering"
)

// objectParseGraph is the type of the one general object: a node of the flex
// parser's parse graph. Types are where other commands have their op_mod.
const objectParseGraph = 0x22

// A node, in bits from the start of CREATE_GENERAL_OBJECT and of
// QUERY_GENERAL_OBJECT's reply. mlx5_ifc.h does not have it; DPDK's
// mlx5_prm.h and the PRM call it parse_graph_flex.
const (
	nodeBit    = 0x80
	nodeBytes  = 16 + 416
	sampleBit  = nodeBit + 0x100
	arcBit     = nodeBit + 0x500
	slotBits   = 0x80 // of each sample and arc
	tableSlots = 8    // in the tables of samples and of input arcs
)

var (
	nodeHeaderBytes = at(0x060, 16).At(nodeBit)
	nodeLengthMode  = at(0x07c, 4).At(nodeBit)

	sampleEnable     = at(0x00, 1)
	sampleOffsetMode = at(0x04, 4)
	sampleBase       = at(0x28, 8) // field_base_offset, bytes
	sampleTunnelMode = at(0x3d, 3)
	sampleID         = at(0x60, 32)

	arcNode  = at(0x08, 8)
	arcValue = at(0x10, 16)
)

// The modes that are modelled are all 0.
const (
	headerLengthFixed = 0
	sampleOffsetFixed = 0
	tunnelOuter       = 0
)

var nodeForm = form{size: nodeBytes, uses: nodeFields()}

func nodeFields() []prm.Field {
	fields := []prm.Field{nodeHeaderBytes, nodeLengthMode}
	for i := range tableSlots {
		fields = append(fields, inside(sampleBit+i*slotBits, sampleEnable, sampleOffsetMode, sampleBase, sampleTunnelMode)...)
		fields = append(fields, inside(arcBit+i*slotBits, arcNode, arcValue)...)
	}
	return fields
}

var parseGraphCommands = []command{
	{opcode: 0xa00, name: "CREATE_GENERAL_OBJECT", in: nodeForm, modifiers: []uint16{objectParseGraph}, reply: 16, when: running,
		run: (*function).createNode, gives: gives("object", objectField)},
	{opcode: 0xa02, name: "QUERY_GENERAL_OBJECT", in: form{size: 16, uses: []prm.Field{objectField}}, modifiers: []uint16{objectParseGraph}, reply: nodeBytes,
		when: running, run: (*function).queryNode, shows: shows("object", objectField)},
	{opcode: 0xa03, name: "DESTROY_GENERAL_OBJECT", in: form{size: 16, uses: []prm.Field{objectField}}, modifiers: []uint16{objectParseGraph},
		when: running, run: (*function).destroyNode, shows: shows("object", objectField)},
}

// nodeOf reads a node.
func nodeOf(c *call) (n steering.Node, err error) {
	if mode := c.get(nodeLengthMode); mode != headerLengthFixed {
		return n, badValue("header_length_mode %d, the model has %d (fixed) only", mode, headerLengthFixed)
	}
	n.HeaderBytes = int(c.get(nodeHeaderBytes))
	for i := range tableSlots {
		bit := sampleBit + i*slotBits
		if !c.flag(sampleEnable.At(bit)) {
			if c.flag(at(bit, 64)) {
				return n, badValue("sample %d is not enabled, and not empty", i)
			}
			continue
		}
		if mode := c.get(sampleOffsetMode.At(bit)); mode != sampleOffsetFixed {
			return n, badValue("offset_mode %d of sample %d, the model has %d (fixed) only", mode, i, sampleOffsetFixed)
		}
		if mode := c.get(sampleTunnelMode.At(bit)); mode != tunnelOuter {
			return n, badValue("tunnel_mode %d of sample %d, the model has %d (outer) only", mode, i, tunnelOuter)
		}
		n.Samples = append(n.Samples, steering.Sample{Offset: int(c.get(sampleBase.At(bit)))})
	}
	for i := range tableSlots {
		bit := arcBit + i*slotBits
		if c.flag(at(bit, 64)) {
			n.In = append(n.In, steering.Arc{Node: uint8(c.get(arcNode.At(bit))), Value: uint16(c.get(arcValue.At(bit)))})
		}
	}
	return n, nil
}

func (f *function) createNode(c *call) error {
	if f.dev.personality.ParseGraph == nil {
		return badValue("the card offers no parse graph")
	}
	n, err := nodeOf(c)
	if err != nil {
		return err
	}
	number, err := f.create(parseNode, nil, func(number uint32) error { return f.steering.CreateNode(number, n) })
	c.put(objectField, uint64(number))
	return err
}

func (f *function) queryNode(c *call) error {
	number := c.number(objectField)
	if why := f.objects.need(ref{parseNode, uint64(number)}); why != nil {
		return why
	}
	n, err := f.steering.Node(number)
	if err != nil {
		return err
	}
	c.put(objectField, uint64(number))
	c.put(nodeHeaderBytes, uint64(n.HeaderBytes))
	for i, s := range n.Samples {
		bit := sampleBit + i*slotBits
		c.put(sampleEnable.At(bit), 1)
		c.put(sampleBase.At(bit), uint64(s.Offset))
		c.put(sampleID.At(bit), uint64(s.ID))
	}
	for i, a := range n.In {
		bit := arcBit + i*slotBits
		c.put(arcNode.At(bit), uint64(a.Node))
		c.put(arcValue.At(bit), uint64(a.Value))
	}
	return nil
}

func (f *function) destroyNode(c *call) error {
	number := c.number(objectField)
	return f.destroy(ref{parseNode, uint64(number)}, func() error { return f.steering.DestroyNode(number) })
}
