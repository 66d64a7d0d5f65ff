/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/closeness.h"

#include "conformance/kernel_compare.h"

typedef struct element {
  uint64_t             index;           /* of the block, row-major */
  const unsigned char *actual;
  const unsigned char *expected;
} element;

typedef struct measuring {
  const kernel_case    *c;
  const tm_answer      *answer;
  const tm_format_info *info;
  const oracle         *o;
  double                squared_error;
  double                squared_result;
} measuring;

static bool has_flag(const measuring *m, uint32_t flag) { return (m->answer->numerics_flags & flag) != 0; }

static double decode(const measuring *m, const unsigned char *bytes) {
  double value = 0;
  tm_codec_find(m->info->format)->decode(bytes, 1, &value);
  return value;
}

/* Where the reference has NaN or an infinity: the same kind, if that was promised. */
static double nonfinite_distance(const measuring *m, double y, double r) {
  const bool same = isnan(r) ? isnan(y) : y == r;
  return same || !has_flag(m, TM_NUMERICS_KEEPS_NONFINITE) ? 0 : HUGE_VAL;
}

/* The smallest step of a format. */
static double tiniest(uint32_t format) {
  const float_facts *facts = facts_of(format);
  return facts == NULL ? 0 : facts->smallest_normal * facts->epsilon;
}

static double largest_sum(uint32_t format) {
  switch (format) {
    case TM_FORMAT_F64: return 0x1p1023;
    case TM_FORMAT_F16: return 65504;
    case TM_FORMAT_F8_E4M3FN: return 448;
    case TM_FORMAT_F8_E5M2: return 57344;
    default: return 0x1.fffffep127;
  }
}

/* Where rounding to the format begins to give infinity. */
static double overflow_border(uint32_t format) {
  switch (format) {
    case TM_FORMAT_F32: return 0x1.ffffffp127;
    case TM_FORMAT_F16: return 65520;
    case TM_FORMAT_BF16: return 0x1.ffp127;
    case TM_FORMAT_F8_E5M2: return 61440;
    default: return HUGE_VAL;
  }
}

/* N2.  What the accumulator cannot hold although the result could is nobody's promise; what it loses to its smallest step
   is allowed once a term. */
static double formula_distance(const measuring *m, uint64_t index, double y, double expected) {
  const double r = m->o->results[index], terms = m->o->terms[index];
  if (!(terms < largest_sum(m->answer->accumulator)) || !isfinite(r))
    return isfinite(expected) ? 0 : nonfinite_distance(m, y, expected);
  if (!isfinite(expected)) return 0;    /* r rounds to infinity, and y may lie on either side of the border */
  if (isinf(y)) y = copysign(overflow_border(m->info->format), y);      /* the nearest value that it may have come from */
  const double allowed = allowed_distance(&m->c->operation, m->answer, r, terms) + tiniest(m->info->format) +
                         term_count(&m->c->operation) * tiniest(m->answer->accumulator);
  const double distance = fmin(fabs(y - r), fabs(y - expected));
  return isnan(distance) ? HUGE_VAL : distance / allowed;
}

static double ulp_fraction(const measuring *m, const element *e, double y, double r) {
  if (!isfinite(r) || isnan(y)) return nonfinite_distance(m, y, r);
  const float_facts *facts = facts_of(m->info->format);
  if (has_flag(m, TM_NUMERICS_FLUSHES) && facts != NULL && fabs(r) < facts->smallest_normal && y == 0) return 0;
  return (double)ulp_distance(e->actual, e->expected, m->info->block_bytes) / m->answer->numerics_bound;
}

