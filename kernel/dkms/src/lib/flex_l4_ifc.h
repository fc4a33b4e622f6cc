/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Copyright (c) 2026 The flexsteer authors */

#ifndef __MLX5_FLEX_L4_IFC_H__
#define __MLX5_FLEX_L4_IFC_H__

/* Layouts of the flex parser's parse graph, which mlx5_ifc.h does not define.
 * Offsets are in bits from the start of each layout, big endian.
 */

enum {
	MLX5_FLEX_L4_OBJ_TYPE	= 0x22,		/* FLEX_PARSE_GRAPH */
	MLX5_FLEX_L4_CAP_TYPE	= 0x1c,		/* QUERY_HCA_CAP page */
};

#define MLX5_FLEX_L4_OBJ_TYPES_CAP	BIT_ULL(MLX5_FLEX_L4_OBJ_TYPE)

enum {
	MLX5_FLEX_L4_ARC_NODE_IP	= 0x3,
};

enum {
	MLX5_FLEX_L4_LENGTH_FIXED	= 0x0,
	MLX5_FLEX_L4_OFFSET_FIXED	= 0x0,
	MLX5_FLEX_L4_TUNNEL_OUTER	= 0x0,
};

struct mlx5_ifc_flex_l4_cap_bits {
	u8	node_in[0x20];			/* bitmap of arc nodes */

	u8	node_out[0x20];			/* bitmap of arc nodes */

	u8	header_length_mode[0x10];	/* bitmap of modes */
	u8	sample_offset_mode[0x10];	/* bitmap of modes */

	u8	max_num_arc_in[0x8];
	u8	max_num_arc_out[0x8];
	u8	max_num_sample[0x8];
	u8	reserved_at_78[0x8];

	u8	max_base_header_length[0x10];	/* bytes */
	u8	reserved_at_90[0x70];
};

struct mlx5_ifc_flex_l4_sample_bits {
	u8	enable[0x1];
	u8	reserved_at_1[0x3];
	u8	offset_mode[0x4];
	u8	reserved_at_8[0x8];
	u8	field_offset[0x10];

	u8	reserved_at_20[0x4];
	u8	field_offset_shift[0x4];
	u8	field_base_offset[0x8];		/* bytes */
	u8	reserved_at_30[0xd];
	u8	tunnel_mode[0x3];

	u8	field_offset_mask[0x20];

	u8	field_id[0x20];			/* set by the device */
};

struct mlx5_ifc_flex_l4_arc_bits {
	u8	start_inner_tunnel[0x1];
	u8	reserved_at_1[0x7];
	u8	node[0x8];
	u8	compare_condition_value[0x10];

	u8	node_handle[0x20];

	u8	reserved_at_40[0x40];
};

struct mlx5_ifc_flex_l4_graph_bits {
	u8	modify_field_select[0x40];

	u8	reserved_at_40[0x20];

	u8	header_length_base_value[0x10];	/* bytes */
	u8	reserved_at_70[0x4];
	u8	header_length_field_shift[0x4];
	u8	reserved_at_78[0x4];
	u8	header_length_mode[0x4];

	u8	header_length_field_offset[0x10];
	u8	next_header_field_offset[0x10];

	u8	reserved_at_a0[0x1b];
	u8	next_header_field_size[0x5];

	u8	header_length_field_mask[0x20];

	u8	reserved_at_e0[0x20];

	struct mlx5_ifc_flex_l4_sample_bits sample_table[8];

	struct mlx5_ifc_flex_l4_arc_bits input_arc[8];

	struct mlx5_ifc_flex_l4_arc_bits output_arc[8];
};

struct mlx5_ifc_flex_l4_cmd_in_bits {
	struct mlx5_ifc_general_obj_in_cmd_hdr_bits hdr;
};

struct mlx5_ifc_flex_l4_cmd_out_bits {
	struct mlx5_ifc_general_obj_out_cmd_hdr_bits hdr;
};

struct mlx5_ifc_flex_l4_create_in_bits {
	struct mlx5_ifc_general_obj_in_cmd_hdr_bits hdr;
	struct mlx5_ifc_flex_l4_graph_bits graph;
};

struct mlx5_ifc_flex_l4_query_out_bits {
	struct mlx5_ifc_general_obj_out_cmd_hdr_bits hdr;
	struct mlx5_ifc_flex_l4_graph_bits graph;
};

#endif /* __MLX5_FLEX_L4_IFC_H__ */
