// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"github.com/flexsteer/flexsteer/sim/prm"
	"github.com/flexsteer/flexsteer/sim/steering"
)

// Limits that the capability pages tell and the registry keeps.
const (
	logMaxCQs              = 16
	logMaxRQs              = 16
	logMaxSQs              = 16
	logMaxTIRs             = 16
	logMaxTISs             = 16
	logMaxRQTs             = 14
	logMaxRQTSize          = 11
	logMaxPDs              = 16
	logMaxTransportDomains = 10
	maxEQs                 = 64
	maxFlowCounters        = 1 << 16
	logMaxEntries          = 16 // of all flow tables together
	logMaxWQ               = 15
	logMaxStride           = 9
	logMinStride           = 4
	logMaxMACs             = 10 // unicast list of the vport
	logMaxMulticast        = 14
	logMaxVLANs            = 12
	capabilityBytes        = 4096
)

// The pages of QUERY_HCA_CAP, by type; op_mod is the type shifted by one, plus current or maximum.
const (
	pageGeneral    = 0x00
	pageEthernet   = 0x01
	pageFlowTables = 0x07
	pageParseGraph = 0x1c
)

// Of each page there are two views.
const (
	maximum = 0
	current = 1
)

const capabilityPage = 16 // bytes into QUERY_HCA_CAP's reply and SET_HCA_CAP's input

var capabilityCommands = []command{
	{opcode: 0x100, name: "QUERY_HCA_CAP", in: bare, reply: 16 + capabilityBytes, when: enabled | running, run: (*function).queryCapabilities,
		modifiers: []uint16{
			pageGeneral<<1 | maximum, pageGeneral<<1 | current, pageEthernet<<1 | maximum, pageEthernet<<1 | current,
			pageFlowTables<<1 | maximum, pageFlowTables<<1 | current, pageParseGraph<<1 | maximum, pageParseGraph<<1 | current,
		}},
	{opcode: 0x109, name: "SET_HCA_CAP", in: form{size: 16 + capabilityBytes, uses: []prm.Field{at(16*8, capabilityBytes*8)}}, when: enabled,
		modifiers: []uint16{pageGeneral << 1}, run: (*function).setCapabilities},
	{opcode: 0x101, name: "QUERY_ADAPTER", in: bare, reply: 272, when: enabled | running, run: (*function).queryAdapter},
}

// capability is a field of a capability page and what is in it.
type capability struct {
	field prm.Field
	value uint64
}

func fill(page []byte, bit int, list ...capability) {
	for _, c := range list {
		c.field.At(bit).Set(page, c.value)
	}
}

func (f *function) queryCapabilities(c *call) error {
	view := int(c.modifier & 1)
	page := c.out[capabilityPage : capabilityPage+capabilityBytes]
	switch c.modifier >> 1 {
	case pageGeneral:
		copy(page, f.general)
		if view == maximum {
			copy(page, f.dev.generalPage())
		}
	case pageEthernet:
		fill(page, 0, ethernetCapabilities...)
	case pageFlowTables:
		fill(page, nicReceive, receiveTableCapabilities(f.dev.personality.FlowTables)...)
	case pageParseGraph:
		g := f.dev.personality.ParseGraph
		if g == nil {
			return badValue("the card offers no parse graph")
		}
		fill(page, 0, parseGraphCapabilities(*g)...)
	}
	return nil
}

// The general fields that a driver may change before INIT_HCA. Each may be set to what the maximum is or less.
var (
	logMaxQP       = at(0x09b, 5)
	pkeyTableSize  = at(0x190, 16)
	checksumMode   = at(0x210, 2)
	logUARPageSize = at(0x490, 16)
	logMACs        = at(0x3fb, 5)

	settable = []prm.Field{logMaxQP, pkeyTableSize, checksumMode, logUARPageSize, logMACs}
)

// setCapabilities takes over the fields that may be changed. All others must be as they are.
func (f *function) setCapabilities(c *call) error {
	page := c.in[capabilityPage : capabilityPage+capabilityBytes]
	fixed, limit := f.dev.generalPage(), f.dev.generalPage()
	for _, field := range settable {
		if v, most := field.Get(page), field.Get(limit); v > most {
			return badValue("capability at bit %#x: %d is more than %d", field.Bit, v, most)
		}
		field.Set(fixed, field.Get(page))
	}
	for i := range page {
		if page[i] != fixed[i] {
			return badValue("byte %#x of the general capabilities is %#02x and cannot be set to %#02x", i, fixed[i], page[i])
		}
	}
	f.general = fixed
	return nil
}

