/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What planning for overlap costs: a graph like a transformer's (a residual stream, a mask that every layer reads, weights
 * that are there from the start) on four devices, two of which share the host's memory, with a link each way.  Prints, for
 * several sizes, the time of one list schedule with its timeline, of the portfolio without moves, and of all of it; the seed
 * is the additive optimum, whose own time bench_planning prints.
 *   bench_portfolio [--rounds=N]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench.h"
#include "solver/assignment.h"
#include "solver/plan_judge.h"
#include "solver/portfolio.h"

#define DEVICES    4u
#define MEMORIES   3u
#define LAYER_OPS  12u
#define MOST_READS 3u

typedef struct layered_graph {
  tm_solver_problem problem;
  tm_solver_op    *ops;
  tm_solver_label *labels;
  tm_solver_value *values;
  uint32_t        *inputs;
  uint64_t         copy_ns[3 * MEMORIES * MEMORIES];
  uint32_t         links[MEMORIES * MEMORIES];
} layered_graph;

/* An operation that reads `first`, `second` (or TM_SOLVER_NONE) and, if it has weights, a value of its own from the start. */
static uint32_t add_op(layered_graph *graph, uint32_t first, uint32_t second, uint64_t work_ns, bool has_weights) {
  static const uint32_t memories[DEVICES] = { 0, 0, 1, 2 }, resources[DEVICES] = { 0, 0, 1, 2 };
  static const uint64_t percent[DEVICES] = { 100, 70, 12, 25 };
  tm_solver_problem *problem = &graph->problem;
  const uint32_t reads[MOST_READS] = { first, second, has_weights ? problem->value_count : TM_SOLVER_NONE };
  const uint32_t o = problem->op_count++;
  if (has_weights) graph->values[problem->value_count++] = (tm_solver_value){ 1 << 20, TM_SOLVER_NONE, 0, TM_SOLVER_NONE, 2 };
  graph->ops[o] = (tm_solver_op){ problem->label_count, DEVICES, problem->input_count, 0 };
  for (uint32_t d = 0; d < DEVICES; d++) {
    const uint64_t cost_ns = work_ns * percent[d] / 100 + (d < 2 ? 500 : 6000) + (o * 37 + d * 11) % 97;
    const bool is_missing = d != 0 && (o * 7 + d) % 13 == 0;
    graph->labels[problem->label_count++] = (tm_solver_label){ is_missing ? TM_SOLVER_NEVER : cost_ns, memories[d], memories[d],
                                                               resources[d], d, 0 };
  }
  for (uint32_t i = 0; i < MOST_READS; i++) {
    if (reads[i] == TM_SOLVER_NONE) continue;
    graph->inputs[problem->input_count++] = reads[i];
    graph->ops[o].input_count++;
  }
  graph->values[problem->value_count] = (tm_solver_value){ 1 << 16, o, TM_SOLVER_NONE, TM_SOLVER_NONE, 1 };
  return problem->value_count++;
}

/* Norm, three projections, scores with the mask, softmax, mix, projection, residual, norm, up, down with residual. */
static uint32_t add_layer(layered_graph *graph, uint32_t stream, uint32_t mask) {
  const uint32_t norm = add_op(graph, stream, TM_SOLVER_NONE, 4000, false);
  const uint32_t query = add_op(graph, norm, TM_SOLVER_NONE, 90000, true);
  const uint32_t key = add_op(graph, norm, TM_SOLVER_NONE, 90000, true);
  const uint32_t value = add_op(graph, norm, TM_SOLVER_NONE, 90000, true);
  const uint32_t scores = add_op(graph, query, key, 40000, false);
  const uint32_t masked = add_op(graph, scores, mask, 3000, false);
  const uint32_t weights = add_op(graph, masked, TM_SOLVER_NONE, 9000, false);
  const uint32_t mixed = add_op(graph, weights, value, 40000, false);
  const uint32_t projected = add_op(graph, mixed, TM_SOLVER_NONE, 90000, true);
  const uint32_t sum = add_op(graph, projected, stream, 3000, false);
  const uint32_t up = add_op(graph, sum, TM_SOLVER_NONE, 300000, true);
  return add_op(graph, up, sum, 300000, true);
}

static void make_graph(layered_graph *graph, uint32_t op_count) {
  memset(graph, 0, sizeof *graph);
  graph->ops = calloc(op_count + LAYER_OPS, sizeof *graph->ops);
  graph->labels = calloc((size_t)(op_count + LAYER_OPS) * DEVICES, sizeof *graph->labels);
  graph->values = calloc((size_t)(op_count + LAYER_OPS) * 2 + 2, sizeof *graph->values);
  graph->inputs = calloc((size_t)(op_count + LAYER_OPS) * MOST_READS, sizeof *graph->inputs);
  for (uint32_t pair = 0; pair < MEMORIES * MEMORIES; pair++) {
    const bool stays = pair / MEMORIES == pair % MEMORIES;
    for (uint32_t class = 0; class < 3; class++) {
      graph->copy_ns[class * MEMORIES * MEMORIES + pair] = stays ? 0 : 10000 + 20000 * class * class;
    }
    graph->links[pair] = stays ? TM_SOLVER_NONE : pair;
  }
  graph->problem = (tm_solver_problem){ .ops = graph->ops, .labels = graph->labels, .values = graph->values,
                                        .inputs = graph->inputs, .copy_ns = graph->copy_ns, .links = graph->links,
                                        .memory_count = MEMORIES, .resource_count = 3, .link_count = MEMORIES * MEMORIES,
                                        .size_class_count = 3 };
  graph->values[0] = (tm_solver_value){ 1 << 16, TM_SOLVER_NONE, 0, TM_SOLVER_NONE, 1 };
  graph->values[1] = (tm_solver_value){ 1 << 12, TM_SOLVER_NONE, 0, TM_SOLVER_NONE, 0 };
  graph->problem.value_count = 2;
  uint32_t stream = 0;
  while (graph->problem.op_count < op_count) stream = add_layer(graph, stream, 1);
  graph->values[stream].wanted = 0;
}

