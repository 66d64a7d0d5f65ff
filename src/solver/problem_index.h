/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem_index.h - a problem found sound, with the ways back that its arrays do not have: from an operation to the values
 * that it makes, from a value to the operations that read it.
 */
#ifndef TM_SOLVER_PROBLEM_INDEX_H
#define TM_SOLVER_PROBLEM_INDEX_H

#include <stdbool.h>

#include "base/arena.h"
#include "solver/problem.h"
#include "tensormorph/types.h"

typedef struct tm_problem_index {
  const tm_solver_problem *problem;
  const uint32_t *first_output;         /* [op + 1]: its values are outputs[first_output[op] ... first_output[op + 1]) */
  const uint32_t *outputs;
  const uint32_t *first_use;            /* [value + 1]: its readers are uses[first_use[value] ... first_use[value + 1]) */
  const uint32_t *uses;                 /* operations, ascending */
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

#endif
