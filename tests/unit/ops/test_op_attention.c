/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "unit/ops/op_case.h"

/* One head, dim 1, q = 1 and scale 1: the scores are the keys themselves. */
static op_case simple(const tm_attention_attributes *attributes, uint64_t tokens, uint64_t capacity, const double *keys,
                      const double *values, int64_t length) {
  static const double ones[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
  op_case c = op_begin(TM_OP_ATTENTION, attributes, sizeof *attributes);
  op_input(&c, TM_FORMAT_F64, 3, DIMS(tokens, 1, 1), ones);
  op_input(&c, TM_FORMAT_F64, 3, DIMS(capacity, 1, 1), keys);
  op_input(&c, TM_FORMAT_F64, 3, DIMS(capacity, 1, 1), values);
  op_input_bytes(&c, TM_FORMAT_I64, 0, NULL, &length);
  return c;
}

static const tm_attention_attributes usual = { 1, 0, 0 }, causal = { 1, 1, 0 };

static void weighs_values(void **state) {
  (void)state;
  op_case c = simple(&usual, 1, 3, VALUES(2, 1, 9), VALUES(10, 20, 1000), 2);
  op_run(&c, TM_FORMAT_NONE);
  const double e = exp(-1);
  op_expect(&c, 1, VALUES((1.0 * 10 + e * 20) / (1 + e)));
}

static void a_length_is_taken_into_its_range(void **state) {
  (void)state;
  static const struct { int64_t length; double expected; } cases[] = {
    { 0, 0 }, { -1, 0 }, { INT64_MIN, 0 }, { 1, 3 }, { 2, 4 }, { 3, 4 }, { INT64_MAX, 4 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    op_case c = simple(&usual, 1, 2, VALUES(1, 1), VALUES(3, 5), cases[i].length);
    op_run(&c, TM_FORMAT_NONE);
    op_expect(&c, 1, &cases[i].expected);
  }
}

/* q's tokens are the last of the keys; those before the first key see nothing. */
static void causal_tokens_see_what_came_before(void **state) {
  (void)state;
  op_case c = simple(&causal, 3, 4, VALUES(0, 0, 0, 0), VALUES(1, 3, 5, 7), 4);
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 3, VALUES(2, 3, 4));
  c = simple(&causal, 3, 4, VALUES(0, 0, 0, 0), VALUES(1, 3, 5, 7), 2);
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 3, VALUES(0, 1, 2));
}

static void masks_leave_keys_out(void **state) {
  (void)state;
  const unsigned char some[] = { 0, 1, 2, 0, 0, 0 };
  op_case c = simple(&usual, 2, 3, VALUES(0, 0, 0), VALUES(1, 3, 5), 3);
  op_input_bytes(&c, TM_FORMAT_BOOL, 2, DIMS(2, 3), some);
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 2, VALUES(4, 0));
  c = simple(&usual, 2, 3, VALUES(0, NAN, 0), VALUES(1, 3, 5), 3);
  op_input(&c, TM_FORMAT_F16, 3, DIMS(1, 1, 3), VALUES(0, -INFINITY, 1));
  op_run(&c, TM_FORMAT_NONE);
  const double e = exp(-1);
  op_expect(&c, 2, VALUES((e * 1 + 1 * 5.0) / (e + 1), (e * 1 + 1 * 5.0) / (e + 1)));
}

