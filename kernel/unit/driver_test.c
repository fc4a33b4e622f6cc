// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The patched en_fs_ethtool.c of a kernel together with our files, against the
 * fake command channel and flow tables that remember: what ethtool's ioctl
 * does to the device, and in which order.
 */

#include "en.h"
#include "fake_fw.h"
#include "harness.h"

int checks_failed;

extern const struct kernel_param fake_param_flex_l4_max_nodes;

static struct fake_fw fw;
static struct mlx5_core_dev dev = { .fw = &fw };

/* A netdev of the function; there are two. */
struct netdev {
	struct mlx5e_flow_steering fs;
	struct mlx5e_priv priv;
};

static struct netdev one, two;

/* Flow tables */

struct mlx5_flow_handle {
	struct mlx5_flow_spec spec;
	u32 action;
	u32 tir;
	int prio;
	struct fake_fw_node *node;	/* whose sample it matches */
};

static struct mlx5_flow_handle *entries[64];
static int tables;
static int table_error, entry_error;	/* for the next call */

struct mlx5_flow_namespace *mlx5_get_flow_namespace(struct mlx5_core_dev *d, int type)
{
	CHECK_EQ(type, MLX5_FLOW_NAMESPACE_ETHTOOL);
	return (void *)d;
}

struct mlx5_flow_table *mlx5_create_auto_grouped_flow_table(struct mlx5_flow_namespace *ns,
							    struct mlx5_flow_table_attr *attr)
{
	struct mlx5_flow_table *ft;
	int err = table_error;

	(void)ns;
	table_error = 0;
	if (err)
		return ERR_PTR(err);
	CHECK(attr->prio >= 0 && attr->prio < 11);
	ft = calloc(1, sizeof(*ft));
	ft->prio = attr->prio;
	tables++;
	return ft;
}

int mlx5_destroy_flow_table(struct mlx5_flow_table *ft)
{
	tables--;
	free(ft);
	return 0;
}

struct mlx5_flow_handle *mlx5_add_flow_rules(struct mlx5_flow_table *ft,
					     const struct mlx5_flow_spec *spec,
					     struct mlx5_flow_act *act,
					     struct mlx5_flow_destination *dest, int num)
{
	struct mlx5_flow_handle *entry;
	int err = entry_error;

	entry_error = 0;
	if (err)
		return ERR_PTR(err);
	for (size_t i = 0; i < MLX5_ST_SZ_DW(fte_match_param); i++)
		if (spec->match_value[i] & ~spec->match_criteria[i])
			return ERR_PTR(-EINVAL);

	entry = calloc(1, sizeof(*entry));
	*entry = (struct mlx5_flow_handle){
		.spec = *spec, .action = act->action, .tir = num ? dest->tir_num : 0, .prio = ft->prio,
	};
	if (spec->match_criteria_enable & 0x20) {
		entry->node = fake_fw_sample(&fw, be32_to_cpu(spec->match_criteria[81]));
		CHECK(entry->node);
		entry->node->matches++;
	}
	for (int i = 0; i < 64; i++) {
		if (!entries[i]) {
			entries[i] = entry;
			return entry;
		}
	}
	abort();
}

void mlx5_del_flow_rules(struct mlx5_flow_handle *entry)
{
	if (entry->node)
		entry->node->matches--;
	for (int i = 0; i < 64; i++)
		if (entries[i] == entry)
			entries[i] = NULL;
	free(entry);
}

static int live_entries(void)
{
	int n = 0;

	for (int i = 0; i < 64; i++)
		n += !!entries[i];
	return n;
}

static const struct mlx5_flow_handle *only_entry(void)
{
	CHECK_EQ(live_entries(), 1);
	for (int i = 0; i < 64; i++)
		if (entries[i])
			return entries[i];
	abort();
}

/* What a person does */

static void set_max_nodes(const char *n)
{
	fake_param_flex_l4_max_nodes.ops->set(n, &fake_param_flex_l4_max_nodes);
}

static void up(struct netdev *n)
{
	*n = (struct netdev){ .fs.mdev = &dev };
	n->priv.mdev = &dev;
	n->priv.fs = &n->fs;
	n->priv.channels.params.num_channels = 16;
	CHECK_EQ(mlx5e_ethtool_alloc(&n->fs.ethtool), 0);
	mlx5e_ethtool_init_steering(&n->fs);
}

static void detach(struct netdev *n) { mlx5e_ethtool_cleanup_steering(&n->fs); }

static void down(struct netdev *n)
{
	detach(n);
	mlx5e_ethtool_free(n->fs.ethtool);
}

static void before(void)
{
	fake_fw_init(&fw);
	dev.general_obj_types = 1ULL << 0x22;
	set_max_nodes("1");
	tables = 0;
	up(&one);
	up(&two);
	fake_log_clear();
}

