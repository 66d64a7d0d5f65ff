/* SPDX-License-Identifier: Apache-2.0 */
/* The worked examples of two scheduling papers: their ranks, tables, schedules and makespans (TM_TEST_DATA/task-graphs). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/error.h"
#include "base/json_pull.h"
#include "processor_graph.h"
#include "solver/cpop.h"
#include "solver/plan_judge.h"
#include "solver/portfolio.h"
#include "solver/timeline.h"

#define TASKS 10u

typedef struct example {
  processor_graph graph;
  double rank_u[TASKS];
} example;

/* ---- reading ---- */

static double number_of(const tm_json_token *token) { return strtod(token->text, NULL); }

/* Numbers of a row; the token before was its '['. */
static uint32_t read_row(tm_json_pull *json, double *out_numbers, uint32_t most) {
  tm_json_token token;
  uint32_t count = 0;
  while (tm_json_next(json, &token) == TM_JSON_NUMBER && count < most) out_numbers[count++] = number_of(&token);
  assert_int_equal(token.kind, TM_JSON_ARRAY_END);
  return count;
}

static void read_costs(tm_json_pull *json, processor_graph *graph) {
  tm_json_token token;
  assert_int_equal(tm_json_next(json, &token), TM_JSON_ARRAY_BEGIN);
  while (tm_json_next(json, &token) == TM_JSON_ARRAY_BEGIN) {
    double row[GRAPH_MOST_PROCESSORS];
    assert_true(graph->task_count < TASKS);
    graph->processor_count = read_row(json, row, GRAPH_MOST_PROCESSORS);
    for (uint32_t p = 0; p < graph->processor_count; p++) graph->cost[graph->task_count][p] = (uint64_t)row[p];
    graph->task_count++;
  }
}

static void read_edges(tm_json_pull *json, processor_graph *graph) {
  tm_json_token token;
  assert_int_equal(tm_json_next(json, &token), TM_JSON_ARRAY_BEGIN);
  while (tm_json_next(json, &token) == TM_JSON_ARRAY_BEGIN) {
    double row[3];
    assert_int_equal(read_row(json, row, 3), 3);
    assert_true(graph->edge_count < GRAPH_MOST_EDGES);
    graph->edges[graph->edge_count++] = (graph_edge){ (uint32_t)row[0] - 1, (uint32_t)row[1] - 1, (uint64_t)row[2] };
  }
}

static void parse(const char *text, size_t length, example *out_example) {
  tm_json_pull json;
  tm_json_token token;
  memset(out_example, 0, sizeof *out_example);
  tm_json_init(&json, text, length);
  assert_int_equal(tm_json_next(&json, &token), TM_JSON_OBJECT_BEGIN);
  while (tm_json_next(&json, &token) == TM_JSON_KEY) {
    if (tm_json_is(&token, "cost")) {
      read_costs(&json, &out_example->graph);
    } else if (tm_json_is(&token, "edges")) {
      read_edges(&json, &out_example->graph);
    } else if (tm_json_is(&token, "rank_u")) {
      assert_int_equal(tm_json_next(&json, &token), TM_JSON_ARRAY_BEGIN);
      assert_int_equal(read_row(&json, out_example->rank_u, TASKS), TASKS);
    } else {
      tm_json_next(&json, &token);
      assert_true(tm_json_skip(&json, &token));
    }
  }
  assert_int_equal(out_example->graph.task_count, TASKS);
  assert_int_equal(out_example->graph.edge_count, 15);
}

static void load(const char *name, example *out_example) {
  char path[1024], text[8192];
  (void)snprintf(path, sizeof path, "%s/task-graphs/%s", TM_TEST_DATA, name);
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t length = fread(text, 1, sizeof text - 1, file);
  (void)fclose(file);
  text[length] = '\0';
  parse(text, length, out_example);
}

/* ---- a judge over an example ---- */

typedef struct open_problem {
  example         example;
  problem_builder builder;
  tm_memory       memory;
  tm_arena        arena;
  tm_plan_judge   judge;
  tm_judged_plan  plan;
} open_problem;

