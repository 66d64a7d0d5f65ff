/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugins as an application has them: loaded by path into a context, asked for by name, their results beside the
 * reference's, their choice explained.
 */
#include "plugin_context.h"

static const tm_setting npu_settings[] = { { "simulator", "lock_folder", TM_SCRATCH "/application" } };
static const tm_setting gpu_settings[] = { { "simulator", "device_file", TM_PLUGINS "/devices/gpu_like.json" } };

static double distance(tm_tensor *a, tm_tensor *b) {
  const float *x = tm_tensor_data(a), *y = tm_tensor_data(b);
  double most = 0;
  for (uint64_t i = 0; i < tm_tensor_operand(a)->element_count; i++) {
    const double apart = fabs((double)x[i] - (double)y[i]);
    most = apart > most || isnan(apart) ? apart : most;
  }
  return most;
}

/* One operation on the plugin's device and on the reference. */
static void check_operation(tm_context *context, const char *name, uint32_t op, uint32_t worst, double allowed) {
  enum { SIDE = 96 };
  const uint32_t device = device_named(context, name), reference = device_named(context, "reference:0");
  tm_tensor *all[4];
  tm_run_report report;
  for (uint32_t i = 0; i < 4; i++) {
    all[i] = make_tensor(context, TM_FORMAT_F32, SIDE, SIDE);
    fill(all[i], i);
  }
  assert_int_not_equal(device, TM_ANY_DEVICE);
  assert_int_equal(run_on(context, device, op, all, all[2], worst, &report), TM_OK);
  assert_int_equal(report.device, device);
  assert_int_equal(report.fell_back, 0);
  assert_int_equal(run_on(context, reference, op, all, all[3], worst, &report), TM_OK);
  assert_true(distance(all[2], all[3]) <= allowed);
  for (int i = 0; i < 4; i++) tm_tensor_destroy(all[i]);
}

static void test_minimal(void **state) {
  (void)state;
  tm_context *context = make_context(TM_PLUGINS "/minimal.so", NULL);
  check_operation(context, "minimal:0", TM_OP_ADD, TM_NUMERICS_N0, 0);
  check_operation(context, "minimal:0", TM_OP_SUB, TM_NUMERICS_N0, 0);
  check_operation(context, "minimal:0", TM_OP_MUL, TM_NUMERICS_N0, 0);
  tm_context_destroy(context);
}

static void test_gpu_like(void **state) {
  (void)state;
  tm_context *context = make_context(TM_PLUGINS "/simulator.so", gpu_settings);
  check_operation(context, "simulator:0", TM_OP_MUL, TM_NUMERICS_N0, 0);
  check_operation(context, "simulator:0", TM_OP_MATMUL, TM_NUMERICS_N2, 1e-4);
  tm_context_destroy(context);
}

/* ---- blas: chosen exactly where it costs less ---- */

typedef struct choice {
  tm_candidate blas;
  tm_candidate chosen;
  double       margin;
} choice;

static void explain(tm_context *context, const tm_operand *inputs, choice *out) {
  const tm_matmul_attributes attributes = { 0, 0 };
  const tm_operand wanted = { .format = TM_FORMAT_F32 };
  tm_explanation *explanation = NULL;
  tm_explanation_summary summary = { .struct_size = sizeof summary };
  tm_candidate candidate = { .struct_size = sizeof candidate };
  assert_int_equal(tm_explain(context, TM_OP_MATMUL, &attributes, sizeof attributes, inputs, 2, &wanted, 1, NULL, &explanation,
                              NULL), TM_OK);
  tm_explanation_summarize(explanation, &summary);
  for (uint32_t i = 0; tm_explanation_candidate(explanation, i, &candidate) == TM_OK; i++) {
    if (strcmp(candidate.device_name, "blas:0") == 0) out->blas = candidate;
    if (i == summary.chosen) out->chosen = candidate;
  }
  out->margin = summary.margin;
  tm_explanation_destroy(explanation);
}

static int has_blas(tm_context *context) {
  tm_backend_description backend = { .struct_size = sizeof backend };
  for (uint32_t i = 0; tm_backend_describe(context, i, &backend) == TM_OK; i++)
    if (strcmp(backend.name, "blas") == 0 && backend.state == TM_BACKEND_UNAVAILABLE) printf("skipped: %s\n", backend.reason);
  return device_named(context, "blas:0") != TM_ANY_DEVICE;
}

static void test_blas(void **state) {
  (void)state;
  enum { SIDE = 512 };
  tm_context *context = make_context(TM_PLUGINS "/blas.so", NULL);
  if (!has_blas(context)) {
    tm_context_destroy(context);
    skip();
  }
  check_operation(context, "blas:0", TM_OP_MATMUL, TM_NUMERICS_N2, 1e-4);
  tm_tensor *all[3];
  tm_run_report report;
  choice made = { .margin = 0 };
  for (uint32_t i = 0; i < 3; i++) all[i] = make_tensor(context, TM_FORMAT_F32, SIDE, SIDE), fill(all[i], i);
  for (uint32_t i = 0; i < 8; i++) {
    const uint32_t device = device_named(context, i % 2 ? "cpu:0" : "blas:0");
    if (device == TM_ANY_DEVICE) continue;
    assert_int_equal(run_on(context, device, TM_OP_MATMUL, all, all[2], TM_NUMERICS_N2, &report), TM_OK);
  }
  explain(context, (tm_operand[]){ *tm_tensor_operand(all[0]), *tm_tensor_operand(all[1]) }, &made);
  assert_true(made.blas.sample_count > 0);
  assert_int_equal(made.blas.copy_ns, 0);
  assert_int_equal(made.blas.level, TM_LEVEL_NATIVE);
  assert_int_equal(made.blas.verdict == TM_VERDICT_CHOSEN, made.blas.total_ns == made.chosen.total_ns);
  assert_true(made.chosen.total_ns <= made.blas.total_ns);
  assert_true(made.margin >= 1);
  for (int i = 0; i < 3; i++) tm_tensor_destroy(all[i]);
  tm_context_destroy(context);
}

/* ---- the NPU ---- */

static void test_npu_halves(void **state) {
  (void)state;
  enum { SIDE = 32 };
  tm_context *context = make_context(TM_PLUGINS "/simulator.so", npu_settings);
  const uint32_t device = device_named(context, "simulator:0"), reference = device_named(context, "reference:0");
  tm_tensor *all[4];
  tm_run_report report;
  for (uint32_t i = 0; i < 4; i++) {
    all[i] = make_tensor(context, TM_FORMAT_F16, SIDE, SIDE);
    uint16_t *halves = tm_tensor_data(all[i]);
    for (uint32_t at = 0; at < SIDE * SIDE; at++) halves[at] = (uint16_t)(0x3000u | (at * (i + 7) & 0x8bffu));
  }
  assert_int_equal(run_on(context, device, TM_OP_ADD, all, all[2], TM_NUMERICS_N0, &report), TM_OK);
  assert_int_equal(report.device, device);
  assert_int_equal(run_on(context, reference, TM_OP_ADD, all, all[3], TM_NUMERICS_N0, &report), TM_OK);
  assert_memory_equal(tm_tensor_data(all[2]), tm_tensor_data(all[3]), SIDE * SIDE * sizeof(uint16_t));
  for (int i = 0; i < 4; i++) tm_tensor_destroy(all[i]);
  tm_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_minimal),
    cmocka_unit_test(test_gpu_like),
    cmocka_unit_test(test_blas),
    cmocka_unit_test(test_npu_halves),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
