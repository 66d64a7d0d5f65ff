/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_merge.h - what the kernels that make one tensor of many share: blocks of elements, decoded in the first-level cache
 * from whatever format each input has, and one rounding at the end.  A kernel gives a function for a block; threads, short
 * blocks and formats are the same for all.
 */
#ifndef CPU_MERGE_H
#define CPU_MERGE_H

#include "cpu_decode.h"

#define CPU_MERGE_BLOCK  512u
#define CPU_MERGE_INPUTS (TM_MAX_OPERANDS - 2u)         /* without the settings and the output */
#define CPU_MERGE_SETTINGS (1u + TM_DARE_WORDS * (CPU_MERGE_INPUTS - 1u))

typedef struct cpu_merge cpu_merge;

/* Makes elements [first, first + count) of y; count is CPU_MERGE_BLOCK but for the last block. */
typedef void (*cpu_merge_fn)(const cpu_merge *m, uint64_t first, uint64_t count);

struct cpu_merge {
  uint32_t             input_count;     /* x_0 or the base, then the others */
  const struct cpu_merge_source *sources[CPU_MERGE_INPUTS];
  const unsigned char *data[CPU_MERGE_INPUTS];
  const void          *attributes;
  uint32_t             y_format;
  unsigned char       *y;
  cpu_store_kind       store;
  cpu_merge_fn         function;
  uint64_t             count;
  union {
    uint64_t words[CPU_MERGE_SETTINGS];
    double   numbers[CPU_MERGE_SETTINGS];
  } settings;
};

/* How a format becomes f32: `decode` takes CPU_MERGE_BLOCK elements.  f64 has none and stays what it is. */
typedef struct cpu_merge_source {
  uint32_t format;
  uint32_t bytes;               /* of so many elements: */
  uint32_t elements;
  void   (*decode)(const unsigned char *data, float *to);
} cpu_merge_source;

/* NULL for a format that is not read. */
const cpu_merge_source *cpu_merge_source_find(uint32_t format);

static inline int cpu_merge_is_wide(const cpu_merge *m, uint32_t input) { return m->sources[input]->format == TM_FORMAT_F64; }
/* The address of an input's element, the first one of a block of its format. */
static inline const unsigned char *cpu_merge_at(const cpu_merge *m, uint32_t input, uint64_t element) {
  return m->data[input] + element / m->sources[input]->elements * m->sources[input]->bytes;
}

/* A block of an input that is not f64, in place or in `room`; a short block is filled up with zeros. */
const float *cpu_merge_load(const cpu_merge *m, uint32_t input, uint64_t first, uint64_t count, float *room);
/* A block of any input as f64. */
void cpu_merge_load_wide(const cpu_merge *m, uint32_t input, uint64_t first, uint64_t count, double *out_values);
/* Where a block of y goes: its place, or `room` if it is a short one, which cpu_merge_put then brings there. */
unsigned char *cpu_merge_place(const cpu_merge *m, uint64_t first, uint64_t count, unsigned char *room);
void cpu_merge_put(const cpu_merge *m, uint64_t first, uint64_t count, const unsigned char *room);
/* Rounds a block to y's format. */
void cpu_merge_store(const cpu_merge *m, uint64_t first, uint64_t count, const double *values);

/* TM_REASON_*: formats that are not read or written, operands that are not dense. */
uint32_t cpu_merge_refuses(const tm_operation *operation, uint32_t *out_operand);
void cpu_merge_run(const cpu_call *call, cpu_merge_fn function);
/* `elements_per_us` of one core, of one input. */
uint64_t cpu_merge_cost_ns(const tm_operation *operation, double elements_per_us, uint32_t lanes);

#define CPU_MERGE_ALIASES 0xfdu /* every input but the settings, as far as the mask goes */

#endif