static void open_example(open_problem *fixture, const char *name) {
  tm_error error = TM_ERROR_INIT;
  load(name, &fixture->example);
  graph_build(&fixture->example.graph, &fixture->builder);
  tm_memory_init(&fixture->memory, 0);
  tm_arena_init(&fixture->arena, &fixture->memory);
  assert_int_equal(tm_plan_judge_init(&fixture->judge, &fixture->builder.problem, &fixture->arena, &error), TM_OK);
  assert_int_equal(tm_judged_plan_init(&fixture->plan, TASKS, &fixture->arena, &error), TM_OK);
}

static void close_example(open_problem *fixture) {
  tm_arena_deinit(&fixture->arena);
  assert_int_equal(fixture->memory.used_bytes, 0);
  builder_deinit(&fixture->builder);
}

/* Schedules by the rule and has the result judged. */
static void make(open_problem *fixture, const uint64_t *urgency, const uint64_t *outlook_ns, const uint32_t *forced) {
  const tm_list_rule rule = { urgency, fixture->judge.ranks.outlook_ns, outlook_ns, forced };
  assert_true(tm_list_schedule_run(&fixture->judge.schedule, &rule));
  memcpy(fixture->plan.labels, fixture->judge.schedule.labels, TASKS * sizeof *fixture->plan.labels);
  memcpy(fixture->plan.order, fixture->judge.schedule.order, TASKS * sizeof *fixture->plan.order);
  tm_plan_judge_run(&fixture->judge, &fixture->plan);
}

typedef struct placed {
  uint32_t task;                /* from 1, as published */
  uint32_t processor;
  uint64_t start_ns;
  uint64_t end_ns;
} placed;

static void check_schedule(const open_problem *fixture, const placed *published, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t o = published[i].task - 1;
    assert_int_equal(fixture->plan.labels[o] % 3, published[i].processor - 1);
    assert_int_equal(fixture->judge.model.op_start_ns[o], published[i].start_ns);
    assert_int_equal(fixture->judge.model.op_end_ns[o], published[i].end_ns);
  }
}

static void check_ranks(const open_problem *fixture) {
  const double scale = (double)fixture->judge.ranks.scale;
  for (uint32_t o = 0; o < TASKS; o++) {
    const double rank = (double)fixture->judge.ranks.upward_ns[o] / scale;
    assert_true(rank > fixture->example.rank_u[o] - 0.00051 && rank < fixture->example.rank_u[o] + 0.00051);
  }
}

/* The sequence in which urgencies take the tasks. */
static void check_sequence(const uint64_t *urgency, const uint32_t *published) {
  for (uint32_t i = 0; i + 1 < TASKS; i++) {
    const uint32_t a = published[i] - 1, b = published[i + 1] - 1;
    assert_true(urgency[a] > urgency[b] || (urgency[a] == urgency[b] && a < b));
  }
}

/* ---- 2002 ---- */

static const uint64_t outlook_2002[TASKS][3] = { { 48, 38, 53 }, { 35, 19, 35 }, { 28, 22, 27 }, { 38, 19, 36 }, { 32, 19, 32 },
                                                 { 23, 18, 30 }, { 21, 7, 16 }, { 18, 7, 16 }, { 20, 7, 16 }, { 0, 0, 0 } };

static void test_heft_2002(void **state) {
  (void)state;
  static const uint32_t sequence[] = { 1, 3, 4, 2, 5, 6, 9, 7, 8, 10 };
  static const placed schedule[] = { { 2, 1, 27, 40 }, { 8, 1, 57, 62 }, { 4, 2, 18, 26 }, { 6, 2, 26, 42 }, { 9, 2, 56, 68 },
                                     { 10, 2, 73, 80 }, { 1, 3, 0, 9 }, { 3, 3, 9, 28 }, { 5, 3, 28, 38 }, { 7, 3, 38, 49 } };
  open_problem fixture;
  open_example(&fixture, "heft-2002.json");
  check_ranks(&fixture);
  assert_int_equal(fixture.judge.ranks.upward_ns[2], fixture.judge.ranks.upward_ns[3]);    /* the tie at 80 is one */
  check_sequence(fixture.judge.ranks.upward_ns, sequence);
  make(&fixture, fixture.judge.ranks.upward_ns, NULL, NULL);
  check_schedule(&fixture, schedule, TASKS);
  assert_int_equal(fixture.plan.makespan_ns, 80);
  close_example(&fixture);
}

