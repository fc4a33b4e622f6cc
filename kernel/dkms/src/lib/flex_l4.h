/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Copyright (c) 2026 The flexsteer authors */

#ifndef __MLX5_FLEX_L4_H__
#define __MLX5_FLEX_L4_H__

#include <linux/types.h>

struct mlx5_core_dev;
struct mlx5_flex_l4_node;

struct mlx5_flex_l4_node *mlx5_flex_l4_get(struct mlx5_core_dev *mdev, u8 proto);
void mlx5_flex_l4_put(struct mlx5_flex_l4_node *node);
void mlx5_flex_l4_flush(struct mlx5_core_dev *mdev);

u32 mlx5_flex_l4_sample_id(const struct mlx5_flex_l4_node *node);

#endif /* __MLX5_FLEX_L4_H__ */
