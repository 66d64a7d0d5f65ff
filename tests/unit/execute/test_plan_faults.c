/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures of each kind at each call of a plan over three devices, two of them with memory of their own: the result is that of
 * the reference, or a state that lay in the memory of a lost device is named.  Nothing is left behind (see lazy_case_close).
 */
#include "sanitized.h"
#include "unit/execute/lazy_case.h"

typedef struct fault {
  lazy_function function;
  tm_status     status;
  uint64_t      first;
  uint64_t      last;
} fault;

static lazy_case machine;
static uint32_t made_good, rerun_count, reordered;
static uint32_t all_far;

static void open_machine(uint64_t seed) {
  memset(&machine, 0, sizeof machine);
  for (uint32_t i = 0; i < LAZY_COUNT; i++) {
    machine.controls[i].cost_spread_ns = 10000000;
    machine.controls[i].cost_seed = seed;
    machine.controls[i].aliases = 1;
  }
  machine.controls[2].is_host = !all_far;
  lazy_case_open(&machine);
}

static void arm(uint32_t device, const fault *what) {
  lazy_control *control = &machine.controls[device];
  for (uint32_t i = 0; i < LAZY_FUNCTIONS; i++) atomic_store(&control->calls[i], 0);
  atomic_store(&control->first, what->first);
  atomic_store(&control->last, what->last);
  atomic_store(&control->status, what->status);
  atomic_store(&control->function, (uint32_t)what->function);
}

static void compare(plan_case *one, plan_oracle *oracle, uint64_t seed) {
  plan_oracle_run(oracle, one);
  for (uint32_t i = 0; i < PLAN_OUTPUTS; i++) {
    tm_graph_output_description output = { .struct_size = sizeof output };
    assert_int_equal(tm_graph_output_describe(one->graph, i, &output), TM_OK);
    plan_expect_equal(one->outputs[i], oracle->values[output.value], 0, output.name, seed);
  }
  plan_oracle_carry(oracle, one);
}

static bool has_other_order(const tm_plan *plan) {
  tm_plan_step_description step = { .struct_size = sizeof step };
  for (uint32_t i = 0; tm_plan_step_describe(plan, i, &step) == TM_OK; i++)
    if (step.node != i) return true;
  return false;
}

/* Runs that go well before, with, and after the failure.  Tells whether it ended for the sake of a state. */
static bool try_fault(uint64_t seed, uint32_t node_count, uint32_t device, const fault *what, bool *out_has_happened) {
  plan_case one;
  plan_oracle oracle;
  const tm_plan_options options = LAZY_OPTIONS;
  bool has_lost_state = false;
  open_machine(seed);
  plan_case_build(&one, machine.context, seed, node_count);
  one.plan = lazy_plan(one.graph, &options);
  reordered += has_other_order(one.plan);
  plan_oracle_init(&oracle, &one);
  for (uint32_t run = 0; run < 6; run++) (void)plan_case_run(&one, &oracle, 0, seed + run);
  arm(device, what);
  for (uint32_t run = 6; run < 9; run++) {
    tm_plan_report report = { .struct_size = sizeof report };
    tm_error error = TM_ERROR_INIT;
    for (uint32_t i = 0; i < PLAN_INPUTS; i++) plan_fill(one.inputs[i], (seed + run) * 31 + i + 1);
    const tm_status status = tm_plan_run(one.plan, one.inputs, PLAN_INPUTS, one.outputs, PLAN_OUTPUTS, &report, &error);
    if (status == TM_ERROR_DEVICE_LOST && strstr(error.text, "state 's") != NULL && what->status == TM_ERROR_DEVICE_LOST) {
      has_lost_state = true;
      assert_int_equal(tm_plan_run(one.plan, one.inputs, PLAN_INPUTS, one.outputs, PLAN_OUTPUTS, &report, &error),
                       TM_ERROR_DEVICE_LOST);
      assert_int_equal(tm_plan_state_reset(one.plan, TM_NO_VALUE, NULL), TM_OK);
      plan_oracle_deinit(&oracle, &one);
      plan_oracle_init(&oracle, &one);
      (void)plan_case_run(&one, &oracle, 0, seed + 20);
      continue;
    }
    if (status != TM_OK) fail_msg("seed %llu, function %u, call %llu: %d: %s", (unsigned long long)seed, (unsigned)what->function,
                                  (unsigned long long)what->first, (int)status, error.text);
    made_good += report.retries;
    rerun_count += report.rerun_count;
    compare(&one, &oracle, seed);
  }
  *out_has_happened = atomic_load(&machine.controls[device].calls[what->function]) >= what->first;
  plan_oracle_deinit(&oracle, &one);
  plan_case_destroy(&one);
  lazy_case_close(&machine);
  return has_lost_state;
}

/* Each call in turn, until there are no more in three runs; more graphs with TM_NIGHTLY=1. */
static void try_calls(lazy_function function, tm_status status, uint64_t times) {
  uint32_t lost = 0, failures = 0;
  made_good = rerun_count = reordered = 0;
  const uint64_t seeds = getenv("TM_NIGHTLY") != NULL ? 6 : 1;
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    for (uint32_t device = 0; device < LAZY_COUNT; device += 2) {
      bool has_happened = true;
      for (uint64_t call = 1; has_happened && call <= 25; call += 1 + call / TM_WHOLE_OR_PART(6, 2)) {
        const fault what = { function, status, call, call + times - 1 };
        lost += try_fault(7000 + seed, 14, device, &what, &has_happened);
        failures += has_happened;
      }
    }
  }
  print_message("function %u, status %d: %u failures, %u made good, %u nodes run again, %u states lost\n", (unsigned)function,
                (int)status, failures, made_good, rerun_count, lost);
  assert_true(made_good + lost >= failures);
  assert_true(reordered != 0);
}

static void launches_fail(void **state) {
  (void)state;
  try_calls(LAZY_LAUNCH, TM_ERROR_INTERNAL, 1);
  try_calls(LAZY_LAUNCH, TM_ERROR_NO_MEMORY, 2);
  try_calls(LAZY_LAUNCH, TM_ERROR_DEVICE_LOST, 1);
}

static void work_fails(void **state) {
  (void)state;
  try_calls(LAZY_WORK, TM_ERROR_INTERNAL, 1);
  try_calls(LAZY_WORK, TM_ERROR_INTERNAL, 2);
  try_calls(LAZY_WORK, TM_ERROR_DEVICE_LOST, 1);
}

static void transfers_fail(void **state) {
  (void)state;
  try_calls(LAZY_UPLOAD, TM_ERROR_INTERNAL, 1);
  try_calls(LAZY_DOWNLOAD, TM_ERROR_INTERNAL, 1);
  try_calls(LAZY_UPLOAD, TM_ERROR_DEVICE_LOST, 1);
  try_calls(LAZY_DOWNLOAD, TM_ERROR_DEVICE_LOST, 1);
}

static void the_same_where_states_lie_in_devices(void **state) {
  all_far = 1;
  launches_fail(state);
  work_fails(state);
  transfers_fail(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(launches_fail),
    cmocka_unit_test(work_fails),
    cmocka_unit_test(transfers_fail),
    cmocka_unit_test(the_same_where_states_lie_in_devices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
