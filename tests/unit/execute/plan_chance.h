/* SPDX-License-Identifier: Apache-2.0 */
/* plan_chance.h - plans whose nodes are placed by chance among all that can run them, and states as well, in any order. */
#ifndef TM_TESTS_PLAN_CHANCE_H
#define TM_TESTS_PLAN_CHANCE_H

#include "api/plans.h"
#include "unit/execute/plan_case.h"

/* Any of the nodes that could be next, each time. */
static inline void plan_chance_order(const tm_solver_problem *solver, uint64_t *seed, uint32_t *order) {
  bool is_done[PLAN_MOST_VALUES] = { false };
  for (uint32_t place = 0; place < solver->op_count; place++) {
    uint32_t ready[PLAN_MOST_VALUES], count = 0;
    for (uint32_t op = 0; op < solver->op_count; op++) {
      bool can = !is_done[op];
      for (uint32_t i = 0; i < solver->ops[op].input_count; i++) {
        const uint32_t producer = solver->values[solver->inputs[solver->ops[op].first_input + i]].producer;
        can = can && (producer == TM_SOLVER_NONE || is_done[producer]);
      }
      if (can) ready[count++] = op;
    }
    order[place] = ready[plan_random(seed) % count];
    is_done[order[place]] = true;
  }
}

static inline tm_status plan_chance_choose(void *context, tm_graph_problem *problem, tm_memory *memory, tm_graph_choice *out_choice,
                                           tm_error *error) {
  uint64_t *seed = context;
  uint32_t labels[PLAN_MOST_VALUES], order[PLAN_MOST_VALUES];
  for (uint32_t i = 0; i < problem->graph->node_count; i++)
    labels[i] = problem->solver.ops[i].first_label + plan_random(seed) % problem->solver.ops[i].label_count;
  plan_chance_order(&problem->solver, seed, order);
  return tm_graph_choice_pin(problem, memory, labels, order, plan_random(seed) % problem->solver.memory_count, out_choice, error);
}

static inline void plan_chance_make(plan_case *one, const tm_plan_options *options, uint64_t seed) {
  tm_error error = TM_ERROR_INIT;
  tm_plan_options known;
  assert_int_equal(tm_plan_options_read(options, &known, &error), TM_OK);
  if (tm_plan_make(one->graph, &known, plan_chance_choose, &seed, &one->plan, &error) != TM_OK) fail_msg("no plan: %s", error.text);
}

/* A graph, runs of it, and its states after them, beside what its nodes are one by one.  Adds to the counters by device how many
   nodes were there. */
static inline void plan_chance_try(tm_context *context, const tm_plan_options *options, uint64_t seed, uint32_t node_count,
                                   double tolerance, uint32_t *node_counts) {
  plan_case one;
  plan_oracle oracle;
  plan_case_build(&one, context, seed, node_count);
  plan_chance_make(&one, options, seed * 3 + 1);
  plan_oracle_init(&oracle, &one);
  for (uint32_t run = 0; run < 8; run++) (void)plan_case_run(&one, &oracle, tolerance, seed * 100 + run);
  for (uint32_t i = 0; i < PLAN_STATES; i++) {
    tm_tensor *found = plan_tensor(context, 0);
    assert_int_equal(tm_plan_state_read(one.plan, one.states[i], found, NULL), TM_OK);
    plan_expect_equal(found, oracle.states[i], tolerance, "a state", seed);
    tm_tensor_destroy(found);
  }
  tm_plan_step_description step = { .struct_size = sizeof step };
  for (uint32_t i = 0; tm_plan_step_describe(one.plan, i, &step) == TM_OK; i++) node_counts[step.device]++;
  plan_oracle_deinit(&oracle, &one);
  plan_case_destroy(&one);
}

#endif
