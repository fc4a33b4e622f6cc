// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* flex_l4.c and fs_flex_l4.c against the fake command channel. The expected
 * commands are written by hand, dword by dword, from the programming manual.
 */

#include <linux/ethtool.h>
#include "en/fs_flex_l4.h"
#include "fake_fw.h"
#include "harness.h"

int checks_failed;

extern const struct kernel_param fake_param_flex_l4_max_nodes;

static struct fake_fw fw, fw2;
static struct mlx5_core_dev dev = { .fw = &fw }, dev2 = { .fw = &fw2 };

static void set_max_nodes(const char *n)
{
	CHECK_EQ(fake_param_flex_l4_max_nodes.ops->set(n, &fake_param_flex_l4_max_nodes), 0);
}

static unsigned int max_nodes(void)
{
	return *(unsigned int *)fake_param_flex_l4_max_nodes.arg;
}

static void before(void)
{
	fake_fw_init(&fw);
	fake_fw_init(&fw2);
	dev.general_obj_types = dev2.general_obj_types = 1ULL << 0x22;
	set_max_nodes("1");
	fake_log_clear();
}

/* Whatever a test did, it ends with nothing in the devices and in the table. */
static void after(void)
{
	fake_zalloc_fail(0);
	CHECK_EQ(fake_fw_live(&fw), 0);
	CHECK_EQ(fake_fw_live(&fw2), 0);
	CHECK_EQ(fw.violations + fw2.violations, 0);
	mlx5_flex_l4_flush(&dev);
	mlx5_flex_l4_flush(&dev2);
}

static int count(const struct fake_fw *f, u16 opcode)
{
	int n = 0;

	for (int i = 0; i < f->commands; i++)
		n += f->log[i].opcode == opcode;
	return n;
}

struct dword {
	int at;
	u32 value;
};

/* Every dword of a command: those listed, and zero everywhere else. */
static void check_dwords(const struct fake_fw_cmd *cmd, int dwords,
			 const struct dword *want, int n)
{
	CHECK_EQ(cmd->dwords, dwords);
	for (int at = 0; at < cmd->dwords; at++) {
		u32 value = 0;

		for (int i = 0; i < n; i++)
			if (want[i].at == at)
				value = want[i].value;
		if (cmd->in[at] != value) {
			printf("# dword %d is %08x, not %08x\n", at, cmd->in[at], value);
			checks_failed++;
		}
	}
}

#define CHECK_DWORDS(cmd, dwords, ...)						\
	do {									\
		static const struct dword want_[] = { __VA_ARGS__ };		\
		check_dwords(cmd, dwords, want_, sizeof(want_) / sizeof(*want_)); \
	} while (0)

static struct ethtool_rx_flow_spec ip4(u8 proto, u32 value, u32 mask)
{
	struct ethtool_rx_flow_spec fs = { .flow_type = IP_USER_FLOW };

	fs.h_u.usr_ip4_spec.ip_ver = ETH_RX_NFC_IP4;
	fs.h_u.usr_ip4_spec.proto = proto;
	fs.m_u.usr_ip4_spec.proto = 0xff;
	fs.h_u.usr_ip4_spec.l4_4_bytes = cpu_to_be32(value);
	fs.m_u.usr_ip4_spec.l4_4_bytes = cpu_to_be32(mask);
	return fs;
}

static struct ethtool_rx_flow_spec ip6(u8 proto, u32 value, u32 mask)
{
	struct ethtool_rx_flow_spec fs = { .flow_type = IPV6_USER_FLOW };

	fs.h_u.usr_ip6_spec.l4_proto = proto;
	fs.m_u.usr_ip6_spec.l4_proto = 0xff;
	fs.h_u.usr_ip6_spec.l4_4_bytes = cpu_to_be32(value);
	fs.m_u.usr_ip6_spec.l4_4_bytes = cpu_to_be32(mask);
	return fs;
}

static int validate(struct ethtool_rx_flow_spec fs)
{
	return mlx5e_flex_l4_validate(&dev, &fs);
}

/* Commands, dword by dword */

