/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Just enough of the kernel around flex_l4.c to run it in user space. The
 * mlx5 layouts hold only the fields that it uses, at the offsets of the
 * device's programming manual.
 */

#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <endian.h>
#include <linux/types.h>

#define BIT(n)		(1UL << (n))
#define BIT_ULL(n)	(1ULL << (n))
#define READ_ONCE(x)	(*(const volatile __typeof__(x) *)&(x))
#define __force
#define GFP_KERNEL	0

#define be32_to_cpu(x)	be32toh(x)
#define be16_to_cpu(x)	be16toh(x)
#define cpu_to_be32(x)	htobe32(x)
#define cpu_to_be16(x)	htobe16(x)

#define FAKE_MIN(a, b)	((a) < (b) ? (a) : (b))
#define FAKE_MAX(a, b)	((a) > (b) ? (a) : (b))
#define clamp(v, lo, hi)	FAKE_MIN(FAKE_MAX(v, lo), hi)
#define min_t(t, a, b)		((t)(a) < (t)(b) ? (t)(a) : (t)(b))

/* Error pointers: the last 4095 addresses. */
static inline void *ERR_PTR(long err) { return (void *)err; }
static inline long PTR_ERR(const void *p) { return (long)p; }
static inline bool IS_ERR(const void *p) { return (uintptr_t)p > (uintptr_t)-4096; }

/* Allocations, the nth of which can be made to fail. */
void *fake_zalloc(size_t size);
#define kzalloc(size, gfp)	fake_zalloc(size)
#define kvzalloc(size, gfp)	fake_zalloc(size)
#define kzalloc_obj(obj)	fake_zalloc(sizeof(obj))
#define kvzalloc_obj(obj)	fake_zalloc(sizeof(obj))
#define kfree(p)		free(p)
#define kvfree(p)		free(p)

/* A mutex that aborts when it is locked twice or unlocked by a stranger. */
struct mutex { bool held; };
#define DEFINE_MUTEX(name)	struct mutex name
static inline void mutex_lock(struct mutex *m) { assert(!m->held); m->held = true; }
static inline void mutex_unlock(struct mutex *m) { assert(m->held); m->held = false; }

/* Doubly linked lists with a head. */
struct list_head { struct list_head *next, *prev; };
#define LIST_HEAD(name)		struct list_head name = { &(name), &(name) }
static inline void INIT_LIST_HEAD(struct list_head *h) { h->next = h->prev = h; }
static inline void list_add(struct list_head *n, struct list_head *at)
{
	n->prev = at, n->next = at->next;
	at->next->prev = n, at->next = n;
}

static inline void list_add_tail(struct list_head *n, struct list_head *h) { list_add(n, h->prev); }
static inline void list_del(struct list_head *n)
{
	n->prev->next = n->next, n->next->prev = n->prev;
	n->next = n->prev = NULL;
}

#define fake_entry(p, type, member)	((type *)((char *)(p) - offsetof(type, member)))
#define list_for_each_entry(pos, head, member)					\
	for (pos = fake_entry((head)->next, __typeof__(*pos), member);		\
	     &pos->member != (head);						\
	     pos = fake_entry(pos->member.next, __typeof__(*pos), member))
#define list_for_each_entry_safe(pos, tmp, head, member)			\
	for (pos = fake_entry((head)->next, __typeof__(*pos), member),		\
	     tmp = fake_entry(pos->member.next, __typeof__(*pos), member);	\
	     &pos->member != (head);						\
	     pos = tmp, tmp = fake_entry(tmp->member.next, __typeof__(*pos), member))

/* Module parameters become globals which a test can set like the kernel. */
struct kernel_param;
struct kernel_param_ops {
	int (*set)(const char *val, const struct kernel_param *kp);
	int (*get)(char *buffer, const struct kernel_param *kp);
};

struct kernel_param {
	const struct kernel_param_ops *ops;
	void *arg;
};

#define module_param_cb(name, ops, arg, perm)	\
	const struct kernel_param fake_param_##name = { ops, arg }
#define MODULE_PARM_DESC(name, desc)		extern const struct kernel_param fake_param_##name

static inline int param_get_uint(char *buffer, const struct kernel_param *kp)
{
	return sprintf(buffer, "%u\n", *(unsigned int *)kp->arg);
}

int kstrtouint(const char *s, unsigned int base, unsigned int *res);

/* The log, kept for tests to read. */
void fake_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define pr_warn(...)			fake_log(__VA_ARGS__)
#define mlx5_core_warn(dev, ...)	((void)(dev), fake_log(__VA_ARGS__))

