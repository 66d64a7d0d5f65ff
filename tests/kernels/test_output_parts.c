/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results in parts, on random operations, layouts and bits: the reference's own is right in every part, whatever is promised; one
 * that differs in a single block is found out by the part that has it; and the terms that errors are measured by are never fewer
 * than the oracle's, and found once a part.   TM_NIGHTLY=1: more of each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "conformance/closeness.h"
#include "ops/result_closeness.h"
#include "ops/output_parts.h"
#include "ops/output_terms.h"

#define CASES 150u
#define LIMIT 400u
#define LIMIT_ONE_PASS 300u

static const uint32_t formats[] = {
  TM_FORMAT_F32, TM_FORMAT_F64, TM_FORMAT_F16, TM_FORMAT_BF16, TM_FORMAT_F8_E4M3FN, TM_FORMAT_F8_E5M2, TM_FORMAT_I4, TM_FORMAT_U4,
  TM_FORMAT_I8, TM_FORMAT_U8, TM_FORMAT_I16, TM_FORMAT_I32, TM_FORMAT_I64, TM_FORMAT_U64, TM_FORMAT_BOOL, TM_FORMAT_C64,
  TM_FORMAT_Q8_0, TM_FORMAT_Q4_0, TM_FORMAT_Q4_K,
};
#define FORMATS (sizeof formats / sizeof formats[0])

typedef struct made_case {
  kernel_case  c;
  case_buffer  buffers[CASE_MAX_OPERANDS];
  void        *pointers[CASE_MAX_OPERANDS];
  uint32_t     count;
} made_case;

static void release(made_case *made) {
  for (uint32_t i = 0; i < made->count; i++) free(made->buffers[i].memory);
}

/* A random operation with its data, in the form that devices see, and its result by the reference. */
static bool make(made_case *made, const tm_op_row *row, uint64_t *state) {
  uint32_t chosen[CASE_MAX_OPERANDS] = { 0 };
  const uint32_t inputs = row->input_min + (uint32_t)random_below(state, case_most_inputs(row) - row->input_min + 1);
  const bool is_alike = random_below(state, 2) != 0;
  chosen[0] = formats[random_below(state, FORMATS)];
  if (random_below(state, 2)) chosen[0] = TM_FORMAT_F32;
  for (uint32_t i = 1; i < inputs; i++) chosen[i] = is_alike ? chosen[0] : formats[random_below(state, FORMATS)];
  case_fill_formats(row, inputs, chosen);
  if (random_below(state, 2)) chosen[inputs] = formats[random_below(state, FORMATS)];
  made->count = 0;
  if (!case_make(&made->c, row, inputs, chosen, row->combine == TM_COMBINE_WORDS ? LIMIT_ONE_PASS : LIMIT, state)) return false;
  for (uint32_t i = 0; i <= inputs; i++)
    if (random_below(state, 3) == 0) case_spread(&made->c.operands[i], state);
  const temper t = (temper)random_below(state, TEMPER_COUNT);
  for (uint32_t i = 0; i <= inputs; i++) {
    assert_true(buffer_make(&made->buffers[i], &made->c.operands[i], 0));
    made->count++;
    buffer_fill(&made->buffers[i], &made->c.operands[i], t, state);
    if (i < inputs) case_fill_special(&made->c, i, made->buffers[i].lowest, state);
    made->pointers[i] = made->buffers[i].first;
  }
  tm_op_normalize(&made->c.operation, made->c.operands);
  row->reference(&made->c.operation, made->pointers, 0, row->units(&made->c.operation));
  return true;
}

static bool part_is_right(const tm_output_parts *parts, const tm_answer *answer, const made_case *made, uint64_t part) {
  char text[TM_OUTPUT_FAULT_BYTES];
  void *room = malloc((size_t)parts->part_bytes);
  assert_non_null(room);
  const bool is_right = tm_output_parts_check(parts, answer, made->pointers, part, room, text);
  if (!is_right) assert_non_null(strstr(text, "a wrong result for"));
  free(room);
  return is_right;
}

static tm_answer random_promise(uint64_t *state) {
  static const uint32_t accumulators[] = { TM_FORMAT_F32, TM_FORMAT_F64, TM_FORMAT_F16 };
  return (tm_answer){ .struct_size = sizeof(tm_answer), .numerics = (uint32_t)random_below(state, 4),
                      .numerics_flags = (uint32_t)random_below(state, 8), .numerics_bound = 1,
                      .accumulator = accumulators[random_below(state, 3)], .growth = (uint32_t)random_below(state, 3) };
}

