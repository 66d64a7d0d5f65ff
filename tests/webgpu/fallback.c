/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real device with memory of its own, with a fault in one of its calls: whatever fails, and when, the result is that of
 * the reference, inputs stay as they are, and what happened is told.
 */
#include <math.h>

#include "fakes/faulty_case.h"

#define RUNS 6u
/* Enough for the copies to the device and back to be worth it, beside the reference alone. */
#define COUNT 300000u

static tm_status tell_library(void *context, tm_string key, tm_string *out_value) {
  (void)context;
  const char *library = getenv("TENSORMORPH_WEBGPU_LIBRARY");
  static const char zero[] = "0", nothing[] = "";
  const char *value = nothing;
  if (key.length == 7 && memcmp(key.data, "library", 7) == 0 && library != NULL) value = library;
  if (key.length == 17 && memcmp(key.data, "max_binding_bytes", 17) == 0) value = zero;
  *out_value = (tm_string){ value, strlen(value) };
  return TM_OK;
}

static uint32_t find_builtin(const char *name) {
  for (uint32_t i = 0; i < tm_builtin_plugin_count; i++)
    if (strcmp(tm_builtin_plugins[i].name, name) == 0) return i;
  skip();
  return 0;
}

static faulty_case far_case(const fault_plan *plan) {
  faulty_case one = { .plan = *plan, .file = TM_BINARY_DIR "/tests/fakes/faulty_far.so", .builtin = find_builtin("webgpu"),
                      .also_excluded = "cpu", .patience_ns = UINT64_C(20000000000) };     /* drivers take their time to begin */
  one.plan.config_get = tell_library;
  return one;
}

/* y = exp(a): inputs must stay as they are, and a result must be right. */
static tm_run_report run_once(faulty_case *one) {
  tm_run_report report = { .struct_size = sizeof report };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N1, .report = &report };
  tm_error error = TM_ERROR_INIT;
  tm_tensor *a = vector_of(one->context, COUNT, -3, 1.0f / 65536), *y = vector_of(one->context, COUNT, 9, 0);
  if (tm_run(one->context, TM_OP_EXP, NULL, 0, &a, 1, &y, 1, &options, &error) != TM_OK) fail_msg("%s", error.text);
  const float *p = tm_tensor_data(a), *r = tm_tensor_data(y);
  for (uint32_t i = 0; i < COUNT; i++) {
    assert_true(p[i] == -3 + 1.0f / 65536 * (float)i);
    const double expected = exp((double)p[i]);
    if (!(fabs((double)r[i] - expected) <= 1e-6 * expected)) fail_msg("y[%u] is %g, expected %g", i, (double)r[i], expected);
  }
  tm_tensor_destroy(y);
  tm_tensor_destroy(a);
  return report;
}

/* What the runs together told. */
static tm_run_report run_with(const fault_plan *plan) {
  faulty_case one = far_case(plan);
  tm_run_report sum = { .struct_size = sizeof sum };
  faulty_case_open(&one);
  for (uint32_t i = 0; i < RUNS; i++) {
    const tm_run_report report = run_once(&one);
    sum.retries += report.retries;
    sum.fell_back += report.fell_back;
  }
  if (plan->first != 0) assert_true(atomic_load(&one.plan.faults) > 0);
  tm_context_destroy(one.context);
  return sum;
}

static void without_a_fault_it_is_used(void **state) {
  (void)state;
  const fault_plan plan = { .first = 0 };
  faulty_case one = far_case(&plan);
  faulty_case_open(&one);
  assert_int_equal(run_once(&one).device, device_of(one.context, "faulty:0"));
  tm_context_destroy(one.context);
}

static void any_failure_at_any_call_changes_no_result(void **state) {
  (void)state;
  static const fault_function functions[] = { FAULT_OPEN,          FAULT_PREPARE, FAULT_LAUNCH,   FAULT_BUFFER_CREATE,
                                              FAULT_UPLOAD,        FAULT_DOWNLOAD, FAULT_WAIT };
  static const tm_status failures[] = { TM_ERROR_NO_MEMORY, TM_ERROR_DEVICE_LOST, TM_ERROR_INTERNAL };
  for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++)
    for (size_t s = 0; s < sizeof failures / sizeof failures[0]; s++)
      for (uint64_t call = 1; call <= (functions[f] <= FAULT_PREPARE ? 1 : 4); call++) {
        const fault_plan plan = { .function = functions[f], .first = call, .last = call, .kind = FAULT_STATUS, .status = failures[s] };
        const tm_run_report report = run_with(&plan);
        if (report.retries == 0 && failures[s] != TM_ERROR_NO_MEMORY)
          fail_msg("function %d, status %d, call %d: nobody was told", functions[f], failures[s], (int)call);
        if ((report.fell_back != 0) != (failures[s] == TM_ERROR_INTERNAL))
          fail_msg("function %d, status %d, call %d: %u broken promises", functions[f], failures[s], (int)call, report.fell_back);
      }
}

static void one_that_fails_for_ever_is_left_alone(void **state) {
  (void)state;
  static const fault_function functions[] = { FAULT_LAUNCH, FAULT_UPLOAD, FAULT_WAIT };
  for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
    const fault_plan plan = { .function = functions[f], .first = 1, .last = UINT64_MAX, .kind = FAULT_STATUS, .status = TM_ERROR_INTERNAL };
    assert_int_equal(run_with(&plan).fell_back, 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(without_a_fault_it_is_used),
    cmocka_unit_test(any_failure_at_any_call_changes_no_result),
    cmocka_unit_test(one_that_fails_for_ever_is_left_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
