// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Copyright (c) 2026 The flexsteer authors */

/* ethtool's l4data on ip4 and ip6 flows: four bytes behind the IP header. */

#include <linux/ethtool.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/mlx5/driver.h>
#include <linux/mlx5/fs.h>
#include "mlx5_core.h"
#include "en/fs_flex_l4.h"

struct mlx5e_flex_l4_key {
	u32 mask;	/* 0: the flow has no l4data */
	u32 value;
	u8 proto_mask;
	u8 proto;
};

static struct mlx5e_flex_l4_key flex_l4_key(const struct ethtool_rx_flow_spec *fs)
{
	const struct ethtool_usrip4_spec *ip4_m = &fs->m_u.usr_ip4_spec;
	const struct ethtool_usrip4_spec *ip4 = &fs->h_u.usr_ip4_spec;
	const struct ethtool_usrip6_spec *ip6_m = &fs->m_u.usr_ip6_spec;
	const struct ethtool_usrip6_spec *ip6 = &fs->h_u.usr_ip6_spec;
	struct mlx5e_flex_l4_key key = {};

	switch (fs->flow_type & ~(FLOW_EXT | FLOW_MAC_EXT | FLOW_RSS)) {
	case IP_USER_FLOW:
		key.mask = be32_to_cpu(ip4_m->l4_4_bytes);
		key.value = be32_to_cpu(ip4->l4_4_bytes);
		key.proto_mask = ip4_m->proto;
		key.proto = ip4->proto;
		break;
	case IPV6_USER_FLOW:
		key.mask = be32_to_cpu(ip6_m->l4_4_bytes);
		key.value = be32_to_cpu(ip6->l4_4_bytes);
		key.proto_mask = ip6_m->l4_proto;
		key.proto = ip6->l4_proto;
		break;
	}

	return key;
}

/* A node behind a protocol that the parser already follows takes its traffic
 * away from the fixed parser: with one on GRE, the inner headers no longer
 * count for RSS and all tunnels end on one queue. IPv6 extension headers are
 * followed too, and a rule would never see what is behind them.
 */
static bool flex_l4_proto_is_parsed(u8 proto)
{
	switch (proto) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_ICMP:
	case IPPROTO_IGMP:
	case IPPROTO_IPIP:
	case IPPROTO_TCP:
	case IPPROTO_UDP:
	case IPPROTO_IPV6:
	case IPPROTO_ROUTING:
	case IPPROTO_FRAGMENT:
	case IPPROTO_GRE:
	case IPPROTO_ESP:
	case IPPROTO_AH:
	case IPPROTO_ICMPV6:
	case IPPROTO_NONE:
	case IPPROTO_DSTOPTS:
	case IPPROTO_SCTP:
	case IPPROTO_MH:
	case IPPROTO_MPLS:
	case 139: /* Host Identity Protocol, RFC 7401 */
	case 140: /* Shim6, RFC 5533 */
		return true;
	default:
		return false;
	}
}

/**
 * mlx5e_flex_l4_validate - check the l4data part of a flow
 * @mdev: the PCI function, for the log
 * @fs: the flow
 *
 * Return: 0 if the flow has no l4data or it can be matched, else -EINVAL with
 * a reason in the log. The device is not asked.
 */
int mlx5e_flex_l4_validate(struct mlx5_core_dev *mdev,
			   const struct ethtool_rx_flow_spec *fs)
{
	struct mlx5e_flex_l4_key key = flex_l4_key(fs);

	if (!key.mask)
		return 0;

	if (key.value & ~key.mask) {
		mlx5_core_warn(mdev, "l4data: value 0x%x has bits outside the mask 0x%x\n",
			       key.value, key.mask);
		return -EINVAL;
	}
	if (key.proto_mask != 0xff) {
		mlx5_core_warn(mdev, "l4data: needs an exact l4proto, not mask 0x%x\n",
			       key.proto_mask);
		return -EINVAL;
	}
	if (flex_l4_proto_is_parsed(key.proto)) {
		mlx5_core_warn(mdev, "l4data: not for protocol %u: the device follows it by itself, and a parser node would change how its traffic is spread\n",
			       key.proto);
		return -EINVAL;
	}

	return 0;
}

/**
 * mlx5e_flex_l4_get - the parser node that a flow needs
 * @mdev: the PCI function
 * @fs: a flow that mlx5e_flex_l4_validate() accepted
 *
 * Return: NULL if the flow has no l4data, else as mlx5_flex_l4_get().
 */
struct mlx5_flex_l4_node *
mlx5e_flex_l4_get(struct mlx5_core_dev *mdev,
		  const struct ethtool_rx_flow_spec *fs)
{
	struct mlx5e_flex_l4_key key = flex_l4_key(fs);

	return key.mask ? mlx5_flex_l4_get(mdev, key.proto) : NULL;
}

/**
 * mlx5e_flex_l4_match - add the l4data part of a flow to a match
 * @node: from mlx5e_flex_l4_get(); nothing is added for NULL
 * @fs: the same flow
 * @spec: the match, with match_criteria_enable set for everything else
 */
void mlx5e_flex_l4_match(const struct mlx5_flex_l4_node *node,
			 const struct ethtool_rx_flow_spec *fs,
			 struct mlx5_flow_spec *spec)
{
	struct mlx5e_flex_l4_key key = flex_l4_key(fs);
	void *misc4_c, *misc4_v, *outer_c;
	u32 sample_id;

	if (!node)
		return;

	sample_id = mlx5_flex_l4_sample_id(node);
	outer_c = MLX5_ADDR_OF(fte_match_param, spec->match_criteria, outer_headers);
	misc4_c = MLX5_ADDR_OF(fte_match_param, spec->match_criteria, misc_parameters_4);
	misc4_v = MLX5_ADDR_OF(fte_match_param, spec->match_value, misc_parameters_4);

	MLX5_SET(fte_match_set_misc4, misc4_c, prog_sample_field_value_0, key.mask);
	MLX5_SET(fte_match_set_misc4, misc4_v, prog_sample_field_value_0, key.value);
	MLX5_SET(fte_match_set_misc4, misc4_c, prog_sample_field_id_0, sample_id);
	MLX5_SET(fte_match_set_misc4, misc4_v, prog_sample_field_id_0, sample_id);

	/* A later fragment has payload where the first one has its ports. The
	 * value stays 0: not a fragment.
	 */
	MLX5_SET(fte_match_set_lyr_2_4, outer_c, frag, 1);

	spec->match_criteria_enable |= MLX5_MATCH_OUTER_HEADERS | MLX5_MATCH_MISC_PARAMETERS_4;
}
