/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "unit/ops/op_case.h"

static op_case matmul(const tm_matmul_attributes *attributes) {
  return op_begin(TM_OP_MATMUL, attributes, sizeof *attributes);
}

static void multiplies_in_all_orientations(void **state) {
  (void)state;
  const double a[2][6] = { { 1, 2, 3, 4, 5, 6 }, { 1, 4, 2, 5, 3, 6 } };
  const double b[2][6] = { { 7, 8, 9, 10, 11, 12 }, { 7, 9, 11, 8, 10, 12 } };
  for (uint32_t ta = 0; ta < 2; ta++)
    for (uint32_t tb = 0; tb < 2; tb++) {
      const tm_matmul_attributes attributes = { ta, tb };
      op_case c = matmul(&attributes);
      op_input(&c, TM_FORMAT_F32, 2, ta ? DIMS(3, 2) : DIMS(2, 3), a[ta]);
      op_input(&c, TM_FORMAT_F32, 2, tb ? DIMS(2, 3) : DIMS(3, 2), b[tb]);
      op_run(&c, TM_FORMAT_NONE);
      op_expect(&c, 4, VALUES(58, 64, 139, 154));
    }
}

static void broadcasts_batches(void **state) {
  (void)state;
  const tm_matmul_attributes attributes = { 0, 0 };
  op_case c = matmul(&attributes);
  op_input(&c, TM_FORMAT_F64, 4, DIMS(2, 1, 1, 2), VALUES(1, 2, 3, 4));
  op_input(&c, TM_FORMAT_F64, 3, DIMS(3, 2, 1), VALUES(1, 1, 10, 1, 1, 10));
  op_run(&c, TM_FORMAT_NONE);
  op_expect_dims(&c, 4, DIMS(2, 3, 1, 1));
  op_expect(&c, 6, VALUES(3, 12, 21, 7, 34, 43));
}

/* One rounding at the end: the small terms survive beside the large ones that cancel. */
static void sums_in_f64(void **state) {
  (void)state;
  const tm_matmul_attributes attributes = { 0, 0 };
  op_case c = matmul(&attributes);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(1, 3), VALUES(0x1p30, 0x1p-20, -0x1p30));
  op_input(&c, TM_FORMAT_F32, 2, DIMS(3, 1), VALUES(1, 1, 1));
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 1, VALUES(0x1p-20));
  c = matmul(&attributes);
  op_input(&c, TM_FORMAT_F16, 2, DIMS(1, 2), VALUES(60000, 60000));
  op_input(&c, TM_FORMAT_F16, 2, DIMS(2, 1), VALUES(1, 1));
  op_run(&c, TM_FORMAT_F32);
  op_expect(&c, 1, VALUES(120000));
}

static void nothing_to_sum_gives_zero(void **state) {
  (void)state;
  const tm_matmul_attributes attributes = { 0, 0 };
  op_case c = matmul(&attributes);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(2, 0), NULL);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(0, 2), NULL);
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 4, VALUES(0, 0, 0, 0));
}

static void nan_and_infinity_pass(void **state) {
  (void)state;
  const tm_matmul_attributes attributes = { 0, 0 };
  op_case c = matmul(&attributes);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(3, 1), VALUES(0, INFINITY, NAN));
  op_input(&c, TM_FORMAT_F32, 2, DIMS(1, 2), VALUES(INFINITY, 1));
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 6, VALUES(NAN, 0, INFINITY, INFINITY, NAN, NAN));
}

static void bytes_give_exact_wrapping_integers(void **state) {
  (void)state;
  const tm_matmul_attributes attributes = { 0, 1 };
  enum { K = 140000 };
  double *values = op_alloc(K * sizeof *values);
  for (int i = 0; i < K; i++) values[i] = -128;
  op_case c = matmul(&attributes);
  op_input(&c, TM_FORMAT_I8, 2, DIMS(1, K), values);
  op_input(&c, TM_FORMAT_I8, 2, DIMS(1, K), values);
  op_run(&c, TM_FORMAT_NONE);
  assert_int_equal(op_y(&c)->format, TM_FORMAT_I32);
  op_expect(&c, 1, VALUES((double)K * 16384 - 0x1p32));
  free(values);
}

