/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_compare.h - is a result as close to the reference's as the numerics class that was promised demands? */
#ifndef KERNEL_COMPARE_H
#define KERNEL_COMPARE_H

#include <stdio.h>

#include "conformance/kernel_cases.h"

typedef struct float_facts {
  uint32_t format;
  double   epsilon;             /* distance from 1 to the next number */
  double   smallest_normal;
} float_facts;

static const float_facts all_float_facts[] = {
  { TM_FORMAT_F64, 0x1p-52, 0x1p-1022 },    { TM_FORMAT_F32, 0x1p-23, 0x1p-126 },    { TM_FORMAT_F16, 0x1p-10, 0x1p-14 },
  { TM_FORMAT_BF16, 0x1p-7, 0x1p-126 },     { TM_FORMAT_F8_E4M3FN, 0x1p-3, 0x1p-6 }, { TM_FORMAT_F8_E5M2, 0x1p-2, 0x1p-14 },
};

static inline const float_facts *facts_of(uint32_t format) {
  for (size_t i = 0; i < sizeof all_float_facts / sizeof all_float_facts[0]; ++i) {
    if (all_float_facts[i].format == format) return &all_float_facts[i];
  }
  return NULL;
}

/* These keep bits, payloads of NaN included.  Elsewhere a NaN is a NaN: which of two operands' payloads an addition keeps
   is nobody's promise. */
static inline bool keeps_bits(uint32_t op) {
  static const uint32_t keepers[] = {
    TM_OP_COPY, TM_OP_TRANSPOSE, TM_OP_GATHER, TM_OP_FILL, TM_OP_QUANTIZE, TM_OP_NEG, TM_OP_ABS, TM_OP_RELU, TM_OP_CLAMP,
    TM_OP_UPDATE, TM_OP_WHERE, TM_OP_MIN, TM_OP_MAX, TM_OP_STATS, TM_OP_COMPARE_TENSORS,
  };
  for (size_t i = 0; i < sizeof keepers / sizeof keepers[0]; ++i) {
    if (keepers[i] == op) return true;
  }
  return false;
}

/* Terms added up in one output element. */
static inline double term_count(const tm_operation *operation) {
  const tm_operand *x = &operation->operands[0], *y = &operation->operands[operation->input_count];
  switch (operation->op) {
    case TM_OP_MATMUL:
    case TM_OP_MATMUL_SCALED: {
      const tm_matmul_attributes *attributes = operation->attributes;
      return (double)x->dims[attributes->transpose_a ? x->rank - 2 : x->rank - 1];
    }
    case TM_OP_SUM:
    case TM_OP_MEAN: return y->element_count > 0 ? (double)x->element_count / (double)y->element_count : 1;
    case TM_OP_SOFTMAX: return (double)x->dims[((const tm_axis_attributes *)operation->attributes)->axis];
    case TM_OP_LAYER_NORM:
    case TM_OP_RMS_NORM: return (double)x->dims[x->rank - 1];
    case TM_OP_ROPE: return 2;
    case TM_OP_ATTENTION: return (double)x[1].dims[x[1].rank - 3] + (double)x->dims[x->rank - 1];
    default: return 1;
  }
}

/* How far y may be from r; `terms` is the sum of the magnitudes of what was added up. */
static inline double allowed_distance(const tm_operation *operation, const tm_answer *answer, double r, double terms) {
  const uint32_t format = operation->operands[operation->input_count].format;
  const float_facts *out = facts_of(format), *accumulator = facts_of(answer->accumulator);
  const double n = term_count(operation);
  const double growth = answer->growth == TM_GROWTH_LINEAR ? n : answer->growth == TM_GROWTH_LOG2 ? log2(n) + 1 : 1;
  double allowed = answer->numerics_bound * growth * (accumulator != NULL ? accumulator->epsilon : 0) * terms;
  if (out != NULL) allowed += out->epsilon * fabs(r);
  if (out != NULL && (answer->numerics_flags & TM_NUMERICS_FLUSHES) != 0) allowed += out->smallest_normal;
  return allowed;
}

/* Steps from one float to the other through the numbers of their format, whose bits are sign and magnitude. */
static inline uint64_t ulp_distance(const unsigned char *a, const unsigned char *b, uint32_t bytes) {
  uint64_t bits[2] = { 0, 0 };
  memcpy(&bits[0], a, bytes);
  memcpy(&bits[1], b, bytes);
  const uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
  int64_t place[2];
  for (int i = 0; i < 2; ++i) place[i] = bits[i] & sign ? -(int64_t)(bits[i] & (sign - 1)) : (int64_t)bits[i];
  return place[0] > place[1] ? (uint64_t)(place[0] - place[1]) : (uint64_t)(place[1] - place[0]);
}

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
  if (isnan(y) && isnan(r)) return !keeps_bits(operation->op);
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