static void commands_for_protocol_253(void)
{
	struct mlx5_flex_l4_node *node = mlx5_flex_l4_get(&dev, 253);

	CHECK(!IS_ERR(node));
	CHECK_EQ(fw.commands, 3);
	CHECK_DWORDS(&fw.log[0], 4, { 0, 0x01000000 }, { 1, 0x00000039 });
	CHECK_DWORDS(&fw.log[1], 108, { 0, 0x0a000000 }, { 1, 0x00000022 },
		     { 7, 0x00040000 }, { 12, 0x80000000 }, { 44, 0x000300fd });
	CHECK_DWORDS(&fw.log[2], 4, { 0, 0x0a020000 }, { 1, 0x00000022 }, { 2, 0x00000100 });

	mlx5_flex_l4_put(node);
	CHECK_EQ(fw.commands, 4);
	CHECK_DWORDS(&fw.log[3], 4, { 0, 0x0a030000 }, { 1, 0x00000022 }, { 2, 0x00000100 });
}

static void sample_id_is_dword_15_of_the_answer(void)
{
	struct mlx5_flex_l4_node *node = mlx5_flex_l4_get(&dev, 253);

	CHECK_EQ(mlx5_flex_l4_sample_id(node), 0xd000);
	mlx5_flex_l4_put(node);
}

static void wide_object_ids_survive(void)
{
	struct mlx5_flex_l4_node *node;

	fw.next_id = 0xfedcba98;
	node = mlx5_flex_l4_get(&dev, 253);
	CHECK_EQ(fw.log[2].in[2], 0xfedcba98);
	mlx5_flex_l4_put(node);
	CHECK_EQ(fw.log[3].in[2], 0xfedcba98);
}

static void match_of(struct ethtool_rx_flow_spec fs, struct mlx5_flow_spec *spec)
{
	struct mlx5_flex_l4_node *node = mlx5e_flex_l4_get(&dev, &fs);

	*spec = (struct mlx5_flow_spec){ .match_criteria_enable = 1 };
	mlx5e_flex_l4_match(node, &fs, spec);
	mlx5_flex_l4_put(node);
}

static void check_match(const u32 *got, int n, const struct dword *want)
{
	for (int at = 0; at < (int)MLX5_ST_SZ_DW(fte_match_param); at++) {
		u32 value = 0;

		for (int i = 0; i < n; i++)
			if (want[i].at == at)
				value = want[i].value;
		CHECK_EQ(be32_to_cpu(got[at]), value);
	}
}

static void match_for_protocol_253(void)
{
	static const struct dword mask[] = { { 4, 0x00002000 }, { 80, 0x0000000f }, { 81, 0xd000 } };
	static const struct dword value[] = { { 80, 0x00000003 }, { 81, 0xd000 } };
	struct mlx5_flow_spec spec;

	match_of(ip4(253, 0x3, 0xf), &spec);
	CHECK_EQ(spec.match_criteria_enable, 0x21);
	check_match(spec.match_criteria, 3, mask);
	check_match(spec.match_value, 2, value);

	match_of(ip6(253, 0x3, 0xf), &spec);
	CHECK_EQ(spec.match_criteria_enable, 0x21);
	check_match(spec.match_criteria, 3, mask);
	check_match(spec.match_value, 2, value);
}

static void all_four_bytes_are_matched_in_wire_order(void)
{
	struct mlx5_flow_spec spec;

	match_of(ip4(253, 0x9c401f90, 0xffffffff), &spec);
	CHECK_EQ(be32_to_cpu(spec.match_criteria[80]), 0xffffffff);
	CHECK_EQ(be32_to_cpu(spec.match_value[80]), 0x9c401f90);
}

static void flow_without_l4data_is_left_alone(void)
{
	struct mlx5_flow_spec spec, untouched = { .match_criteria_enable = 1 };
	struct ethtool_rx_flow_spec fs = ip4(47, 0, 0);

	CHECK_EQ(validate(fs), 0);
	CHECK(!mlx5e_flex_l4_get(&dev, &fs));
	match_of(fs, &spec);
	CHECK(!memcmp(&spec, &untouched, sizeof(spec)));

	fs = (struct ethtool_rx_flow_spec){ .flow_type = TCP_V4_FLOW };
	memset(&fs.h_u, 0xff, sizeof(fs.h_u));
	memset(&fs.m_u, 0xff, sizeof(fs.m_u));
	CHECK_EQ(validate(fs), 0);
	CHECK(!mlx5e_flex_l4_get(&dev, &fs));
	CHECK_EQ(fw.commands, 0);
}

