/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A command channel with the parse graph behind it and nothing else. It is
 * strict: what it does not know it refuses, and it counts what should not be.
 */

#ifndef FAKE_FW_H
#define FAKE_FW_H

#include "fake_kernel.h"

#define FAKE_FW_NODES 16
#define FAKE_FW_LOG 512

struct fake_fw_node {
	u32 obj_id;
	u32 sample_id;
	u8 proto;
	int matches;	/* flow table entries on the sample */
};

struct fake_fw_cmd {
	u16 opcode;
	int dwords;
	u32 in[108];	/* in CPU order */
};

/* One command of an opcode goes wrong: the nth from now, counted from 1. */
struct fake_fw_fault {
	u16 opcode;
	int nth;
	u8 status;	/* 0x0f, ...; or, if 0, */
	int err;	/* the driver's own error */
};

struct fake_fw {
	u32 cap[8];		/* the parse graph's capability page, CPU order */
	int samples;		/* size of the pool */
	u8 pool_status;		/* what a refusal looks like */
	u8 taken_proto;		/* held by somebody else, 0 for none */
	bool internal_error;
	struct fake_fw_fault faults[4];

	struct fake_fw_node nodes[FAKE_FW_NODES];
	u32 next_id;
	int violations;		/* destroyed under a live match, unknown id, ... */
	struct fake_fw_cmd log[FAKE_FW_LOG];
	int commands;
};

void fake_fw_init(struct fake_fw *fw);
int fake_fw_live(const struct fake_fw *fw);
struct fake_fw_node *fake_fw_sample(struct fake_fw *fw, u32 sample_id);
const char *fake_log_last(void);
void fake_log_clear(void);
void fake_zalloc_fail(int nth);

#endif /* FAKE_FW_H */