static void test_cpop_2002(void **state) {
  (void)state;
  static const placed schedule[] = { { 3, 1, 28, 39 }, { 7, 1, 39, 46 }, { 1, 2, 0, 16 }, { 2, 2, 16, 35 }, { 5, 2, 35, 48 },
                                     { 9, 2, 65, 77 }, { 10, 2, 79, 86 }, { 4, 3, 25, 42 }, { 6, 3, 42, 51 }, { 8, 3, 54, 68 } };
  open_problem fixture;
  uint64_t urgency[TASKS];
  uint32_t forced[TASKS];
  open_example(&fixture, "heft-2002.json");
  const tm_plan_judge *judge = &fixture.judge;
  assert_int_equal(tm_cpop_prepare(&judge->index, &judge->groups, &judge->ranks, &fixture.arena, urgency, forced, NULL), TM_OK);
  assert_int_equal(urgency[0], 108 * judge->ranks.scale);
  for (uint32_t o = 0; o < TASKS; o++) {
    const bool is_critical = o == 0 || o == 1 || o == 8 || o == 9;
    assert_int_equal(forced[o], is_critical ? 3 * o + 1 : TM_SOLVER_NONE);
  }
  make(&fixture, urgency, NULL, forced);
  check_schedule(&fixture, schedule, TASKS);
  assert_int_equal(fixture.plan.makespan_ns, 86);
  close_example(&fixture);
}

static void test_outlook_2002(void **state) {
  (void)state;
  open_problem fixture;
  open_example(&fixture, "heft-2002.json");
  for (uint32_t o = 0; o < TASKS; o++) {
    for (uint32_t p = 0; p < 3; p++) assert_int_equal(fixture.judge.ranks.outlook_ns[3 * o + p], outlook_2002[o][p]);
  }
  make(&fixture, fixture.judge.ranks.mean_outlook_ns, fixture.judge.ranks.outlook_ns, NULL);
  assert_int_equal(fixture.plan.makespan_ns, 85);
  close_example(&fixture);
}

/* ---- 2014 ---- */

static const uint64_t outlook_2014[TASKS][3] = { { 64, 68, 86 }, { 42, 39, 42 }, { 27, 41, 43 }, { 42, 39, 50 }, { 28, 37, 28 },
                                                 { 42, 39, 44 }, { 13, 16, 22 }, { 13, 16, 33 }, { 13, 16, 20 }, { 0, 0, 0 } };

static void test_peft_2014(void **state) {
  (void)state;
  static const placed schedule[] = { { 1, 1, 0, 22 }, { 4, 1, 22, 29 }, { 2, 1, 29, 51 }, { 3, 1, 51, 83 }, { 7, 1, 83, 97 },
                                     { 6, 2, 29, 46 }, { 8, 2, 54, 77 }, { 10, 2, 106, 122 }, { 5, 3, 35, 70 }, { 9, 3, 81, 89 } };
  open_problem fixture;
  open_example(&fixture, "peft-2014.json");
  for (uint32_t o = 0; o < TASKS; o++) {
    for (uint32_t p = 0; p < 3; p++) assert_int_equal(fixture.judge.ranks.outlook_ns[3 * o + p], outlook_2014[o][p]);
  }
  make(&fixture, fixture.judge.ranks.mean_outlook_ns, fixture.judge.ranks.outlook_ns, NULL);
  check_schedule(&fixture, schedule, TASKS);
  assert_int_equal(fixture.plan.makespan_ns, 122);
  close_example(&fixture);
}

