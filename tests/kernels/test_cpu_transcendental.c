/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exp, log, tanh, sigmoid, erf, gelu and silu of the CPU backend where they are hard: around every power of two, where
 * results change their kind (overflow, underflow, subnormal, saturation), at zeros, infinities and NaN, on a sweep through
 * all f32, and on every bf16 and f16.
 */
#include "conformance/kernel_compare.h"
#include "kernel_probe.h"

#define NEIGHBOURS 24           /* floats on each side of a hard point */
#define SWEEP_STEP 65521u       /* of the sweep through all bit patterns; a prime, so that no low bits repeat */
#define SEED UINT64_C(20240611)

typedef struct function {
  uint32_t    op;
  uint32_t    tanh_form;
  const char *name;
} function;

static const function functions[] = {
  { TM_OP_EXP, 0, "exp" }, { TM_OP_LOG, 0, "log" },   { TM_OP_TANH, 0, "tanh" }, { TM_OP_SIGMOID, 0, "sigmoid" },
  { TM_OP_ERF, 0, "erf" }, { TM_OP_GELU, 0, "gelu" }, { TM_OP_GELU, 1, "gelu" }, { TM_OP_SILU, 0, "silu" },
};
#define FUNCTION_COUNT (sizeof functions / sizeof functions[0])

/* Where a function leaves f32's range, enters its subnormals or becomes constant; both signs are tried. */
static const float hard_points[] = {
  88.72283f, 87.33654f, 103.97208f, 103.27893f, 0.34657359f, 0.69314718f, 1.0f, 1.4142135f, 0.70710677f, 9.01f, 16.635532f,
  17.32868f, 3.9192059f, 4.0f, 3.8325069f, 5.5f, 13.2f, 14.0f, 14.1f, 14.8f, 15.0f, 37.0f, 0.044715f, 10.06f, 708.0f, 745.0f,
};

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static uint64_t add_neighbours(uint32_t centre, float *values, uint64_t count) {
  for (uint32_t i = 0; i <= 2 * NEIGHBOURS; ++i) {
    const uint32_t bits = centre + i - NEIGHBOURS;
    memcpy(&values[count++], &bits, sizeof bits);
  }
  return count;
}

/* Every hard point, every power of two, and the ends of the number line, of both signs, then the sweep. */
static float *make_values(uint64_t *out_count) {
  const uint64_t points = sizeof hard_points / sizeof hard_points[0] + 256;
  float *values = malloc((2 * points * (2 * NEIGHBOURS + 1) + UINT64_C(0x100000000) / SWEEP_STEP + 1) * sizeof *values);
  uint64_t count = 0;
  assert_non_null(values);
  for (uint32_t sign = 0; sign < 2; ++sign) {
    for (uint32_t exponent = 0; exponent < 256; ++exponent) count = add_neighbours(sign << 31 | exponent << 23, values, count);
    for (size_t i = 0; i < sizeof hard_points / sizeof hard_points[0]; ++i)
      count = add_neighbours(sign << 31 | bits_of(hard_points[i]), values, count);
  }
  for (uint64_t bits = SEED % SWEEP_STEP; bits <= UINT32_MAX; bits += SWEEP_STEP) {
    const uint32_t pattern = (uint32_t)bits;
    memcpy(&values[count++], &pattern, sizeof pattern);
  }
  *out_count = count;
  return values;
}

static void compare(const function *f, uint32_t format, const char *format_name, const void *values, uint64_t count) {
  const tm_gelu_attributes attributes = { f->tanh_form, 0 };
  const bool is_gelu = f->op == TM_OP_GELU;
  char row[64];
  kernel_host host;
  if (!probe_open(&host, 3, 0)) skip();
  probe p = probe_of(f->op, is_gelu ? &attributes : NULL, is_gelu ? sizeof attributes : 0);
  probe_input(&p, format, 1, &count, values);
  probe_finish(&p, TM_FORMAT_NONE);
  snprintf(row, sizeof row, "cpu_%s_%s__avx2", f->name, format_name);
  const tm_answer answer = probe_run(&p, &host, row);
  assert_int_equal(answer.numerics, TM_NUMERICS_N1);
  assert_true(answer.numerics_bound <= 1.0);
  probe_reference(&p);
  const uint32_t bytes = tm_format_find(format)->block_bytes;
  for (uint64_t i = 0; i < count; ++i) {
    const unsigned char *actual = (const unsigned char *)probe_result(&p) + i * bytes, *expected = (const unsigned char *)p.expected + i * bytes;
    const bool same_sign = actual[bytes - 1] >> 7 == expected[bytes - 1] >> 7;
    double y;
    tm_codec_find(format)->decode(expected, 1, &y);
    if (block_is_close(&p.operation, &answer, actual, expected, NULL) && (same_sign || isnan(y))) continue;
    double x, got;
    tm_codec_find(format)->decode((const unsigned char *)values + i * bytes, 1, &x);
    tm_codec_find(format)->decode(actual, 1, &got);
    fail_msg("%s(%a) is %a, the reference has %a", row, x, got, y);
  }
  probe_free(&p);
  kernel_host_close(&host);
}