static void free_graph(layered_graph *graph) {
  free(graph->ops);
  free(graph->labels);
  free(graph->values);
  free(graph->inputs);
}

/* Everything that one list schedule needs from nothing, and its timeline. */
static bool plan_list(const layered_graph *graph, tm_memory *memory, uint64_t *out_makespan_ns) {
  tm_arena arena;
  tm_plan_judge judge;
  tm_arena_init(&arena, memory);
  bool is_done = tm_plan_judge_init(&judge, &graph->problem, &arena, NULL) == TM_OK;
  if (is_done) {
    const tm_list_rule rule = { judge.ranks.upward_ns, judge.ranks.outlook_ns, NULL, NULL };
    is_done = tm_list_schedule_run(&judge.schedule, &rule);
    if (is_done) tm_event_model_run(&judge.model, judge.schedule.labels, judge.schedule.order);
    *out_makespan_ns = judge.model.makespan_ns;
  }
  tm_arena_deinit(&arena);
  return is_done;
}

static bool plan_all(const layered_graph *graph, const tm_assignment *additive, tm_memory *memory, uint64_t move_steps,
                     tm_portfolio *out_portfolio) {
  const tm_portfolio_options options = { .move_steps = move_steps };
  const tm_portfolio_seed seed = { "additive", additive->labels };
  return tm_portfolio_solve(&graph->problem, &seed, 1, &options, memory, out_portfolio, NULL) == TM_OK;
}

static bool measure(uint32_t op_count, uint32_t rounds) {
  double list_ms[BENCH_MAX_ROUNDS], plain_ms[BENCH_MAX_ROUNDS], moved_ms[BENCH_MAX_ROUNDS];
  uint64_t list_ns = 0;
  tm_memory memory;
  tm_portfolio plain = { 0 }, moved = { 0 };
  layered_graph graph;
  make_graph(&graph, op_count);
  tm_memory_init(&memory, 0);
  tm_assignment additive = { 0 };
  const tm_assignment_options options = { .without_marginals = true };
  bool is_done = tm_assignment_solve(&graph.problem, &options, &memory, &additive, NULL) == TM_OK;
  for (uint32_t i = 0; i < rounds && is_done; i++) {
    tm_portfolio_deinit(&plain);
    tm_portfolio_deinit(&moved);
    const uint64_t t0 = tm_now_ns();
    is_done = plan_list(&graph, &memory, &list_ns);
    const uint64_t t1 = tm_now_ns();
    is_done = is_done && plan_all(&graph, &additive, &memory, 0, &plain);
    const uint64_t t2 = tm_now_ns();
    is_done = is_done && plan_all(&graph, &additive, &memory, TM_PORTFOLIO_MOVE_STEPS, &moved);
    const uint64_t t3 = tm_now_ns();
    list_ms[i] = (double)(t1 - t0) / 1e6;
    plain_ms[i] = (double)(t2 - t1) / 1e6;
    moved_ms[i] = (double)(t3 - t2) / 1e6;
  }
  if (is_done) {
    const double bound = (double)moved.bound_ns;
    printf("%8u  %9.2f  %9.2f  %10.2f   %6.3f  %8.3f  %9.3f  %6.3f  %s\n", graph.problem.op_count,
           bench_median(list_ms, rounds), bench_median(plain_ms, rounds), bench_median(moved_ms, rounds), (double)list_ns / bound,
           (double)moved.plans[0].makespan_ns / bound, (double)plain.makespan_ns / bound, (double)moved.makespan_ns / bound,
           moved.plans[moved.best].name);
  }
  tm_assignment_deinit(&additive);
  tm_portfolio_deinit(&plain);
  tm_portfolio_deinit(&moved);
  free_graph(&graph);
  return is_done;
}

int main(int argc, char **argv) {
  static const uint32_t sizes[] = { 100, 783, 1000, 10000, 20000, 100000 };
  uint64_t rounds = bench_option(argc, argv, "rounds", 11);
  if (rounds == 0 || rounds > BENCH_MAX_ROUNDS) rounds = BENCH_MAX_ROUNDS;
  printf("%u labels an operation; times in ms, median of %llu; makespans divided by the lower bound\n", DEVICES,
         (unsigned long long)rounds);
  printf("%8s  %9s  %9s  %10s   %6s  %8s  %9s  %6s  best\n", "ops", "heft", "portfolio", "with moves", "heft", "additive",
         "portfolio", "moves");
  for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    if (!measure(sizes[i], (uint32_t)rounds)) {
      (void)fprintf(stderr, "planning %u operations failed\n", sizes[i]);
      return 1;
    }
  }
  return 0;
}
