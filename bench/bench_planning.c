/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long exact placement takes: layers of a transformer as an application would list them (a residual stream, masks and
 * positions read by every layer or by one, weights at home), a graph that no exact order fits, and the profiled graphs of
 * dnn-partitioning.  Beside it all that planning does (whole_plan.h), where devices take turns and where they work at the same
 * time, in vain and not.  Each figure is processor time, the least of the rounds.
 *   bench_planning [--rounds=N] [--devices=N] [--ops=ONLY_SO_MANY] (TM_TEST_DATA names the folder of the latter)
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../tests/unit/solver/profiled_graph.h"
#include "bench.h"
#include "solver/assignment.h"
#include "whole_plan.h"

#define MOST_INPUTS 4u

typedef struct graph_maker {
  tm_solver_problem problem;
  tm_solver_op     *ops;
  tm_solver_label  *labels;
  tm_solver_value  *values;
  uint32_t         *inputs;
  uint64_t         *copy_ns;
  uint32_t          devices;
  uint32_t          wanted_ops;
} graph_maker;

#define SIZE_CLASSES 8u

static uint32_t add_value(graph_maker *m, uint32_t producer, uint32_t size_class) {
  m->values[m->problem.value_count] =
      (tm_solver_value){UINT64_C(4096) << (2 * size_class), producer, producer == TM_SOLVER_NONE ? 0 : TM_SOLVER_NONE,
                        TM_SOLVER_NONE, size_class};
  return m->problem.value_count++;
}

/* Reads up to four values (TM_SOLVER_NONE: fewer) and makes one. */
static uint32_t add_op(graph_maker *m, uint64_t work_ns, const uint32_t *inputs, uint32_t size_class) {
  const uint32_t op = m->problem.op_count++;
  m->ops[op] = (tm_solver_op){ op * m->devices, m->devices, m->problem.input_count, 0 };
  for (uint32_t i = 0; i < MOST_INPUTS && inputs[i] != TM_SOLVER_NONE; i++) {
    m->inputs[m->problem.input_count++] = inputs[i];
    m->ops[op].input_count++;
  }
  for (uint32_t d = 0; d < m->devices; d++) {
    const uint32_t drawn = profiled_mix(op % 977, d);
    const uint64_t cost = d == 0 ? 4 * work_ns : work_ns / 2 + work_ns * (drawn % 1024) / 1024 + 5000;
    m->labels[op * m->devices + d] = (tm_solver_label){ d != 0 && drawn % 9 == 0 ? TM_SOLVER_NEVER : cost, d, d, d, d, 0 };
  }
  return add_value(m, op, size_class);
}

static uint32_t add_weighted(graph_maker *m, uint64_t work_ns, uint32_t input, uint32_t size_class) {
  const uint32_t weight = add_value(m, TM_SOLVER_NONE, 5);
  return add_op(m, work_ns, (uint32_t[]){ input, weight, TM_SOLVER_NONE, TM_SOLVER_NONE }, size_class);
}

static uint32_t add_pair(graph_maker *m, uint64_t work_ns, uint32_t a, uint32_t b) {
  return add_op(m, work_ns, (uint32_t[]){ a, b, TM_SOLVER_NONE, TM_SOLVER_NONE }, 2);
}

/* 17 operations. */
static uint32_t add_layer(graph_maker *m, uint32_t stream, uint32_t mask, uint32_t positions) {
  const uint32_t normal = add_weighted(m, 8000, stream, 2);
  const uint32_t q = add_pair(m, 6000, add_weighted(m, 200000, normal, 2), positions);
  const uint32_t k = add_pair(m, 6000, add_weighted(m, 200000, normal, 2), positions);
  const uint32_t v = add_weighted(m, 200000, normal, 2);
  const uint32_t scores = add_pair(m, 90000, q, k);
  const uint32_t chances = add_op(
      m, 20000, (uint32_t[]){add_pair(m, 9000, scores, mask), TM_SOLVER_NONE, TM_SOLVER_NONE, TM_SOLVER_NONE}, 3);
  const uint32_t mixed = add_weighted(m, 200000, add_pair(m, 90000, chances, v), 2);
  const uint32_t middle = add_pair(m, 5000, stream, mixed);
  const uint32_t again = add_weighted(m, 8000, middle, 2);
  const uint32_t gate = add_weighted(m, 500000, again, 3), up = add_weighted(m, 500000, again, 3);
  return add_pair(m, 5000, middle, add_weighted(m, 500000, add_pair(m, 9000, gate, up), 2));
}

