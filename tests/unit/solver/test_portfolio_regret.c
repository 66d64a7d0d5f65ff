/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the portfolio is from the optimum on small random graphs: 8 to 10 tasks, 3 processors, layered graphs and costs as
 * in the protocol of the HEFT paper (ratio of communication to computation, shape, out-degree, spread of costs), optimum by
 * branch and bound.  TM_NIGHTLY=1 looks at 20 times as many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "processor_graph.h"
#include "solver/assignment.h"
#include "solver/portfolio.h"

#define GRAPHS        2000u
#define NIGHTLY_TIMES 20u
#define PROCESSORS    3u
#define MEAN_COST     20u

/* ---- random graphs ---- */

static const uint32_t ratios_percent[] = { 10, 50, 100, 500, 1000 };            /* communication to computation */
static const uint32_t spreads_percent[] = { 10, 25, 50, 75, 100 };
static const uint32_t shapes_percent[] = { 50, 100, 200 };                      /* width to height */
static const uint32_t degrees[] = { 1, 2, 3, 4, 5, 10 };

#define PICK(state, list) ((list)[builder_below(state, (uint32_t)(sizeof(list) / sizeof(list)[0]))])

static void make_costs(processor_graph *graph, uint64_t *state) {
  const uint32_t spread = PICK(state, spreads_percent);
  for (uint32_t t = 0; t < graph->task_count; t++) {
    const uint32_t mean = 100 * (1 + builder_below(state, 2 * MEAN_COST));
    for (uint32_t p = 0; p < PROCESSORS; p++) {
      const uint32_t low = mean - mean * spread / 200;
      graph->cost[t][p] = (low + builder_below(state, mean * spread / 100 + 1)) / 10;
    }
  }
}

static void add_edge(processor_graph *graph, uint64_t *state, uint32_t from, uint32_t to, uint32_t ratio) {
  for (uint32_t e = 0; e < graph->edge_count; e++) {
    if (graph->edges[e].from == from && graph->edges[e].to == to) return;
  }
  const uint64_t weight = 1 + builder_below(state, 2 * MEAN_COST * 10 * ratio / 100);
  graph->edges[graph->edge_count++] = (graph_edge){ from, to, weight };
}

/* Layers of random width; every task but those of the first layer has a reason to wait, every one up to its degree readers in
   later layers. */
static void make_graph(uint64_t seed, processor_graph *graph) {
  uint64_t state = seed;
  uint32_t layer[GRAPH_MOST_TASKS], layer_begin[GRAPH_MOST_TASKS + 1];
  memset(graph, 0, sizeof *graph);
  graph->task_count = 8 + builder_below(&state, 3);
  graph->processor_count = PROCESSORS;
  make_costs(graph, &state);
  const uint32_t ratio = PICK(&state, ratios_percent), shape = PICK(&state, shapes_percent), degree = PICK(&state, degrees);
  const uint32_t width = 3 * shape / 100 + 1;
  uint32_t layers = 0, tasks = 0;
  while (tasks < graph->task_count) {
    layer_begin[layers] = tasks;
    for (uint32_t i = 1 + builder_below(&state, width); i > 0 && tasks < graph->task_count; i--) layer[tasks++] = layers;
    layers++;
  }
  layer_begin[layers] = tasks;
  for (uint32_t t = 0; t < tasks; t++) {
    if (layer[t] > 0) {
      const uint32_t first = layer_begin[layer[t] - 1], end = layer_begin[layer[t]];
      add_edge(graph, &state, first + builder_below(&state, end - first), t, ratio);
    }
    const uint32_t later = layer_begin[layer[t] + 1];
    for (uint32_t i = builder_below(&state, degree + 1); i > 0 && later < tasks; i--) {
      add_edge(graph, &state, t, later + builder_below(&state, tasks - later), ratio);
    }
  }
}

/* ---- the optimum ---- */

typedef struct bound_search {
  const processor_graph *graph;
  uint64_t weight[GRAPH_MOST_TASKS][GRAPH_MOST_TASKS];          /* UINT64_MAX: no edge */
  uint64_t tail[GRAPH_MOST_TASKS][PROCESSORS];                  /* least time from the task's end there to the end of all */
  uint64_t end_ns[GRAPH_MOST_TASKS];
  uint32_t place[GRAPH_MOST_TASKS];
  uint64_t free_ns[PROCESSORS];
  uint32_t done;
  uint64_t best_ns;
} bound_search;

