/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real profiled graphs: the exact plan costs at most what each of the usual ways to place costs, by how much is printed.
 * The ways are written here, on the problem's structs alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sanitized.h"
#include "solver/assignment.h"
#include "unit/solver/profiled_graph.h"

#define BASELINES 4u
static const char *const baseline_names[BASELINES] = { "in order of priority", "each where it is fastest", "greedy with copies",
                                                       "greedy, then local search" };

typedef struct plan {
  const tm_solver_problem *problem;
  uint32_t *labels;
  bool     *is_read;            /* [value][memory] */
} plan;

static uint64_t copy_cost(const tm_solver_problem *p, uint32_t value, uint32_t from, uint32_t to) {
  return p->copy_ns[(p->values[value].size_class * p->memory_count + from) * p->memory_count + to];
}

static uint64_t total_of(const plan *one) {
  const tm_solver_problem *p = one->problem;
  uint64_t total = 0;
  memset(one->is_read, 0, (size_t)p->value_count * p->memory_count * sizeof *one->is_read);
  for (uint32_t op = 0; op < p->op_count; op++) {
    const tm_solver_label *label = &p->labels[one->labels[op]];
    if (label->cost_ns == TM_SOLVER_NEVER) return TM_SOLVER_NEVER;
    total += label->cost_ns;
    for (uint32_t i = 0; i < p->ops[op].input_count; i++)
      one->is_read[p->inputs[p->ops[op].first_input + i] * p->memory_count + label->input_memory] = true;
  }
  for (uint32_t v = 0; v < p->value_count; v++) {
    for (uint32_t m = 0; m < p->memory_count; m++)
      total += one->is_read[v * p->memory_count + m]
                   ? copy_cost(p, v, p->labels[one->labels[p->values[v].producer]].output_memory, m)
                   : 0;
  }
  return total;
}

/* Fast devices in the order of their numbers, then the slow one. */
static void place_by_priority(plan *one) {
  for (uint32_t op = 0; op < one->problem->op_count; op++) {
    const tm_solver_op *row = &one->problem->ops[op];
    one->labels[op] = row->first_label;
    for (uint32_t i = row->label_count - 1; i > 0; i--) {
      if (one->problem->labels[row->first_label + i].cost_ns != TM_SOLVER_NEVER) one->labels[op] = row->first_label + i;
    }
  }
}

/* With the copies of inputs as they lie, or without. */
static void place_by_cost(plan *one, bool with_copies) {
  const tm_solver_problem *p = one->problem;
  for (uint32_t op = 0; op < p->op_count; op++) {
    uint64_t least = TM_SOLVER_NEVER;
    for (uint32_t label = p->ops[op].first_label; label < p->ops[op].first_label + p->ops[op].label_count; label++) {
      uint64_t cost = p->labels[label].cost_ns;
      for (uint32_t i = 0; i < p->ops[op].input_count && with_copies && cost != TM_SOLVER_NEVER; i++) {
        const uint32_t value = p->inputs[p->ops[op].first_input + i];
        cost += copy_cost(p, value, p->labels[one->labels[p->values[value].producer]].output_memory, p->labels[label].input_memory);
      }
      if (cost >= least) continue;
      least = cost;
      one->labels[op] = label;
    }
  }
}

static void search_locally(plan *one) {
  const tm_solver_problem *p = one->problem;
  uint64_t least = total_of(one);
  bool is_better = true;
  for (int sweep = 0; sweep < 10 && is_better; sweep++) {
    is_better = false;
    for (uint32_t op = 0; op < p->op_count; op++) {
      uint32_t best = one->labels[op];
      for (uint32_t label = p->ops[op].first_label; label < p->ops[op].first_label + p->ops[op].label_count; label++) {
        one->labels[op] = label;
        const uint64_t total = total_of(one);
        if (total >= least) continue;
        least = total;
        best = label;
        is_better = true;
      }
      one->labels[op] = best;
    }
  }
}

static uint64_t baseline(plan *one, uint32_t which) {
  if (which == 0) place_by_priority(one);
  else place_by_cost(one, which != 1);
  if (which == 3) search_locally(one);
  return total_of(one);
}

typedef struct ratios {
  double   sum[BASELINES], most[BASELINES];
  uint32_t count;
} ratios;

static void compare(const tm_solver_problem *p, ratios *all) {
  tm_memory memory;
  tm_assignment found;
  tm_memory_init(&memory, 0);
  assert_int_equal(tm_assignment_solve(p, NULL, &memory, &found, NULL), TM_OK);
  assert_true(found.is_exact && found.marginals_are_exact && found.total_ns > 0);
  plan one = { p, calloc(p->op_count, sizeof *one.labels), calloc((size_t)p->value_count * p->memory_count, sizeof *one.is_read) };
  assert_true(one.labels != NULL && one.is_read != NULL);
  memcpy(one.labels, found.labels, p->op_count * sizeof *one.labels);
  assert_int_equal(total_of(&one), found.total_ns);
  for (uint32_t i = 0; i < BASELINES; i++) {
    const uint64_t total = baseline(&one, i);
    assert_true(total >= found.total_ns);
    for (uint32_t op = 0; op < p->op_count; op++) assert_true(found.min_marginals[one.labels[op]] <= total);
    const double ratio = (double)total / (double)found.total_ns;
    all->sum[i] += ratio;
    if (ratio > all->most[i]) all->most[i] = ratio;
  }
  all->count++;
  free(one.labels);
  free(one.is_read);
  tm_assignment_deinit(&found);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

static void nothing_usual_is_better(void **state) {
  (void)state;
  static const double copy_factors[] = { 0.2, 1, 5 };
  ratios all = { { 0 }, { 0 }, 0 };
  for (size_t file = 0; file < PROFILED_FILES; file++) {
    profiled_graph graph;
    if (!profiled_open(&graph, TM_TEST_DATA, profiled_files[file])) fail_msg("cannot read %s", profiled_files[file]);
    for (uint32_t devices = 2; devices <= 4; devices += TM_WHOLE_OR_PART(1, 2)) {
      for (size_t f = 0; f < sizeof copy_factors / sizeof copy_factors[0]; f += TM_WHOLE_OR_PART(1, 2)) {
        profiled_problem p;
        assert_true(profiled_build(&p, &graph, devices, copy_factors[f]));
        compare(&p.problem, &all);
        profiled_free(&p);
      }
    }
    profiled_close(&graph);
  }
  printf("times the exact cost, over %u problems:\n", all.count);
  for (uint32_t i = 0; i < BASELINES; i++)
    printf("  %-26s mean %.3f, most %.3f\n", baseline_names[i], all.sum[i] / all.count, all.most[i]);
}

int main(void) {
  profiled_graph graph;
  if (!profiled_open(&graph, TM_TEST_DATA, profiled_files[0])) {
    printf("skipped: there are no graphs in " TM_TEST_DATA "/task-graphs/dnn-partitioning\n");
    return 77;
  }
  profiled_close(&graph);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_usual_is_better),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
