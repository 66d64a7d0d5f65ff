/* SPDX-License-Identifier: Apache-2.0 */
/* The portfolio on real profiled graphs (TM_TEST_DATA/task-graphs/dnn-partitioning): no plan of any method is sooner, and the
   timeline says the same.  Prints how much overlap gains over the additive optimum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/error.h"
#include "profiled_graph.h"
#include "solver/assignment.h"
#include "solver/portfolio.h"
#include "solver/timeline.h"

#define FOLDER  TM_TEST_DATA "/task-graphs/dnn-partitioning"
#define DEVICES 4u

static uint64_t least_named(const tm_portfolio *portfolio, const char *name) {
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < portfolio->plan_count; i++) {
    const tm_portfolio_plan *plan = &portfolio->plans[i];
    if (strcmp(plan->name, name) == 0 && plan->makespan_ns < least) least = plan->makespan_ns;
  }
  return least;
}

static void check(const char *name, const tm_solver_problem *problem) {
  tm_memory memory;
  tm_assignment assignment;
  tm_portfolio portfolio;
  tm_timeline timeline;
  tm_memory_init(&memory, 0);
  assert_int_equal(tm_assignment_solve(problem, NULL, &memory, &assignment, NULL), TM_OK);
  const tm_portfolio_seed additive = { "additive", assignment.labels };
  assert_int_equal(tm_portfolio_solve(problem, &additive, 1, NULL, &memory, &portfolio, NULL), TM_OK);
  assert_int_equal(tm_timeline_simulate(problem, portfolio.labels, portfolio.order, &memory, &timeline, NULL), TM_OK);
  assert_int_equal(timeline.makespan_ns, portfolio.makespan_ns);
  assert_int_equal(portfolio.plans[0].additive_ns, assignment.total_ns);
  for (uint32_t i = 0; i < portfolio.plan_count; i++) {
    assert_true(portfolio.makespan_ns <= portfolio.plans[i].makespan_ns);
    assert_true(portfolio.plans[i].additive_ns >= assignment.bound_ns);
  }
  assert_true(portfolio.bound_ns <= portfolio.makespan_ns);
  const double best = (double)portfolio.makespan_ns;
  print_message("%-40s %5u ops: %.3f of the bound; additive %.3f, heft %.3f, best device %.3f of it (%s)\n", name,
                problem->op_count, best / (double)portfolio.bound_ns, (double)portfolio.plans[0].makespan_ns / best,
                (double)least_named(&portfolio, "heft") / best, (double)least_named(&portfolio, "single-device") / best,
                portfolio.plans[portfolio.best].name);
  tm_timeline_deinit(&timeline);
  tm_portfolio_deinit(&portfolio);
  tm_assignment_deinit(&assignment);
  assert_int_equal(memory.used_bytes, 0);
}

static void test_profiled_graphs(void **state) {
  (void)state;
  for (size_t i = 0; i < PROFILED_FILES; i++) {
    profiled_graph graph = { 0 };
    profiled_problem problem;
    assert_true(profiled_open(&graph, TM_TEST_DATA, profiled_files[i]));
    assert_true(profiled_build(&problem, &graph, DEVICES, 0.3));
    check(profiled_files[i], &problem.problem);
    profiled_free(&problem);
    profiled_close(&graph);
  }
}

int main(void) {
  FILE *file = fopen(FOLDER "/LICENSE.txt", "rb");
  if (file == NULL) {
    (void)fprintf(stderr, "skipped: there are no profiled graphs in %s\n", FOLDER);
    return 77;
  }
  (void)fclose(file);
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_profiled_graphs) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
