/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assignment.h - the cheapest label for every operation when times add up: the costs of the labels, and for every value
 * and every memory where it is needed and is not, one copy from where it was made.
 *
 * The answer is exact as long as the tables that it takes stay within a budget, which they do for the graphs of networks.
 * Beyond it the answer is the best plan found, with a bound that no plan can be below.  Equals go by rank, then by the
 * order of operations, never by the order of labels or memories.
 */
#ifndef TM_SOLVER_ASSIGNMENT_H
#define TM_SOLVER_ASSIGNMENT_H

#include <stdbool.h>

#include "base/error.h"
#include "solver/problem.h"

#define TM_ASSIGNMENT_MOST_ENTRIES    (UINT64_C(1) << 32)
#define TM_ASSIGNMENT_ENTRIES         (UINT64_C(1) << 21)       /* the default, and for each operation ... */
#define TM_ASSIGNMENT_ENTRIES_PER_OP  UINT64_C(128)             /* ... so many more */
#define TM_ASSIGNMENT_COMMON_READERS  31u                       /* the default */
#define TM_ASSIGNMENT_NODES           64u                       /* the default ... */
#define TM_ASSIGNMENT_NODE_ENTRIES    (UINT64_C(1) << 26)       /* ... and with more table entries in all of them fewer */

typedef struct tm_assignment_options {
  /* Table entries (8 bytes) to work with, at most TM_ASSIGNMENT_MOST_ENTRIES; 0: the default.  If not even the coarsest tables
     fit, those are used all the same: a few for each value, over four variables at most. */
  uint64_t most_entries;
  uint32_t common_readers;      /* values with more readers than this are decided apart (common_proof.h); 0: the default */
  uint32_t most_nodes;          /* solves in a search where some bits or common values are a decision; 0: the default */
  bool     without_marginals;   /* leaves them out, which takes less time and fewer entries */
} tm_assignment_options;

typedef struct tm_assignment {
  uint32_t  *labels;            /* [operation]: a number of the problem's labels */
  uint64_t  *min_marginals;     /* [label]: the least total with that label forced on its operation, TM_SOLVER_NEVER if there
                                   is none; NULL if not asked for */
  uint64_t   total_ns;          /* of this plan */
  uint64_t   bound_ns;          /* no plan costs less; equal to total_ns where is_exact */
  uint64_t   table_entries;     /* that it took: more than most_entries only where the coarsest tables do */
  uint32_t   width;             /* the most variables that one table's result was over */
  bool       is_exact;
  bool       marginals_are_exact;       /* otherwise they are lower bounds */
  tm_memory *memory;
  uint32_t   op_count;
  uint32_t   label_count;
} tm_assignment;

/* `options` may be NULL.  TM_ERROR_ARGUMENT: the problem breaks a rule of problem.h.  TM_ERROR_NO_DEVICE: an operation, named
   by its number, cannot run.  TM_ERROR_LIMIT: no plan was found within the budget, though there may be one.  `out` is only
   written on success. */
tm_status tm_assignment_solve(const tm_solver_problem *problem, const tm_assignment_options *options, tm_memory *memory,
                              tm_assignment *out, tm_error *error);
void      tm_assignment_deinit(tm_assignment *assignment);

#endif
