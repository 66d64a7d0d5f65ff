/* SPDX-License-Identifier: Apache-2.0 */
/* checked.h - arithmetic on sizes that says when it overflows.  Every size computed from a file or a caller goes through it. */
#ifndef TM_BASE_CHECKED_H
#define TM_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

/* Each returns false, leaving *out_result alone, when the true result does not fit. */
static inline bool tm_checked_add(uint64_t a, uint64_t b, uint64_t *out_result) {
  uint64_t result;
  if (__builtin_add_overflow(a, b, &result)) return false;
  *out_result = result;
  return true;
}

static inline bool tm_checked_mul(uint64_t a, uint64_t b, uint64_t *out_result) {
  uint64_t result;
  if (__builtin_mul_overflow(a, b, &result)) return false;
  *out_result = result;
  return true;
}

/* Rounds up to a multiple of `granule` (not necessarily a power of two, at least 1). */
static inline bool tm_checked_round_up(uint64_t value, uint64_t granule, uint64_t *out_result) {
  const uint64_t rest = value % granule;
  return tm_checked_add(value, rest == 0 ? 0 : granule - rest, out_result);
}

/* a * b, or all ones when it overflows. */
static inline uint64_t tm_saturating_mul(uint64_t a, uint64_t b) {
  uint64_t product;
  return tm_checked_mul(a, b, &product) ? product : UINT64_MAX;
}

static inline uint64_t tm_divide_up(uint64_t value, uint64_t divisor) {
  return value / divisor + (value % divisor != 0);
}

static inline uint64_t tm_min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t tm_max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* The largest number that divides both; of 0 and another one it is that one. */
static inline uint64_t tm_common_divisor(uint64_t a, uint64_t b) {
  while (b != 0) {
    const uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

#endif
