/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem_builder.h - placement problems for tests, put together piece by piece.  Labels and inputs go to the operation that
 * was added last.  Every function that adds returns the number of what it added.
 */
#ifndef PROBLEM_BUILDER_H
#define PROBLEM_BUILDER_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "solver/problem.h"

typedef struct problem_builder {
  tm_solver_problem problem;    /* what it points to are the arrays below */
  tm_solver_op    *ops;
  tm_solver_label *labels;
  tm_solver_value *values;
  uint32_t        *inputs;
  uint64_t        *copy_ns;
  uint32_t        *links;
} problem_builder;

/* Room for `most` of everything; each memory pair has no link and, in each of `class_count` classes, copies cost nothing. */
static inline void builder_init(problem_builder *builder, uint32_t memory_count, uint32_t resource_count, uint32_t class_count,
                                uint32_t most) {
  const size_t pairs = (size_t)memory_count * memory_count;
  memset(builder, 0, sizeof *builder);
  builder->ops = calloc(most, sizeof *builder->ops);
  builder->labels = calloc(most, sizeof *builder->labels);
  builder->values = calloc(most, sizeof *builder->values);
  builder->inputs = calloc(most, sizeof *builder->inputs);
  builder->copy_ns = calloc(pairs * class_count + 1, sizeof *builder->copy_ns);
  builder->links = malloc((pairs + 1) * sizeof *builder->links);
  memset(builder->links, 0xff, (pairs + 1) * sizeof *builder->links);
  builder->problem.ops = builder->ops;
  builder->problem.labels = builder->labels;
  builder->problem.values = builder->values;
  builder->problem.inputs = builder->inputs;
  builder->problem.copy_ns = builder->copy_ns;
  builder->problem.links = builder->links;
  builder->problem.memory_count = memory_count;
  builder->problem.resource_count = resource_count;
  builder->problem.size_class_count = class_count;
}

static inline void builder_deinit(problem_builder *builder) {
  free(builder->ops);
  free(builder->labels);
  free(builder->values);
  free(builder->inputs);
  free(builder->copy_ns);
  free(builder->links);
}

static inline uint32_t builder_op(problem_builder *builder) {
  tm_solver_problem *problem = &builder->problem;
  builder->ops[problem->op_count] = (tm_solver_op){ problem->label_count, 0, problem->input_count, 0 };
  return problem->op_count++;
}

static inline uint32_t builder_label(problem_builder *builder, tm_solver_label label) {
  builder->labels[builder->problem.label_count] = label;
  builder->ops[builder->problem.op_count - 1].label_count++;
  return builder->problem.label_count++;
}

static inline void builder_input(problem_builder *builder, uint32_t value) {
  builder->inputs[builder->problem.input_count++] = value;
  builder->ops[builder->problem.op_count - 1].input_count++;
}

static inline uint32_t builder_value(problem_builder *builder, uint64_t bytes, uint32_t producer, uint32_t home, uint32_t wanted,
                                     uint32_t size_class) {
  builder->values[builder->problem.value_count] = (tm_solver_value){ bytes, producer, home, wanted, size_class };
  return builder->problem.value_count++;
}

static inline void builder_copy(problem_builder *builder, uint32_t size_class, uint32_t from, uint32_t to, uint64_t cost_ns) {
  const size_t memories = builder->problem.memory_count;
  builder->copy_ns[(size_class * memories + from) * memories + to] = cost_ns;
}

/* All copies of a class between different memories cost the same. */
static inline void builder_copies(problem_builder *builder, uint32_t size_class, uint64_t cost_ns) {
  for (uint32_t from = 0; from < builder->problem.memory_count; from++) {
    for (uint32_t to = 0; to < builder->problem.memory_count; to++) {
      builder_copy(builder, size_class, from, to, from == to ? 0 : cost_ns);
    }
  }
}

static inline void builder_link(problem_builder *builder, uint32_t from, uint32_t to, uint32_t link) {
  builder->links[(size_t)from * builder->problem.memory_count + to] = link;
  if (link >= builder->problem.link_count) builder->problem.link_count = link + 1;
}

/* The next of a sequence that is the same everywhere. */
static inline uint64_t builder_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  uint64_t mixed = *state ^ (*state >> 33);
  mixed *= UINT64_C(0xff51afd7ed558ccd);
  return mixed ^ (mixed >> 29);
}

static inline uint32_t builder_below(uint64_t *state, uint32_t limit) { return (uint32_t)((builder_random(state) >> 20) % limit); }

#endif
