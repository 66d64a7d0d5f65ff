/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_compare.h - is a result as close to the reference's as the numerics class that was promised demands? */
#ifndef KERNEL_COMPARE_H
#define KERNEL_COMPARE_H

#include <stdio.h>

#include "conformance/kernel_cases.h"
#include "ops/result_closeness.h"

/* How far y may be from r; `terms` is the sum of the magnitudes of what was added up. */
static inline double allowed_distance(const tm_operation *operation, const tm_answer *answer, double r, double terms) {
  return tm_closeness_allowed(operation, answer, r, terms);
}

static inline uint64_t ulp_distance(const unsigned char *a, const unsigned char *b, uint32_t bytes) { return tm_closeness_ulps(a, b, bytes); }

/* One block of elements of the output; `terms` is NULL unless the class needs it. */
static inline bool block_is_close(const tm_operation *operation, const tm_answer *answer, const unsigned char *actual,
                                  const unsigned char *expected, const unsigned char *terms) {
  const uint32_t format = operation->operands[operation->input_count].format;
  const tm_format_info *info = tm_format_find(format);
  if (memcmp(actual, expected, info->block_bytes) == 0) return true;
  if (info->kind != TM_KIND_FLOAT) return false;
  double y, r, t = 0;
  tm_codec_find(format)->decode(actual, 1, &y);
  tm_codec_find(format)->decode(expected, 1, &r);
  if (isnan(y) && isnan(r)) return !tm_closeness_keeps_bits(operation->op);
  if (answer->numerics == TM_NUMERICS_N0) return false;
  if (answer->numerics == TM_NUMERICS_N1) {
    if (isnan(y) || isnan(r)) return false;
    return (double)ulp_distance(actual, expected, info->block_bytes) <= answer->numerics_bound;
  }
  if (!isfinite(r)) return false;
  if (terms != NULL) tm_codec_find(format)->decode(terms, 1, &t);
  return fabs(y - r) <= allowed_distance(operation, answer, r, terms != NULL ? fabs(t) : fabs(r));
}

#endif
