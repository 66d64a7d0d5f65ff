/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_problem.h - small placement problems with everything that may occur: shared memories and resources, labels that read
 * one memory and write another, ways that are missing, values from the start, wanted and unused ones, costs of nothing.
 */
#ifndef RANDOM_PROBLEM_H
#define RANDOM_PROBLEM_H

#include "problem_builder.h"

#define RANDOM_MOST_OPS     16u
#define RANDOM_CLASSES      3u
#define RANDOM_MOST_MEMORIES 3u

static inline void random_copies(problem_builder *builder, uint64_t *state) {
  const uint32_t memories = builder->problem.memory_count;
  const uint32_t never_percent = builder_below(state, 3) == 0 ? 15 : 0;
  for (uint32_t from = 0; from < memories; from++) {
    for (uint32_t to = 0; to < memories; to++) {
      if (from == to) continue;
      const bool is_never = builder_below(state, 100) < never_percent;
      for (uint32_t class = 0; class < RANDOM_CLASSES; class++) {
        builder_copy(builder, class, from, to, is_never ? TM_SOLVER_NEVER : builder_below(state, 8) * (class + 1));
      }
      if (builder_below(state, 4) != 0) builder_link(builder, from, to, builder_below(state, 2));
    }
  }
}

static inline void random_labels(problem_builder *builder, uint64_t *state) {
  const tm_solver_problem *problem = &builder->problem;
  const uint32_t count = 1 + builder_below(state, 4);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t device = builder_below(state, 4), memory = device % problem->memory_count;
    const bool moves = builder_below(state, 8) == 0, is_never = i != 0 && builder_below(state, 10) == 0;
    const uint64_t cost_ns = builder_below(state, 30), workspace = builder_below(state, 3) == 0 ? builder_below(state, 50) : 0;
    tm_solver_label label = { cost_ns, memory, memory, device % problem->resource_count, 10 * device, workspace };
    if (moves) label.output_memory = builder_below(state, problem->memory_count);
    if (is_never) label.cost_ns = TM_SOLVER_NEVER;
    builder_label(builder, label);
  }
}

static inline uint32_t random_value(problem_builder *builder, uint64_t *state, uint32_t producer) {
  const uint32_t memories = builder->problem.memory_count;
  const uint32_t home = producer == TM_SOLVER_NONE ? builder_below(state, memories) : TM_SOLVER_NONE;
  const uint32_t wanted = builder_below(state, 5) == 0 ? builder_below(state, memories) : TM_SOLVER_NONE;
  const uint64_t bytes = builder_below(state, 100);
  return builder_value(builder, bytes, producer, home, wanted, builder_below(state, RANDOM_CLASSES));
}

/* The same seed, the same problem with every compiler (no two draws in one expression), of `most_ops` operations at most. */
static inline void random_problem_sized(uint64_t seed, uint32_t most_ops, problem_builder *out_builder) {
  uint64_t state = seed;
  const uint32_t memories = 1 + builder_below(&state, RANDOM_MOST_MEMORIES), resources = 1 + builder_below(&state, 3);
  builder_init(out_builder, memories, resources, RANDOM_CLASSES, 8 * most_ops + 8);
  random_copies(out_builder, &state);
  for (uint32_t i = builder_below(&state, 4); i > 0; i--) random_value(out_builder, &state, TM_SOLVER_NONE);
  const uint32_t op_count = 1 + builder_below(&state, most_ops);
  for (uint32_t i = 0; i < op_count; i++) {
    const uint32_t before = out_builder->problem.value_count, op = builder_op(out_builder);
    random_labels(out_builder, &state);
    for (uint32_t v = before > 6 ? before - 6 : 0; v < before; v++) {
      if (builder_below(&state, 3) == 0) builder_input(out_builder, v);
    }
    for (uint32_t outputs = builder_below(&state, 3); outputs > 0; outputs--) random_value(out_builder, &state, op);
  }
}

static inline void random_problem(uint64_t seed, problem_builder *out_builder) {
  random_problem_sized(seed, RANDOM_MOST_OPS, out_builder);
}

static inline void random_choice(const tm_solver_problem *problem, uint64_t *state, uint32_t *out_labels) {
  for (uint32_t o = 0; o < problem->op_count; o++) {
    out_labels[o] = problem->ops[o].first_label + builder_below(state, problem->ops[o].label_count);
  }
}

static inline bool random_is_ready(const tm_solver_problem *problem, const bool *is_done, uint32_t o) {
  for (uint32_t i = 0; i < problem->ops[o].input_count; i++) {
    const uint32_t producer = problem->values[problem->inputs[problem->ops[o].first_input + i]].producer;
    if (producer != TM_SOLVER_NONE && !is_done[producer]) return false;
  }
  return !is_done[o];
}

static inline void random_order(const tm_solver_problem *problem, uint64_t *state, uint32_t *out_order) {
  bool is_done[RANDOM_MOST_OPS] = { false };
  for (uint32_t place = 0; place < problem->op_count; place++) {
    uint32_t o;
    do o = builder_below(state, problem->op_count); while (!random_is_ready(problem, is_done, o));
    is_done[o] = true;
    out_order[place] = o;
  }
}

#endif
