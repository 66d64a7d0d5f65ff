/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_table.h - adding small tables into a large one and taking minima back out.  Tables are row-major over variables in
 * one common order; a walk says how the entries of a large table meet those of a table over some of its variables.
 * Inside of tables a number stands for TM_SOLVER_NEVER that is beyond any sum of costs, so that entries can simply be
 * added.  Where costs are so large that their sums saturate it is TM_TABLE_NEVER, and two entries can be added to a third
 * before anybody has to look (tm_table_settle); where they are not, which is nearly always, it is TM_TABLE_NEVER_SMALL.
 */
#ifndef TM_SOLVER_COST_TABLE_H
#define TM_SOLVER_COST_TABLE_H

#include "solver/elimination_order.h"

#define TM_TABLE_NEVER       (UINT64_C(1) << 62)
#define TM_TABLE_ADDS        2u
#define TM_TABLE_SMALL       (UINT64_C(1) << 56)        /* no sum exceeds it, so that ... */
#define TM_TABLE_NEVER_SMALL (UINT64_C(1) << 57)
#define TM_TABLE_ADDS_SMALL  60u                        /* ... so many entries can be added */

static inline uint64_t tm_table_settled(uint64_t sum) {
  return sum <= TM_SOLVER_MOST_NS ? sum : sum < TM_TABLE_NEVER ? TM_SOLVER_MOST_NS : TM_TABLE_NEVER;
}

static inline uint64_t tm_table_add(uint64_t a, uint64_t b) { return tm_table_settled(a + b); }

typedef struct tm_table_walk {
  uint32_t loop_count;          /* at least 1, outermost first */
  uint64_t counts[TM_ELIMINATION_MOST_DIMENSIONS + 1];
  uint64_t strides[TM_ELIMINATION_MOST_DIMENSIONS + 1];   /* in the small table; of the last loop 0 or 1 */
} tm_table_walk;

/* The large table is over `first` and then `scope`; the small one over some of these in the same order. */
void tm_table_walk_init(tm_table_walk *walk, const uint32_t *state_counts, uint32_t first, const uint32_t *scope,
                        uint32_t scope_count, const uint32_t *small, uint32_t small_count);

void tm_table_add_to(uint64_t *large, const tm_table_walk *walk, const uint64_t *small);
void tm_table_settle(uint64_t *table, uint64_t entries);
/* Lowers each entry of the small table to the least entry that it meets. */
void tm_table_lower(const uint64_t *large, const tm_table_walk *walk, uint64_t *small);

#endif
