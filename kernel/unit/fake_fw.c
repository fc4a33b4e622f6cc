// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include <stdarg.h>
#include "fake_fw.h"

enum { OK = 0, INT_ERR = 1, BAD_OP = 2, BAD_PARAM = 3, BAD_RES = 5, LIM = 8, BAD_LEN = 0x50 };
enum { DRIVER_ABORTED = 0xfe };

static char last_log[512];

void fake_log(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(last_log, sizeof(last_log), format, ap);
	va_end(ap);
	if (getenv("FLEXSTEER_UNIT_VERBOSE"))
		fputs(last_log, stderr);
}

const char *fake_log_last(void) { return last_log; }
void fake_log_clear(void) { last_log[0] = 0; }

static int zalloc_countdown;

void fake_zalloc_fail(int nth) { zalloc_countdown = nth; }

void *fake_zalloc(size_t size)
{
	if (zalloc_countdown && !--zalloc_countdown)
		return NULL;
	return calloc(1, size);
}

int kstrtouint(const char *s, unsigned int base, unsigned int *res)
{
	unsigned long v;
	char *end;

	errno = 0;
	v = strtoul(s, &end, base);
	if (*s < '0' || *s > '9' || (*end && strcmp(end, "\n")))
		return -EINVAL;
	if (errno || v > 0xffffffffUL)
		return -ERANGE;
	*res = v;
	return 0;
}

void fake_set(void *p, size_t bit, size_t width, u32 v)
{
	u8 *bytes = p;

	for (size_t i = 0; i < width; i++) {
		size_t at = bit + i;
		u8 one = 0x80 >> at % 8;

		if (v >> (width - 1 - i) & 1)
			bytes[at / 8] |= one;
		else
			bytes[at / 8] &= ~one;
	}
}

u32 fake_get(const void *p, size_t bit, size_t width)
{
	const u8 *bytes = p;
	u32 v = 0;

	for (size_t at = bit; at < bit + width; at++)
		v = v << 1 | (bytes[at / 8] >> (7 - at % 8) & 1);
	return v;
}

void fake_fw_init(struct fake_fw *fw)
{
	*fw = (struct fake_fw){
		.cap = { [0] = 0x8, [2] = 0x00010001, [3] = 0x01010100, [4] = 0x00400000 },
		.samples = 8,
		.pool_status = 0x0f,
		.next_id = 0x100,
	};
}

int fake_fw_live(const struct fake_fw *fw)
{
	int n = 0;

	for (int i = 0; i < FAKE_FW_NODES; i++)
		n += !!fw->nodes[i].obj_id;
	return n;
}

struct fake_fw_node *fake_fw_sample(struct fake_fw *fw, u32 sample_id)
{
	for (int i = 0; i < FAKE_FW_NODES; i++)
		if (fw->nodes[i].obj_id && fw->nodes[i].sample_id == sample_id)
			return &fw->nodes[i];
	return NULL;
}

static struct fake_fw_node *node_by_id(struct fake_fw *fw, u32 obj_id)
{
	for (int i = 0; i < FAKE_FW_NODES; i++)
		if (obj_id && fw->nodes[i].obj_id == obj_id)
			return &fw->nodes[i];
	fw->violations++;
	return NULL;
}

static bool proto_is_taken(const struct fake_fw *fw, u8 proto)
{
	for (int i = 0; i < FAKE_FW_NODES; i++)
		if (fw->nodes[i].obj_id && fw->nodes[i].proto == proto)
			return true;
	return fw->taken_proto && fw->taken_proto == proto;
}

static u8 create(struct fake_fw *fw, const u32 *in, int in_size, u32 *out)
{
	u8 proto = in[44];

	if (in_size != 432)
		return BAD_LEN;
	if (proto_is_taken(fw, proto))
		return BAD_PARAM;
	if (fake_fw_live(fw) >= fw->samples)
		return fw->pool_status;

	for (int i = 0; i < FAKE_FW_NODES; i++) {
		if (fw->nodes[i].obj_id)
			continue;
		fw->nodes[i] = (struct fake_fw_node){
			.obj_id = fw->next_id++,
			.sample_id = 0xd000 + i,
			.proto = proto,
		};
		out[2] = cpu_to_be32(fw->nodes[i].obj_id);
		return OK;
	}
	return LIM;
}