/* Device layouts: an array element is a bit. */
#define FAKE_BITS(typ)			struct mlx5_ifc_##typ##_bits
#define FAKE_AT(typ, fld)		offsetof(FAKE_BITS(typ), fld)
#define FAKE_SIZE(typ, fld)		sizeof(((FAKE_BITS(typ) *)0)->fld)
#define MLX5_ST_SZ_BYTES(typ)		(sizeof(FAKE_BITS(typ)) / 8)
#define MLX5_ST_SZ_DW(typ)		(sizeof(FAKE_BITS(typ)) / 32)
#define MLX5_ADDR_OF(typ, p, fld)	((void *)((u8 *)(p) + FAKE_AT(typ, fld) / 8))
#define MLX5_FLD_SZ_BYTES(typ, fld)	(FAKE_SIZE(typ, fld) / 8)
#define MLX5_SET(typ, p, fld, v)	fake_set(p, FAKE_AT(typ, fld), FAKE_SIZE(typ, fld), v)
#define MLX5_GET(typ, p, fld)		fake_get(p, FAKE_AT(typ, fld), FAKE_SIZE(typ, fld))

void fake_set(void *p, size_t bit, size_t width, u32 v);
u32 fake_get(const void *p, size_t bit, size_t width);

struct mlx5_ifc_general_obj_in_cmd_hdr_bits {
	u8 opcode[16], uid[16];
	u8 tunnel[16], obj_type[16];
	u8 obj_id[32];
	u8 pad[32];
};

struct mlx5_ifc_general_obj_out_cmd_hdr_bits {
	u8 status[8], pad_8[24];
	u8 syndrome[32];
	u8 obj_id[32];
	u8 pad_60[32];
};

struct mlx5_ifc_query_hca_cap_in_bits {
	u8 opcode[16], pad_10[16];
	u8 pad_20[16], op_mod[16];
	u8 pad_40[64];
};

struct mlx5_ifc_query_hca_cap_out_bits {
	u8 status[8], pad_8[24];
	u8 syndrome[32], pad_40[64];
	u8 capability[0x8000];
};

struct mlx5_ifc_ipv6_layout_bits { u8 ipv6[128]; };

union fake_address_bits {
	struct { u8 pad[96], ipv4[32]; } ipv4_layout;
	struct mlx5_ifc_ipv6_layout_bits ipv6_layout;
};

struct mlx5_ifc_fte_match_set_lyr_2_4_bits {
	u8 smac_47_16[32];
	u8 smac_15_0[16], ethertype[16];
	u8 dmac_47_16[32];
	u8 dmac_15_0[16], first_prio[3], first_cfi[1], first_vid[12];
	u8 ip_protocol[8], ip_dscp[6], ip_ecn[2];
	u8 cvlan_tag[1], svlan_tag[1], frag[1], ip_version[4], tcp_flags[9];
	u8 tcp_sport[16], tcp_dport[16];
	u8 pad_c0[32];
	u8 udp_sport[16], udp_dport[16];
	union fake_address_bits src_ipv4_src_ipv6, dst_ipv4_dst_ipv6;
};

struct mlx5_ifc_fte_match_set_misc4_bits {
	u8 prog_sample_field_value_0[32];
	u8 prog_sample_field_id_0[32];
	u8 others[6 * 32];
	u8 pad[256];
};

struct mlx5_ifc_fte_match_param_bits {
	u8 outer_headers[512];
	u8 misc_parameters[512];
	u8 inner_headers[512];
	u8 misc_parameters_2[512];
	u8 misc_parameters_3[512];
	struct mlx5_ifc_fte_match_set_misc4_bits misc_parameters_4;
	u8 misc_parameters_5[512];
};

enum {
	MLX5_CMD_OP_QUERY_HCA_CAP		= 0x100,
	MLX5_CMD_OP_CREATE_GENERAL_OBJECT	= 0xa00,
	MLX5_CMD_OP_QUERY_GENERAL_OBJECT	= 0xa02,
	MLX5_CMD_OP_DESTROY_GENERAL_OBJECT	= 0xa03,
};

enum { HCA_CAP_OPMOD_GET_CUR = 1 };
enum { MLX5_CMD_STAT_BAD_OP_ERR = 2 };
enum { MLX5_MATCH_OUTER_HEADERS = 1, MLX5_MATCH_MISC_PARAMETERS_4 = 32 };

struct mlx5_flow_context { u32 flow_tag; };

struct mlx5_flow_spec {
	u8 match_criteria_enable;
	u32 match_criteria[MLX5_ST_SZ_DW(fte_match_param)];
	u32 match_value[MLX5_ST_SZ_DW(fte_match_param)];
	struct mlx5_flow_context flow_context;
};

struct mlx5_core_dev {
	u64 general_obj_types;
	struct fake_fw *fw;
};

#define MLX5_CAP_GEN_64(dev, cap)	((dev)->cap)

int mlx5_cmd_exec(struct mlx5_core_dev *dev, void *in, int in_size, void *out, int out_size);

#endif /* FAKE_KERNEL_H */
