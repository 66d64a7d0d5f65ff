/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_stats.h - what the kernels of TM_OP_STATS share.  A kernel of a format takes one superblock of the canonical order
 * (canonical_sum.h) and adds it to a state; the rest, threads and exact sums, is the same for all.
 */
#ifndef CPU_STATS_H
#define CPU_STATS_H

#include <stdint.h>

#include "tensormorph/canonical_sum.h"

typedef struct cpu_stats_state {
  uint64_t nan, pos_inf, neg_inf, zero, subnormal;
  double   min, max;                            /* of the finite values so far; a zero may have either sign */
  double   sum[TM_SUM_LANES], squares[TM_SUM_LANES];    /* lanes of one superblock, +0 when it starts */
} cpu_stats_state;

/* Adds one superblock of `count` elements (at most TM_SUM_SUPERBLOCK; of a block format whole blocks). */
typedef void (*cpu_stats_fn)(const unsigned char *data, uint64_t count, cpu_stats_state *state);

void cpu_stats_f64(const unsigned char *data, uint64_t count, cpu_stats_state *state);
void cpu_stats_f32(const unsigned char *data, uint64_t count, cpu_stats_state *state);
void cpu_stats_bf16(const unsigned char *data, uint64_t count, cpu_stats_state *state);
void cpu_stats_f16(const unsigned char *data, uint64_t count, cpu_stats_state *state);
void cpu_stats_f8_e4m3fn(const unsigned char *data, uint64_t count, cpu_stats_state *state);
void cpu_stats_f8_e5m2(const unsigned char *data, uint64_t count, cpu_stats_state *state);
void cpu_stats_i8(const unsigned char *data, uint64_t count, cpu_stats_state *state);
void cpu_stats_u8(const unsigned char *data, uint64_t count, cpu_stats_state *state);
void cpu_stats_q8_0(const unsigned char *data, uint64_t count, cpu_stats_state *state);
void cpu_stats_q4_0(const unsigned char *data, uint64_t count, cpu_stats_state *state);

/* Of blocks that `decode` makes TM_SUM_BLOCK f32 of at a time; none of those is subnormal. */
void cpu_stats_decoded(void (*decode)(const unsigned char *data, float *to), uint64_t block_elements, uint64_t block_bytes,
                       const unsigned char *data, uint64_t count, cpu_stats_state *state);

/* Widens the extremes; `value` is finite. */
static inline void cpu_stats_extreme(cpu_stats_state *state, double value) {
  if (value < state->min) state->min = value;
  if (value > state->max) state->max = value;
}

#endif
