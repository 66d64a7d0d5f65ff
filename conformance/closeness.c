/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/closeness.h"

#include <stdio.h>

#include "ops/result_closeness.h"

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

/* Distance as a fraction of what is allowed. */
static double distance_of(const measuring *m, const element *e) {
  const bool needs_terms = tm_closeness_needs_terms(m->answer);
  if (needs_terms && m->o == NULL && memcmp(e->actual, e->expected, m->info->block_bytes) != 0) return HUGE_VAL;
  tm_result_element one = { .actual = e->actual, .expected = e->expected, .is_exact = true };
  if (needs_terms && m->o != NULL) {
    one.exact = m->o->results[e->index];
    one.terms = m->o->terms[e->index];
  }
  return tm_closeness_of(&m->c->operation, m->answer, &one);
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
  if ((y->flags & TM_OPERAND_CONTIGUOUS) != 0) return address + block * info->block_bytes;
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
  if ((y->flags & TM_OPERAND_CONTIGUOUS) != 0 && answer->numerics != TM_NUMERICS_N3 && memcmp(actual, expected, y->byte_count) == 0) return;
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