/* Block weights: the same as the product with the decoded weights, in f64. */
static void reads_block_weights(void **state) {
  (void)state;
  const tm_matmul_attributes attributes = { 0, 1 };
  const uint32_t formats[] = { TM_FORMAT_Q4_0, TM_FORMAT_Q8_0 };
  enum { M = 3, N = 19, K = 320 };
  for (int f = 0; f < 2; f++) {
    static double a[M * K], b[N * K], decoded[N * K], expected[M * N];
    for (int i = 0; i < M * K; i++) a[i] = sin(i);
    for (int i = 0; i < N * K; i++) b[i] = cos(i * 0.7) * (i % 13);
    op_case c = matmul(&attributes);
    op_input(&c, TM_FORMAT_F32, 2, DIMS(M, K), a);
    op_input(&c, formats[f], 2, DIMS(N, K), b);
    op_run(&c, TM_FORMAT_F64);
    tm_codec_find(TM_FORMAT_F32)->decode(c.pointers[0], M * K, a);
    tm_codec_find(formats[f])->decode(c.pointers[1], N * K, decoded);
    for (int m = 0; m < M; m++)
      for (int n = 0; n < N; n++) {
        expected[m * N + n] = 0;
        for (int k = 0; k < K; k++) expected[m * N + n] += a[m * K + k] * decoded[n * K + k];
      }
    op_expect(&c, M * N, expected);
  }
}

/* Tiles have tails in every direction here. */
static void tiles_do_not_show(void **state) {
  (void)state;
  const tm_matmul_attributes attributes = { 0, 0 };
  enum { M = 37, N = 131, K = 203 };
  static double a[M * K], b[K * N], expected[M * N];
  for (int i = 0; i < M * K; i++) a[i] = sin(i * 1.1);
  for (int i = 0; i < K * N; i++) b[i] = cos(i * 0.3);
  for (int m = 0; m < M; m++)
    for (int n = 0; n < N; n++) {
      expected[m * N + n] = 0;
      for (int k = 0; k < K; k++) expected[m * N + n] += a[m * K + k] * b[k * N + n];
    }
  op_case c = matmul(&attributes);
  op_input(&c, TM_FORMAT_F64, 2, DIMS(M, K), a);
  op_input(&c, TM_FORMAT_F64, 2, DIMS(K, N), b);
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, M * N, expected);
}

static void scales_per_tensor_axis_and_block(void **state) {
  (void)state;
  const tm_matmul_scaled_attributes attributes = { 0, 1, 0, 0 };
  op_case c = op_begin(TM_OP_MATMUL_SCALED, &attributes, sizeof attributes);
  op_input(&c, TM_FORMAT_I8, 2, DIMS(2, 4), VALUES(1, 2, 3, 4, -1, -2, -3, -4));
  op_input(&c, TM_FORMAT_I4, 2, DIMS(2, 4), VALUES(1, 1, 1, 1, 7, -8, 0, 1));
  op_input(&c, TM_FORMAT_F32, 2, DIMS(2, 2), VALUES(1, 10, 2, 20));
  op_input(&c, TM_FORMAT_F32, 2, DIMS(2, 1), VALUES(0.5, 2));
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 4, VALUES(36.5, 62, -73, -124));
  c = op_begin(TM_OP_MATMUL_SCALED, &attributes, sizeof attributes);
  op_input(&c, TM_FORMAT_F8_E4M3FN, 2, DIMS(1, 2), VALUES(1.5, -2));
  op_input(&c, TM_FORMAT_F8_E5M2, 2, DIMS(1, 2), VALUES(4, 0.5));
  op_input(&c, TM_FORMAT_F32, 0, NULL, VALUES(3));
  op_input(&c, TM_FORMAT_F32, 0, NULL, VALUES(0.25));
  op_run(&c, TM_FORMAT_BF16);
  op_expect(&c, 1, VALUES(3.75));
}

