// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Copyright (c) 2026 The flexsteer authors */

/* The device parses TCP, UDP and a few tunnels behind IP and stops at every
 * other protocol. One node of the flex parser's programmable parse graph
 * makes it go on for one more protocol: a header of four bytes entered from
 * IP, sampled whole. Flow table entries then match the sample by its id.
 *
 * A node has a single arc, so that adding or removing a protocol never
 * touches the node of another one. Nodes belong to the PCI function: all its
 * interfaces share them. They are kept in a table of this file, keyed by the
 * function, since a member in struct mlx5_core_dev would change the ABI
 * which other modules of a distribution's kernel are built against.
 */

#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mlx5/device.h>
#include <linux/mlx5/driver.h>
#include "mlx5_core.h"
#include "lib/flex_l4.h"
#include "lib/flex_l4_ifc.h"

/* Bytes behind the IP header that ethtool's l4data covers. */
#define MLX5_FLEX_L4_HDR_LEN 4

/* The capability page, as it is now and not as it could be. */
#define MLX5_FLEX_L4_CAP_OP_MOD ((MLX5_FLEX_L4_CAP_TYPE << 1) | HCA_CAP_OPMOD_GET_CUR)

/* No device is known to sample more. */
#define MLX5_FLEX_L4_NODES_LIMIT 8

struct mlx5_flex_l4_node {
	struct list_head list;
	struct mlx5_core_dev *mdev;
	u32 obj_id;
	u32 sample_id;
	unsigned int refcnt;
	u8 proto;
};

static LIST_HEAD(flex_l4_nodes);
/* Protects the table and orders the commands that change a node. Teardown
 * may run without RTNL, so RTNL can not do it.
 */
static DEFINE_MUTEX(flex_l4_lock);

static unsigned int flex_l4_max_nodes = 1;

/* A driver that refuses to load over a typing error would take the network
 * down with it, so numbers out of range are brought into it.
 */
static int flex_l4_max_nodes_set(const char *val, const struct kernel_param *kp)
{
	unsigned int wanted;
	int err;

	err = kstrtouint(val, 0, &wanted);
	if (err)
		return err;

	*(unsigned int *)kp->arg = clamp(wanted, 1U, MLX5_FLEX_L4_NODES_LIMIT + 0U);
	if (wanted != *(unsigned int *)kp->arg)
		pr_warn("mlx5_core: flex_l4_max_nodes=%u is not in 1-%u, using %u\n",
			wanted, MLX5_FLEX_L4_NODES_LIMIT,
			*(unsigned int *)kp->arg);
	return 0;
}

static const struct kernel_param_ops flex_l4_max_nodes_ops = {
	.set = flex_l4_max_nodes_set,
	.get = param_get_uint,
};

module_param_cb(flex_l4_max_nodes, &flex_l4_max_nodes_ops, &flex_l4_max_nodes, 0644);
MODULE_PARM_DESC(flex_l4_max_nodes,
		 "IP protocols that rules with l4data may use at once on one function. Valid range 1 - 8. Default=1");

u32 mlx5_flex_l4_sample_id(const struct mlx5_flex_l4_node *node)
{
	return node->sample_id;
}

/* A command that the firmware refused has its status in the output. An error
 * without one comes from the driver: no memory, a timeout, a lost device.
 */
static u8 flex_l4_status(const void *out)
{
	return MLX5_GET(general_obj_out_cmd_hdr, out, status);
}

static u32 flex_l4_syndrome(const void *out)
{
	return MLX5_GET(general_obj_out_cmd_hdr, out, syndrome);
}

static const char *flex_l4_cap_missing(const void *cap)
{
	if (!(MLX5_GET(flex_l4_cap, cap, node_in) & BIT(MLX5_FLEX_L4_ARC_NODE_IP)))
		return "arcs from IP";
	if (!(MLX5_GET(flex_l4_cap, cap, header_length_mode) & BIT(MLX5_FLEX_L4_LENGTH_FIXED)))
		return "headers of fixed length";
	if (!(MLX5_GET(flex_l4_cap, cap, sample_offset_mode) & BIT(MLX5_FLEX_L4_OFFSET_FIXED)))
		return "samples at a fixed offset";
	if (!MLX5_GET(flex_l4_cap, cap, max_num_arc_in))
		return "input arcs";
	if (!MLX5_GET(flex_l4_cap, cap, max_num_sample))
		return "samples";
	if (MLX5_GET(flex_l4_cap, cap, max_base_header_length) < MLX5_FLEX_L4_HDR_LEN)
		return "headers of four bytes";
	return NULL;
}