static void test_heft_2014(void **state) {
  (void)state;
  static const uint32_t sequence[] = { 1, 5, 6, 2, 4, 3, 8, 7, 9, 10 };
  static const placed schedule[] = { { 2, 1, 38, 60 }, { 8, 1, 67, 96 }, { 10, 1, 120, 133 }, { 1, 2, 0, 21 }, { 5, 2, 21, 48 },
                                     { 3, 2, 48, 75 }, { 7, 2, 75, 100 }, { 6, 3, 28, 52 }, { 4, 3, 52, 56 }, { 9, 3, 105, 113 } };
  open_problem fixture;
  open_example(&fixture, "peft-2014.json");
  check_ranks(&fixture);
  check_sequence(fixture.judge.ranks.upward_ns, sequence);
  make(&fixture, fixture.judge.ranks.upward_ns, NULL, NULL);
  check_schedule(&fixture, schedule, TASKS);
  assert_int_equal(fixture.plan.makespan_ns, 133);
  close_example(&fixture);
}

/* ---- both ---- */

static uint64_t plan_named(const tm_portfolio *portfolio, const char *name, uint32_t rank) {
  for (uint32_t i = 0; i < portfolio->plan_count; i++) {
    const tm_portfolio_plan *plan = &portfolio->plans[i];
    if (strcmp(plan->name, name) == 0 && plan->rank == rank) return plan->makespan_ns;
  }
  fail_msg("there is no plan %s", name);
  return 0;
}

/* Its makespan must be what simulating its labels and order gives, and its plans those of the papers. */
static void check_portfolio(const char *file, uint64_t heft, uint64_t cpop, uint64_t peft, const uint64_t *single,
                            uint64_t optimum, uint64_t most) {
  open_problem fixture;
  tm_portfolio portfolio;
  tm_timeline timeline;
  open_example(&fixture, file);
  const tm_solver_problem *problem = &fixture.builder.problem;
  assert_int_equal(tm_portfolio_solve(problem, NULL, 0, NULL, &fixture.memory, &portfolio, NULL), TM_OK);
  assert_int_equal(plan_named(&portfolio, "heft", TM_SOLVER_NONE), heft);
  assert_int_equal(plan_named(&portfolio, "cpop", TM_SOLVER_NONE), cpop);
  assert_int_equal(plan_named(&portfolio, "peft", TM_SOLVER_NONE), peft);
  for (uint32_t p = 0; p < 3; p++) assert_int_equal(plan_named(&portfolio, "single-device", p), single[p]);
  print_message("%s: %llu (optimum %llu, bound %llu)\n", file, (unsigned long long)portfolio.makespan_ns,
                (unsigned long long)optimum, (unsigned long long)portfolio.bound_ns);
  assert_true(portfolio.makespan_ns <= most && portfolio.makespan_ns >= optimum);
  assert_true(portfolio.bound_ns <= optimum && portfolio.bound_ns >= 41);
  assert_int_equal(portfolio.plans[portfolio.best].makespan_ns, portfolio.makespan_ns);
  assert_int_equal(tm_timeline_simulate(problem, portfolio.labels, portfolio.order, &fixture.memory, &timeline, NULL), TM_OK);
  assert_int_equal(timeline.makespan_ns, portfolio.makespan_ns);
  tm_timeline_deinit(&timeline);
  tm_portfolio_deinit(&portfolio);
  close_example(&fixture);
}

static void test_portfolio_2002(void **state) {
  (void)state;
  static const uint64_t single[] = { 127, 130, 143 };
  check_portfolio("heft-2002.json", 80, 86, 85, single, 73, 80);
}

static void test_portfolio_2014(void **state) {
  (void)state;
  static const uint64_t single[] = { 209, 205, 267 };
  check_portfolio("peft-2014.json", 133, 167, 122, single, 113, 122);
}

int main(void) {
  FILE *file = fopen(TM_TEST_DATA "/task-graphs/heft-2002.json", "rb");
  if (file == NULL) {
    (void)fprintf(stderr, "skipped: there are no task graphs in %s\n", TM_TEST_DATA);
    return 77;
  }
  (void)fclose(file);
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_heft_2002), cmocka_unit_test(test_cpop_2002), cmocka_unit_test(test_outlook_2002),
    cmocka_unit_test(test_peft_2014), cmocka_unit_test(test_heft_2014), cmocka_unit_test(test_portfolio_2002),
    cmocka_unit_test(test_portfolio_2014),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
