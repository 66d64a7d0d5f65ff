/* SPDX-License-Identifier: Apache-2.0 */
/* A real backend that, at each launch of a replay in turn, spoils what it should have made, in place or not, and says that it
 * failed. */
#include "fakes/faulty_case.h"
#include "unit/execute/plan_case.h"

static faulty_case machine;

static bool try_launch(uint64_t seed, uint64_t launch, fault_kind kind) {
  plan_case one;
  plan_oracle oracle;
  tm_error error = TM_ERROR_INIT;
  const tm_plan_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0, .wait_for_prepare = 1 };
  memset(&machine, 0, sizeof machine);
  faulty_case_open(&machine);
  plan_case_build(&one, machine.context, seed, 20);
  if (tm_plan_create(one.graph, &options, &one.plan, &error) != TM_OK) fail_msg("no plan: %s", error.text);
  plan_oracle_init(&oracle, &one);
  for (uint64_t run = 0; run < 6; run++) (void)plan_case_run(&one, &oracle, 0, seed * 50 + run);
  const uint64_t before = atomic_load(&machine.plan.calls[FAULT_LAUNCH]);
  machine.plan.function = FAULT_LAUNCH;
  machine.plan.kind = kind;
  machine.plan.status = TM_ERROR_INTERNAL;
  machine.plan.last = before + launch;
  machine.plan.first = before + launch;
  const tm_plan_report report = plan_case_run(&one, &oracle, 0, seed * 50 + 6);
  const bool has_happened = atomic_load(&machine.plan.faults) != 0;
  if (has_happened && (report.retries < 1 || !report.fell_back || strstr(report.note, "faulty:0") == NULL))
    fail_msg("launch %llu: %u retries, fell back %u, replayed %u: %s", (unsigned long long)launch, report.retries, report.fell_back,
             report.replayed, report.note);
  for (uint64_t run = 7; run < 14; run++) (void)plan_case_run(&one, &oracle, 0, seed * 50 + run);
  plan_oracle_deinit(&oracle, &one);
  plan_case_destroy(&one);
  tm_context_destroy(machine.context);
  return has_happened;
}

static void each_launch_in_turn(fault_kind kind) {
  const uint64_t seeds = getenv("TM_NIGHTLY") != NULL ? 12 : 3;
  uint32_t faults = 0;
  for (uint64_t seed = 1; seed <= seeds; seed++)
    for (uint64_t launch = 1; try_launch(seed, launch, kind); launch++) faults++;
  print_message("%u failures made good\n", faults);
  assert_true(faults > 10);
}

static void what_was_spoiled_is_made_again(void **state) {
  (void)state;
  each_launch_in_turn(FAULT_STATUS_AFTER);
}

static void what_was_not_made_is_made(void **state) {
  (void)state;
  each_launch_in_turn(FAULT_STATUS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_was_spoiled_is_made_again),
    cmocka_unit_test(what_was_not_made_is_made),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
