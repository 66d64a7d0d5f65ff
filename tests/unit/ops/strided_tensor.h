/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strided_tensor.h - tensors in memory with arbitrary strides, for tests: made, filled, compared and guarded with loops
 * of their own, so that nothing of the library is needed to judge the library.
 */
#ifndef TM_TESTS_STRIDED_TENSOR_H
#define TM_TESTS_STRIDED_TENSOR_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/format.h"
#include "tensormorph/types.h"

typedef struct random_source {
  uint64_t state;
} random_source;

static inline uint64_t random_bits(random_source *random) {
  uint64_t x = random->state += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

static inline uint32_t random_below(random_source *random, uint32_t limit) {
  return (uint32_t)(random_bits(random) >> 32) % limit;
}

#define GUARD 0xa5

typedef struct strided_tensor {
  tm_operand     operand;
  unsigned char *memory;
  uint64_t       bytes;         /* of memory */
  unsigned char *first;         /* the element with index 0 */
} strided_tensor;

static inline uint64_t block_count(const tm_operand *operand, uint32_t axis) {
  const tm_format_info *info = tm_format_find(operand->format);
  return axis + 1 == operand->rank ? operand->dims[axis] / info->block_elements : operand->dims[axis];
}

/* Blocks in all. */
static inline uint64_t total_blocks(const tm_operand *operand) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < operand->rank; i++) count *= block_count(operand, i);
  return count;
}

/* Address of block `number` in row-major order. */
static inline unsigned char *block_at(const strided_tensor *t, uint64_t number) {
  int64_t offset = 0;
  for (uint32_t i = t->operand.rank; i-- > 0;) {
    const uint64_t extent = block_count(&t->operand, i);
    offset += (int64_t)(number % extent) * t->operand.strides_bytes[i];
    number /= extent;
  }
  return t->first + offset;
}

/* Strides: axes in random order in memory, with gaps and reversed directions; a block format keeps its last axis. */
static inline void random_strides(random_source *random, tm_operand *operand) {
  const tm_format_info *info = tm_format_find(operand->format);
  uint32_t order[TM_MAX_RANK];
  for (uint32_t i = 0; i < operand->rank; i++) order[i] = operand->rank - 1 - i;
  const uint32_t fixed = info->block_elements > 1 ? 1 : 0;
  for (uint32_t i = operand->rank; i-- > fixed + 1;) {
    const uint32_t j = fixed + random_below(random, i - fixed + 1);
    const uint32_t axis = order[i];
    order[i] = order[j];
    order[j] = axis;
  }
  int64_t step = info->block_bytes;
  for (uint32_t i = 0; i < operand->rank; i++) {
    const uint64_t extent = block_count(operand, order[i]);
    const bool is_fixed = i < fixed;
    if (!is_fixed) step *= 1 + random_below(random, 2);
    operand->strides_bytes[order[i]] = !is_fixed && random_below(random, 3) == 0 ? -step : step;
    step *= extent == 0 ? 1 : (int64_t)extent;
  }
}

/* Memory around the tensor that nothing may touch. */
static inline void place(strided_tensor *t) {
  const tm_format_info *info = tm_format_find(t->operand.format);
  uint64_t below = 0, above = info->block_bytes;
  for (uint32_t i = 0; i < t->operand.rank; i++) {
    const uint64_t extent = block_count(&t->operand, i);
    const int64_t stride = t->operand.strides_bytes[i];
    if (extent > 1 && stride < 0) below += (extent - 1) * (uint64_t)-stride;
    if (extent > 1 && stride > 0) above += (extent - 1) * (uint64_t)stride;
  }
  const uint64_t margin = 64;
  t->bytes = below + above + 2 * margin;
  t->memory = malloc((size_t)t->bytes);
  memset(t->memory, GUARD, (size_t)t->bytes);
  t->first = t->memory + margin + below;
}

static inline void copy_elements(const strided_tensor *from, const strided_tensor *to) {
  const uint32_t bytes = tm_format_find(from->operand.format)->block_bytes;
  const uint64_t count = total_blocks(&from->operand);
  for (uint64_t i = 0; i < count; i++) memcpy(block_at(to, i), block_at(from, i), bytes);
}

/* Bytes outside of all elements still hold the guard value. */
static inline bool guards_hold(const strided_tensor *t) {
  const uint32_t bytes = tm_format_find(t->operand.format)->block_bytes;
  const uint64_t count = total_blocks(&t->operand);
  unsigned char *covered = calloc(1, (size_t)t->bytes);
  bool holds = true;
  for (uint64_t i = 0; i < count; i++) memset(covered + (block_at(t, i) - t->memory), 1, bytes);
  for (uint64_t i = 0; i < t->bytes; i++) holds = holds && (covered[i] || t->memory[i] == GUARD);
  free(covered);
  return holds;
}

#endif