static void flow_type_flags_do_not_hide_l4data(void)
{
	struct ethtool_rx_flow_spec fs = ip4(6, 1, 1);

	fs.flow_type |= FLOW_EXT | FLOW_MAC_EXT | FLOW_RSS;
	CHECK_EQ(validate(fs), -EINVAL);
	fs = ip6(6, 1, 1);
	fs.flow_type |= FLOW_EXT | FLOW_MAC_EXT | FLOW_RSS;
	CHECK_EQ(validate(fs), -EINVAL);
}

/* Refusals that need no device */

static void parsed_protocols_are_refused(void)
{
	static const u8 refused[] = { 0, 1, 2, 4, 6, 17, 41, 43, 44, 47, 50, 51, 58, 59, 60,
				      132, 135, 137, 139, 140 };

	for (int proto = 0; proto < 256; proto++) {
		int want = memchr(refused, proto, sizeof(refused)) ? -EINVAL : 0;

		CHECK_EQ(validate(ip4(proto, 3, 15)), want);
		CHECK_EQ(validate(ip6(proto, 3, 15)), want);
	}
	validate(ip4(47, 3, 15));
	CHECK_LOG("protocol 47");
	CHECK_EQ(fw.commands, 0);
}

static void protocol_must_be_exact(void)
{
	struct ethtool_rx_flow_spec fs = ip4(253, 3, 15);

	fs.m_u.usr_ip4_spec.proto = 0;
	CHECK_EQ(validate(fs), -EINVAL);
	fs.m_u.usr_ip4_spec.proto = 0xfe;
	CHECK_EQ(validate(fs), -EINVAL);
	CHECK_LOG("not mask 0xfe");

	fs = ip6(253, 3, 15);
	fs.m_u.usr_ip6_spec.l4_proto = 0x7f;
	CHECK_EQ(validate(fs), -EINVAL);
}

static void value_outside_the_mask_is_refused(void)
{
	CHECK_EQ(validate(ip4(253, 0x13, 0x0f)), -EINVAL);
	CHECK_LOG("value 0x13 has bits outside the mask 0xf");
	CHECK_EQ(validate(ip6(253, 0x80000000, 0x0f)), -EINVAL);
	CHECK_EQ(validate(ip4(253, 0x13, 0xff)), 0);
}

/* Capabilities */

static void check_refused(int err)
{
	struct mlx5_flex_l4_node *node = mlx5_flex_l4_get(&dev, 253);

	CHECK_EQ(IS_ERR(node) ? PTR_ERR(node) : 0, err);
	if (!IS_ERR(node))
		mlx5_flex_l4_put(node);
}

static void check_works(void)
{
	struct mlx5_flex_l4_node *node = mlx5_flex_l4_get(&dev, 253);

	CHECK(!IS_ERR(node));
	if (!IS_ERR(node))
		mlx5_flex_l4_put(node);
}

static void device_without_parse_graph_is_not_asked(void)
{
	dev.general_obj_types = ~(1ULL << 0x22);
	check_refused(-EOPNOTSUPP);
	CHECK_LOG("PROG_PARSE_GRAPH");
	CHECK_EQ(fw.commands, 0);
}

static void every_missing_capability_is_named(void)
{
	static const struct { int at; u32 value; const char *text; } caps[] = {
		{ 0, 0xfffffff7, "no arcs from IP" },
		{ 2, 0xfffe0001, "no headers of fixed length" },
		{ 2, 0x0001fffe, "no samples at a fixed offset" },
		{ 3, 0x00ffff00, "no input arcs" },
		{ 3, 0x01ff00ff, "no samples" },
		{ 4, 0x00030000, "no headers of four bytes" },
	};

	for (size_t i = 0; i < sizeof(caps) / sizeof(*caps); i++) {
		before();
		fw.cap[caps[i].at] = caps[i].value;
		check_refused(-EOPNOTSUPP);
		CHECK_LOG(caps[i].text);
		CHECK_EQ(count(&fw, 0xa00), 0);
	}
}

static void refused_capability_query_is_not_supported(void)
{
	fw.faults[0] = (struct fake_fw_fault){ 0x100, 1, .status = 3 };
	check_refused(-EOPNOTSUPP);
	fw.faults[0] = (struct fake_fw_fault){ 0x100, 1, .err = -ETIMEDOUT };
	check_refused(-ETIMEDOUT);
	CHECK_EQ(count(&fw, 0xa00), 0);
}

/* Sharing */

