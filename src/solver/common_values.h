/* SPDX-License-Identifier: Apache-2.0 */
/*
 * common_values.h - values that very many operations read (a mask, positions).  As presence bits they would be in all tables
 * between the first of their readers and the last.  Where it is plain that a good plan reads them somewhere, their copy there
 * is no decision: it is a cost that everybody has, and the readers are independent of each other again.  common_proof.h
 * assumes that, and proves it afterwards.
 */
#ifndef TM_SOLVER_COMMON_VALUES_H
#define TM_SOLVER_COMMON_VALUES_H

#include "solver/factor_graph.h"
#include "solver/plan_cost.h"

typedef enum tm_common_state {
  TM_COMMON_FREE,               /* whoever likes makes this use, and it costs nothing */
  TM_COMMON_PAID,               /* it is paid, whether somebody makes it or not */
  TM_COMMON_FORBIDDEN,          /* nobody makes it */
} tm_common_state;

/* A common value in a memory where it may be read and would cost something. */
typedef struct tm_common_use {
  uint64_t most_ns;             /* of the copy, wherever the value is made */
  uint64_t without_ns;          /* no sum with all paid uses is less where nobody makes this one: common_proof.h finds it */
  uint32_t value;
  uint32_t memory;
  tm_common_state state;
} tm_common_use;

typedef struct tm_common_values {
  const tm_solver_problem *problem;
  const tm_choices        *choices;
  const tm_flow           *flow;
  bool          *is_common;     /* [value] */
  uint32_t      *values;        /* the common ones, ascending */
  uint32_t      *first_use;     /* [value_count + 1] into uses: of a value together */
  tm_common_use *uses;
  uint32_t       value_count;
  uint32_t       use_count;
} tm_common_values;

/* Those with more readers than `most_readers` for which there is always a way.  Lives in the arena. */
tm_status tm_common_values_init(tm_common_values *common, const tm_solver_problem *problem, const tm_choices *choices,
                                const tm_flow *flow, uint32_t most_readers, tm_arena *arena, tm_error *error);

/* The use of a common value in this memory, TM_SOLVER_NONE if it costs nothing there. */
uint32_t tm_common_values_find(const tm_common_values *common, uint32_t number, uint32_t memory);

/* Makes the graph's `unary`, which would be `unary` without common values, what the states of the uses say: what paid uses of
   values that are made cost, depending on where, and who must not read where. */
void tm_common_values_apply(const tm_common_values *common, const uint64_t *unary, tm_factor_graph *graph);

/* Paid becomes what the plan uses, and nothing else.  Says whether the graph must be changed. */
bool tm_common_values_follow(tm_common_values *common, const tm_plan_cost *plan);

/* How many readers make the use. */
uint32_t tm_common_values_readings(const tm_common_values *common, const tm_common_use *use, const tm_plan_cost *plan);
/* Whether the value is made by an operation, so that its copies cost more or less. */
bool tm_common_values_is_made(const tm_common_values *common, const tm_common_use *use);

/* Of the paid uses. */
typedef struct tm_common_sums {
  uint64_t most_ns;             /* all of them, each where it is dearest */
  uint64_t constant_ns;         /* those of values that are there from the start, which are not in the graph */
} tm_common_sums;

tm_common_sums tm_common_values_sums(const tm_common_values *common);

#endif
