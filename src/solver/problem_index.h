/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem_index.h - a problem found sound, with the ways back that its arrays do not have.  An edge is one input of one
 * operation; operations may share their lists of inputs, but every edge has a number of its own.
 */
#ifndef TM_SOLVER_PROBLEM_INDEX_H
#define TM_SOLVER_PROBLEM_INDEX_H

#include <stdbool.h>

#include "base/arena.h"
#include "solver/flow.h"
#include "solver/problem.h"

typedef struct tm_problem_index {
  const tm_solver_problem *problem;
  tm_flow   flow;
  uint32_t *first_edge;         /* [op]: the edge of its input i is first_edge[op] + i */
  uint32_t  edge_count;
  uint32_t  has_all_ways;       /* there is a copy from every memory to every other one */
} tm_problem_index;

/* Checks all of `problem`: TM_ERROR_ARGUMENT names what is wrong.  The index lives in `arena` and reads the problem. */
tm_status tm_problem_index_make(const tm_solver_problem *problem, tm_arena *arena, tm_problem_index *out_index,
                                tm_error *error);

/* May a choice of labels be judged at all?  Every label is one of its operation's and can be, and every copy has a way. */
tm_status tm_problem_index_check_labels(const tm_problem_index *index, const uint32_t *labels, tm_error *error);

/* Where the value is made, given the labels of all operations. */
static inline uint32_t tm_problem_source(const tm_solver_problem *problem, const uint32_t *labels, uint32_t value) {
  const tm_solver_value *made = &problem->values[value];
  return made->producer == TM_SOLVER_NONE ? made->home : problem->labels[labels[made->producer]].output_memory;
}

/* The queue of copies between two memories, or TM_SOLVER_NONE. */
static inline uint32_t tm_problem_link(const tm_solver_problem *problem, uint32_t from, uint32_t to) {
  return problem->links == NULL ? TM_SOLVER_NONE : problem->links[(uint64_t)from * problem->memory_count + to];
}

#endif