static void families_and_netdevs_share_a_node(void)
{
	struct ethtool_rx_flow_spec four = ip4(253, 3, 15), six = ip6(253, 4, 15);
	struct mlx5_flex_l4_node *a = mlx5e_flex_l4_get(&dev, &four);
	struct mlx5_flex_l4_node *b = mlx5e_flex_l4_get(&dev, &six);
	struct mlx5_flex_l4_node *second_netdev = mlx5e_flex_l4_get(&dev, &four);

	CHECK(a == b && b == second_netdev);
	CHECK_EQ(count(&fw, 0xa00), 1);

	mlx5_flex_l4_put(a);
	mlx5_flex_l4_flush(&dev);	/* the first netdev goes */
	CHECK_EQ(fake_fw_live(&fw), 1);
	mlx5_flex_l4_put(b);
	CHECK_EQ(fake_fw_live(&fw), 1);
	mlx5_flex_l4_put(second_netdev);
	CHECK_EQ(count(&fw, 0xa03), 1);
}

static void functions_do_not_share(void)
{
	struct mlx5_flex_l4_node *a = mlx5_flex_l4_get(&dev, 253);
	struct mlx5_flex_l4_node *b = mlx5_flex_l4_get(&dev2, 253);

	CHECK(a != b);
	CHECK_EQ(fake_fw_live(&fw), 1);
	CHECK_EQ(fake_fw_live(&fw2), 1);
	mlx5_flex_l4_put(a);
	CHECK_EQ(fake_fw_live(&fw2), 1);
	mlx5_flex_l4_put(b);
}

static void several_protocols_have_a_node_each(void)
{
	static const u8 protos[] = { 253, 254, 146, 200, 201, 202, 203, 204 };
	struct mlx5_flex_l4_node *nodes[8];

	set_max_nodes("8");
	for (int i = 0; i < 8; i++) {
		nodes[i] = mlx5_flex_l4_get(&dev, protos[i]);
		CHECK(!IS_ERR(nodes[i]));
		CHECK_EQ(mlx5_flex_l4_sample_id(nodes[i]), 0xd000 + i);
	}
	check_works();	/* 253 again: shared */
	CHECK_EQ(PTR_ERR(mlx5_flex_l4_get(&dev, 205)), -EBUSY);
	CHECK_LOG("flex_l4_max_nodes=8");
	CHECK_EQ(count(&fw, 0xa00), 8);

	/* Never one node with several arcs. */
	for (int i = 0; i < fw.commands; i++)
		if (fw.log[i].opcode == 0xa00)
			CHECK_EQ(fw.log[i].in[48], 0);

	for (int i = 0; i < 8; i += 2)
		mlx5_flex_l4_put(nodes[i]);
	for (int i = 1; i < 8; i += 2)
		mlx5_flex_l4_put(nodes[i]);
}

static void second_protocol_is_busy_by_default(void)
{
	struct mlx5_flex_l4_node *node = mlx5_flex_l4_get(&dev, 253);

	CHECK_EQ(PTR_ERR(mlx5_flex_l4_get(&dev, 254)), -EBUSY);
	CHECK_LOG("1 in use, one by protocol 253");
	CHECK_EQ(count(&fw, 0xa00), 1);
	mlx5_flex_l4_put(node);

	node = mlx5_flex_l4_get(&dev, 254);
	CHECK(!IS_ERR(node));
	mlx5_flex_l4_put(node);
}

static void lower_limit_keeps_live_nodes(void)
{
	struct mlx5_flex_l4_node *a, *b;

	set_max_nodes("2");
	a = mlx5_flex_l4_get(&dev, 253);
	b = mlx5_flex_l4_get(&dev, 254);
	set_max_nodes("1");
	check_works();
	CHECK_EQ(PTR_ERR(mlx5_flex_l4_get(&dev, 200)), -EBUSY);
	CHECK_EQ(fake_fw_live(&fw), 2);
	mlx5_flex_l4_put(a);
	mlx5_flex_l4_put(b);
}