static void after(void)
{
	fake_zalloc_fail(0);
	down(&one);
	down(&two);
	CHECK_EQ(fake_fw_live(&fw), 0);
	CHECK_EQ(live_entries(), 0);
	CHECK_EQ(fw.violations, 0);
}

static struct ethtool_rx_flow_spec flow(u32 type, u8 proto, u32 value, u32 mask)
{
	struct ethtool_rx_flow_spec fs = { .flow_type = type, .ring_cookie = 3 };

	if (type == IP_USER_FLOW) {
		fs.h_u.usr_ip4_spec.ip_ver = ETH_RX_NFC_IP4;
		fs.h_u.usr_ip4_spec.proto = proto;
		fs.m_u.usr_ip4_spec.proto = 0xff;
		fs.h_u.usr_ip4_spec.l4_4_bytes = cpu_to_be32(value);
		fs.m_u.usr_ip4_spec.l4_4_bytes = cpu_to_be32(mask);
	} else {
		fs.h_u.usr_ip6_spec.l4_proto = proto;
		fs.m_u.usr_ip6_spec.l4_proto = 0xff;
		fs.h_u.usr_ip6_spec.l4_4_bytes = cpu_to_be32(value);
		fs.m_u.usr_ip6_spec.l4_4_bytes = cpu_to_be32(mask);
	}
	return fs;
}

static int insert_flow(struct netdev *n, u32 loc, struct ethtool_rx_flow_spec fs)
{
	struct ethtool_rxnfc cmd = { .cmd = ETHTOOL_SRXCLSRLINS, .fs = fs };

	cmd.fs.location = loc;
	return mlx5e_ethtool_set_rxnfc(&n->priv, &cmd);
}

static int insert(struct netdev *n, u32 loc, u8 proto, u32 value)
{
	return insert_flow(n, loc, flow(IP_USER_FLOW, proto, value, 0xf));
}

static int delete(struct netdev *n, u32 loc)
{
	struct ethtool_rxnfc cmd = { .cmd = ETHTOOL_SRXCLSRLDEL, .fs.location = loc };

	return mlx5e_ethtool_set_rxnfc(&n->priv, &cmd);
}

static u32 read_back(struct netdev *n, u32 loc)
{
	struct ethtool_rxnfc info = { .cmd = ETHTOOL_GRXCLSRULE, .fs.location = loc };

	return mlx5e_ethtool_get_rxnfc(&n->priv, &info, NULL) ? ~0U :
	       be32_to_cpu(info.fs.h_u.usr_ip4_spec.l4_4_bytes);
}

/* Tests */

static void rule_becomes_an_entry(void)
{
	const struct mlx5_flow_handle *e;

	CHECK_EQ(insert(&one, 17, 253, 3), 0);
	e = only_entry();
	CHECK_EQ(e->spec.match_criteria_enable, 0x21);
	CHECK_EQ(be32_to_cpu(e->spec.match_criteria[1]), 0x0000ffff);	/* ethertype */
	CHECK_EQ(be32_to_cpu(e->spec.match_value[1]), 0x00000800);
	CHECK_EQ(be32_to_cpu(e->spec.match_criteria[4]), 0xff002000);	/* protocol, frag */
	CHECK_EQ(be32_to_cpu(e->spec.match_value[4]), 0xfd000000);
	CHECK_EQ(be32_to_cpu(e->spec.match_criteria[80]), 0xf);
	CHECK_EQ(be32_to_cpu(e->spec.match_value[80]), 3);
	CHECK_EQ(be32_to_cpu(e->spec.match_value[81]), 0xd000);
	CHECK_EQ(e->tir, 103);
	CHECK_EQ(e->prio, 4);	/* three tuples of seven */
	CHECK_EQ(read_back(&one, 17), 3);
	CHECK_EQ(delete(&one, 17), 0);
	CHECK_EQ(fake_fw_live(&fw), 0);
	CHECK_EQ(tables, 0);
}

static void ip6_and_drop(void)
{
	struct ethtool_rx_flow_spec fs = flow(IPV6_USER_FLOW, 253, 3, 0xf);
	const struct mlx5_flow_handle *e;

	fs.ring_cookie = RX_CLS_FLOW_DISC;
	CHECK_EQ(insert_flow(&one, 1, fs), 0);
	e = only_entry();
	CHECK_EQ(be32_to_cpu(e->spec.match_value[1]), 0x000086dd);
	CHECK_EQ(be32_to_cpu(e->spec.match_value[80]), 3);
	CHECK_EQ(e->action, MLX5_FLOW_CONTEXT_ACTION_DROP);
}