static void scores_that_are_not_finite(void **state) {
  (void)state;
  static const struct { double keys[2]; double expected; } cases[] = {
    { { INFINITY, 0 }, NAN }, { { NAN, 0 }, NAN }, { { -INFINITY, -INFINITY }, NAN }, { { -INFINITY, 1 }, 5 }, { { 1e300, -1e300 }, 3 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    op_case c = simple(&usual, 1, 2, cases[i].keys, VALUES(3, 5), 2);
    op_run(&c, TM_FORMAT_NONE);
    op_expect(&c, 1, &cases[i].expected);
  }
}

/* Everything at once, more than one run long, against sums in another order. */
static void batches_share_heads(void **state) {
  (void)state;
  enum { BATCH = 2, TOKENS = 3, HEADS = 4, SHARED = 2, CAPACITY = 5, DIM = 530, WIDTH = 520, LENGTH = 4 };
  static float q[BATCH][TOKENS][HEADS][DIM], k[BATCH][CAPACITY][SHARED][DIM], v[BATCH][CAPACITY][SHARED][WIDTH];
  static float mask[BATCH][HEADS][1][CAPACITY];
  float *all[] = { &q[0][0][0][0], &k[0][0][0][0], &v[0][0][0][0], &mask[0][0][0][0] };
  const size_t counts[] = { sizeof q / 4, sizeof k / 4, sizeof v / 4, sizeof mask / 4 };
  const int32_t length = LENGTH;
  for (int i = 0; i < 4; i++)
    for (size_t at = 0; at < counts[i]; at++) all[i][at] = (float)sin((double)at * (i + 1));
  static const tm_attention_attributes attributes = { 0, 1, 0 };
  op_case c = op_begin(TM_OP_ATTENTION, &attributes, sizeof attributes);
  op_input_bytes(&c, TM_FORMAT_F32, 4, DIMS(BATCH, TOKENS, HEADS, DIM), q);
  op_input_bytes(&c, TM_FORMAT_F32, 4, DIMS(BATCH, CAPACITY, SHARED, DIM), k);
  op_input_bytes(&c, TM_FORMAT_F32, 4, DIMS(BATCH, CAPACITY, SHARED, WIDTH), v);
  op_input_bytes(&c, TM_FORMAT_I32, 0, NULL, &length);
  op_input_bytes(&c, TM_FORMAT_F32, 4, DIMS(BATCH, HEADS, 1, CAPACITY), mask);
  op_run(&c, TM_FORMAT_F64);
  op_expect_dims(&c, 4, DIMS(BATCH, TOKENS, HEADS, WIDTH));
  const double *y = c.pointers[5];
  for (int b = 0; b < BATCH; b++)
    for (int t = 0; t < TOKENS; t++)
      for (int h = 0; h < HEADS; h++)
        for (int e = 0; e < WIDTH; e += 37) {
          double total = 0, sum = 0;
          for (int j = LENGTH - TOKENS + t; j >= 0; j--) {
            double score = 0;
            for (int d = DIM; d-- > 0;) score += (double)q[b][t][h][d] * (double)k[b][j][h / 2][d];
            const double weight = exp(score / sqrt(DIM) + (double)mask[b][h][0][j]);
            total += weight;
            sum += weight * (double)v[b][j][h / 2][e];
          }
          assert_true(fabs(y[((b * TOKENS + t) * HEADS + h) * WIDTH + e] - sum / total) < 1e-12);
        }
  op_end(&c);
}

static op_case shapes(const uint64_t *q, const uint64_t *k, const uint64_t *v, uint32_t rank) {
  op_case c = op_begin(TM_OP_ATTENTION, &usual, sizeof usual);
  op_input(&c, TM_FORMAT_F32, rank, q, NULL);
  op_input(&c, TM_FORMAT_F16, rank, k, NULL);
  op_input(&c, TM_FORMAT_BF16, rank, v, NULL);
  op_input(&c, TM_FORMAT_I32, 0, NULL, NULL);
  return c;
}

static void empty_extents_are_fine(void **state) {
  (void)state;
  op_case c = shapes(DIMS(2, 1, 0), DIMS(3, 1, 0), DIMS(3, 1, 1), 3);
  *(int32_t *)c.pointers[3] = 3;
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 2, VALUES(0, 0));
  c = shapes(DIMS(2, 1, 4), DIMS(0, 1, 4), DIMS(0, 1, 1), 3);
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 2, VALUES(0, 0));
  c = shapes(DIMS(2, 0, 4), DIMS(3, 0, 4), DIMS(3, 0, 1), 3);
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 0, NULL);
}

static void refuses(void **state) {
  (void)state;
  static const tm_attention_attributes wrong = { (double)NAN, 0, 0 }, twice = { 0, 2, 0 };
  op_case c = shapes(DIMS(2, 4), DIMS(3, 4), DIMS(3, 4), 2);
  op_refused(&c, TM_FORMAT_NONE, WORDS("q has rank 2", "3"));
  c = shapes(DIMS(2, 3, 4), DIMS(3, 2, 4), DIMS(3, 2, 4), 3);
  op_refused(&c, TM_FORMAT_NONE, WORDS("3 heads", "multiple of 2"));
  c = shapes(DIMS(2, 2, 4), DIMS(3, 2, 5), DIMS(3, 2, 4), 3);
  op_refused(&c, TM_FORMAT_NONE, WORDS("k has shape [3,2,5]", "[3,2,4]"));
  c = shapes(DIMS(2, 2, 4), DIMS(3, 2, 4), DIMS(4, 2, 9), 3);
  op_refused(&c, TM_FORMAT_NONE, WORDS("v has shape [4,2,9]", "[3,2,9]"));
  c = shapes(DIMS(2, 0, 4), DIMS(3, 2, 4), DIMS(3, 2, 4), 3);
  op_run(&c, TM_FORMAT_NONE);
  op_end(&c);
  c = shapes(DIMS(2, 2, 4), DIMS(3, 0, 4), DIMS(3, 0, 4), 3);
  op_refused(&c, TM_FORMAT_NONE, WORDS("2 heads", "multiple of 0"));
  c = shapes(DIMS(5, 2, 2, 4), DIMS(1, 3, 2, 4), DIMS(1, 3, 2, 4), 4);
  op_refused(&c, TM_FORMAT_NONE, WORDS("k has shape", "[5,3,2,4]"));
  c = shapes(DIMS(2, 2, 4), DIMS(3, 2, 4), DIMS(3, 2, 4), 3);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(2, 4), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("mask has shape [2,4]", "[2,2,3]"));
  c = shapes(DIMS(2, 2, 4), DIMS(3, 2, 4), DIMS(3, 2, 4), 3);
  op_input(&c, TM_FORMAT_I32, 2, DIMS(2, 3), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("mask has format i32", "float or bool"));
  c = simple(&wrong, 1, 1, VALUES(1), VALUES(1), 1);
  op_refused(&c, TM_FORMAT_NONE, WORDS("scale is nan"));
  c = simple(&twice, 1, 1, VALUES(1), VALUES(1), 1);
  op_refused(&c, TM_FORMAT_NONE, WORDS("causal is 2"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(weighs_values),
    cmocka_unit_test(a_length_is_taken_into_its_range),
    cmocka_unit_test(causal_tokens_see_what_came_before),
    cmocka_unit_test(masks_leave_keys_out),
    cmocka_unit_test(scores_that_are_not_finite),
    cmocka_unit_test(batches_share_heads),
    cmocka_unit_test(empty_extents_are_fine),
    cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