static void test_f32_at_hard_points(void **state) {
  (void)state;
  uint64_t count;
  float *values = make_values(&count);
  for (size_t i = 0; i < FUNCTION_COUNT; ++i) compare(&functions[i], TM_FORMAT_F32, "f32", values, count);
  free(values);
}

static void test_every_16_bit_value(void **state) {
  (void)state;
  uint16_t *values = malloc(65536 * sizeof *values);
  assert_non_null(values);
  for (uint32_t i = 0; i < 65536; ++i) values[i] = (uint16_t)i;
  for (size_t i = 0; i < FUNCTION_COUNT; ++i) {
    compare(&functions[i], TM_FORMAT_BF16, "bf16", values, 65536);
    compare(&functions[i], TM_FORMAT_F16, "f16", values, 65536);
  }
  free(values);
}

/* Values that are exact, written by hand: the reference is not asked. */
static void test_exact_values(void **state) {
  (void)state;
  static const struct { uint32_t op; float x, y; } cases[] = {
    { TM_OP_EXP, 0.0f, 1.0f },           { TM_OP_EXP, -INFINITY, 0.0f },      { TM_OP_EXP, INFINITY, INFINITY },
    { TM_OP_EXP, 89.0f, INFINITY },      { TM_OP_EXP, -104.0f, 0.0f },        { TM_OP_LOG, 1.0f, 0.0f },
    { TM_OP_LOG, 0.0f, -INFINITY },      { TM_OP_LOG, -0.0f, -INFINITY },     { TM_OP_LOG, INFINITY, INFINITY },
    { TM_OP_LOG, -1.0f, NAN },           { TM_OP_TANH, -0.0f, -0.0f },        { TM_OP_TANH, INFINITY, 1.0f },
    { TM_OP_TANH, -20.0f, -1.0f },       { TM_OP_SIGMOID, 0.0f, 0.5f },       { TM_OP_SIGMOID, -INFINITY, 0.0f },
    { TM_OP_SIGMOID, INFINITY, 1.0f },   { TM_OP_ERF, -0.0f, -0.0f },         { TM_OP_ERF, 5.0f, 1.0f },
    { TM_OP_ERF, -INFINITY, -1.0f },     { TM_OP_SILU, -INFINITY, NAN },      { TM_OP_SILU, INFINITY, INFINITY },
    { TM_OP_SILU, -1e30f, -0.0f },       { TM_OP_GELU, -1e30f, -0.0f },       { TM_OP_GELU, INFINITY, INFINITY },
    { TM_OP_GELU, -INFINITY, NAN },      { TM_OP_GELU, 20.0f, 20.0f },        { TM_OP_EXP, NAN, NAN },
  };
  const tm_gelu_attributes attributes = { 0, 0 };
  kernel_host host;
  if (!probe_open(&host, 1, 0)) skip();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    const uint64_t one = 1;
    const bool is_gelu = cases[i].op == TM_OP_GELU;
    char row[64];
    probe p = probe_of(cases[i].op, is_gelu ? &attributes : NULL, is_gelu ? sizeof attributes : 0);
    probe_input(&p, TM_FORMAT_F32, 1, &one, &cases[i].x);
    probe_finish(&p, TM_FORMAT_NONE);
    snprintf(row, sizeof row, "cpu_%s_f32__avx2", tm_op_find(cases[i].op)->name);
    probe_run(&p, &host, row);
    float y;
    memcpy(&y, probe_result(&p), sizeof y);
    const bool same = isnan(cases[i].y) ? isnan(y) : bits_of(y) == bits_of(cases[i].y);
    if (!same) fail_msg("%s of %g is %g, expected %g", row, (double)cases[i].x, (double)y, (double)cases[i].y);
    probe_free(&p);
  }
  kernel_host_close(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_f32_at_hard_points),
    cmocka_unit_test(test_every_16_bit_value),
    cmocka_unit_test(test_exact_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