var (
	vendorID = at(0x148, 24)
	boardID  = 0x100 // byte of QUERY_ADAPTER's reply, 16 bytes
)

func (f *function) queryAdapter(c *call) error {
	c.put(vendorID, 0x2c9) // Mellanox's OUI
	copy(c.out[boardID:boardID+16], f.dev.personality.PSID)
	return nil
}

// generalPage is the general capabilities before the driver sets any.
func (d *Device) generalPage() []byte {
	page := make([]byte, capabilityBytes)
	fill(page, 0, generalCapabilities...)
	if d.personality.ParseGraph != nil {
		fill(page, 0, capability{generalObjects, 1 << objectParseGraph})
	}
	return page
}

var generalObjects = at(0x400, 64)

// generalCapabilities is what Linux looks at. All that is not here is off:
// striding receive queues, compressed completions, eswitch, LAG, RDMA, TLS,
// IPsec, tunnels, large receive offload, quality of service, debugging.
var generalCapabilities = []capability{
	{at(0x030, 16), 1}, // vhca_id
	{at(0x088, 8), 14}, // log_max_qp_sz
	{logMaxQP, 17},
	{at(0x0c8, 8), 22}, // log_max_cq_sz
	{at(0x0db, 5), logMaxCQs},
	{at(0x0e0, 8), 22}, // log_max_eq_sz
	{at(0x0ea, 6), 16}, // log_max_mkey
	{at(0x0fb, 1), 1},  // fast_teardown
	{at(0x0fc, 4), 6},  // log_max_eq
	{at(0x109, 7), 40}, // log_max_mrw_sz
	{at(0x110, 1), 1},  // force_teardown
	{at(0x11a, 6), 16}, // log_max_klm_list_size
	{at(0x160, 1), 1},  // end_pad
	{at(0x163, 1), 1},  // start_pad
	{at(0x170, 16), 3}, // gid_table_size
	{at(0x181, 1), 1},  // vport_counters
	{at(0x184, 1), 1},  // modify_rq_counter_set_id
	{at(0x1a6, 1), 1},  // nic_flow_table
	{at(0x1aa, 1), 1},  // pcam_reg
	{at(0x1b4, 1), 1},  // disable_link_up
	{at(0x1b6, 2), 1},  // port_type: Ethernet
	{at(0x1b8, 8), 1},  // num_ports
	{at(0x1c3, 5), 30}, // log_max_msg
	{at(0x1cc, 4), 8},  // max_tc
	{at(0x1fc, 4), 1},  // cqe_version
	{at(0x200, 1), 1},  // compact_address_vector
	{checksumMode, 3},
	{at(0x215, 1), 1},                  // sctr_data_cqe
	{at(0x21c, 1), 1},                  // eth_net_offloads
	{at(0x220, 1), 1},                  // cq_oi
	{at(0x222, 1), 1},                  // cq_moderation
	{at(0x223, 1), 1},                  // cq_period_mode_modify
	{at(0x22b, 1), 1},                  // cq_period_start_from_cqe
	{at(0x22c, 1), 1},                  // cd
	{at(0x24a, 6), 5},                  // uar_sz: 2^5 MiB
	{at(0x258, 8), 12},                 // log_pg_sz
	{at(0x260, 1), 1},                  // bf
	{at(0x261, 1), 1},                  // driver_version
	{at(0x26b, 5), 9},                  // log_bf_reg_size
	{at(0x290, 16), 1024},              // max_wqe_sz_sq
	{at(0x2b0, 16), 1 << logMaxStride}, // max_wqe_sz_rq
	{at(0x2c0, 16), maxFlowCounters >> 16},
	{at(0x323, 5), logMaxTransportDomains},
	{at(0x32b, 5), logMaxPDs},
	{at(0x340, 1), 1}, // nic_receive_steering_discard
	{at(0x345, 1), 1}, // invalid_command_count
	{at(0x350, 16), maxFlowCounters & 0xffff},
	{at(0x363, 5), logMaxRQs},
	{at(0x36b, 5), logMaxSQs},
	{at(0x373, 5), logMaxTIRs},
	{at(0x37b, 5), logMaxTISs},
	{at(0x380, 1), 1}, // basic_cyclic_rcv_wqe
	{at(0x38b, 5), logMaxRQTs},
	{at(0x393, 5), logMaxRQTSize},
	{at(0x3a3, 5), logMaxStride},
	{at(0x3ab, 5), logMinStride},
	{at(0x3b3, 5), 6}, // log_max_stride_sz_sq
	{at(0x3bb, 5), 6}, // log_min_stride_sz_sq
	{at(0x3db, 5), logMaxWQ},
	{at(0x3e1, 1), 1}, // disable_local_lb_uc
	{at(0x3e2, 1), 1}, // disable_local_lb_mc
	{at(0x3eb, 5), logMaxVLANs},
	{at(0x3f3, 5), logMaxMulticast},
	{logMACs, logMaxMACs},
	{at(0x470, 16), maxEQs},
	{at(0x4c0, 32), 1000},      // device_frequency_mhz
	{at(0x4e0, 32), 1_000_000}, // device_frequency_khz
	{at(0x520, 32), 1},         // num_of_uars_per_page
	{at(0x608, 8), 1},          // native_port_num
}