static void limit_is_brought_into_its_range(void)
{
	int (*set)(const char *, const struct kernel_param *) = fake_param_flex_l4_max_nodes.ops->set;
	char text[16];

	set_max_nodes("9");
	CHECK_EQ(max_nodes(), 8);
	CHECK_LOG("flex_l4_max_nodes=9 is not in 1-8, using 8");
	set_max_nodes("0");
	CHECK_EQ(max_nodes(), 1);
	set_max_nodes("4294967295");
	CHECK_EQ(max_nodes(), 8);
	set_max_nodes("4\n");
	CHECK_EQ(max_nodes(), 4);
	CHECK_EQ(set("many", &fake_param_flex_l4_max_nodes), -EINVAL);
	CHECK_EQ(set("-1", &fake_param_flex_l4_max_nodes), -EINVAL);
	CHECK_EQ(set("4294967296", &fake_param_flex_l4_max_nodes), -ERANGE);
	CHECK_EQ(max_nodes(), 4);
	fake_param_flex_l4_max_nodes.ops->get(text, &fake_param_flex_l4_max_nodes);
	CHECK(!strcmp(text, "4\n"));
}

/* Refusals by the firmware */

static void exhausted_pool_is_busy_and_harms_nothing(void)
{
	static const u8 statuses[] = { 0x0f, 0x08, 0x03, 0x09, 0x0a, 0x06 };

	for (size_t i = 0; i < sizeof(statuses); i++) {
		struct mlx5_flex_l4_node *a, *b;

		before();
		set_max_nodes("8");
		fw.samples = 2;
		fw.pool_status = statuses[i];
		a = mlx5_flex_l4_get(&dev, 253);
		b = mlx5_flex_l4_get(&dev, 254);
		CHECK_EQ(PTR_ERR(mlx5_flex_l4_get(&dev, 200)), -EBUSY);
		CHECK_LOG("samples are used up or another user");
		CHECK_EQ(fake_fw_live(&fw), 2);
		mlx5_flex_l4_put(a);
		mlx5_flex_l4_put(b);
	}
}

static void empty_pool_refuses_the_first_protocol(void)
{
	fw.samples = 0;
	check_refused(-EBUSY);
	CHECK_LOG("no parser node for protocol 253, status 0xf, syndrome 0xabcd1234");
	CHECK_EQ(count(&fw, 0xa03), 0);
}

static void protocol_of_another_parser_user_is_busy(void)
{
	fw.taken_proto = 253;
	check_refused(-EBUSY);
}

static void each_create_status_has_one_errno(void)
{
	static const struct { u8 status; int err; } table[] = {
		{ 0x01, -EIO }, { 0x02, -EOPNOTSUPP }, { 0x03, -EBUSY }, { 0x04, -EIO },
		{ 0x05, -EBUSY }, { 0x06, -EBUSY }, { 0x07, -EBUSY }, { 0x08, -EBUSY },
		{ 0x09, -EBUSY }, { 0x0a, -EBUSY }, { 0x0f, -EBUSY }, { 0x50, -EIO },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		fw.faults[0] = (struct fake_fw_fault){ 0xa00, 1, .status = table[i].status };
		fake_log_clear();
		check_refused(table[i].err);
		CHECK_LOG("l4data: ");
	}
}

static void errors_of_the_driver_pass_unchanged(void)
{
	static const int errs[] = { -ENOMEM, -ETIMEDOUT, -EAGAIN, -ENXIO };

	for (size_t i = 0; i < sizeof(errs) / sizeof(*errs); i++) {
		fw.faults[0] = (struct fake_fw_fault){ 0xa00, 1, .err = errs[i] };
		check_refused(errs[i]);
		fw.faults[0] = (struct fake_fw_fault){ 0xa02, 1, .err = errs[i] };
		check_refused(errs[i]);
	}
}

static void failed_query_takes_the_node_back(void)
{
	fw.faults[0] = (struct fake_fw_fault){ 0xa02, 1, .status = 3 };
	check_refused(-EIO);
	CHECK_EQ(count(&fw, 0xa00), 1);
	CHECK_EQ(count(&fw, 0xa03), 1);
	check_works();
}

static void no_memory_leaves_nothing(void)
{
	for (int nth = 1; nth <= 2; nth++) {
		fake_zalloc_fail(nth);
		check_refused(-ENOMEM);
		CHECK_EQ(fake_fw_live(&fw), 0);
	}
	check_works();
}