static void *block_of(const made_case *made, uint64_t block) {
  const tm_operand *y = &made->c.operands[made->c.operation.input_count];
  const tm_format_info *info = tm_format_find(y->format);
  char *address = made->pointers[made->c.operation.input_count];
  for (uint32_t axis = y->rank; axis-- > 0;) {
    const uint64_t extent = axis + 1 == y->rank ? y->dims[axis] / info->block_elements : y->dims[axis];
    address += (int64_t)(block % extent) * y->strides_bytes[axis];
    block /= extent;
  }
  return address;
}

/* One bit of one block: some part is wrong now, and only one. */
static void one_wrong_block_is_one_wrong_part(const made_case *made, const tm_output_parts *parts, uint64_t *state) {
  const tm_operand *y = &made->c.operands[made->c.operation.input_count];
  const tm_format_info *info = tm_format_find(y->format);
  const tm_answer exact = { .struct_size = sizeof exact };
  unsigned char *wrong = block_of(made, random_below(state, y->element_count / info->block_elements));
  double before = 0, after = 0;
  const tm_codec *codec = info->block_elements == 1 ? tm_codec_find(y->format) : NULL;
  if (codec != NULL) codec->decode(wrong, 1, &before);
  wrong[info->block_bytes - 1] ^= 0x10;
  if (codec != NULL) codec->decode(wrong, 1, &after);
  const bool is_nan_still = isnan(before) && isnan(after);
  uint64_t wrong_parts = 0;
  for (uint64_t part = 0; part < parts->count; part++) wrong_parts += !part_is_right(parts, &exact, made, part);
  if (!is_nan_still) assert_int_equal(wrong_parts, 1);
  wrong[info->block_bytes - 1] ^= 0x10;
}

/* Also in parts, as no part touches another's elements. */
static void check_case(const made_case *made, uint64_t *state) {
  tm_output_parts parts;
  const tm_operand *y = &made->c.operands[made->c.operation.input_count];
  const tm_answer promise = random_promise(state), exact = { .struct_size = sizeof exact };
  assert_int_equal(tm_output_parts_init(&parts, &made->c.operation), y->element_count != 0);
  for (uint64_t part = 0; y->element_count != 0 && part < parts.count; part++) {
    if (part_is_right(&parts, &promise, made, part) && part_is_right(&parts, &exact, made, part)) continue;
    fail_msg("%s: part %u of %u", tm_op_find(made->c.operation.op)->name, (unsigned)part, (unsigned)parts.count);
  }
  if (y->element_count != 0) one_wrong_block_is_one_wrong_part(made, &parts, state);
}

/* Elsewhere the result is its own only term. */
static bool adds_up(uint32_t op) {
  static const uint32_t sums[] = { TM_OP_ADD, TM_OP_SUB, TM_OP_SUM, TM_OP_MEAN, TM_OP_MATMUL, TM_OP_MATMUL_SCALED, TM_OP_LAYER_NORM,
                                   TM_OP_ROPE, TM_OP_ATTENTION };
  for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
    if (sums[i] == op) return true;
  return false;
}

/* Elsewhere integers and bool are no operands of an operation on f64, and a saturating cast is none at all. */
static bool has_oracle(const kernel_case *c) {
  if (c->operation.op == TM_OP_CAST || c->operation.op == TM_OP_WHERE || case_merges(c->operation.op)) return false;
  for (uint32_t i = 0; i < c->operation.input_count; i++) {
    const tm_format_info *info = tm_format_find(c->operands[i].format);
    const bool is_plain = info->kind == TM_KIND_FLOAT || info->kind == TM_KIND_BLOCK;
    if (!is_plain && !case_is_index(c, i) && c->operation.op != TM_OP_MATMUL_SCALED && c->operation.op != TM_OP_ATTENTION) return false;
  }
  return tm_format_find(c->operands[c->operation.input_count].format)->kind == TM_KIND_FLOAT;
}

