/* SPDX-License-Identifier: Apache-2.0 */
/*
 * portfolio.h - the least time in which everything is over when work on different resources overlaps.  There is no method
 * that is always good, so several make a plan each and one judge (event_model.h) compares them:
 *
 *     the seeds        choices of labels from elsewhere, the cheapest sum (assignment.h) above all
 *     heft             the operation that most depends on first, where it ends soonest
 *     cpop             the same with the critical path kept on one device
 *     peft             where the optimistic end of all is soonest
 *     heft-outlook     heft's sequence with peft's preference
 *     single-device    a plan each: all that the device can do on it, the rest where it is cheapest
 *     moves            the best of these, changed step by step on its critical path as long as that helps
 *
 * What comes out is never worse than any of them.  With more than TM_PORTFOLIO_MOST_OPS operations, or as much work for other
 * reasons (`is_reduced`), only seeds, heft and single devices are looked at.
 */
#ifndef TM_SOLVER_PORTFOLIO_H
#define TM_SOLVER_PORTFOLIO_H

#include <stdbool.h>

#include "solver/problem.h"
#include "tensormorph/types.h"

#define TM_PORTFOLIO_MOST_OPS     20000u
#define TM_PORTFOLIO_MOST_DEVICES 64u       /* that get a plan of their own: those that can do the most */
#define TM_PORTFOLIO_MOVE_STEPS   (UINT64_C(1) << 15)

typedef struct tm_portfolio_seed {
  const char     *name;
  const uint32_t *labels;       /* for each operation the index of a label of its own */
} tm_portfolio_seed;

typedef struct tm_portfolio_options {
  uint64_t move_steps;          /* operations that moves may place anew, in sum; TM_PORTFOLIO_MOVE_STEPS is the usual */
  bool     with_lists;          /* labels and order of each plan are told */
  bool     only_best;           /* other plans than a seed that none can beat are neither looked at nor told */
} tm_portfolio_options;

typedef struct tm_portfolio_plan {
  const char *name;             /* a seed's is the caller's string */
  uint64_t makespan_ns;
  uint64_t additive_ns;         /* with nothing at the same time */
  uint64_t copied_bytes;
  uint64_t excess_bytes;        /* beyond the budgets, at the peak of each memory, in sum */
  uint32_t switch_count;        /* reads of what a label of another rank made */
  uint32_t rank;                /* single-device: whose; otherwise TM_SOLVER_NONE */
  uint32_t *labels;             /* [op]; NULL unless asked for */
  uint32_t *order;
} tm_portfolio_plan;

typedef struct tm_portfolio {
  tm_memory *memory;
  uint32_t  *labels;            /* [op] of the best plan */
  uint32_t  *order;             /* [op] of the best plan: tm_timeline_simulate tells the rest */
  tm_portfolio_plan *plans;     /* all that were looked at */
  uint32_t  *lists;             /* of all plans */
  uint64_t   makespan_ns;
  uint64_t   bound_ns;          /* nothing is sooner than this */
  uint32_t   plan_count;
  uint32_t   best;              /* index of the best in `plans` */
  uint32_t   op_count;
  bool       is_reduced;
} tm_portfolio;

/* `options` NULL: the usual.  A plan within the budgets goes before any that is not; ties go by bytes copied, switches, ranks
   of labels.  TM_ERROR_ARGUMENT: the problem or a seed is not sound; TM_ERROR_NO_DEVICE: an operation that cannot run, or no
   plan was found. */
tm_status tm_portfolio_solve(const tm_solver_problem *problem, const tm_portfolio_seed *seeds, uint32_t seed_count,
                             const tm_portfolio_options *options, tm_memory *memory, tm_portfolio *out_portfolio,
                             tm_error *error);

/* Only the bound.  TM_ERROR_ARGUMENT: the problem is not sound; TM_ERROR_NO_DEVICE: an operation that cannot run */
tm_status tm_portfolio_find_bound(const tm_solver_problem *problem, tm_memory *memory, uint64_t *out_bound_ns, tm_error *error);

/* Accepts one that is all zero. */
void tm_portfolio_deinit(tm_portfolio *portfolio);

#endif
