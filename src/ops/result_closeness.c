/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/result_closeness.h"

#include <math.h>
#include <string.h>

#include "ops/op_check.h"
#include "tensor/codec.h"
#include "tensor/format.h"

/* A result of nothing but zeros is wrong by the whole: what allows that, or nearly, promises nothing. */
#define LARGEST_SHARE 0.0625
#define LEAST_CEILING 4.0
#define LARGEST_SQUARE_ERROR 0.25

typedef struct float_facts {
  uint32_t format;
  double   epsilon;             /* distance from 1 to the next number */
  double   smallest_normal;
  double   largest;             /* or a little less: what a sum may be */
  double   border;              /* where rounding to the format begins to give infinity */
} float_facts;

static const float_facts all_facts[] = {
  { TM_FORMAT_F64, 0x1p-52, 0x1p-1022, 0x1p1023, HUGE_VAL },
  { TM_FORMAT_F32, 0x1p-23, 0x1p-126, 0x1.fffffep127, 0x1.ffffffp127 },
  { TM_FORMAT_F16, 0x1p-10, 0x1p-14, 65504, 65520 },
  { TM_FORMAT_BF16, 0x1p-7, 0x1p-126, 0x1.fffffep127, 0x1.ffp127 },
  { TM_FORMAT_F8_E4M3FN, 0x1p-3, 0x1p-6, 448, HUGE_VAL },
  { TM_FORMAT_F8_E5M2, 0x1p-2, 0x1p-14, 57344, 61440 },
};

static const float_facts *facts_of(uint32_t format) {
  for (size_t i = 0; i < sizeof all_facts / sizeof all_facts[0]; i++)
    if (all_facts[i].format == format) return &all_facts[i];
  return NULL;
}

double tm_closeness_smallest_normal(uint32_t format) {
  const float_facts *facts = facts_of(format);
  return facts == NULL ? 0 : facts->smallest_normal;
}

bool tm_closeness_keeps_bits(uint32_t op) {
  static const uint32_t keepers[] = {
    TM_OP_COPY, TM_OP_TRANSPOSE, TM_OP_GATHER, TM_OP_FILL, TM_OP_QUANTIZE, TM_OP_NEG, TM_OP_ABS, TM_OP_RELU, TM_OP_CLAMP,
    TM_OP_UPDATE, TM_OP_WHERE, TM_OP_MIN, TM_OP_MAX, TM_OP_STATS, TM_OP_COMPARE_TENSORS,
  };
  for (size_t i = 0; i < sizeof keepers / sizeof keepers[0]; i++)
    if (keepers[i] == op) return true;
  return false;
}

