/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef FAKE_TYPES_H
#define FAKE_TYPES_H

#include_next <linux/types.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#endif /* FAKE_TYPES_H */