static u8 query(struct fake_fw *fw, const u32 *in, u32 *out, int out_size)
{
	struct fake_fw_node *node = node_by_id(fw, in[2]);

	if (out_size != 432)
		return BAD_LEN;
	if (!node)
		return BAD_RES;
	out[15] = cpu_to_be32(node->sample_id);
	return OK;
}

static u8 destroy(struct fake_fw *fw, const u32 *in)
{
	struct fake_fw_node *node = node_by_id(fw, in[2]);

	if (!node)
		return BAD_RES;
	if (node->matches) {
		fw->violations++;
		return BAD_RES;
	}
	*node = (struct fake_fw_node){};
	return OK;
}

static u8 query_cap(struct fake_fw *fw, const u32 *in, u32 *out, int out_size)
{
	if (in[1] != (0x1c << 1 | 1))
		return BAD_PARAM;
	if (out_size != 16 + 4096)
		return BAD_LEN;
	for (int i = 0; i < 8; i++)
		out[4 + i] = cpu_to_be32(fw->cap[i]);
	return OK;
}

static u8 execute(struct fake_fw *fw, const struct fake_fw_cmd *cmd, int in_size,
		  u32 *out, int out_size)
{
	if (cmd->opcode != 0x100 && cmd->in[1] != 0x22)
		return BAD_PARAM;

	switch (cmd->opcode) {
	case 0x100:
		return query_cap(fw, cmd->in, out, out_size);
	case 0xa00:
		return create(fw, cmd->in, in_size, out);
	case 0xa02:
		return query(fw, cmd->in, out, out_size);
	case 0xa03:
		return destroy(fw, cmd->in);
	default:
		fw->violations++;
		return BAD_OP;
	}
}

/* What mlx5's cmd.c makes of a status. */
static int status_to_errno(u8 status)
{
	switch (status) {
	case 0x00: return 0;
	case 0x06: return -EBUSY;
	case 0x07: return -EAGAIN;
	case 0x08: return -ENOMEM;
	case 0x0f: return -EAGAIN;
	case 0x02: case 0x03: case 0x05: case 0x09: case 0x0a: return -EINVAL;
	default:   return -EIO;
	}
}

static struct fake_fw_fault *due_fault(struct fake_fw *fw, u16 opcode)
{
	for (int i = 0; i < 4; i++)
		if (fw->faults[i].opcode == opcode && fw->faults[i].nth && !--fw->faults[i].nth)
			return &fw->faults[i];
	return NULL;
}

int mlx5_cmd_exec(struct mlx5_core_dev *dev, void *in, int in_size, void *out, int out_size)
{
	struct fake_fw *fw = dev->fw;
	struct fake_fw_cmd *cmd = &fw->log[fw->commands++ % FAKE_FW_LOG];
	struct fake_fw_fault *fault;
	u8 status;

	memset(cmd, 0, sizeof(*cmd));
	assert(in_size % 4 == 0 && in_size <= (int)sizeof(cmd->in));
	cmd->dwords = in_size / 4;
	for (int i = 0; i < cmd->dwords; i++)
		cmd->in[i] = be32_to_cpu(((u32 *)in)[i]);
	cmd->opcode = cmd->in[0] >> 16;

	fault = due_fault(fw, cmd->opcode);
	if (fault && !fault->status)
		return fault->err;

	if (fw->internal_error && cmd->opcode == 0xa03)
		return 0;
	if (fw->internal_error)
		status = DRIVER_ABORTED;
	else
		status = fault ? fault->status : execute(fw, cmd, in_size, out, out_size);

	fake_set(out, 0, 8, status);
	fake_set(out, 32, 32, status ? 0xabcd1234 : 0);
	return status_to_errno(status);
}