/* Terms added up in one output element. */
static double term_count(const tm_operation *operation) {
  const tm_operand *x = &operation->operands[0], *y = tm_output_of(operation);
  switch (operation->op) {
    case TM_OP_MATMUL:
    case TM_OP_MATMUL_SCALED: {
      const tm_matmul_attributes *attributes = operation->attributes;   /* both attribute structs begin with the transposes */
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

double tm_closeness_allowed(const tm_operation *operation, const tm_answer *answer, double exact, double terms) {
  const float_facts *out = facts_of(tm_output_of(operation)->format), *accumulator = facts_of(answer->accumulator);
  const double n = term_count(operation);
  const double growth = answer->growth == TM_GROWTH_LINEAR ? n : answer->growth == TM_GROWTH_LOG2 ? log2(n) + 1 : 1;
  double allowed = answer->numerics_bound * growth * (accumulator != NULL ? accumulator->epsilon : 0) * terms;
  if (out != NULL) allowed += out->epsilon * fabs(exact);
  if (out != NULL && (answer->numerics_flags & TM_NUMERICS_FLUSHES) != 0) allowed += out->smallest_normal;
  return allowed;
}

/* Steps that are a sixteenth: of a float, or of the range of an integer.  Who has few digits may err in the last ones. */
static double sixteenth(uint32_t format) {
  const float_facts *facts = facts_of(format);
  const tm_format_info *info = tm_format_find(format);
  if (facts != NULL) return fmax(LEAST_CEILING, LARGEST_SHARE / facts->epsilon);
  const bool is_integer = info != NULL && (info->kind == TM_KIND_SIGNED || info->kind == TM_KIND_UNSIGNED) && info->block_elements == 1;
  return is_integer ? fmax(LEAST_CEILING, ldexp(LARGEST_SHARE, (int)(8 * info->block_bytes))) : LEAST_CEILING;
}

double tm_closeness_largest_bound(const tm_operation *operation, const tm_answer *answer) {
  switch (answer->numerics) {
    case TM_NUMERICS_N1: return sixteenth(tm_output_of(operation)->format);
    case TM_NUMERICS_N2: return sixteenth(answer->accumulator);
    case TM_NUMERICS_N3: return LARGEST_SQUARE_ERROR;
    default: return 0;
  }
}

uint64_t tm_closeness_ulps(const void *a, const void *b, uint32_t bytes) {
  uint64_t bits[2] = { 0, 0 };
  memcpy(&bits[0], a, bytes);
  memcpy(&bits[1], b, bytes);
  const uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
  int64_t place[2];
  for (int i = 0; i < 2; i++) place[i] = bits[i] & sign ? -(int64_t)(bits[i] & (sign - 1)) : (int64_t)bits[i];
  return place[0] > place[1] ? (uint64_t)place[0] - (uint64_t)place[1] : (uint64_t)place[1] - (uint64_t)place[0];
}

bool tm_closeness_needs_terms(const tm_answer *answer) { return answer->numerics == TM_NUMERICS_N2; }

/* ---- one element ---- */

typedef struct measuring {
  const tm_operation      *operation;
  const tm_answer         *answer;
  const tm_result_element *element;
  const tm_format_info    *info;
} measuring;

static bool has_flag(const measuring *m, uint32_t flag) { return (m->answer->numerics_flags & flag) != 0; }

/* Where the reference has NaN or an infinity: the same kind, if that was promised.  A format without infinities has NaN for what is
   too large, and who did not round to f64 first cannot tell. */
static double nonfinite_distance(const measuring *m, double y, double r) {
  const bool may_be_large = !m->element->is_exact && m->answer->numerics == TM_NUMERICS_N2 &&
                            (isinf(r) || m->info->format == TM_FORMAT_F8_E4M3FN);
  const bool same = isnan(r) ? isnan(y) : y == r;
  return same || may_be_large || !has_flag(m, TM_NUMERICS_KEEPS_NONFINITE) ? 0 : HUGE_VAL;
}

/* The smallest step of a format. */
static double tiniest(uint32_t format) {
  const float_facts *facts = facts_of(format);
  return facts == NULL ? 0 : facts->smallest_normal * facts->epsilon;
}

/* What one rounding to the format may have changed. */
static double rounding_of(const measuring *m, double r) {
  const float_facts *facts = facts_of(m->info->format);
  return m->element->is_exact || facts == NULL ? 0 : facts->epsilon * fabs(r) + tiniest(m->info->format);
}

/* N2.  What the accumulator cannot hold although the result could is nobody's promise; what it loses to its smallest step
   is allowed once a term. */
static double formula_distance(const measuring *m, double y, double expected) {
  const double r = m->element->is_exact ? m->element->exact : expected, terms = m->element->terms;
  const float_facts *accumulator = facts_of(m->answer->accumulator), *out = facts_of(m->info->format);
  const double largest = accumulator == NULL ? 0x1.fffffep127 : accumulator->largest;
  if (!(terms < largest) || !isfinite(r)) return isfinite(expected) ? 0 : nonfinite_distance(m, y, expected);
  if (!isfinite(expected)) return 0;    /* r rounds to infinity, and y may lie on either side of the border */
  if (isinf(y) && out != NULL) y = copysign(out->border, y);    /* the nearest value that it may have come from */
  const double allowed = tm_closeness_allowed(m->operation, m->answer, r, terms) + tiniest(m->info->format) + rounding_of(m, r) +
                         term_count(m->operation) * tiniest(m->answer->accumulator);
  const double distance = fmin(fabs(y - r), fabs(y - expected));
  return isnan(distance) ? HUGE_VAL : distance / allowed;
}

static double ulp_fraction(const measuring *m, double y, double r) {
  if (!isfinite(r) || isnan(y)) return nonfinite_distance(m, y, r);
  const float_facts *facts = facts_of(m->info->format);
  if (has_flag(m, TM_NUMERICS_FLUSHES) && facts != NULL && fabs(r) < facts->smallest_normal && y == 0) return 0;
  return (double)tm_closeness_ulps(m->element->actual, m->element->expected, m->info->block_bytes) / m->answer->numerics_bound;
}

static double decode(const measuring *m, const void *bytes) {
  double value = 0;
  tm_codec_find(m->info->format)->decode(bytes, 1, &value);
  return value;
}

double tm_closeness_of(const tm_operation *operation, const tm_answer *answer, const tm_result_element *element) {
  const measuring m = { operation, answer, element, tm_format_find(tm_output_of(operation)->format) };
  if (memcmp(element->actual, element->expected, m.info->block_bytes) == 0 || answer->numerics == TM_NUMERICS_N4) return 0;
  if (m.info->kind != TM_KIND_FLOAT || tm_codec_find(m.info->format) == NULL) return HUGE_VAL;
  const double y = decode(&m, element->actual), r = decode(&m, element->expected);
  if (isnan(y) && isnan(r)) return tm_closeness_keeps_bits(operation->op) ? HUGE_VAL : 0;
  switch (answer->numerics) {
    case TM_NUMERICS_N1: return ulp_fraction(&m, y, r);
    case TM_NUMERICS_N2: return formula_distance(&m, y, r);
    case TM_NUMERICS_N3: return isfinite(r) && isfinite(y) ? 0 : nonfinite_distance(&m, y, r);
    default: return HUGE_VAL;
  }
}
