/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Just enough of the driver around the patched en_fs_ethtool.c, of any of the
 * supported kernels, to run it in user space: flow tables that keep what they
 * are given, and receive resources that know a queue's number.
 */

#ifndef FAKE_EN_H
#define FAKE_EN_H

#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>
#include "fake_kernel.h"

#define ntohs(x)	be16toh(x)
#define netdev_err(dev, ...)	((void)(dev), fake_log(__VA_ARGS__))
#define netdev_warn(dev, ...)	((void)(dev), fake_log(__VA_ARGS__))

#ifndef ENOTSUPP
#define ENOTSUPP 524
#endif

#define VLAN_VID_MASK	0x0fff
#define VLAN_N_VID	4096

static inline bool ipv6_addr_any(const struct in6_addr *a)
{
	static const struct in6_addr none;

	return !memcmp(a, &none, sizeof(none));
}

static inline bool is_zero_ether_addr(const u8 *a) { return !memcmp(a, "\0\0\0\0\0\0", 6); }
static inline void ether_addr_copy(void *to, const u8 *from) { memcpy(to, from, 6); }

/* Flow steering */

struct mlx5_flow_namespace;
struct mlx5_flow_handle;

struct mlx5_flow_table { int prio; };

struct mlx5_flow_table_attr {
	int prio;
	int max_fte;
	struct { int max_num_groups; } autogroup;
};

struct mlx5_flow_act {
	u32 action;
	u32 flags;
};

struct mlx5_flow_destination {
	int type;
	u32 tir_num;
};

enum { FLOW_ACT_NO_APPEND = 1 };
enum { MLX5_FLOW_NAMESPACE_ETHTOOL = 7 };
enum { MLX5_FLOW_CONTEXT_ACTION_DROP = 2, MLX5_FLOW_CONTEXT_ACTION_FWD_DEST = 4 };
enum { MLX5_FLOW_DESTINATION_TYPE_TIR = 2 };
enum { MLX5_FS_DEFAULT_FLOW_TAG = 0 };

#define MLX5_CAP_FLOWTABLE(dev, cap)	16

struct mlx5_flow_namespace *mlx5_get_flow_namespace(struct mlx5_core_dev *dev, int type);
struct mlx5_flow_table *mlx5_create_auto_grouped_flow_table(struct mlx5_flow_namespace *ns,
							    struct mlx5_flow_table_attr *attr);
int mlx5_destroy_flow_table(struct mlx5_flow_table *ft);
struct mlx5_flow_handle *mlx5_add_flow_rules(struct mlx5_flow_table *ft,
					     const struct mlx5_flow_spec *spec,
					     struct mlx5_flow_act *act,
					     struct mlx5_flow_destination *dest, int num);
void mlx5_del_flow_rules(struct mlx5_flow_handle *rule);

/* Receive side scaling: not used by these tests, but there to compile. */

struct mlx5e_rss;
struct mlx5e_rx_res;
struct netlink_ext_ack;
struct mlx5e_packet_merge_param { int type; };
struct ethtool_rxfh_fields { u32 data, flow_type, rss_context; };

enum {
	MLX5_TT_IPV4_TCP, MLX5_TT_IPV6_TCP, MLX5_TT_IPV4_UDP, MLX5_TT_IPV6_UDP, MLX5_TT_IPV4_IPSEC_AH,
	MLX5_TT_IPV6_IPSEC_AH, MLX5_TT_IPV4_IPSEC_ESP, MLX5_TT_IPV6_IPSEC_ESP, MLX5_TT_IPV4, MLX5_TT_IPV6,
};

enum {
	MLX5_HASH_FIELD_SEL_SRC_IP = 1, MLX5_HASH_FIELD_SEL_DST_IP = 2,
	MLX5_HASH_FIELD_SEL_L4_SPORT = 4, MLX5_HASH_FIELD_SEL_L4_DPORT = 8,
};

#define mlx5e_rx_res_rss_get(res, context)		((void)(res), (void)(context), (struct mlx5e_rss *)NULL)
#define mlx5e_rss_obtain_tirn(rss, tt, merge, inner, tirn)	((void)(merge), *(tirn) = 0, 0)
#define mlx5e_rss_refcnt_inc(rss)			((void)(rss))
#define mlx5e_rss_refcnt_dec(rss)			((void)(rss))
#define mlx5e_rx_res_rss_index(res, rss)		((void)(rss), -ENOENT)
#define mlx5e_rx_res_rss_set_hash_fields(...)		fake_hash_fields(__VA_ARGS__, 0)
#define mlx5e_rx_res_rss_get_hash_fields(...)		fake_hash_fields(__VA_ARGS__, 0)
#define mlx5e_rx_res_get_tirn_direct(res, queue)	(100 + (u32)(queue))

static inline int fake_hash_fields(struct mlx5e_rx_res *res, ...)
{
	(void)res;
	return 0;
}

struct mlx5e_ethtool_steering;

struct mlx5e_flow_steering {
	struct mlx5_core_dev *mdev;
	struct mlx5e_ethtool_steering *ethtool;
};

static inline struct mlx5e_ethtool_steering *mlx5e_fs_get_ethtool(struct mlx5e_flow_steering *fs)
{
	return fs->ethtool;
}

static inline struct mlx5_core_dev *mlx5e_fs_get_mdev(struct mlx5e_flow_steering *fs)
{
	return fs->mdev;
}

struct mlx5e_priv {
	struct mlx5_core_dev *mdev;
	struct net_device *netdev;
	struct mlx5e_flow_steering *fs;
	struct mlx5e_rx_res *rx_res;
	struct mutex state_lock;
	struct {
		struct {
			u64 num_channels;
			struct mlx5e_packet_merge_param packet_merge;
		} params;
	} channels;
};

int mlx5e_ethtool_set_rxnfc(struct mlx5e_priv *netdev, struct ethtool_rxnfc *request);
void mlx5e_ethtool_init_steering(struct mlx5e_flow_steering *steering);
int mlx5e_ethtool_alloc(struct mlx5e_ethtool_steering **made);
int mlx5e_ethtool_get_rxnfc(struct mlx5e_priv *netdev, struct ethtool_rxnfc *request, u32 *locs);
void mlx5e_ethtool_cleanup_steering(struct mlx5e_flow_steering *steering);
void mlx5e_ethtool_free(struct mlx5e_ethtool_steering *made);

#endif /* FAKE_EN_H */