static bool begin_graph(graph_maker *m, uint32_t ops, uint32_t devices) {
  memset(m, 0, sizeof *m);
  m->devices = devices;
  m->ops = calloc(ops + 32, sizeof *m->ops);
  m->labels = calloc((size_t)(ops + 32) * devices, sizeof *m->labels);
  m->values = calloc((size_t)(ops + 32) * 2, sizeof *m->values);
  m->inputs = calloc((size_t)(ops + 32) * MOST_INPUTS, sizeof *m->inputs);
  m->copy_ns = calloc((size_t)SIZE_CLASSES * devices * devices, sizeof *m->copy_ns);
  if (m->ops == NULL || m->labels == NULL || m->values == NULL || m->inputs == NULL || m->copy_ns == NULL) return false;
  for (uint32_t i = 0; i < SIZE_CLASSES * devices * devices; i++) {
    const uint32_t from = i / devices % devices, to = i % devices;
    const uint64_t copy = 10000 + (UINT64_C(4096) << (2 * (i / devices / devices))) / 10;
    m->copy_ns[i] = from == to ? 0 : from == 0 || to == 0 ? copy : 2 * copy;
  }
  return true;
}

static void end_graph(graph_maker *m, uint32_t result) {
  tm_solver_problem *p = &m->problem;
  m->values[result].wanted = 0;
  p->ops = m->ops;
  p->labels = m->labels;
  p->values = m->values;
  p->inputs = m->inputs;
  p->copy_ns = m->copy_ns;
  p->label_count = p->op_count * m->devices;
  p->memory_count = p->resource_count = m->devices;
  p->size_class_count = SIZE_CLASSES;
}

/* What many layers read: nothing, values that are there from the start, or values that an operation makes: the same for all
   layers, or for each 40 of them. */
typedef enum sharing { NOTHING, GIVEN, MADE, MADE_FOR_GROUPS } sharing;

#define GROUP_LAYERS 40u

static uint32_t add_common(graph_maker *m, sharing what, uint32_t size_class) {
  const uint32_t given = add_value(m, TM_SOLVER_NONE, size_class);
  return what >= MADE ? add_op(m, 9000, (uint32_t[]){ given, TM_SOLVER_NONE }, size_class) : given;
}

static bool make_layers(graph_maker *m, uint32_t ops, uint32_t devices, sharing what) {
  if (!begin_graph(m, ops, devices)) return false;
  uint32_t mask = add_common(m, what, 2), positions = add_common(m, what, 1), stream = add_value(m, TM_SOLVER_NONE, 2);
  for (uint32_t layer = 0; m->problem.op_count < ops; layer++) {
    const bool is_new_group = what == MADE_FOR_GROUPS && layer != 0 && layer % GROUP_LAYERS == 0;
    if (what == NOTHING || is_new_group) mask = add_common(m, what, 2), positions = add_common(m, what, 1);
    stream = add_layer(m, stream, mask, positions);
  }
  end_graph(m, stream);
  return true;
}

/* Operations that read four values from anywhere before them: no order of elimination keeps tables small. */
static bool make_random_graph(graph_maker *m, uint32_t ops, uint32_t devices) {
  if (!begin_graph(m, ops, devices)) return false;
  uint32_t last = add_value(m, TM_SOLVER_NONE, 2);
  for (uint32_t op = 0; op < ops; op++) {
    uint32_t inputs[MOST_INPUTS] = { last, TM_SOLVER_NONE, TM_SOLVER_NONE, TM_SOLVER_NONE }, count = 1;
    for (uint32_t i = 1; i < MOST_INPUTS && last != 0; i++) {
      const uint32_t value = profiled_mix(op, 100 + i) % last;
      bool is_there = false;
      for (uint32_t k = 0; k < count; k++) is_there = is_there || inputs[k] == value;
      if (!is_there) inputs[count++] = value;
    }
    last = add_op(m, 10000 + profiled_mix(op, 99) % 200000, inputs, 2);
  }
  end_graph(m, last);
  return true;
}

static void free_graph(graph_maker *m) {
  free(m->ops);
  free(m->labels);
  free(m->values);
  free(m->inputs);
  free(m->copy_ns);
}

