/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A float product on a device that multiplies integers only: what it asked for is done, its set-up is in the price, and the
 * result is as close as 8 bits allow.
 */
#include "plugin_context.h"

static const tm_setting npu_settings[] = { { "simulator", "lock_folder", TM_SCRATCH "/quantized_product" } };

/* The lowered candidate, or whatever is said of the device. */
static void explain_npu(tm_context *context, const tm_operand *inputs, uint32_t worst, tm_candidate *out_npu,
                        uint32_t *out_is_chosen) {
  const tm_matmul_attributes attributes = { 0, 0 };
  const tm_operand wanted = { .format = TM_FORMAT_F32 };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = worst };
  static char lowering[512];
  tm_explanation *explanation = NULL;
  tm_explanation_summary summary = { .struct_size = sizeof summary };
  tm_candidate candidate = { .struct_size = sizeof candidate };
  *out_is_chosen = 0;
  assert_int_equal(tm_explain(context, TM_OP_MATMUL, &attributes, sizeof attributes, inputs, 2, &wanted, 1, &options, &explanation,
                              NULL), TM_OK);
  tm_explanation_summarize(explanation, &summary);
  for (uint32_t i = 0; tm_explanation_candidate(explanation, i, &candidate) == TM_OK; i++) {
    if (strcmp(candidate.device_name, "simulator:0") != 0 || (i != summary.chosen && candidate.lowering[0] == '\0')) continue;
    snprintf(lowering, sizeof lowering, "%s", candidate.lowering);
    *out_npu = candidate;
    out_npu->lowering = lowering;
    *out_is_chosen = i == summary.chosen;
  }
  tm_explanation_destroy(explanation);
}

static void test_npu_is_chosen_for_a_large_product(void **state) {
  (void)state;
  const uint64_t side = 8192;
  const int64_t row = 4 * (int64_t)side;
  const tm_operand a = { .format = TM_FORMAT_F32, .rank = 2, .dims = { side, side }, .strides_bytes = { row, 4 } };
  tm_operand b = a;
  tm_candidate npu = { .device_name = NULL };
  uint32_t is_chosen = 0;
  b.flags = TM_OPERAND_CONSTANT;
  tm_context *context = make_context(TM_PLUGINS "/simulator.so", npu_settings);
  explain_npu(context, (tm_operand[]){ a, b }, TM_NUMERICS_N3, &npu, &is_chosen);
  assert_non_null(npu.device_name);
  assert_int_equal(is_chosen, 1);
  for (int i = 0; i < 3; i++) assert_non_null(strstr(npu.lowering, ((const char *const[]){ "split", "quantize", "convert" })[i]));
  assert_true(npu.setup_ns >= 2000000000);
  assert_int_equal(npu.numerics, TM_NUMERICS_N3);
  npu = (tm_candidate){ .device_name = NULL };
  explain_npu(context, (tm_operand[]){ a, b }, TM_NUMERICS_N2, &npu, &is_chosen);
  assert_int_equal(is_chosen, 0);
  tm_context_destroy(context);
}

/* Of the squared error to the squares of the result. */
static double relative_error(tm_tensor *y, tm_tensor *expected) {
  const float *found = tm_tensor_data(y), *right = tm_tensor_data(expected);
  double error = 0, all = 0;
  for (uint64_t i = 0; i < tm_tensor_operand(y)->element_count; i++) {
    error += ((double)found[i] - (double)right[i]) * ((double)found[i] - (double)right[i]);
    all += (double)right[i] * (double)right[i];
  }
  return error / all;
}

/* Twice: the second time with what was packed before. */
static void check_product(tm_context *context, uint64_t m, uint64_t k, uint64_t n) {
  const uint32_t device = device_named(context, "simulator:0"), reference = device_named(context, "reference:0");
  const tm_operand layout = { .format = TM_FORMAT_F32, .rank = 2, .dims = { k, n }, .flags = TM_OPERAND_CONSTANT };
  float *weights = malloc(k * n * sizeof *weights);
  tm_tensor *a = make_tensor(context, TM_FORMAT_F32, m, k), *b = NULL;
  tm_tensor *y = make_tensor(context, TM_FORMAT_F32, m, n), *expected = make_tensor(context, TM_FORMAT_F32, m, n);
  tm_run_report report;
  assert_non_null(weights);
  assert_int_equal(tm_tensor_wrap(context, &layout, weights, k * n * sizeof *weights, &b, NULL), TM_OK);
  fill(a, 1);
  fill(b, 2);
  tm_tensor *const inputs[] = { a, b }, *const tensors[] = { a, b, y, expected };
  assert_int_equal(run_on(context, reference, TM_OP_MATMUL, inputs, expected, TM_NUMERICS_N0, &report), TM_OK);
  for (int i = 0; i < 2; i++) {
    memset(tm_tensor_data(y), 0xff, m * n * sizeof *weights);
    assert_int_equal(run_on(context, device, TM_OP_MATMUL, inputs, y, TM_NUMERICS_N3, &report), TM_OK);
    assert_int_equal(report.device, device);
    assert_int_equal(report.fell_back, 0);
    const double error = relative_error(y, expected);
    assert_true(error > 0 && error < 1e-3);
  }
  for (int i = 0; i < 4; i++) tm_tensor_destroy(tensors[i]);
  free(weights);
}

static void test_npu_product(void **state) {
  (void)state;
  tm_context *context = make_context(TM_PLUGINS "/simulator.so", npu_settings);
  check_product(context, 16, 64, 32);
  check_product(context, 9, 70, 33);
  check_product(context, 1, 8200, 17);
  tm_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_npu_is_chosen_for_a_large_product),
    cmocka_unit_test(test_npu_product),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
