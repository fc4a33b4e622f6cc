/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Copyright (c) 2026 The flexsteer authors */

#ifndef __MLX5E_FS_FLEX_L4_H__
#define __MLX5E_FS_FLEX_L4_H__

#include "lib/flex_l4.h"

struct ethtool_rx_flow_spec;
struct mlx5_flow_spec;

int mlx5e_flex_l4_validate(struct mlx5_core_dev *mdev,
			   const struct ethtool_rx_flow_spec *fs);
struct mlx5_flex_l4_node *
mlx5e_flex_l4_get(struct mlx5_core_dev *mdev,
		  const struct ethtool_rx_flow_spec *fs);
void mlx5e_flex_l4_match(const struct mlx5_flex_l4_node *node,
			 const struct ethtool_rx_flow_spec *fs,
			 struct mlx5_flow_spec *spec);

#endif /* __MLX5E_FS_FLEX_L4_H__ */
