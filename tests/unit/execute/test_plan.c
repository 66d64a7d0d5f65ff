/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of random graphs against each node by itself on the reference, on every mix of built-in devices in host memory. */
#include "unit/execute/plan_chance.h"

static tm_context *context;

static int open_all(void **state) {
  (void)state;
  const tm_context_options options = { .struct_size = sizeof options, .thread_count = 2 };
  return tm_context_create(&options, &context, NULL);
}

static int close_all(void **state) {
  (void)state;
  tm_context_destroy(context);
  return 0;
}

static tm_plan *make_plan(tm_graph *graph, const tm_plan_options *options) {
  tm_plan *plan = NULL;
  tm_error error = TM_ERROR_INIT;
  if (tm_plan_create(graph, options, &plan, &error) != TM_OK) fail_msg("no plan: %s", error.text);
  return plan;
}

static void try_graph(uint64_t seed, uint32_t node_count, const tm_plan_options *options, double tolerance) {
  plan_case one;
  plan_oracle oracle;
  plan_case_build(&one, context, seed, node_count);
  one.plan = make_plan(one.graph, options);
  plan_oracle_init(&oracle, &one);
  uint32_t replayed = 0;
  for (uint32_t run = 0; run < 8; run++) replayed += plan_case_run(&one, &oracle, tolerance, seed * 100 + run).replayed;
  assert_true(replayed >= 3);
  for (uint32_t i = 0; i < PLAN_STATES; i++) {
    tm_tensor *found = plan_tensor(context, 0);
    assert_int_equal(tm_plan_state_read(one.plan, one.states[i], found, NULL), TM_OK);
    plan_expect_equal(found, oracle.states[i], tolerance, "a state", seed);
    tm_tensor_destroy(found);
  }
  plan_oracle_deinit(&oracle, &one);
  plan_case_destroy(&one);
}

static void random_graphs_are_what_their_nodes_are(void **state) {
  (void)state;
  const tm_plan_options exact = { .struct_size = sizeof exact, .worst_numerics = TM_NUMERICS_N0 };
  for (uint64_t seed = 1; seed <= 60; seed++) try_graph(seed, 1 + (uint32_t)(seed * 7 % 40), &exact, 0);
}

static void they_are_so_within_bounds_on_any_device(void **state) {
  (void)state;
  const tm_plan_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT };
  for (uint64_t seed = 101; seed <= 130; seed++) try_graph(seed, 1 + (uint32_t)(seed % 20), &options, 1e-3);
}

static void they_are_so_wherever_their_nodes_are(void **state) {
  (void)state;
  const tm_plan_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT };
  uint32_t node_counts[64] = { 0 };
  for (uint64_t seed = 201; seed <= 240; seed++) plan_chance_try(context, &options, seed, 20, 1e-3, node_counts);
  assert_true(node_counts[device_of(context, "cpu:0")] > 100 && node_counts[device_of(context, "reference:0")] > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_graphs_are_what_their_nodes_are),
    cmocka_unit_test(they_are_so_within_bounds_on_any_device),
    cmocka_unit_test(they_are_so_wherever_their_nodes_are),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