static void takes_zero_points(void **state) {
  (void)state;
  const tm_matmul_scaled_attributes attributes = { 0, 0, 1, 0 };
  op_case c = op_begin(TM_OP_MATMUL_SCALED, &attributes, sizeof attributes);
  op_input(&c, TM_FORMAT_U8, 2, DIMS(1, 2), VALUES(130, 125));
  op_input(&c, TM_FORMAT_I8, 2, DIMS(2, 2), VALUES(3, 4, 5, 6));
  op_input(&c, TM_FORMAT_F32, 0, NULL, VALUES(0.5));
  op_input(&c, TM_FORMAT_F32, 2, DIMS(1, 2), VALUES(1, 2));
  op_input(&c, TM_FORMAT_I32, 0, NULL, VALUES(128));
  op_input(&c, TM_FORMAT_I32, 2, DIMS(1, 2), VALUES(1, -1));
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 2, VALUES(0.5 * (2 * 2 - 3 * 4), (2 * 5 - 3 * 7)));
}

static void batches_share_or_own_scales(void **state) {
  (void)state;
  const tm_matmul_scaled_attributes attributes = { 0, 0, 0, 0 };
  op_case c = op_begin(TM_OP_MATMUL_SCALED, &attributes, sizeof attributes);
  op_input(&c, TM_FORMAT_I8, 3, DIMS(2, 1, 1), VALUES(1, 2));
  op_input(&c, TM_FORMAT_I8, 2, DIMS(1, 1), VALUES(3));
  op_input(&c, TM_FORMAT_F32, 3, DIMS(2, 1, 1), VALUES(1, 100));
  op_input(&c, TM_FORMAT_F32, 2, DIMS(1, 1), VALUES(1));
  op_run(&c, TM_FORMAT_NONE);
  op_expect(&c, 2, VALUES(3, 600));
}

static void refuses(void **state) {
  (void)state;
  const tm_matmul_attributes plain = { 0, 0 };
  op_case c = matmul(&plain);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(2, 3), NULL);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(4, 2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("matmul", "K is 3 in a", "4 in b"));
  c = matmul(&plain);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(2, 32), NULL);
  op_input(&c, TM_FORMAT_Q8_0, 2, DIMS(32, 32), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("q8_0", "K must be its last axis", "transpose_b"));
  c = matmul(&plain);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(3), NULL);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(3, 2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("a has rank 1"));
  c = matmul(&plain);
  op_input(&c, TM_FORMAT_F32, 3, DIMS(2, 2, 3), NULL);
  op_input(&c, TM_FORMAT_F32, 3, DIMS(3, 3, 2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("batch axes", "[2]", "[3]"));
  c = matmul(&plain);
  op_input(&c, TM_FORMAT_I16, 2, DIMS(2, 2), NULL);
  op_input(&c, TM_FORMAT_I16, 2, DIMS(2, 2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("a has format i16", "expected float"));
  const tm_matmul_scaled_attributes scaled = { 0, 0, 0, 0 };
  c = op_begin(TM_OP_MATMUL_SCALED, &scaled, sizeof scaled);
  op_input(&c, TM_FORMAT_I8, 2, DIMS(2, 6), NULL);
  op_input(&c, TM_FORMAT_I8, 2, DIMS(6, 2), NULL);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(1, 4), NULL);
  op_input(&c, TM_FORMAT_F32, 0, NULL, NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("a_scale", "[1,4]", "divide [2,6]"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(multiplies_in_all_orientations),
    cmocka_unit_test(broadcasts_batches),
    cmocka_unit_test(sums_in_f64),
    cmocka_unit_test(nothing_to_sum_gives_zero),
    cmocka_unit_test(nan_and_infinity_pass),
    cmocka_unit_test(bytes_give_exact_wrapping_integers),
    cmocka_unit_test(reads_block_weights),
    cmocka_unit_test(tiles_do_not_show),
    cmocka_unit_test(scales_per_tensor_axis_and_block),
    cmocka_unit_test(takes_zero_points),
    cmocka_unit_test(batches_share_or_own_scales),
    cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
