/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/problem_index.h"

#include "base/error.h"
#include "solver/problem_check.h"

/* More resources or links than this are a mistake, and would cost memory that no array of the caller's stands for. */
#define MOST_QUEUES (UINT32_C(1) << 20)

#define WRONG(...) tm_fail(error, TM_ERROR_ARGUMENT, __VA_ARGS__)

tm_status tm_problem_index_make(const tm_solver_problem *problem, tm_arena *arena, tm_problem_index *out_index,
                                tm_error *error) {
  TM_TRY(tm_problem_check(problem, arena->memory, error));
  uint64_t edges = 0;
  for (uint32_t o = 0; o < problem->op_count; o++) edges += problem->ops[o].input_count;
  const bool is_crowded = problem->resource_count > MOST_QUEUES || problem->link_count > MOST_QUEUES;
  if (is_crowded || edges + problem->value_count >= TM_SOLVER_NONE) return WRONG("a placement problem is too large");
  tm_problem_index index = { .problem = problem, .edge_count = (uint32_t)edges };
  TM_TRY(tm_flow_init(&index.flow, problem, arena, error));
  index.first_edge = tm_arena_alloc(arena, problem->op_count * sizeof *index.first_edge);
  if (index.first_edge == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to index a placement problem");
  uint32_t edge = 0;
  for (uint32_t o = 0; o < problem->op_count; o++) {
    index.first_edge[o] = edge;
    edge += problem->ops[o].input_count;
  }
  const uint64_t copies = (uint64_t)problem->size_class_count * problem->memory_count * problem->memory_count;
  index.has_all_ways = 1;
  for (uint64_t i = 0; i < copies && index.has_all_ways != 0; i++) index.has_all_ways = problem->copy_ns[i] != TM_SOLVER_NEVER;
  *out_index = index;
  return TM_OK;
}

static tm_status check_ways(const tm_solver_problem *problem, const uint32_t *labels, uint32_t o, tm_error *error) {
  const tm_solver_op *op = &problem->ops[o];
  const uint32_t to = problem->labels[labels[o]].input_memory;
  for (uint32_t i = op->first_input; i < op->first_input + op->input_count; i++) {
    const uint32_t v = problem->inputs[i];
    if (tm_solver_copy_ns(problem, v, tm_problem_source(problem, labels, v), to) == TM_SOLVER_NEVER) {
      return WRONG("value %u has no way to where operation %u reads it", v, o);
    }
  }
  return TM_OK;
}

tm_status tm_problem_index_check_labels(const tm_problem_index *index, const uint32_t *labels, tm_error *error) {
  const tm_solver_problem *problem = index->problem;
  for (uint32_t o = 0; o < problem->op_count; o++) {
    const tm_solver_op *op = &problem->ops[o];
    if (labels[o] < op->first_label || labels[o] - op->first_label >= op->label_count) {
      return WRONG("operation %u is given a label that is not its own", o);
    }
    if (problem->labels[labels[o]].cost_ns == TM_SOLVER_NEVER) return WRONG("operation %u cannot run as it is told to", o);
    if (index->has_all_ways == 0) TM_TRY(check_ways(problem, labels, o, error));
  }
  if (index->has_all_ways != 0) return TM_OK;
  for (uint32_t v = 0; v < problem->value_count; v++) {
    const uint32_t wanted = problem->values[v].wanted;
    if (wanted == TM_SOLVER_NONE) continue;
    if (tm_solver_copy_ns(problem, v, tm_problem_source(problem, labels, v), wanted) == TM_SOLVER_NEVER) {
      return WRONG("value %u has no way to where it is wanted", v);
    }
  }
  return TM_OK;
}
