// SPDX-License-Identifier: Apache-2.0

package nv

import (
	"slices"

	"github.com/flexsteer/flexsteer/sim/prm"
)

// typeID is the type of a TLV, which is a group of settings: the class in bits
// 31:24, the port of a class for ports in 23:16, the index in the rest.
type typeID uint32

const classPort typeID = 1 << 24

func ofPort(index typeID, port int) typeID { return classPort | typeID(port)<<16 | index }

// The groups that the model has, as mstflint numbers them.
const (
	internalCPU typeID = 12
	flexParser  typeID = 14
	flexAbility typeID = 15 // what of flexParser the firmware has
	globalPCI   typeID = 128
	pciAbility  typeID = 129
	offloads    typeID = 266
	offAbility  typeID = 267
	linkType    typeID = 18 // of a port
)

// layout is what a group looks like.
type layout struct {
	name    string // of mstflint's database, and for a port with its number
	bytes   int
	version uint8
	tells   bool // what the firmware has: nobody sets it
}

var layouts = map[typeID]layout{
	internalCPU:         {name: "nv_internal_cpu_conf", bytes: 16},
	flexParser:          {name: "nv_flex_parser_conf", bytes: 20},
	flexAbility:         {name: "nv_flex_parser_cap", bytes: 16, tells: true},
	globalPCI:           {name: "nv_global_pci_conf", bytes: 12},
	pciAbility:          {name: "nv_global_pci_cap", bytes: 20, tells: true},
	offloads:            {name: "nv_sw_offload_conf", bytes: 8, version: 1},
	offAbility:          {name: "nv_sw_offload_cap", bytes: 4, tells: true},
	ofPort(linkType, 1): {name: "nv_vpi_link_type_p1", bytes: 4},
	ofPort(linkType, 2): {name: "nv_vpi_link_type_p2", bytes: 4},
}

// parameter is one setting of a group. Those that can be set have their names in
// capital letters.
type parameter struct {
	name  string
	group typeID
	field prm.Field
	usual uint64 // the default of most cards
}

// dwordBit is the field of width bits whose lowest is bit of the dword at byte.
func dwordBit(byteAt, bit, width int) prm.Field { return at(byteAt*8+32-bit-width, width) }

// The settings on which the parser depends.
const (
	ProfileName = "FLEX_PARSER_PROFILE_ENABLE"
	GraphName   = "PROG_PARSE_GRAPH"

	cpuModelName = "INTERNAL_CPU_MODEL"
)

var parameters = []parameter{
	{cpuModelName, internalCPU, dwordBit(0, 0, 4), embeddedCPU},
	{ProfileName, flexParser, dwordBit(0, 0, 8), 0},
	{GraphName, flexParser, dwordBit(0, 31, 1), 0},
	{"FLEX_IPV4_OVER_VXLAN_PORT", flexParser, dwordBit(8, 0, 16), 0},
	{"prog_parse_graph_supported", flexAbility, dwordBit(0, 0, 1), 0},
	{"flex_parser_profiles_supported", flexAbility, dwordBit(0, 24, 8), 0}, // profile 0 is the highest bit
	{"num_pfs_valid", globalPCI, dwordBit(0, 28, 1), 1},
	{"sriov_valid", globalPCI, dwordBit(0, 31, 1), 1},
	{"NUM_OF_VFS", globalPCI, dwordBit(4, 0, 16), 16},
	{"NUM_OF_PF", globalPCI, dwordBit(4, 16, 8), 2},
	{"SRIOV_EN", globalPCI, dwordBit(4, 31, 1), 1},
	{"num_pfs_supported", pciAbility, dwordBit(0, 28, 1), 1},
	{"max_num_pfs", pciAbility, dwordBit(4, 16, 8), 16},
	{"max_vfs_per_pf_valid", pciAbility, dwordBit(0, 31, 1), 1},
	{"max_vfs_per_pf", pciAbility, dwordBit(4, 0, 16), 127},
	{"sriov_support", pciAbility, dwordBit(4, 31, 1), 1},
	{"CQE_COMPRESSION", offloads, dwordBit(0, 0, 3), 0},
	{"UCTX_EN", offloads, dwordBit(0, 8, 1), 1},
	{"REAL_TIME_CLOCK_ENABLE", offloads, dwordBit(0, 10, 1), 0},
	{"uctx_supported", offAbility, dwordBit(0, 8, 1), 1},
	{"ptp_cyc2realtime_supported", offAbility, dwordBit(0, 19, 1), 1},
	{"LINK_TYPE_P1", ofPort(linkType, 1), dwordBit(0, 2, 2), ethernet},
	{"LINK_TYPE_P2", ofPort(linkType, 2), dwordBit(0, 2, 2), ethernet},
}

// Values of INTERNAL_CPU_MODEL and LINK_TYPE.
const (
	embeddedCPU = 1 // the card's own cores own it: DPU mode
	ethernet    = 2
)

func findParameter(name string) (parameter, bool) {
	i := slices.IndexFunc(parameters, func(p parameter) bool { return p.name == name })
	if i < 0 {
		return parameter{}, false
	}
	return parameters[i], true
}
