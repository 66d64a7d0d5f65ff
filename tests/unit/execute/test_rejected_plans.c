/* SPDX-License-Identifier: Apache-2.0 */
/* What explanations of random graphs say of plans that were looked at and not taken. */
#include "schedule/graph_explanation.h"
#include "sanitized.h"
#include "unit/execute/lazy_case.h"

/* None of them would be over sooner as one thread hands it out, and none is told twice. */
static uint32_t count_sooner(const tm_plan_explanation *explanation) {
  tm_plan_summary summary = { .struct_size = sizeof summary };
  tm_rejected_plan plan = { .struct_size = sizeof plan }, other = { .struct_size = sizeof other };
  uint32_t sooner = 0;
  tm_plan_explanation_summarize(explanation, &summary);
  for (uint32_t i = 0; tm_plan_explanation_rejected(explanation, i, &plan) == TM_OK; i++) {
    sooner += plan.total_ns < summary.total_ns && plan.excess_bytes == 0;
    for (uint32_t k = 0; k < i && tm_plan_explanation_rejected(explanation, k, &other) == TM_OK; k++)
      assert_true(other.device != plan.device || strcmp(other.name, plan.name) != 0);
  }
  return sooner;
}

static uint64_t largest_peak(const tm_plan_explanation *explanation) {
  tm_explained_memory memory = { .struct_size = sizeof memory };
  uint64_t largest = 0;
  for (uint32_t i = 0; tm_plan_explanation_memory(explanation, i, &memory) == TM_OK; i++)
    if (memory.peak_bytes > largest) largest = memory.peak_bytes;
  return largest;
}

/* Nor within a limit of memory that some of them do not keep to.  Whether any limit had a plan. */
static bool is_none_sooner_within(tm_graph *graph, uint64_t peak_bytes) {
  bool any = false;
  for (uint32_t eighths = 3; eighths < 8; eighths++) {
    tm_plan_options options = LAZY_OPTIONS;
    tm_plan_explanation *explanation = NULL;
    options.max_memory_bytes = peak_bytes / 8 * eighths;
    if (options.max_memory_bytes == 0 || tm_graph_explain(graph, &options, &explanation, NULL) != TM_OK) continue;
    assert_int_equal(count_sooner(explanation), 0);
    tm_plan_explanation_destroy(explanation);
    any = true;
  }
  return any;
}

/* What a thread cannot hand out in time is not over as soon as an ideal order has it. */
static void no_rejected_plan_is_sooner(void **state) {
  uint32_t limited = 0;
  (void)state;
  const lazy_control controls[] = { { .cost_spread_ns = 100000, .cost_seed = 11, .aliases = 1, .is_prompt = 1 },
                                    { .cost_spread_ns = 100000, .cost_seed = 11 },
                                    { .cost_spread_ns = 100000, .cost_seed = 11, .aliases = 1, .is_host = 1 } };
  lazy_case machine = { .context = NULL };
  memcpy(machine.controls, controls, sizeof controls);
  lazy_case_open(&machine);
  for (uint64_t seed = 1; seed <= TM_WHOLE_OR_PART(100, 30); seed++) {
    plan_case one;
    const tm_plan_options options = LAZY_OPTIONS;
    plan_case_build(&one, machine.context, seed, 5 + (uint32_t)seed % 30);
    tm_plan_explanation *explanation = NULL;
    assert_int_equal(tm_graph_explain(one.graph, &options, &explanation, NULL), TM_OK);
    assert_int_equal(count_sooner(explanation), 0);
    if (seed % 6 == 0) limited += is_none_sooner_within(one.graph, largest_peak(explanation));
    tm_plan_explanation_destroy(explanation);
    plan_case_destroy(&one);
  }
  assert_true(limited > 0);
  lazy_case_close(&machine);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(no_rejected_plan_is_sooner) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