// ethernetCapabilities is per_protocol_networking_offload_caps.
var ethernetCapabilities = []capability{
	{at(0x00, 1), 1},             // csum_cap
	{at(0x01, 1), 1},             // vlan_cap
	{at(0x07, 1), 1},             // wqe_vlan_insert
	{at(0x08, 1), 1},             // self_lb_en_modifiable
	{at(0x0b, 5), 18},            // max_lso_cap: 2^18 bytes
	{at(0x12, 2), 2},             // wqe_inline_mode: none needed
	{at(0x14, 4), logMaxRQTSize}, // rss_ind_tbl_cap
	{at(0x1a, 1), 1},             // enhanced_multi_pkt_send_wqe
}

// nicReceive is where the receive tables' properties are in the flow table page, in bits.
const nicReceive = 0x200

// receiveTableCapabilities is flow_table_prop_layout.
func receiveTableCapabilities(t FlowTables) []capability {
	return []capability{
		{at(0x00, 1), 1}, // ft_support
		{at(0x02, 1), 1}, // flow_counter
		{at(0x03, 1), 1}, // flow_modify_en
		{at(0x04, 1), 1}, // modify_root
		{at(0x05, 1), 1}, // identified_miss_table_mode
		{at(0x06, 1), 1}, // flow_table_modify
		{at(0x22, 6), uint64(t.LogSize)},
		{at(0x38, 8), uint64(t.Levels)},
		{at(0x78, 8), uint64(t.LogTables)},
		{at(0x90, 8), uint64(t.LogCounters)},
		{at(0x98, 8), uint64(t.LogDestinations)},
		{at(0xb8, 8), logMaxEntries}, // log_max_flow
		{at(0x100, 4), 0xf},          // outer dmac, smac, ether_type, ip_version
		{at(0x104, 3), 7},            // outer first_prio, first_cfi, first_vid
		{at(0x10c, 4), 0xf},          // outer sip, dip, frag, ip_protocol
		{at(0x110, 2), 3},            // outer ip_ecn, ip_dscp
		{at(0x112, 5), 0x1f},         // outer udp and tcp ports, tcp_flags
	}
}

// parseGraphCapabilities is the page of the flex parser's parse graph.
func parseGraphCapabilities(g ParseGraph) []capability {
	return []capability{
		{at(0x00, 32), 1 << steering.ArcIP},     // node_in
		{at(0x40, 16), 1 << headerLengthFixed},  // header_length_mode
		{at(0x50, 16), 1 << sampleOffsetFixed},  // sample_offset_mode
		{at(0x60, 8), uint64(g.ArcsIn)},         // max_num_arc_in
		{at(0x70, 8), uint64(g.SamplesPerNode)}, // max_num_sample
		{at(0x80, 16), uint64(g.HeaderBytes)},   // max_base_header_length
	}
}
