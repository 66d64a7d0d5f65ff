/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of TM_OP_COMPARE_TENSORS with integers of 64 bits.  There are few of them in checkpoints, but a difference of large ones
 * must not be lost: so pair by pair, with what the nearest f64 lacks.
 */
#include <math.h>
#include <string.h>

#include "cpu_compare.h"
#include "cpu_simd.h"

#define BLOCK TM_SUM_BLOCK

typedef struct wide_number {
  double value, rest;           /* the nearest f64, and what that lacks */
} wide_number;

/* Modulo 2^64, as integers wrap. */
CPU_INLINE uint64_t wrapped(double whole) {
  if (whole < 0) return 0 - (uint64_t)-whole;
  return whole < 0x1p64 ? (uint64_t)whole : 0;
}

CPU_INLINE wide_number number_at(const cpu_compare_format *format, const unsigned char *data, const unsigned char *values, size_t i) {
  wide_number number = { 0, 0 };
  uint64_t bits;
  memcpy(&number.value, values + i * sizeof number.value, sizeof number.value);
  if (!format->is_wide_integer) return number;
  memcpy(&bits, data + i * sizeof bits, sizeof bits);
  number.rest = (double)(int64_t)(bits - wrapped(number.value));
  return number;
}

/* Integers of one format have one form, so that equal values are equal bits. */
CPU_INLINE int are_equal(wide_number a, wide_number b) { return a.value == b.value && a.rest == b.rest; }

CPU_INLINE void add_pair(wide_number a, wide_number b, size_t lane, cpu_compare_state *state) {
  cpu_compare_lanes *lanes = &state->lanes;
  const double difference = (a.value - b.value) + (a.rest - b.rest), distance = fabs(difference);
  const double larger = fabs(a.value) > fabs(b.value) ? fabs(a.value) : fabs(b.value);
  if (distance > state->max_abs) state->max_abs = distance;
  if (larger > 0 && distance / larger > state->max_rel) state->max_rel = distance / larger;
  lanes->squared[lane] = fma(difference, difference, lanes->squared[lane]);
  lanes->dot[lane] = fma(a.value, b.value, lanes->dot[lane]);
  lanes->norm_a[lane] = fma(a.value, a.value, lanes->norm_a[lane]);
  lanes->norm_b[lane] = fma(b.value, b.value, lanes->norm_b[lane]);
}

CPU_AVX2 void cpu_compare_add_wide(const cpu_compare_format *const *formats, const unsigned char *data_a,
                                   const unsigned char *data_b, const void *a, const void *b, cpu_compare_state *state) {
  for (size_t i = 0; i < BLOCK; ++i) {
    const wide_number one = number_at(formats[0], data_a, a, i), other = number_at(formats[1], data_b, b, i);
    if (!isfinite(one.value) || !isfinite(other.value)) {
      state->nonfinite++;
      continue;
    }
    state->equal += (uint64_t)are_equal(one, other);
    add_pair(one, other, i % TM_SUM_LANES, state);
  }
}