static int flex_l4_query_cap(struct mlx5_core_dev *mdev)
{
	u32 in[MLX5_ST_SZ_DW(query_hca_cap_in)] = {};
	int out_sz = MLX5_ST_SZ_BYTES(query_hca_cap_out);
	const char *missing;
	void *out;
	int err;

	out = kvzalloc(out_sz, GFP_KERNEL);
	if (!out)
		return -ENOMEM;

	MLX5_SET(query_hca_cap_in, in, op_mod, MLX5_FLEX_L4_CAP_OP_MOD);
	MLX5_SET(query_hca_cap_in, in, opcode, MLX5_CMD_OP_QUERY_HCA_CAP);

	err = mlx5_cmd_exec(mdev, in, sizeof(in), out, out_sz);
	if (err) {
		mlx5_core_warn(mdev, "l4data: query of the flex parser's capabilities failed, status 0x%x, err %d\n",
			       flex_l4_status(out), err);
		goto out;
	}

	missing = flex_l4_cap_missing(MLX5_ADDR_OF(query_hca_cap_out, out, capability));
	if (missing) {
		mlx5_core_warn(mdev, "l4data: the device's flex parser has no %s\n", missing);
		err = -EOPNOTSUPP;
	}
out:
	/* EINVAL would say that the rule is wrong, but no rule can work. */
	if (err == -EINVAL)
		err = -EOPNOTSUPP;
	kvfree(out);
	return err;
}

static int flex_l4_check_cap(struct mlx5_core_dev *mdev)
{
	if (!(MLX5_CAP_GEN_64(mdev, general_obj_types) & MLX5_FLEX_L4_OBJ_TYPES_CAP)) {
		mlx5_core_warn(mdev, "l4data: the device offers no parse graph; it needs the firmware settings FLEX_PARSER_PROFILE_ENABLE=4 and PROG_PARSE_GRAPH=1 and a firmware reset\n");
		return -EOPNOTSUPP;
	}

	return flex_l4_query_cap(mdev);
}

/* EAGAIN, ENOMEM, EINVAL or EBUSY, as the firmware sees fit, all mean
 * that what the node needs is taken: the samples are used up, or a user of the
 * parser outside this driver has the protocol. To the caller, whose rule is
 * right, that is one error.
 */
static int flex_l4_create_err(struct mlx5_core_dev *mdev, u8 proto, int err, const void *out)
{
	u8 status = flex_l4_status(out);

	if (!status)
		return err;

	if (status == MLX5_CMD_STAT_BAD_OP_ERR) {
		mlx5_core_warn(mdev, "l4data: the firmware does not know the command that makes a parser node\n");
		return -EOPNOTSUPP;
	}

	switch (err) {
	case -EAGAIN:
	case -ENOMEM:
	case -EINVAL:
	case -EBUSY:
		mlx5_core_warn(mdev, "l4data: no parser node for protocol %u, status 0x%x, syndrome 0x%x: the device's samples are used up or another user of the flex parser has this protocol\n",
			       proto, status, flex_l4_syndrome(out));
		return -EBUSY;
	default:
		mlx5_core_warn(mdev, "l4data: no parser node for protocol %u, status 0x%x, syndrome 0x%x, err %d\n",
			       proto, status, flex_l4_syndrome(out), err);
		return err;
	}
}

static void flex_l4_set_cmd(void *in, u16 opcode, u32 obj_id)
{
	MLX5_SET(general_obj_in_cmd_hdr, in, opcode, opcode);
	MLX5_SET(general_obj_in_cmd_hdr, in, obj_type, MLX5_FLEX_L4_OBJ_TYPE);
	MLX5_SET(general_obj_in_cmd_hdr, in, obj_id, obj_id);
}