/* Distance as a fraction of what is allowed. */
static double distance_of(measuring *m, const element *e) {
  if (memcmp(e->actual, e->expected, m->info->block_bytes) == 0 || m->answer->numerics == TM_NUMERICS_N4) return 0;
  if (m->info->kind != TM_KIND_FLOAT || tm_codec_find(m->info->format) == NULL) return HUGE_VAL;
  const double y = decode(m, e->actual), r = decode(m, e->expected);
  if (isnan(y) && isnan(r)) return keeps_bits(m->c->operation.op) ? HUGE_VAL : 0;
  switch (m->answer->numerics) {
    case TM_NUMERICS_N1: return ulp_fraction(m, e, y, r);
    case TM_NUMERICS_N2: return m->o == NULL ? HUGE_VAL : formula_distance(m, e->index, y, r);
    case TM_NUMERICS_N3: return isfinite(r) && isfinite(y) ? 0 : nonfinite_distance(m, y, r);
    default: return HUGE_VAL;
  }
}

static void add_squares(measuring *m, const element *e) {
  double y[256], r[256];
  const tm_codec *codec = tm_codec_find(m->info->format);
  if (codec == NULL) return;
  codec->decode(e->actual, m->info->block_elements, y);
  codec->decode(e->expected, m->info->block_elements, r);
  for (uint32_t i = 0; i < m->info->block_elements; i++) {
    if (!isfinite(r[i]) || !isfinite(y[i])) continue;
    m->squared_error += (y[i] - r[i]) * (y[i] - r[i]);
    m->squared_result += r[i] * r[i];
  }
}

static void note(closeness *out, const measuring *m, const element *e, double distance) {
  uint64_t bits[2] = { 0, 0 };
  const uint32_t bytes = m->info->block_bytes < 8 ? m->info->block_bytes : 8;
  memcpy(&bits[0], e->actual, bytes);
  memcpy(&bits[1], e->expected, bytes);
  snprintf(out->text, sizeof out->text, "element %llu has bits 0x%llx, the reference 0x%llx: %.3g of what class N%u allows",
           (unsigned long long)(e->index * m->info->block_elements), (unsigned long long)bits[0], (unsigned long long)bits[1],
           distance, m->answer->numerics);
  out->is_close = false;
}

static const unsigned char *at(const tm_operand *y, const tm_format_info *info, const void *first, uint64_t block) {
  const unsigned char *address = first;
  const uint32_t last = y->rank - 1;
  if (y->rank == 0) return address;
  const uint64_t a_row = y->dims[last] / info->block_elements;
  address += (int64_t)(block % a_row) * y->strides_bytes[last];
  uint64_t row = block / a_row;
  for (uint32_t axis = last; axis-- > 0; row /= y->dims[axis])
    address += (int64_t)(row % y->dims[axis]) * y->strides_bytes[axis];
  return address;
}

void closeness_measure(closeness *out, const kernel_case *c, const tm_answer *answer, const void *actual, const void *expected,
                       const oracle *o) {
  const tm_operand *y = &c->operands[c->operation.input_count];
  measuring m = { .c = c, .answer = answer, .info = tm_format_find(y->format), .o = o };
  *out = (closeness){ .is_close = true };
  for (uint64_t block = 0; block < y->element_count / m.info->block_elements; block++) {
    const element e = { block, at(y, m.info, actual, block), at(y, m.info, expected, block) };
    const bool by_squares = answer->numerics == TM_NUMERICS_N3;
    const double distance = by_squares && m.info->kind == TM_KIND_BLOCK ? 0 : distance_of(&m, &e);
    if (by_squares) add_squares(&m, &e);
    if (distance > out->worst) out->worst = distance;
    if (distance > 1 && out->is_close) note(out, &m, &e, distance);
  }
  if (answer->numerics != TM_NUMERICS_N3 || m.squared_error == 0) return;
  const double error = m.squared_error / m.squared_result / answer->numerics_bound;
  if (error > out->worst || isnan(error)) out->worst = isnan(error) ? HUGE_VAL : error;
  if (error <= 1 || !out->is_close) return;
  snprintf(out->text, sizeof out->text, "the mean square error is %.3g of what class N3 allows", error);
  out->is_close = false;
}