static double solve_ms(const tm_solver_problem *problem, tm_assignment_options options, uint32_t rounds, tm_assignment *last,
                       uint64_t *out_peak_bytes) {
  double least = 1e30;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  for (uint32_t i = 0; i < rounds; i++) {
    const clock_t begin = clock();
    tm_error error = TM_ERROR_INIT;
    if (tm_assignment_solve(problem, &options, &memory, last, &error) != TM_OK) {
      printf("%s\n", error.text);
      return 0;
    }
    const double taken = (double)(clock() - begin) * 1e3 / CLOCKS_PER_SEC;
    if (taken < least) least = taken;
    tm_assignment_deinit(last);
  }
  if (tm_assignment_solve(problem, &options, &memory, last, NULL) != TM_OK) return 0;
  tm_assignment kept = *last;
  tm_assignment_deinit(last);
  *last = kept;
  *out_peak_bytes = atomic_load(&memory.peak_bytes);
  return least;
}

static void print_row(const char *name, const tm_solver_problem *problem, uint32_t rounds, const char *goal) {
  const tm_assignment_options as_planned = { .without_marginals = true }, explained = { .without_marginals = false };
  tm_assignment planned, told;
  uint64_t peak_bytes, told_bytes;
  const double planned_ms = solve_ms(problem, as_planned, rounds, &planned, &peak_bytes);
  const double told_ms = solve_ms(problem, explained, rounds, &told, &told_bytes);
  const double gap = planned.total_ns == 0 ? 0 : (double)(planned.total_ns - planned.bound_ns) / (double)planned.total_ns;
  printf("%-38s %6u ops x %u %9.2f ms %4llu MB  (%.2f ms %llu MB with marginals%s)  %8llu entries, width %2u, gap %.3f %%%s\n",
         name, problem->op_count, problem->memory_count, planned_ms, (unsigned long long)peak_bytes >> 20, told_ms,
         (unsigned long long)told_bytes >> 20, told.marginals_are_exact ? "" : ", lower bounds",
         (unsigned long long)planned.table_entries, planned.width, 100 * gap, goal);
}

static bool print_whole(uint32_t ops, uint32_t rounds, const char *goal) {
  static const struct {
    whole_plan_kind kind;
    const char     *name;
  } plans[] = { { WHOLE_PLAN_IN_TURNS, "tm_plan_create, devices take turns" },
                { WHOLE_PLAN_AT_ONCE, "tm_plan_create, devices at once" },
                { WHOLE_PLAN_SIDE_BY_SIDE, "tm_plan_create, branches side by side" } };
  for (uint32_t i = 0; i < sizeof plans / sizeof *plans; i++) {
    double ms;
    if (!bench_whole_plan(ops, plans[i].kind, rounds, &ms)) return false;
    printf("%-38s %6u ops x 4 %9.2f ms%s\n", plans[i].name, ops, ms, goal);
  }
  return true;
}

#define RANDOM_OPS 100000u

static const char *const layer_names[] = { "layers", "layers with shared masks", "layers with shared masks that are made",
                                          "40 layers each with masks of their own" };

static const struct {
  uint32_t    ops;
  const char *goal;
} sizes[] = { { 783, "  goal: 3 ms" }, { 10000, "  goal: 20 ms" }, { 100000, "  goal: 250 ms" } };

int main(int argc, char **argv) {
  const uint32_t devices = (uint32_t)bench_option(argc, argv, "devices", 4);
  const uint64_t asked = bench_option(argc, argv, "rounds", 7);
  const uint32_t rounds = asked < 1 ? 1 : asked > 1000 ? 1000 : (uint32_t)asked;
  const uint64_t only = bench_option(argc, argv, "ops", 0);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    if (only != 0 && only != sizes[i].ops) continue;
    for (sharing what = NOTHING; what <= MADE_FOR_GROUPS; what++) {
      graph_maker maker;
      if (!make_layers(&maker, sizes[i].ops, devices, what)) return 1;
      print_row(layer_names[what], &maker.problem, rounds, sizes[i].goal);
      free_graph(&maker);
    }
    if (!print_whole(sizes[i].ops, rounds, sizes[i].goal)) return 1;
  }
  if (only == 0 || only == RANDOM_OPS) {
    graph_maker maker;
    if (!make_random_graph(&maker, RANDOM_OPS, devices)) return 1;
    print_row("random inputs", &maker.problem, 1, "");
    free_graph(&maker);
  }
  const char *folder = getenv("TM_TEST_DATA");
  for (size_t i = 0; i < PROFILED_FILES; i++) {
    profiled_graph graph;
    profiled_problem p;
    if (folder == NULL || !profiled_open(&graph, folder, profiled_files[i])) {
      printf("skipped: %s is not in the folder that TM_TEST_DATA names\n", profiled_files[i]);
      continue;
    }
    if (!profiled_build(&p, &graph, devices, 1)) return 1;
    print_row(profiled_files[i], &p.problem, rounds, "");
    profiled_free(&p);
    profiled_close(&graph);
  }
  return 0;
}
