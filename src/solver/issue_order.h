/* SPDX-License-Identifier: Apache-2.0 */
/*
 * issue_order.h - in which order one thread hands out the operations of a plan, so that it comes out as its timeline says.
 *
 * A timeline has an order for each resource; whoever runs a plan has one for all.  Handing out costs nothing, but before an
 * operation that reads what another resource makes the thread waits for that, and everything behind it in the order waits
 * as well.  So an operation is handed out as soon as that needs no waiting, and each resource keeps its order:
 *
 *     resource 0   a1 a2 a3           one order   a1 a2 a3 b1: b1 reads a1, and is not in the way of a2 and a3
 *     resource 1      b1
 *
 * One resource may be the thread itself: what runs there is done when its turn has come, and nothing else until it is over.
 */
#ifndef TM_SOLVER_ISSUE_ORDER_H
#define TM_SOLVER_ISSUE_ORDER_H

#include "base/arena.h"
#include "base/error.h"
#include "solver/event_model.h"

/* What else must come after what, beside the reading of values. */
typedef struct tm_issue_rules {
  uint32_t        thread_resource;      /* TM_SOLVER_NONE: there is none */
  uint32_t        reserved;
  const uint32_t *first_before;         /* [op_count + 1] into befores; NULL: there are no such rules */
  const uint32_t *befores;              /* operations with lower numbers that come before an operation */
} tm_issue_rules;

/* Of the plan that the model ran last.  `out_order`: room for all operations; a permutation of them, each after those whose values it
   reads and those that the rules name.  A function of its arguments alone.   TM_ERROR_NO_MEMORY */
tm_status tm_issue_order_make(const tm_event_model *model, const tm_issue_rules *rules, tm_memory *memory, uint32_t *out_order,
                              tm_error *error);

#endif