static void find_tails(bound_search *search) {
  const processor_graph *graph = search->graph;
  for (uint32_t t = graph->task_count; t-- > 0;) {
    for (uint32_t p = 0; p < PROCESSORS; p++) {
      search->tail[t][p] = 0;
      for (uint32_t next = t + 1; next < graph->task_count; next++) {
        uint64_t least = UINT64_MAX;
        if (search->weight[t][next] == UINT64_MAX) continue;
        for (uint32_t q = 0; q < PROCESSORS; q++) {
          const uint64_t way = graph->cost[next][q] + search->tail[next][q] + (p == q ? 0 : search->weight[t][next]);
          if (way < least) least = way;
        }
        if (least > search->tail[t][p]) search->tail[t][p] = least;
      }
    }
  }
}

/* When the task could start on the processor; UINT64_MAX: what it waits for is not placed. */
static uint64_t start_of(const bound_search *search, uint32_t t, uint32_t p) {
  uint64_t start = search->free_ns[p];
  for (uint32_t from = 0; from < t; from++) {
    if (search->weight[from][t] == UINT64_MAX) continue;
    if ((search->done >> from & 1u) == 0) return UINT64_MAX;
    const uint64_t there = search->end_ns[from] + (search->place[from] == p ? 0 : search->weight[from][t]);
    if (there > start) start = there;
  }
  return start;
}

/* Whatever is left cannot be over sooner than this. */
static bool is_hopeless(const bound_search *search, uint64_t last_start) {
  const processor_graph *graph = search->graph;
  uint64_t least_work = 0, busy = 0;
  for (uint32_t t = 0; t < graph->task_count; t++) {
    if (search->done >> t & 1u) continue;
    uint64_t least_end = UINT64_MAX, least_cost = UINT64_MAX;
    for (uint32_t p = 0; p < PROCESSORS; p++) {
      uint64_t start = start_of(search, t, p);
      if (start == UINT64_MAX) start = search->free_ns[p];
      if (start < last_start) start = last_start;
      const uint64_t end = start + graph->cost[t][p] + search->tail[t][p];
      if (end < least_end) least_end = end;
      if (graph->cost[t][p] < least_cost) least_cost = graph->cost[t][p];
    }
    if (least_end >= search->best_ns) return true;
    least_work += least_cost;
  }
  for (uint32_t p = 0; p < PROCESSORS; p++) busy += search->free_ns[p] > last_start ? search->free_ns[p] : last_start;
  return (busy + least_work + PROCESSORS - 1) / PROCESSORS >= search->best_ns;
}

/* Schedules in order of start; of those that start together the lower number comes first. */
static void branch(bound_search *search, uint64_t last_start, uint32_t last_task) {
  const processor_graph *graph = search->graph;
  if (search->done == (UINT32_C(1) << graph->task_count) - 1) {
    uint64_t end = 0;
    for (uint32_t t = 0; t < graph->task_count; t++) end = search->end_ns[t] > end ? search->end_ns[t] : end;
    if (end < search->best_ns) search->best_ns = end;
    return;
  }
  if (is_hopeless(search, last_start)) return;
  for (uint32_t t = 0; t < graph->task_count; t++) {
    for (uint32_t p = 0; p < PROCESSORS && (search->done >> t & 1u) == 0; p++) {
      const uint64_t start = start_of(search, t, p), free_ns = search->free_ns[p];
      if (start == UINT64_MAX || start < last_start || (start == last_start && t < last_task)) continue;
      const uint64_t end = start + graph->cost[t][p];
      if (end + search->tail[t][p] >= search->best_ns) continue;
      search->end_ns[t] = end;
      search->place[t] = p;
      search->free_ns[p] = end;
      search->done |= UINT32_C(1) << t;
      branch(search, start, t);
      search->done &= ~(UINT32_C(1) << t);
      search->free_ns[p] = free_ns;
    }
  }
}

/* The least makespan below `most`; `most` if there is none. */
static uint64_t find_optimum(const processor_graph *graph, uint64_t most) {
  bound_search search;
  memset(&search, 0, sizeof search);
  memset(search.weight, 0xff, sizeof search.weight);
  search.graph = graph;
  search.best_ns = most;
  for (uint32_t e = 0; e < graph->edge_count; e++) {
    search.weight[graph->edges[e].from][graph->edges[e].to] = graph->edges[e].weight;
  }
  find_tails(&search);
  branch(&search, 0, 0);
  return search.best_ns;
}

