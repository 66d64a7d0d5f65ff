/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_elementwise_loops.h - the loop around an expression: whole vectors, then what is left.  Each macro defines
 * span_<name>_<T> and the functions that its row needs.  In EXPRESSION the operands are `a`, `b`, `c`; `attributes` are
 * the operation's.
 */
#ifndef CPU_ELEMENTWISE_LOOPS_H
#define CPU_ELEMENTWISE_LOOPS_H

#include "cpu_elementwise_span.h"
#include "cpu_vector_avx2.h"

#define CPU_LOOP_BODY_1(NAME, T, EXPRESSION)                                                                          \
  CPU_AVX2 static void NAME##_##T(const void *attributes, const void *const *inputs, void *output, uint64_t count) {  \
    const void *in = inputs[0];                                                                                       \
    uint64_t i = 0;                                                                                                   \
    (void)attributes;                                                                                                 \
    for (; i + CPU_LANES_##T <= count; i += CPU_LANES_##T) {                                                          \
      const CPU_VECTOR_##T a = load_##T(in, i);                                                                       \
      store_##T(output, i, EXPRESSION);                                                                               \
    }                                                                                                                 \
    if (i < count) {                                                                                                  \
      const CPU_VECTOR_##T a = load_part_##T(in, i, count - i);                                                       \
      store_part_##T(output, i, EXPRESSION, count - i);                                                               \
    }                                                                                                                 \
  }

#define CPU_LOOP_1(NAME, T, BYTES, PICOSECONDS, EXPRESSION)                                                           \
  CPU_LOOP_BODY_1(NAME, T, EXPRESSION)                                                                                \
  static const cpu_span span_##NAME##_##T = { NAME##_##T, 1, { BYTES, BYTES, 0, 0 }, PICOSECONDS };                   \
  CPU_SPAN_ROW_FUNCTIONS(NAME##_##T)

#define CPU_LOOP_2(NAME, T, BYTES, PICOSECONDS, EXPRESSION)                                                           \
  CPU_AVX2 static void NAME##_##T(const void *attributes, const void *const *inputs, void *output, uint64_t count) {  \
    const void *left = inputs[0], *right = inputs[1];                                                                 \
    uint64_t i = 0;                                                                                                   \
    (void)attributes;                                                                                                 \
    for (; i + CPU_LANES_##T <= count; i += CPU_LANES_##T) {                                                          \
      const CPU_VECTOR_##T a = load_##T(left, i), b = load_##T(right, i);                                             \
      store_##T(output, i, EXPRESSION);                                                                               \
    }                                                                                                                 \
    if (i < count) {                                                                                                  \
      const CPU_VECTOR_##T a = load_part_##T(left, i, count - i), b = load_part_##T(right, i, count - i);             \
      store_part_##T(output, i, EXPRESSION, count - i);                                                               \
    }                                                                                                                 \
  }                                                                                                                   \
  static const cpu_span span_##NAME##_##T = { NAME##_##T, 2, { BYTES, BYTES, BYTES, 0 }, PICOSECONDS };               \
  CPU_SPAN_ROW_FUNCTIONS(NAME##_##T)

#define CPU_LOOP_3(NAME, T, BYTES, PICOSECONDS, EXPRESSION)                                                           \
  CPU_AVX2 static void NAME##_##T(const void *attributes, const void *const *inputs, void *output, uint64_t count) {  \
    const void *first = inputs[0], *second = inputs[1], *third = inputs[2];                                           \
    uint64_t i = 0;                                                                                                   \
    (void)attributes;                                                                                                 \
    for (; i + CPU_LANES_##T <= count; i += CPU_LANES_##T) {                                                          \
      const CPU_VECTOR_##T a = load_##T(first, i), b = load_##T(second, i), c = load_##T(third, i);                   \
      store_##T(output, i, EXPRESSION);                                                                               \
    }                                                                                                                 \
    if (i < count) {                                                                                                  \
      const uint64_t n = count - i;                                                                                   \
      const CPU_VECTOR_##T a = load_part_##T(first, i, n), b = load_part_##T(second, i, n),                           \
                           c = load_part_##T(third, i, n);                                                            \
      store_part_##T(output, i, EXPRESSION, n);                                                                       \
    }                                                                                                                 \
  }                                                                                                                   \
  static const cpu_span span_##NAME##_##T = { NAME##_##T, 3, { BYTES, BYTES, BYTES, BYTES }, PICOSECONDS };           \
  CPU_SPAN_ROW_FUNCTIONS(NAME##_##T)

/* The output may lie where an input lies: every element is read before it is written. */
#define CPU_ALIASES_1 0x1u
#define CPU_ALIASES_2 0x3u
#define CPU_ALIASES_3 0x7u

/* The row of span_<SPAN>, bit-equal to the reference; the formats of all operands follow. */
#define CPU_EXACT_ROW(OP, TEXT, SPAN, ATTRIBUTE_BYTES, ALIASES, ...)                                                  \
  { .op = OP, .formats = { __VA_ARGS__ }, .attribute_bytes = ATTRIBUTE_BYTES, .isa = CPU_ISA_AVX2,                    \
    .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N0,                                                             \
    .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE, .alias_mask = ALIASES,                    \
    .name = "cpu_" TEXT "__avx2", .refuses = refuses_##SPAN, .cost_ns = cost_##SPAN, .run = run_##SPAN }

#endif
