/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans over devices with memory and queues of their own, that do nothing before they are waited for: a wait or a transfer
 * that is missing, or memory that is given away too early, shows as a wrong number.
 */
#include "unit/execute/lazy_case.h"
#include "unit/execute/plan_chance.h"

static void try_graph(lazy_case *machine, uint64_t seed, uint32_t node_count) {
  plan_case one;
  plan_oracle oracle;
  const tm_plan_options options = LAZY_OPTIONS;
  plan_case_build(&one, machine->context, seed, node_count);
  one.plan = lazy_plan(one.graph, &options);
  plan_oracle_init(&oracle, &one);
  uint32_t replayed = 0;
  for (uint32_t run = 0; run < 8; run++) replayed += plan_case_run(&one, &oracle, 0, seed * 100 + run).replayed;
  assert_true(replayed >= 3);
  for (uint32_t i = 0; i < PLAN_STATES; i++) {
    tm_tensor *found = plan_tensor(machine->context, 0);
    assert_int_equal(tm_plan_state_read(one.plan, one.states[i], found, NULL), TM_OK);
    plan_expect_equal(found, oracle.states[i], 0, "a state", seed);
    tm_tensor_destroy(found);
  }
  (void)plan_case_run(&one, &oracle, 0, seed * 100 + 99);        /* states go back to where they were */
  plan_oracle_deinit(&oracle, &one);
  plan_case_destroy(&one);
}

/* Costs send each operation elsewhere; each graph meets devices of which nothing is known, or what was learned would send all
   of it to one. */
static void try_machine(const lazy_control *controls, uint64_t seed, uint32_t graphs) {
  static lazy_case machine;
  uint64_t launches[LAZY_COUNT] = { 0 };
  for (uint64_t i = 0; i < graphs; i++) {
    memset(&machine, 0, sizeof machine);
    for (uint32_t k = 0; k < LAZY_COUNT; k++) {
      machine.controls[k] = controls[k];
      machine.controls[k].cost_spread_ns = 10000000;
      machine.controls[k].cost_seed = seed + i;
    }
    lazy_case_open(&machine);
    try_graph(&machine, seed + i, 1 + (uint32_t)((seed + i) * 7 % 30));
    for (uint32_t k = 0; k < LAZY_COUNT; k++) launches[k] += atomic_load(&machine.controls[k].calls[LAZY_LAUNCH]);
    lazy_case_close(&machine);
  }
  for (uint32_t i = 0; i < LAZY_COUNT; i++) assert_true(launches[i] > graphs);
}

static void between_memories(void **state) {
  (void)state;
  const lazy_control controls[] = { { .granule = 32 }, { .granule = 4 }, { .granule = 256 } };
  try_machine(controls, 2000, 40);
}

/* Which are full until somebody waits for what is on them. */
static void on_short_queues(void **state) {
  (void)state;
  const lazy_control controls[] = { { .depth = 1 }, { .depth = 2 }, { .depth = 1, .is_host = 1 } };
  try_machine(controls, 7000, 8);
}

static void in_place_where_they_may(void **state) {
  (void)state;
  const lazy_control controls[] = { { .aliases = 1 }, { .aliases = 1 }, { .aliases = 1, .is_host = 1 } };
  try_machine(controls, 3000, 40);
}

static void lazily_in_host_memory(void **state) {
  (void)state;
  const lazy_control controls[] = { { .is_host = 1 },
                                    { .is_host = 1, .aliases = 1 },
                                    { .is_host = 1, .is_prompt = 1, .aliases = 1 } };
  try_machine(controls, 4000, 40);
}

static void lazily_in_both(void **state) {
  (void)state;
  const lazy_control controls[] = { { .aliases = 1 },
                                    { .is_host = 1, .aliases = 1 },
                                    { .is_prompt = 1, .is_host = 1, .aliases = 1 } };
  try_machine(controls, 5000, 40);
}

static void promptly_in_memory_of_their_own(void **state) {
  (void)state;
  const lazy_control controls[] = { { .is_prompt = 1 }, { .is_prompt = 1, .aliases = 1 }, { .is_prompt = 1, .is_host = 1 } };
  try_machine(controls, 6000, 20);
}

/* Lazy ones of both kinds, the processor and the reference, states in any memory. */
static void wherever_chance_puts_them(void **state) {
  (void)state;
  static lazy_case machine;
  const tm_plan_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0, .wait_for_prepare = 1 };
  uint32_t node_counts[64] = { 0 };
  memset(&machine, 0, sizeof machine);
  machine.controls[0].aliases = machine.controls[2].aliases = 1;
  machine.controls[1].granule = 64;
  machine.controls[2].is_host = 1;
  lazy_case_open(&machine);
  for (uint64_t seed = 301; seed <= 340; seed++) plan_chance_try(machine.context, &options, seed, 20, 0, node_counts);
  for (uint32_t i = 0; i < LAZY_COUNT; i++) assert_true(node_counts[i] > 20);
  lazy_case_close(&machine);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(between_memories),
    cmocka_unit_test(on_short_queues),
    cmocka_unit_test(in_place_where_they_may),
    cmocka_unit_test(lazily_in_host_memory),
    cmocka_unit_test(lazily_in_both),
    cmocka_unit_test(promptly_in_memory_of_their_own),
    cmocka_unit_test(wherever_chance_puts_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