static void all_fields_fit_the_tables(void)
{
	static const u32 types[] = { IP_USER_FLOW, IPV6_USER_FLOW };

	for (int i = 0; i < 2; i++) {
		struct ethtool_rx_flow_spec fs = flow(types[i] | FLOW_EXT | FLOW_MAC_EXT, 253, 0, 0);

		fs = flow(types[i], 253, 0x9c401f90, 0xffffffff);
		fs.flow_type |= FLOW_EXT | FLOW_MAC_EXT;
		if (types[i] == IP_USER_FLOW) {
			fs.m_u.usr_ip4_spec.ip4src = fs.m_u.usr_ip4_spec.ip4dst = ~0U;
		} else {
			memset(fs.m_u.usr_ip6_spec.ip6src, 0xff, 16);
			memset(fs.m_u.usr_ip6_spec.ip6dst, 0xff, 16);
		}
		fs.m_ext.vlan_tci = cpu_to_be16(0xfff);
		fs.h_ext.vlan_tci = cpu_to_be16(7);
		memset(fs.m_ext.h_dest, 0xff, 6);
		CHECK_EQ(insert_flow(&one, i, fs), 0);
		CHECK_EQ(only_entry()->prio, 0);
		CHECK_EQ(delete(&one, i), 0);
	}
}

static void other_rules_send_no_command(void)
{
	struct ethtool_rx_flow_spec udp = { .flow_type = UDP_V4_FLOW, .ring_cookie = 1 };

	udp.h_u.udp_ip4_spec.pdst = cpu_to_be16(4000);
	udp.m_u.udp_ip4_spec.pdst = 0xffff;
	CHECK_EQ(insert_flow(&one, 0, udp), 0);
	CHECK_EQ(insert_flow(&one, 1, flow(IP_USER_FLOW, 47, 0, 0)), 0);
	CHECK_EQ(live_entries(), 2);
	for (int i = 0; i < 64; i++)
		if (entries[i])
			CHECK_EQ(entries[i]->spec.match_criteria_enable, 1);
	CHECK_EQ(delete(&one, 0) | delete(&one, 1), 0);
	detach(&two);
	CHECK_EQ(fw.commands, 0);
}

static void replacement_keeps_the_node(void)
{
	CHECK_EQ(insert(&one, 17, 253, 3), 0);
	CHECK_EQ(insert(&one, 17, 253, 4), 0);
	CHECK_EQ(be32_to_cpu(only_entry()->spec.match_value[80]), 4);
	CHECK_EQ(fw.commands, 3);
	CHECK_EQ(fake_fw_live(&fw), 1);
}

static void refused_replacement_keeps_the_rule(void)
{
	struct ethtool_rx_flow_spec far = flow(IP_USER_FLOW, 253, 3, 0xf);

	far.ring_cookie = 16;
	CHECK_EQ(insert(&one, 17, 253, 3), 0);
	CHECK_EQ(insert(&one, 17, 254, 4), -EBUSY);
	CHECK_EQ(insert(&one, 17, 47, 4), -EINVAL);
	CHECK_EQ(insert(&one, 17, 253, 0x14), -EINVAL);
	CHECK_EQ(insert_flow(&one, 17, far), -EINVAL);
	CHECK_EQ(read_back(&one, 17), 3);
	CHECK_EQ(fw.commands, 4);	/* the fourth asks for the capabilities again */
	CHECK_EQ(be32_to_cpu(only_entry()->spec.match_value[80]), 3);
}

static void refused_entry_gives_the_node_back(void)
{
	entry_error = -EINVAL;
	CHECK_EQ(insert(&one, 17, 253, 3), -EINVAL);
	CHECK_EQ(fake_fw_live(&fw), 0);
	CHECK_EQ(tables, 0);

	/* Beside a live rule of the protocol, its node stays. */
	CHECK_EQ(insert(&one, 18, 253, 5), 0);
	entry_error = -EINVAL;
	CHECK_EQ(insert(&one, 17, 253, 3), -EINVAL);
	CHECK_EQ(fake_fw_live(&fw), 1);
	CHECK_EQ(read_back(&one, 18), 5);
}

static void refused_table_gives_the_node_back(void)
{
	table_error = -ENOMEM;
	CHECK_EQ(insert(&one, 17, 253, 3), -ENOMEM);
	CHECK_EQ(fake_fw_live(&fw), 0);
}

static void no_memory_anywhere(void)
{
	int nth;

	for (nth = 1; nth < 20; nth++) {
		int err;

		fake_zalloc_fail(nth);
		err = insert(&one, 17, 253, 3);
		fake_zalloc_fail(0);
		if (!err)
			break;
		CHECK_EQ(err, -ENOMEM);
		CHECK_EQ(fake_fw_live(&fw), 0);
		CHECK_EQ(live_entries(), 0);
	}
	CHECK(nth > 4 && nth < 20);
}

