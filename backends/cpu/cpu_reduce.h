/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_reduce.h - what the reductions share: a dense tensor seen as [outer, reduced, inner] with the middle axis reduced,
 * and values of several formats loaded as f32.
 */
#ifndef CPU_REDUCE_H
#define CPU_REDUCE_H

#include "cpu_decode.h"

typedef struct cpu_reduce_shape {
  uint64_t outer, reduced, inner;
} cpu_reduce_shape;

/* Rows this long, when there are few of them, are cut into parts of so many elements for the threads. */
#define CPU_REDUCE_PART 65536u
#define CPU_REDUCE_LONG 262144u

/* 1 if the reduced axes are neighbours (axes of extent 1 aside) and there are elements. */
int cpu_reduce_shape_of(const tm_operation *operation, cpu_reduce_shape *out_shape);

/* The usual refusal of a reduction. */
uint32_t cpu_reduce_refuses(const tm_operation *operation, uint32_t *out_operand);

/* Whether the outputs are too few, and their rows long enough, for threads to share a row. */
int cpu_reduce_shares_rows(const cpu_reduce_shape *shape, uint32_t lanes);

uint64_t cpu_reduce_cost_ns(const tm_operation *operation, double elements_per_us, uint32_t lanes);

/* Formats of the input; compile-time constants in every kernel. */
typedef enum cpu_reduce_source { CPU_REDUCE_F32, CPU_REDUCE_BF16, CPU_REDUCE_F16 } cpu_reduce_source;

static inline uint64_t cpu_reduce_bytes(cpu_reduce_source s) { return s == CPU_REDUCE_F32 ? 4 : 2; }

/* Eight values; a NaN may come out quiet. */
CPU_INLINE __m256 cpu_reduce_load(cpu_reduce_source s, const unsigned char *data) {
  if (s == CPU_REDUCE_F32) return cpu_load_ps(data);
  return s == CPU_REDUCE_BF16 ? cpu_widen_bf16(cpu_load128(data)) : _mm256_cvtph_ps(cpu_load128(data));
}

/* One value. */
static inline CPU_AVX2 float cpu_reduce_one(cpu_reduce_source s, const unsigned char *data) {
  uint32_t bits = 0;
  float value;
  memcpy(&bits, data, cpu_reduce_bytes(s));
  if (s == CPU_REDUCE_F16) return _cvtsh_ss((unsigned short)bits);
  if (s == CPU_REDUCE_BF16) bits <<= 16;
  memcpy(&value, &bits, sizeof value);
  return value;
}

#endif