static void terms_are_enough(const made_case *made) {
  const tm_operand *y = &made->c.operands[made->c.operation.input_count];
  oracle o;
  if (!adds_up(made->c.operation.op)) return;
  if (!oracle_make(&o, &made->c, made->pointers)) return;
  tm_part_terms part = { .column_count = 0 };
  for (uint64_t i = 0; i < o.count; i++) {
    uint64_t index[TM_MAX_RANK], rest = i;
    for (uint32_t axis = y->rank; axis-- > 0; rest /= y->dims[axis]) index[axis] = rest % y->dims[axis];
    double r;
    tm_codec_find(y->format)->decode(block_of(made, i), 1, &r);
    if (y->rank == 0 || index[y->rank - 1] == 0) part.column_count = 0;
    if (!isfinite(r) || !isfinite(o.results[i]) || !isfinite(o.terms[i])) continue;
    const double terms = tm_output_terms(&made->c.operation, made->pointers, index, r, &part);
    const double rounding = tm_closeness_smallest_normal(y->format) + fabs(r) * 0.25;       /* r was rounded, and it may be the only term */
    if (terms + rounding < o.terms[i] * (1 - 1e-9))
      fail_msg("%s: element %u: terms %g, the oracle's %g", tm_op_find(made->c.operation.op)->name, (unsigned)i, terms, o.terms[i]);
  }
  oracle_free(&o);
}

/* ---- what is within its class ---- */

/* Something else for the result of an element, mostly within the promise: off by a part of what is allowed, another NaN, another
   zero, nothing where it is subnormal. */
static double disturb(const made_case *made, const tm_answer *answer, double exact, double terms, uint64_t *state) {
  const double least = tm_closeness_smallest_normal(made->c.operands[made->c.operation.input_count].format);
  const bool flushes = (answer->numerics_flags & TM_NUMERICS_FLUSHES) != 0;
  if (isnan(exact)) return random_below(state, 2) ? NAN : -NAN;
  if (!isfinite(exact)) return exact;
  if (exact == 0) return random_below(state, 2) ? 0.0 : -0.0;
  if (flushes && fabs(exact) < least) return 0;
  const double part = ((double)random_below(state, 2001) - 1000) / 1000;
  return exact + part * tm_closeness_allowed(&made->c.operation, answer, exact, terms);
}

/* Who passes the check of claims, which knows the exact result, is never accused here, where it is not known. */
static bool check_honest(made_case *made, uint64_t *state) {
  const tm_operand *y = &made->c.operands[made->c.operation.input_count];
  const tm_codec *codec = tm_codec_find(y->format);
  tm_output_parts parts;
  tm_answer promise = random_promise(state);
  case_buffer expected = { .memory = NULL };
  closeness near;
  oracle o;
  promise.numerics = TM_NUMERICS_N1 + (uint32_t)random_below(state, 2);
  promise.numerics_bound = 1 + (double)random_below(state, 4);
  if (y->element_count == 0 || !has_oracle(&made->c) || !oracle_make(&o, &made->c, made->pointers)) return false;
  assert_true(buffer_make(&expected, y, 0));
  memcpy(expected.lowest, made->buffers[made->c.operation.input_count].lowest, y->byte_count);
  for (uint64_t i = 0; i < o.count; i++) {
    const double value = disturb(made, &promise, o.results[i], o.terms[i], state);
    codec->encode(&value, 1, block_of(made, i));
  }
  closeness_measure(&near, &made->c, &promise, made->pointers[made->c.operation.input_count], expected.first, &o);
  assert_true(tm_output_parts_init(&parts, &made->c.operation));
  uint64_t wrong = 0;
  for (uint64_t part = 0; part < parts.count; part++) wrong += !part_is_right(&parts, &promise, made, part);
  if (near.is_close && wrong != 0)
    fail_msg("%s: %u of %u parts are accused wrongly, class N%u, flags %u", tm_op_find(made->c.operation.op)->name, (unsigned)wrong,
             (unsigned)parts.count, promise.numerics, promise.numerics_flags);
  oracle_free(&o);
  free(expected.memory);
  return near.is_close;
}

