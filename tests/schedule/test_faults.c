/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A built-in backend with a fault in one of its calls: inputs stay as they are, results are those of the reference, and
 * what happened is told; a run that is strict fails instead.
 */
#include "fakes/faulty_case.h"

#define RUNS 7u

/* Runs some times with the fault at call `first`; returns how often something fell back or was tried again. */
static uint32_t run_with(const fault_plan *plan, uint32_t *out_fell_back) {
  faulty_case one = { .plan = *plan };
  uint32_t retries = 0;
  faulty_case_open(&one);
  *out_fell_back = 0;
  for (uint32_t i = 0; i < RUNS; i++) {
    tm_run_report report = { .struct_size = sizeof report };
    const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0, .report = &report };
    tm_error error = TM_ERROR_INIT;
    if (faulty_case_run(&one, TM_OP_ADD, &options, &error) != TM_OK) fail_msg("run %u: %s", i, error.text);
    retries += report.retries;
    *out_fell_back += report.fell_back;
  }
  assert_true(atomic_load(&one.plan.faults) > 0);
  tm_context_destroy(one.context);
  return retries;
}

typedef struct status_case {
  fault_function function;
  tm_status      status;
  uint32_t       fell_back;     /* it is a broken promise */
} status_case;

/* A device that says so at once and often enough is not used; so each fault comes once, at every early call. */
static const status_case statuses[] = {
  { FAULT_OPEN, TM_ERROR_NO_MEMORY, 0 },    { FAULT_OPEN, TM_ERROR_DEVICE_LOST, 0 },    { FAULT_OPEN, TM_ERROR_INTERNAL, 1 },
  { FAULT_QUERY, TM_ERROR_DEVICE_LOST, 0 }, { FAULT_QUERY, TM_ERROR_INTERNAL, 0 },      { FAULT_PREPARE, TM_ERROR_NO_MEMORY, 0 },
  { FAULT_PREPARE, TM_STALE, 0 },           { FAULT_PREPARE, TM_ERROR_ARGUMENT, 1 },    { FAULT_PREPARE, TM_UNSUPPORTED, 1 },
  { FAULT_LAUNCH, TM_ERROR_NO_MEMORY, 0 },  { FAULT_LAUNCH, TM_BUSY, 0 },               { FAULT_LAUNCH, TM_ERROR_DEVICE_LOST, 0 },
  { FAULT_LAUNCH, TM_ERROR_INTERNAL, 1 },   { FAULT_LAUNCH, TM_UNSUPPORTED, 1 },        { FAULT_LAUNCH, 77, 1 },
};

static void a_status_changes_no_result(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
    const status_case *c = &statuses[i];
    const uint64_t calls = c->function == FAULT_LAUNCH ? RUNS - 1 : 1;
    for (uint64_t n = 1; n <= calls; n++) {
      uint32_t fell_back = 0;
      const fault_plan plan = { .function = c->function, .first = n, .last = n, .kind = FAULT_STATUS, .status = c->status };
      (void)run_with(&plan, &fell_back);
      if (fell_back != c->fell_back) fail_msg("function %d, status %d, call %d: fell back %u", c->function, c->status, (int)n, fell_back);
    }
  }
}

/* Outputs that were written and disowned are written again. */
static void what_a_failed_launch_wrote_is_overwritten(void **state) {
  (void)state;
  for (uint64_t n = 1; n < RUNS; n++) {
    uint32_t fell_back = 0;
    const fault_plan plan = { .function = FAULT_LAUNCH, .first = n, .last = n, .kind = FAULT_STATUS_AFTER, .status = TM_ERROR_INTERNAL };
    assert_int_equal(run_with(&plan, &fell_back), 1);
    assert_int_equal(fell_back, 1);
  }
}

static void a_hang_changes_no_result(void **state) {
  (void)state;
  static const fault_plan plans[] = {
    { .function = FAULT_OPEN, .first = 1, .last = 1, .kind = FAULT_HANG },
    { .function = FAULT_QUERY, .first = 1, .last = 1, .kind = FAULT_HANG },
    { .function = FAULT_PREPARE, .first = 1, .last = 1, .kind = FAULT_HANG },
    { .function = FAULT_LAUNCH, .first = 1, .last = 1, .kind = FAULT_HANG },
    { .function = FAULT_LAUNCH, .first = 3, .last = 3, .kind = FAULT_HANG },
  };
  for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
    uint32_t fell_back = 0;
    (void)run_with(&plans[i], &fell_back);
    assert_int_equal(fell_back, plans[i].function == FAULT_QUERY ? 0 : 1);
  }
}

/* ---- strict ---- */

static void expect_strict(faulty_case *one, const tm_run_options *options, tm_status expected, const char *words) {
  tm_error error = TM_ERROR_INIT;
  assert_int_equal(faulty_case_run(one, TM_OP_ADD, options, &error), expected);
  if (strstr(error.text, words) == NULL || strstr(error.text, "faulty:0") == NULL) fail_msg("'%s'", error.text);
  assert_int_equal(error.code, expected);
}

static void a_strict_run_fails(void **state) {
  (void)state;
  static const tm_status given[] = { TM_ERROR_INTERNAL, TM_UNSUPPORTED, TM_ERROR_DEVICE_LOST, TM_ERROR_NO_MEMORY };
  static const tm_status expected[] = { TM_ERROR_INTERNAL, TM_ERROR_INTERNAL, TM_ERROR_DEVICE_LOST, TM_ERROR_NO_MEMORY };
  for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
    faulty_case one = { .plan = { .function = FAULT_LAUNCH, .first = 1, .last = 2, .kind = FAULT_STATUS, .status = given[i] } };
    faulty_case_open(&one);
    const tm_run_options strict = { .struct_size = sizeof strict, .worst_numerics = TM_NUMERICS_DEFAULT,
                                    .on_failure = TM_ON_FAILURE_STRICT };
    expect_strict(&one, &strict, expected[i], "strict");
    assert_int_equal(faulty_case_run(&one, TM_OP_ADD, NULL, NULL), TM_OK);
    tm_context_destroy(one.context);
  }
}

static void a_strict_context_makes_all_runs_so(void **state) {
  (void)state;
  faulty_case one = { .plan = { .function = FAULT_LAUNCH, .first = 1, .last = 1, .kind = FAULT_STATUS, .status = TM_ERROR_INTERNAL },
                      .flags = TM_CONTEXT_STRICT };
  faulty_case_open(&one);
  expect_strict(&one, NULL, TM_ERROR_INTERNAL, "strict");
  assert_int_equal(faulty_case_run(&one, TM_OP_ADD, NULL, NULL), TM_OK);    /* it is not asked for that any more */
  const tm_run_options unknown = { .struct_size = sizeof unknown, .worst_numerics = TM_NUMERICS_DEFAULT, .on_failure = 2 };
  assert_int_equal(faulty_case_run(&one, TM_OP_ADD, &unknown, NULL), TM_ERROR_ARGUMENT);
  tm_context_destroy(one.context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_status_changes_no_result),
    cmocka_unit_test(what_a_failed_launch_wrote_is_overwritten),
    cmocka_unit_test(a_hang_changes_no_result),
    cmocka_unit_test(a_strict_run_fails),
    cmocka_unit_test(a_strict_context_makes_all_runs_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