static void every_command_can_fail(void)
{
	static const u16 opcodes[] = { 0x100, 0xa00, 0xa02 };

	set_max_nodes("2");
	CHECK_EQ(insert(&one, 1, 254, 1), 0);
	for (int i = 0; i < 3; i++) {
		fw.faults[0] = (struct fake_fw_fault){ opcodes[i], 1, .status = 4 };
		CHECK(insert(&one, 2, 253, 3) < 0);
		CHECK_EQ(fake_fw_live(&fw), 1);
		CHECK_EQ(live_entries(), 1);
		CHECK_EQ(insert(&one, 2, 253, 3), 0);
		CHECK_EQ(delete(&one, 2), 0);
	}
}

static void netdevs_share(void)
{
	CHECK_EQ(insert(&one, 1, 253, 1), 0);
	CHECK_EQ(insert(&two, 1, 253, 2), 0);
	CHECK_EQ(insert_flow(&two, 2, flow(IPV6_USER_FLOW, 253, 2, 0xf)), 0);
	CHECK_EQ(fake_fw_live(&fw), 1);
	detach(&one);
	CHECK_EQ(fake_fw_live(&fw), 1);
	CHECK_EQ(live_entries(), 2);
	CHECK_EQ(insert(&two, 3, 254, 2), -EBUSY);
	detach(&two);
	CHECK_EQ(fake_fw_live(&fw), 0);
}

static void removal_with_rules_leaves_none(void)
{
	set_max_nodes("4");
	for (int i = 0; i < 16; i++)
		CHECK_EQ(insert(&one, i, 200 + i % 4, i), 0);
	CHECK_EQ(fake_fw_live(&fw), 4);
	detach(&one);
	CHECK_EQ(fake_fw_live(&fw), 0);
	CHECK_EQ(live_entries(), 0);
	CHECK_EQ(tables, 0);

	/* Attached again, as after a reset. */
	mlx5e_ethtool_init_steering(&one.fs);
	CHECK_EQ(insert(&one, 1, 253, 1), 0);
}

static void kept_node_does_not_survive_a_detach(void)
{
	CHECK_EQ(insert(&one, 1, 253, 1), 0);
	fw.faults[0] = (struct fake_fw_fault){ 0xa03, 1, .status = 6 };
	fw.faults[1] = (struct fake_fw_fault){ 0xa03, 1, .status = 6 };
	CHECK_EQ(delete(&one, 1), 0);
	detach(&one);
	memset(fw.nodes, 0, sizeof(fw.nodes));	/* the firmware was reset */
	mlx5e_ethtool_init_steering(&one.fs);
	CHECK_EQ(insert(&one, 1, 253, 1), 0);
}

static void detach_in_internal_error(void)
{
	CHECK_EQ(insert(&one, 1, 253, 1), 0);
	fw.internal_error = true;
	detach(&one);
	CHECK_EQ(live_entries(), 0);
	fw.internal_error = false;
	memset(fw.nodes, 0, sizeof(fw.nodes));
	mlx5e_ethtool_init_steering(&one.fs);
	CHECK_EQ(insert(&one, 1, 253, 1), 0);
}

static void fifty_cycles(void)
{
	static const u8 protos[] = { 253, 254, 146, 99 };

	set_max_nodes("4");
	for (int cycle = 0; cycle < 50; cycle++) {
		for (int i = 0; i < 4; i++)
			CHECK_EQ(insert(&one, i, protos[i], i), 0);
		CHECK_EQ(fake_fw_live(&fw), 4);
		for (int i = 0; i < 4; i++)
			CHECK_EQ(delete(&one, (i + cycle) % 4), 0);
		CHECK_EQ(fake_fw_live(&fw), 0);
		CHECK_EQ(live_entries(), 0);
	}
}

static const struct test tests[] = {
	{ "a rule becomes a node and an entry, dword by dword", rule_becomes_an_entry },
	{ "IPv6 and drop", ip6_and_drop },
	{ "a rule with all fields is at the first priority", all_fields_fit_the_tables },
	{ "rules without l4data send no command", other_rules_send_no_command },
	{ "replacement in place keeps the node", replacement_keeps_the_node },
	{ "a refused replacement keeps the old rule", refused_replacement_keeps_the_rule },
	{ "a refused entry gives the node back", refused_entry_gives_the_node_back },
	{ "a refused table gives the node back", refused_table_gives_the_node_back },
	{ "no memory at any place leaves nothing", no_memory_anywhere },
	{ "every command of an insertion can fail", every_command_can_fail },
	{ "two netdevs and two families share a node", netdevs_share },
	{ "removal with rules installed leaves none", removal_with_rules_leaves_none },
	{ "a kept node does not survive a detach", kept_node_does_not_survive_a_detach },
	{ "a detach in internal error leaves nothing", detach_in_internal_error },
	{ "50 cycles over four protocols leave nothing", fifty_cycles },
};

int main(void)
{
	return run_tests(tests, sizeof(tests) / sizeof(*tests), before, after);
}
