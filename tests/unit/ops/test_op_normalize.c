/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "unit/ops/op_case.h"

static op_case softmax(uint32_t axis, uint32_t format, uint32_t rank, const uint64_t *dims, const double *x) {
  static tm_axis_attributes attributes;
  attributes.axis = axis;
  op_case c = op_begin(TM_OP_SOFTMAX, &attributes, sizeof attributes);
  op_input(&c, format, rank, dims, x);
  op_run(&c, TM_FORMAT_NONE);
  return c;
}

static void softmax_of_rows(void **state) {
  (void)state;
  const double e = exp(-1);
  op_case c = softmax(1, TM_FORMAT_F64, 2, DIMS(2, 2), VALUES(1, 0, 5, 5));
  op_expect(&c, 4, VALUES(1 / (1 + e), e / (1 + e), 0.5, 0.5));
  c = softmax(0, TM_FORMAT_F64, 2, DIMS(2, 2), VALUES(1, 5, 0, 5));
  op_expect(&c, 4, VALUES(1 / (1 + e), 0.5, e / (1 + e), 0.5));
  c = softmax(0, TM_FORMAT_F32, 1, DIMS(3), VALUES(3e38, -3e38, 3e38));
  op_expect(&c, 3, VALUES(0.5, 0, 0.5));
}

static void softmax_of_what_is_not_finite(void **state) {
  (void)state;
  op_case c = softmax(1, TM_FORMAT_F32, 2, DIMS(4, 2),
                      VALUES(INFINITY, 0, NAN, 1, -INFINITY, -INFINITY, -INFINITY, 7));
  op_expect(&c, 8, VALUES(NAN, NAN, NAN, NAN, NAN, NAN, 0, 1));
  c = softmax(1, TM_FORMAT_F32, 2, DIMS(3, 0), NULL);
  op_expect(&c, 0, NULL);
}

/* Longer than one run, so that sums and maxima cross its end. */
static void softmax_of_long_rows(void **state) {
  (void)state;
  enum { N = 1300 };
  static double x[N], expected[N];
  double sum = 0;
  for (int i = 0; i < N; i++) x[i] = i == 1200 ? 3 : sin(i);
  for (int i = 0; i < N; i++) sum += exp(x[i] - 3);
  for (int i = 0; i < N; i++) expected[i] = exp(x[i] - 3) / sum;
  op_case c = softmax(0, TM_FORMAT_F64, 1, DIMS(N), x);
  op_expect(&c, N, expected);
}

static void layer_norm_of_rows(void **state) {
  (void)state;
  const tm_norm_attributes attributes = { 0.75 };
  op_case c = op_begin(TM_OP_LAYER_NORM, &attributes, sizeof attributes);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(2, 4), VALUES(1, 2, 3, 4, 5, 5, 5, 5));
  op_input(&c, TM_FORMAT_F32, 1, DIMS(4), VALUES(1, 2, 1, 1));
  op_input(&c, TM_FORMAT_F32, 1, DIMS(4), VALUES(0, 0, 10, 0));
  op_run(&c, TM_FORMAT_F64);
  const double d = sqrt(2);
  op_expect(&c, 8, VALUES(-1.5 / d, -0.5 / d * 2, 0.5 / d + 10, 1.5 / d, 0, 0, 10, 0));
}

static void rms_norm_of_rows(void **state) {
  (void)state;
  const tm_norm_attributes attributes = { 0 };
  op_case c = op_begin(TM_OP_RMS_NORM, &attributes, sizeof attributes);
  op_input(&c, TM_FORMAT_BF16, 2, DIMS(3, 2), VALUES(3, -3, 0, 0, INFINITY, 1));
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), VALUES(1, 2));
  op_run(&c, TM_FORMAT_F32);
  op_expect(&c, 6, VALUES(1, -2, NAN, NAN, NAN, 0));
}

static void refuses(void **state) {
  (void)state;
  const tm_norm_attributes attributes = { 1e-5 };
  op_case c = op_begin(TM_OP_RMS_NORM, &attributes, sizeof attributes);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(3, 2), NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(3), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("rms_norm: scale", "[3]", "[2]"));
  const tm_norm_attributes wrong = { NAN };
  c = op_begin(TM_OP_RMS_NORM, &wrong, sizeof wrong);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("epsilon"));
  const tm_axis_attributes axis = { 0, 0 };
  c = op_begin(TM_OP_SOFTMAX, &axis, sizeof axis);
  op_input(&c, TM_FORMAT_F32, 0, NULL, NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("softmax: axis 0", "less than 0"));
  c = op_begin(TM_OP_RMS_NORM, &attributes, sizeof attributes);
  op_input(&c, TM_FORMAT_F32, 0, NULL, NULL);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(1), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("rms_norm", "rank of x"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(softmax_of_rows),
    cmocka_unit_test(softmax_of_what_is_not_finite),
    cmocka_unit_test(softmax_of_long_rows),
    cmocka_unit_test(layer_norm_of_rows),
    cmocka_unit_test(rms_norm_of_rows),
    cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
