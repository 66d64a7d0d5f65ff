/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gap_list.h - queues of time in which a list scheduler books: work goes into the first gap that it fits, or to the end.
 * A queue remembers its last TM_MOST_GAPS gaps only, so that booking stays cheap however long the plan; older ones are as
 * good as booked.
 */
#ifndef TM_SOLVER_GAP_LIST_H
#define TM_SOLVER_GAP_LIST_H

#include "solver/problem_index.h"

#define TM_MOST_GAPS 32u

typedef struct tm_gap {
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t next;                /* in a queue, or among those in none */
  uint32_t previous;
} tm_gap;

typedef struct tm_gap_queue {
  uint64_t end_ns;              /* from here on it is idle */
  uint32_t first_gap;           /* in order of time */
  uint32_t last_gap;
  uint32_t gap_count;
  uint32_t padding;
} tm_gap_queue;

typedef struct tm_gap_list {
  tm_gap_queue *queues;
  tm_gap   *gaps;
  uint32_t  queue_count;
  uint32_t  first_free;         /* list of gaps in no queue */
  uint32_t  used_count;         /* gaps that were ever in one */
} tm_gap_list;

/* `booking_count`: the most that is ever booked between two clears. */
tm_status tm_gap_list_init(tm_gap_list *list, uint32_t queue_count, uint64_t booking_count, tm_arena *arena, tm_error *error);
/* Nothing is booked any more. */
void tm_gap_list_clear(tm_gap_list *list);

/* When `duration_ns` could begin, no sooner than ready_ns. */
uint64_t tm_gap_list_find(const tm_gap_list *list, uint32_t queue, uint64_t ready_ns, uint64_t duration_ns);
/* Books what tm_gap_list_find found. */
void tm_gap_list_book(tm_gap_list *list, uint32_t queue, uint64_t start_ns, uint64_t duration_ns);

#endif