static void honest_devices_are_left_alone(void **state) {
  static made_case made;
  (void)state;
  const uint32_t cases = getenv("TM_NIGHTLY") != NULL ? CASES * 40 : CASES;
  uint64_t random = 2, close = 0, all = 0;
  for (uint32_t i = 0; tm_op_at(i) != NULL; i++) {
    const tm_op_row *row = tm_op_at(i);
    for (uint32_t tries = 0; row->reference != NULL && row->combine == TM_COMBINE_CONCATENATE && tries < cases * 2; tries++) {
      if (make(&made, row, &random)) {
        close += check_honest(&made, &random);
        all++;
      }
      release(&made);
    }
  }
  print_message("%u of %u within their class\n", (unsigned)close, (unsigned)all);
  assert_true(close > all / 50);
}

static void any_operation(void **state) {
  static made_case made;
  (void)state;
  const uint32_t cases = getenv("TM_NIGHTLY") != NULL ? CASES * 40 : CASES;
  uint64_t random = 1;
  for (uint32_t i = 0; tm_op_at(i) != NULL; i++) {
    const tm_op_row *row = tm_op_at(i);
    if (row->reference == NULL) continue;
    uint32_t count = 0;
    const uint32_t wanted = row->op == TM_OP_MAGNITUDES ? cases / 40 : cases;
    for (uint32_t tries = 0; tries < wanted * 200 && count < wanted; tries++) {
      if (make(&made, row, &random)) {
        check_case(&made, &random);
        terms_are_enough(&made);
        count++;
      }
      release(&made);
    }
    if (count == 0) fail_msg("%s was never tried", row->name);
  }
}

/* ---- single cases ---- */

static tm_operand operand_of(uint32_t format, uint32_t rank, uint64_t d0, uint64_t d1, uint64_t d2) {
  const uint64_t dims[] = { d0, d1, d2 };
  tm_operand operand;
  assert_int_equal(tm_operand_contiguous(format, rank, dims, &operand, NULL), TM_OK);
  return operand;
}

/* All columns of a head: its keys are read for the first alone, and its values once a run of columns. */
static void terms_are_found_once_a_part(void **state) {
  enum { KEYS = 3, DIM = 4, COLUMNS = TM_RUN + 88 };
  static float q[DIM], k[KEYS * DIM], v[KEYS * COLUMNS], y[COLUMNS];
  static double alone[COLUMNS];
  int32_t length = KEYS;
  const tm_attention_attributes attributes = { .scale = 0.5 };
  const tm_operand operands[] = { operand_of(TM_FORMAT_F32, 3, 1, 1, DIM), operand_of(TM_FORMAT_F32, 3, KEYS, 1, DIM),
                                  operand_of(TM_FORMAT_F32, 3, KEYS, 1, COLUMNS), operand_of(TM_FORMAT_I32, 0, 0, 0, 0),
                                  operand_of(TM_FORMAT_F32, 3, 1, 1, COLUMNS) };
  const tm_operation operation = { .struct_size = sizeof operation, .op = TM_OP_ATTENTION, .input_count = 4, .output_count = 1,
                                   .operands = operands, .attributes = &attributes, .attribute_bytes = sizeof attributes };
  void *const pointers[] = { q, k, v, &length, y };
  (void)state;
  for (uint32_t i = 0; i < DIM; i++) q[i] = 1 + (float)i;
  for (uint32_t i = 0; i < KEYS * DIM; i++) k[i] = (float)i / 8 - 1;
  for (uint32_t i = 0; i < KEYS * COLUMNS; i++) v[i] = (float)(i % 97) - 48;
  tm_part_terms part = { .column_count = 0 };
  for (uint64_t i = 0; i < COLUMNS; i++) {
    const uint64_t index[] = { 0, 0, i };
    part.column_count = 0;
    alone[i] = tm_output_terms(&operation, pointers, index, 1, &part);
    assert_true(alone[i] > fabs((double)v[i]));
  }
  part.column_count = 0;
  for (uint64_t i = 0; i < COLUMNS; i++) {
    const uint64_t index[] = { 0, 0, i };
    assert_true(tm_output_terms(&operation, pointers, index, 1, &part) == alone[i]);
    for (uint32_t e = 0; e < KEYS * DIM; e++) k[e] = 1000;
    if (i + 1 != TM_RUN) v[i + 1 < COLUMNS ? i + 1 : i] = 1e6f;
  }
}