static void every_command_of_an_insertion_can_fail(void)
{
	static const u16 opcodes[] = { 0x100, 0xa00, 0xa02 };

	set_max_nodes("2");
	for (int i = 0; i < 3; i++) {
		for (int status = 1; status <= 0x51; status++) {
			struct mlx5_flex_l4_node *live;

			fw.commands = 0;
			live = mlx5_flex_l4_get(&dev, 254);
			fw.faults[0] = (struct fake_fw_fault){ opcodes[i], 1, .status = status };
			CHECK(IS_ERR(mlx5_flex_l4_get(&dev, 253)));
			CHECK_EQ(fake_fw_live(&fw), 1);
			check_works();
			mlx5_flex_l4_put(live);
		}
	}
}

/* Nodes that the firmware keeps */

static void kept_node_is_used_again(void)
{
	struct mlx5_flex_l4_node *node = mlx5_flex_l4_get(&dev, 253);

	fw.faults[0] = (struct fake_fw_fault){ 0xa03, 1, .status = 6 };
	mlx5_flex_l4_put(node);
	CHECK_LOG("the firmware keeps parser node 0x100");
	CHECK_EQ(fake_fw_live(&fw), 1);

	node = mlx5_flex_l4_get(&dev, 253);
	CHECK(!IS_ERR(node));
	CHECK_EQ(count(&fw, 0xa00), 1);
	CHECK_EQ(count(&fw, 0xa02), 2);
	mlx5_flex_l4_put(node);
}

static void kept_node_makes_room_for_another_protocol(void)
{
	struct mlx5_flex_l4_node *node = mlx5_flex_l4_get(&dev, 253);

	fw.faults[0] = (struct fake_fw_fault){ 0xa03, 1, .status = 6 };
	mlx5_flex_l4_put(node);
	node = mlx5_flex_l4_get(&dev, 254);
	CHECK(!IS_ERR(node));
	CHECK_EQ(fake_fw_live(&fw), 1);
	mlx5_flex_l4_put(node);
}

static void kept_node_that_stays_is_counted(void)
{
	struct mlx5_flex_l4_node *node = mlx5_flex_l4_get(&dev, 253);

	fw.faults[0] = (struct fake_fw_fault){ 0xa03, 1, .status = 6 };
	fw.faults[1] = (struct fake_fw_fault){ 0xa03, 1, .status = 6 };
	mlx5_flex_l4_put(node);
	CHECK_EQ(PTR_ERR(mlx5_flex_l4_get(&dev, 254)), -EBUSY);
	check_works();
}

static void kept_node_that_is_gone_after_all_is_an_error_once(void)
{
	struct mlx5_flex_l4_node *node = mlx5_flex_l4_get(&dev, 253);

	fw.faults[0] = (struct fake_fw_fault){ 0xa03, 1, .status = 6 };
	mlx5_flex_l4_put(node);
	memset(fw.nodes, 0, sizeof(fw.nodes));	/* a reset behind the driver's back */
	check_refused(-EIO);
	mlx5_flex_l4_flush(&dev);
	check_works();
	fw.violations = 0;	/* it did ask for an unknown id */
}

static void flush_forgets_kept_nodes_only(void)
{
	struct mlx5_flex_l4_node *kept, *live;

	set_max_nodes("2");
	live = mlx5_flex_l4_get(&dev, 254);
	kept = mlx5_flex_l4_get(&dev, 253);
	fw.faults[0] = (struct fake_fw_fault){ 0xa03, 1, .status = 6 };
	fw.faults[1] = (struct fake_fw_fault){ 0xa03, 1, .status = 6 };
	mlx5_flex_l4_put(kept);
	mlx5_flex_l4_flush(&dev2);
	CHECK_EQ(count(&fw, 0xa03), 1);
	mlx5_flex_l4_flush(&dev);
	CHECK_EQ(count(&fw, 0xa03), 2);
	CHECK_EQ(fake_fw_live(&fw), 2);

	/* The firmware was reset: the object that it kept is gone as well. */
	memset(&fw.nodes[1], 0, sizeof(fw.nodes[1]));
	mlx5_flex_l4_put(live);
}

/* A device in trouble */

static void internal_error_state_leaks_nothing(void)
{
	struct mlx5_flex_l4_node *node = mlx5_flex_l4_get(&dev, 253);

	fw.internal_error = true;
	CHECK_EQ(PTR_ERR(mlx5_flex_l4_get(&dev, 253)), PTR_ERR(node));	/* shared: no command */
	CHECK_EQ(PTR_ERR(mlx5_flex_l4_get(&dev, 254)), -EIO);
	mlx5_flex_l4_put(node);
	mlx5_flex_l4_put(node);
	CHECK_EQ(count(&fw, 0xa03), 1);

	/* After the reset, there is nothing to use again. */
	fw.internal_error = false;
	memset(fw.nodes, 0, sizeof(fw.nodes));
	check_works();
	CHECK_EQ(count(&fw, 0xa00), 2);
}

