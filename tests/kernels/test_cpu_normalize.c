/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softmax, layer_norm and rms_norm of the CPU backend: every rest of a vector, long rows, rows with NaN and infinities, and
 * rows whose values lie far apart or far from zero.
 */
#include "conformance/kernel_compare.h"
#include "kernel_probe.h"

#define SEED UINT64_C(20240614)
#define ROWS 6u

static const struct { uint32_t format; const char *name; } formats[] = {
  { TM_FORMAT_F32, "f32" }, { TM_FORMAT_BF16, "bf16" }, { TM_FORMAT_F16, "f16" },
};

/* What a row of test data is about. */
typedef enum content { ORDINARY, FAR_FROM_ZERO, WIDE, WITH_NAN, WITH_INFINITY, ALL_MINUS_INFINITY } content;

static double value_of(content kind, uint64_t index, uint64_t *random) {
  const double x = plain_value(random);
  switch (kind) {
    case FAR_FROM_ZERO: return 1000.0 + x;
    case WIDE: return x * 90.0;
    case WITH_NAN: return index == 3 ? NAN : x;
    case WITH_INFINITY: return index == 2 ? INFINITY : index == 5 ? -INFINITY : x;
    case ALL_MINUS_INFINITY: return -INFINITY;
    default: return x;
  }
}

static void fill(uint32_t format, void *bytes, uint64_t rows, uint64_t n, uint64_t *random) {
  const tm_format_info *info = tm_format_find(format);
  for (uint64_t i = 0; i < rows * n; ++i) {
    const double x = value_of((content)(i / n % ROWS), i % n, random);
    tm_codec_find(format)->encode(&x, 1, (unsigned char *)bytes + i * info->block_bytes);
  }
}

static void check(const probe *p, const tm_answer *answer, const char *row, uint64_t n) {
  const uint32_t format = p->operands[0].format, bytes = tm_format_find(format)->block_bytes;
  for (uint64_t i = 0; i < probe_result_count(p); ++i) {
    const unsigned char *actual = (const unsigned char *)probe_result(p) + i * bytes, *expected = (const unsigned char *)p->expected + i * bytes;
    double y, r;
    tm_codec_find(format)->decode(actual, 1, &y);
    tm_codec_find(format)->decode(expected, 1, &r);
    if (isnan(y) != isnan(r)) fail_msg("%s, n %llu: element %llu is %g, the reference has %g", row, (unsigned long long)n, (unsigned long long)i, y, r);
    /* Of the terms of a layer norm, the shift is at most 3 and the other one at most |r| + 3. */
    const bool is_close = answer->numerics == TM_NUMERICS_N2 ? fabs(y - r) <= allowed_distance(&p->operation, answer, r, fabs(r) + 6)
                                                             : (double)ulp_distance(actual, expected, bytes) <= answer->numerics_bound;
    if (!isnan(r) && !is_close) fail_msg("%s, n %llu: element %llu is %a, the reference has %a", row, (unsigned long long)n, (unsigned long long)i, y, r);
  }
}

static void test_operation(uint32_t op, const void *attributes, uint32_t attribute_bytes, uint32_t weights, uint64_t rows, uint64_t n) {
  uint64_t random = SEED + n;
  kernel_host host;
  if (!probe_open(&host, 0, 2)) skip();
  for (size_t f = 0; f < sizeof formats / sizeof formats[0]; ++f) {
    const uint64_t dims[] = { rows, n }, step = tm_format_find(formats[f].format)->block_bytes;
    void *x = malloc(rows * n * step), *scale = malloc(n * step), *shift = malloc(n * step);
    char row[64];
    assert_non_null(x);
    assert_non_null(scale);
    assert_non_null(shift);
    fill(formats[f].format, x, rows, n, &random);
    fill(formats[f].format, scale, 1, n, &random);
    fill(formats[f].format, shift, 1, n, &random);
    probe p = probe_of(op, attributes, attribute_bytes);
    probe_input(&p, formats[f].format, 2, dims, x);
    if (weights > 0) probe_input(&p, formats[f].format, 1, &n, scale);
    if (weights > 1) probe_input(&p, formats[f].format, 1, &n, shift);
    probe_finish(&p, TM_FORMAT_NONE);
    snprintf(row, sizeof row, "cpu_%s_%s__avx2", tm_op_find(op)->name, formats[f].name);
    const tm_answer answer = probe_run(&p, &host, row);
    probe_reference(&p);
    check(&p, &answer, row, n);
    probe_free(&p);
    free(x);
    free(scale);
    free(shift);
  }
  kernel_host_close(&host);
}

static void test_every(uint32_t op, const void *attributes, uint32_t attribute_bytes, uint32_t weights) {
  for (uint64_t n = 1; n <= 34; ++n) test_operation(op, attributes, attribute_bytes, weights, 2 * ROWS, n);
  test_operation(op, attributes, attribute_bytes, weights, 40, 1023);
  test_operation(op, attributes, attribute_bytes, weights, 1, 40001);
}

static void test_softmax(void **state) {
  (void)state;
  const tm_axis_attributes attributes = { 1, 0 };
  test_every(TM_OP_SOFTMAX, &attributes, sizeof attributes, 0);
}

static void test_rms_norm(void **state) {
  (void)state;
  const tm_norm_attributes attributes = { 1e-6 };
  test_every(TM_OP_RMS_NORM, &attributes, sizeof attributes, 1);
}

static void test_layer_norm(void **state) {
  (void)state;
  const tm_norm_attributes attributes = { 1e-5 };
  test_every(TM_OP_LAYER_NORM, &attributes, sizeof attributes, 2);
}

/* Another axis is refused, not computed wrongly. */
static void test_other_axes_are_refused(void **state) {
  (void)state;
  const tm_axis_attributes attributes = { 0, 0 };
  const uint64_t dims[] = { 8, 8 };
  kernel_host host;
  if (!probe_open(&host, 1, 0)) skip();
  probe p = probe_of(TM_OP_SOFTMAX, &attributes, sizeof attributes);
  probe_input(&p, TM_FORMAT_F32, 2, dims, NULL);
  probe_finish(&p, TM_FORMAT_NONE);
  const tm_answer answer = kernel_host_query(&host, &p.operation);
  assert_int_equal(answer.level, TM_LEVEL_REFUSED);
  assert_true((answer.reasons & TM_REASON_ATTRIBUTE) != 0);
  probe_free(&p);
  kernel_host_close(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_softmax),
    cmocka_unit_test(test_rms_norm),
    cmocka_unit_test(test_layer_norm),
    cmocka_unit_test(test_other_axes_are_refused),
  };
  print_message("seed %llu\n", (unsigned long long)SEED);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