/* What is left of two large terms is off by what they are, and what they are is not looked for. */
static void what_cancels_is_not_judged(void **state) {
  static const float a[] = { 1 }, b[] = { -0.999999f }, little[] = { 1e-6f };
  static const double weights[] = { 1, 1 }, ties[] = { 1, 1, 0 };
  static const float t[] = { 0.5f };
  const tm_ties_attributes sums = { .sum = 1 };
  const tm_operand x = operand_of(TM_FORMAT_F32, 1, 1, 0, 0);
  const tm_operand two = operand_of(TM_FORMAT_F64, 1, 2, 0, 0), three = operand_of(TM_FORMAT_F64, 1, 3, 0, 0);
  const tm_answer promise = { .struct_size = sizeof promise, .numerics = TM_NUMERICS_N2, .numerics_bound = 1,
                              .accumulator = TM_FORMAT_F32 };
  float y;
  const struct { uint32_t op; tm_operand operands[4]; const void *pointers[4]; } cases[] = {
    { TM_OP_WEIGHTED_SUM, { x, two, x, x }, { a, weights, b, &y } },
    { TM_OP_LERP, { x, x, x, x }, { a, b, t, &y } },
    { TM_OP_TIES_SUM, { x, three, x, x }, { a, ties, little, &y } },
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const bool is_ties = cases[i].op == TM_OP_TIES_SUM;
    const tm_operation operation = { .struct_size = sizeof operation, .op = cases[i].op, .input_count = 3, .output_count = 1,
                                     .operands = cases[i].operands, .attributes = is_ties ? &sums : NULL,
                                     .attribute_bytes = is_ties ? sizeof sums : 0 };
    void *pointers[4];
    memcpy(pointers, cases[i].pointers, sizeof pointers);
    tm_op_find(operation.op)->reference(&operation, pointers, 0, 1);
    assert_true(fabsf(y) < 1e-5f);
    y += 0x1p-24f;
    tm_output_parts parts;
    char text[TM_OUTPUT_FAULT_BYTES];
    double room;
    assert_true(tm_output_parts_init(&parts, &operation));
    if (!tm_output_parts_check(&parts, &promise, pointers, 0, &room, text)) fail_msg("%s", text);
  }
}

/* Along another axis than the last, too. */
static void elements_are_numbered_as_they_lie(void **state) {
  static float x[6] = { 1, 2, 3, 4, 5, 6 }, y[6];
  const tm_operand operands[] = { operand_of(TM_FORMAT_F32, 2, 2, 3, 0), operand_of(TM_FORMAT_F32, 2, 2, 3, 0) };
  const tm_answer exact = { .struct_size = sizeof exact };
  void *const pointers[] = { x, y };
  (void)state;
  for (uint32_t axis = 0; axis < 2; axis++) {
    const tm_axis_attributes attributes = { .axis = axis };
    const tm_operation operation = { .struct_size = sizeof operation, .op = TM_OP_SOFTMAX, .input_count = 1, .output_count = 1,
                                     .operands = operands, .attributes = &attributes, .attribute_bytes = sizeof attributes };
    const tm_op_row *row = tm_op_find(TM_OP_SOFTMAX);
    for (uint32_t wrong = 0; wrong < 6; wrong++) {
      char expected[64], text[TM_OUTPUT_FAULT_BYTES];
      float room[3];
      uint64_t found = 0, begin, count;
      tm_output_parts parts;
      row->reference(&operation, pointers, 0, row->units(&operation));
      y[wrong] += 1;
      (void)snprintf(expected, sizeof expected, "softmax: element %u is", (unsigned)wrong);
      assert_true(tm_output_parts_init(&parts, &operation));
      for (uint64_t part = 0; part < parts.count; part++) {
        if (tm_output_parts_check(&parts, &exact, pointers, part, room, text)) continue;
        if (strstr(text, expected) == NULL) fail_msg("%u: %s", (unsigned)wrong, text);
        tm_output_parts_reads(&parts, part, 0, &begin, &count);
        assert_int_equal(count, axis == 1 ? 3 : 6);
        assert_true(begin <= wrong && wrong < begin + count);
        found++;
      }
      assert_int_equal(found, 1);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(any_operation),
    cmocka_unit_test(honest_devices_are_left_alone),
    cmocka_unit_test(terms_are_found_once_a_part),
    cmocka_unit_test(what_cancels_is_not_judged),
    cmocka_unit_test(elements_are_numbered_as_they_lie),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