/* Many */

static void fifty_cycles_over_four_protocols_leave_nothing(void)
{
	static const u8 protos[] = { 253, 254, 146, 99 };

	set_max_nodes("4");
	for (int cycle = 0; cycle < 50; cycle++) {
		struct mlx5_flex_l4_node *nodes[4];

		for (int i = 0; i < 4; i++) {
			nodes[i] = mlx5_flex_l4_get(&dev, protos[(cycle + i) % 4]);
			CHECK(!IS_ERR(nodes[i]));
		}
		CHECK_EQ(fake_fw_live(&fw), 4);
		for (int i = 0; i < 4; i++)
			mlx5_flex_l4_put(nodes[(i * 3 + cycle) % 4]);
		CHECK_EQ(fake_fw_live(&fw), 0);
		fw.commands = 0;
	}
}

static void put_of_no_node_is_nothing(void)
{
	mlx5_flex_l4_put(NULL);
	CHECK_EQ(fw.commands, 0);
}

static const struct test tests[] = {
	{ "commands for protocol 253, dword by dword", commands_for_protocol_253 },
	{ "the sample id is dword 15 of the answer", sample_id_is_dword_15_of_the_answer },
	{ "object ids keep their 32 bits", wide_object_ids_survive },
	{ "match for protocol 253, dword by dword, both families", match_for_protocol_253 },
	{ "all four bytes are matched in wire order", all_four_bytes_are_matched_in_wire_order },
	{ "a flow without l4data is left alone", flow_without_l4data_is_left_alone },
	{ "flow type flags do not hide l4data", flow_type_flags_do_not_hide_l4data },
	{ "protocols that the device parses are refused, all others are not", parsed_protocols_are_refused },
	{ "the protocol must be exact", protocol_must_be_exact },
	{ "a value outside the mask is refused", value_outside_the_mask_is_refused },
	{ "a device without parse graph is not asked", device_without_parse_graph_is_not_asked },
	{ "every missing capability is named", every_missing_capability_is_named },
	{ "a refused capability query means not supported", refused_capability_query_is_not_supported },
	{ "two families and two netdevs share a node", families_and_netdevs_share_a_node },
	{ "two functions do not share", functions_do_not_share },
	{ "several protocols have a node of one arc each", several_protocols_have_a_node_each },
	{ "a second protocol is busy by default", second_protocol_is_busy_by_default },
	{ "a lower limit keeps live nodes", lower_limit_keeps_live_nodes },
	{ "the limit is brought into its range", limit_is_brought_into_its_range },
	{ "an exhausted pool is busy and harms no live node", exhausted_pool_is_busy_and_harms_nothing },
	{ "an empty pool refuses the first protocol", empty_pool_refuses_the_first_protocol },
	{ "a protocol of another parser user is busy", protocol_of_another_parser_user_is_busy },
	{ "each status of a refused node has one errno", each_create_status_has_one_errno },
	{ "errors of the driver pass unchanged", errors_of_the_driver_pass_unchanged },
	{ "a failed query takes the node back", failed_query_takes_the_node_back },
	{ "no memory leaves nothing behind", no_memory_leaves_nothing },
	{ "every command of an insertion can fail with every status", every_command_of_an_insertion_can_fail },
	{ "a node that the firmware keeps is used again", kept_node_is_used_again },
	{ "a kept node makes room for another protocol", kept_node_makes_room_for_another_protocol },
	{ "a kept node that stays is counted", kept_node_that_stays_is_counted },
	{ "a kept node that is gone after all is an error once", kept_node_that_is_gone_after_all_is_an_error_once },
	{ "flush forgets kept nodes of its function only", flush_forgets_kept_nodes_only },
	{ "a device in internal error leaks nothing", internal_error_state_leaks_nothing },
	{ "50 cycles over four protocols leave nothing", fifty_cycles_over_four_protocols_leave_nothing },
	{ "put of no node does nothing", put_of_no_node_is_nothing },
};

int main(void)
{
	return run_tests(tests, sizeof(tests) / sizeof(*tests), before, after);
}