/* ---- regret ---- */

static int compare(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static void report(const char *name, double *regrets, uint32_t count, double most_mean, double most_p95, double most_p99) {
  double sum = 0;
  qsort(regrets, count, sizeof *regrets, compare);
  for (uint32_t i = 0; i < count; i++) sum += regrets[i];
  const double mean = sum / count, p95 = regrets[count * 95 / 100], p99 = regrets[count * 99 / 100];
  print_message("%-17s mean %.4f  p95 %.3f  p99 %.3f  max %.3f\n", name, mean, p95, p99, regrets[count - 1]);
  assert_true(mean <= most_mean && p95 <= most_p95 && p99 <= most_p99);
}

static uint64_t best_single(const processor_graph *graph) {
  uint64_t best = UINT64_MAX;
  for (uint32_t p = 0; p < PROCESSORS; p++) {
    uint64_t sum = 0;
    for (uint32_t t = 0; t < graph->task_count; t++) sum += graph->cost[t][p];
    if (sum < best) best = sum;
  }
  return best;
}

typedef struct regret_lists {
  double *portfolio;
  double *without_moves;
  double *heft;
  double *additive;
} regret_lists;

static void look_at(uint64_t seed, uint32_t i, regret_lists *lists) {
  processor_graph graph;
  problem_builder builder;
  tm_memory memory;
  tm_assignment assignment;
  tm_portfolio portfolio;
  make_graph(seed, &graph);
  graph_build(&graph, &builder);
  tm_memory_init(&memory, 0);
  assert_int_equal(tm_assignment_solve(&builder.problem, NULL, &memory, &assignment, NULL), TM_OK);
  const tm_portfolio_seed additive = { "additive", assignment.labels };
  assert_int_equal(tm_portfolio_solve(&builder.problem, &additive, 1, NULL, &memory, &portfolio, NULL), TM_OK);
  const uint64_t optimum = find_optimum(&graph, portfolio.makespan_ns + 1);
  assert_true(optimum <= portfolio.makespan_ns);        /* or the portfolio claims what cannot be */
  assert_true(portfolio.bound_ns <= optimum);
  assert_true(portfolio.makespan_ns <= best_single(&graph));
  uint64_t before_moves = UINT64_MAX, heft = 0;
  for (uint32_t plan = 0; plan < portfolio.plan_count; plan++) {
    const uint64_t makespan_ns = portfolio.plans[plan].makespan_ns;
    if (strcmp(portfolio.plans[plan].name, "heft") == 0) heft = makespan_ns;
    if (strcmp(portfolio.plans[plan].name, "moves") != 0 && makespan_ns < before_moves) before_moves = makespan_ns;
  }
  lists->portfolio[i] = (double)portfolio.makespan_ns / (double)optimum;
  lists->without_moves[i] = (double)before_moves / (double)optimum;
  lists->heft[i] = (double)heft / (double)optimum;
  lists->additive[i] = (double)portfolio.plans[0].makespan_ns / (double)optimum;
  tm_assignment_deinit(&assignment);
  tm_portfolio_deinit(&portfolio);
  assert_int_equal(memory.used_bytes, 0);
  builder_deinit(&builder);
}

static void test_regret(void **state) {
  (void)state;
  const char *nightly = getenv("TM_NIGHTLY");
  const uint32_t count = nightly != NULL && strcmp(nightly, "1") == 0 ? GRAPHS * NIGHTLY_TIMES : GRAPHS;
  regret_lists lists = { calloc(count, sizeof(double)), calloc(count, sizeof(double)), calloc(count, sizeof(double)),
                         calloc(count, sizeof(double)) };
  for (uint32_t i = 0; i < count; i++) look_at(UINT64_C(20021) + i * UINT64_C(7919), i, &lists);
  print_message("%u graphs, makespan to optimum:\n", count);
  report("heft", lists.heft, count, 9, 9, 9);
  report("additive optimum", lists.additive, count, 9, 9, 9);
  report("without moves", lists.without_moves, count, 1.1, 1.4, 2);
  report("portfolio", lists.portfolio, count, 1.03, 1.15, 1.30);
  free(lists.portfolio);
  free(lists.without_moves);
  free(lists.heft);
  free(lists.additive);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_regret) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