static int flex_l4_create_obj(struct mlx5_core_dev *mdev, u8 proto, u32 *obj_id)
{
	u32 in[MLX5_ST_SZ_DW(flex_l4_create_in)] = {};
	u32 out[MLX5_ST_SZ_DW(flex_l4_cmd_out)] = {};
	void *graph, *sample, *arc;
	int err;

	graph = MLX5_ADDR_OF(flex_l4_create_in, in, graph);
	sample = MLX5_ADDR_OF(flex_l4_graph, graph, sample_table[0]);
	arc = MLX5_ADDR_OF(flex_l4_graph, graph, input_arc[0]);

	flex_l4_set_cmd(in, MLX5_CMD_OP_CREATE_GENERAL_OBJECT, 0);

	MLX5_SET(flex_l4_graph, graph, header_length_mode, MLX5_FLEX_L4_LENGTH_FIXED);
	MLX5_SET(flex_l4_graph, graph, header_length_base_value, MLX5_FLEX_L4_HDR_LEN);

	MLX5_SET(flex_l4_sample, sample, enable, 1);
	MLX5_SET(flex_l4_sample, sample, offset_mode, MLX5_FLEX_L4_OFFSET_FIXED);
	MLX5_SET(flex_l4_sample, sample, tunnel_mode, MLX5_FLEX_L4_TUNNEL_OUTER);

	MLX5_SET(flex_l4_arc, arc, node, MLX5_FLEX_L4_ARC_NODE_IP);
	MLX5_SET(flex_l4_arc, arc, compare_condition_value, proto);

	err = mlx5_cmd_exec(mdev, in, sizeof(in), out, sizeof(out));
	if (err)
		return flex_l4_create_err(mdev, proto, err, out);

	*obj_id = MLX5_GET(flex_l4_cmd_out, out, hdr.obj_id);
	return 0;
}

static int flex_l4_query_obj(struct mlx5_flex_l4_node *node)
{
	u32 in[MLX5_ST_SZ_DW(flex_l4_cmd_in)] = {};
	u32 out[MLX5_ST_SZ_DW(flex_l4_query_out)] = {};
	void *graph, *sample;
	int err;

	flex_l4_set_cmd(in, MLX5_CMD_OP_QUERY_GENERAL_OBJECT, node->obj_id);

	err = mlx5_cmd_exec(node->mdev, in, sizeof(in), out, sizeof(out));
	if (err) {
		mlx5_core_warn(node->mdev, "l4data: the firmware does not tell the sample of parser node 0x%x, protocol %u, status 0x%x, syndrome 0x%x, err %d\n",
			       node->obj_id, node->proto, flex_l4_status(out),
			       flex_l4_syndrome(out), err);
		return flex_l4_status(out) ? -EIO : err;
	}

	graph = MLX5_ADDR_OF(flex_l4_query_out, out, graph);
	sample = MLX5_ADDR_OF(flex_l4_graph, graph, sample_table[0]);
	node->sample_id = MLX5_GET(flex_l4_sample, sample, field_id);
	return 0;
}

static int flex_l4_destroy_obj(struct mlx5_flex_l4_node *node)
{
	u32 in[MLX5_ST_SZ_DW(flex_l4_cmd_in)] = {};
	u32 out[MLX5_ST_SZ_DW(flex_l4_cmd_out)] = {};

	flex_l4_set_cmd(in, MLX5_CMD_OP_DESTROY_GENERAL_OBJECT, node->obj_id);

	return mlx5_cmd_exec(node->mdev, in, sizeof(in), out, sizeof(out));
}

static void flex_l4_forget(struct mlx5_flex_l4_node *node)
{
	list_del(&node->list);
	kfree(node);
}

/* The rule that used the node is gone, so its caller can not be told of a
 * failure. A node that the firmware keeps stays in the table without users:
 * the next rule of its protocol takes it up again.
 */
static void flex_l4_destroy(struct mlx5_flex_l4_node *node)
{
	int err;

	err = flex_l4_destroy_obj(node);
	if (!err) {
		flex_l4_forget(node);
		return;
	}

	mlx5_core_warn(node->mdev, "l4data: the firmware keeps parser node 0x%x, err %d; the next rule for protocol %u uses it again\n",
		       node->obj_id, err, node->proto);
}

static void flex_l4_destroy_unused(struct mlx5_core_dev *mdev)
{
	struct mlx5_flex_l4_node *node, *tmp;

	list_for_each_entry_safe(node, tmp, &flex_l4_nodes, list)
		if (node->mdev == mdev && !node->refcnt)
			flex_l4_destroy(node);
}

static int flex_l4_check_room(struct mlx5_core_dev *mdev, u8 proto)
{
	unsigned int max = READ_ONCE(flex_l4_max_nodes);
	struct mlx5_flex_l4_node *node;
	unsigned int num = 0;
	u8 other = 0;

	list_for_each_entry(node, &flex_l4_nodes, list) {
		if (node->mdev != mdev)
			continue;
		other = node->proto;
		num++;
	}
	if (num < max)
		return 0;

	mlx5_core_warn(mdev, "l4data: no parser node for protocol %u: flex_l4_max_nodes=%u and %u in use, one by protocol %u\n",
		       proto, max, num, other);
	return -EBUSY;
}

static struct mlx5_flex_l4_node *flex_l4_create(struct mlx5_core_dev *mdev, u8 proto)
{
	struct mlx5_flex_l4_node *node;
	int err;

	err = flex_l4_check_cap(mdev);
	if (err)
		return ERR_PTR(err);

	flex_l4_destroy_unused(mdev);
	err = flex_l4_check_room(mdev, proto);
	if (err)
		return ERR_PTR(err);

	node = kzalloc(sizeof(*node), GFP_KERNEL);
	if (!node)
		return ERR_PTR(-ENOMEM);

	node->mdev = mdev;
	node->proto = proto;
	err = flex_l4_create_obj(mdev, proto, &node->obj_id);
	if (err) {
		kfree(node);
		return ERR_PTR(err);
	}

	list_add_tail(&node->list, &flex_l4_nodes);
	return node;
}

static struct mlx5_flex_l4_node *flex_l4_find(struct mlx5_core_dev *mdev, u8 proto)
{
	struct mlx5_flex_l4_node *node;

	list_for_each_entry(node, &flex_l4_nodes, list)
		if (node->mdev == mdev && node->proto == proto)
			return node;
	return NULL;
}

static struct mlx5_flex_l4_node *flex_l4_find_or_create(struct mlx5_core_dev *mdev, u8 proto)
{
	struct mlx5_flex_l4_node *node;
	int err;

	node = flex_l4_find(mdev, proto);
	if (!node)
		node = flex_l4_create(mdev, proto);
	if (IS_ERR(node) || node->refcnt)
		return node;

	err = flex_l4_query_obj(node);
	if (err) {
		flex_l4_destroy(node);
		return ERR_PTR(err);
	}
	return node;
}

/**
 * mlx5_flex_l4_get - have the device parse an IP protocol's first four bytes
 * @mdev: the PCI function
 * @proto: IP protocol number; the caller has checked that the device does not
 *	parse it by itself
 *
 * Return: the function's node for the protocol, with one more user, or
 * -EOPNOTSUPP if the device can not do it, -EBUSY if there is no free node or
 * the firmware gives none, -ENOMEM, or the error of a failed command. A reason
 * is in the log. Nodes of other protocols are not touched.
 */
struct mlx5_flex_l4_node *mlx5_flex_l4_get(struct mlx5_core_dev *mdev, u8 proto)
{
	struct mlx5_flex_l4_node *node;

	mutex_lock(&flex_l4_lock);
	node = flex_l4_find_or_create(mdev, proto);
	if (!IS_ERR(node))
		node->refcnt++;
	mutex_unlock(&flex_l4_lock);

	return node;
}

/**
 * mlx5_flex_l4_put - drop one user of a node
 * @node: from mlx5_flex_l4_get(), or NULL
 *
 * Flow table entries that match the node's sample must be gone before their
 * user is: the last one takes the node out of the device.
 */
void mlx5_flex_l4_put(struct mlx5_flex_l4_node *node)
{
	if (!node)
		return;

	mutex_lock(&flex_l4_lock);
	if (!--node->refcnt)
		flex_l4_destroy(node);
	mutex_unlock(&flex_l4_lock);
}

/**
 * mlx5_flex_l4_flush - forget the nodes without users
 * @mdev: the PCI function
 *
 * For the time when an interface lets go of the function: its firmware may be
 * reset next, and then an object id that was kept would name nothing, or
 * another object.
 */
void mlx5_flex_l4_flush(struct mlx5_core_dev *mdev)
{
	struct mlx5_flex_l4_node *node, *tmp;

	mutex_lock(&flex_l4_lock);
	flex_l4_destroy_unused(mdev);
	list_for_each_entry_safe(node, tmp, &flex_l4_nodes, list)
		if (node->mdev == mdev && !node->refcnt)
			flex_l4_forget(node);
	mutex_unlock(&flex_l4_lock);
}
