/* SPDX-License-Identifier: Apache-2.0 */
#include "solver/gap_list.h"

#include "base/checked.h"
#include "base/error.h"

tm_status tm_gap_list_init(tm_gap_list *list, uint32_t queue_count, uint64_t booking_count, tm_arena *arena, tm_error *error) {
  list->queue_count = queue_count;
  list->queues = tm_arena_alloc(arena, queue_count * sizeof *list->queues);
  list->gaps = tm_arena_alloc(arena, booking_count * sizeof *list->gaps);        /* each booking makes one more at most */
  if (list->queues == NULL || list->gaps == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to schedule");
  tm_gap_list_clear(list);
  return TM_OK;
}

void tm_gap_list_clear(tm_gap_list *list) {
  for (uint32_t q = 0; q < list->queue_count; q++) {
    list->queues[q] = (tm_gap_queue){ 0, TM_SOLVER_NONE, TM_SOLVER_NONE, 0, 0 };
  }
  list->first_free = TM_SOLVER_NONE;
  list->used_count = 0;
}

uint64_t tm_gap_list_find(const tm_gap_list *list, uint32_t queue, uint64_t ready_ns, uint64_t duration_ns) {
  const tm_gap_queue *booked = &list->queues[queue];
  if (ready_ns >= booked->end_ns) return ready_ns;
  /* From the last one back: what ends too soon, and all before it, is over when there is something to do, as most gaps are. */
  const uint64_t soonest_ns = tm_solver_add(ready_ns, duration_ns);
  uint64_t found_ns = booked->end_ns;
  for (uint32_t g = booked->last_gap; g != TM_SOLVER_NONE && list->gaps[g].end_ns >= soonest_ns; g = list->gaps[g].previous) {
    const uint64_t start_ns = tm_max_u64(list->gaps[g].start_ns, ready_ns);
    if (tm_solver_add(start_ns, duration_ns) <= list->gaps[g].end_ns) found_ns = start_ns;
  }
  return found_ns;
}

/* Behind `before`, or as the first. */
static void add_gap(tm_gap_list *list, tm_gap_queue *queue, uint32_t before, uint64_t start_ns, uint64_t end_ns) {
  const uint32_t gap = list->first_free != TM_SOLVER_NONE ? list->first_free : list->used_count++;
  if (list->first_free != TM_SOLVER_NONE) list->first_free = list->gaps[gap].next;
  const uint32_t next = before == TM_SOLVER_NONE ? queue->first_gap : list->gaps[before].next;
  list->gaps[gap] = (tm_gap){ start_ns, end_ns, next, before };
  if (before == TM_SOLVER_NONE) queue->first_gap = gap; else list->gaps[before].next = gap;
  if (next == TM_SOLVER_NONE) queue->last_gap = gap; else list->gaps[next].previous = gap;
  queue->gap_count++;
}

static void drop_gap(tm_gap_list *list, tm_gap_queue *queue, uint32_t gap) {
  const uint32_t before = list->gaps[gap].previous, next = list->gaps[gap].next;
  if (before == TM_SOLVER_NONE) queue->first_gap = next; else list->gaps[before].next = next;
  if (next == TM_SOLVER_NONE) queue->last_gap = before; else list->gaps[next].previous = before;
  queue->gap_count--;
  list->gaps[gap].next = list->first_free;
  list->first_free = gap;
}

static void forget_oldest(tm_gap_list *list, tm_gap_queue *queue) {
  if (queue->gap_count > TM_MOST_GAPS) drop_gap(list, queue, queue->first_gap);
}

static void book_at_end(tm_gap_list *list, tm_gap_queue *queue, uint64_t start_ns, uint64_t end_ns) {
  if (start_ns > queue->end_ns) {
    add_gap(list, queue, queue->last_gap, queue->end_ns, start_ns);
    forget_oldest(list, queue);
  }
  queue->end_ns = end_ns;
}

/* What is left of the gap before and after what is booked in it. */
static void book_in_gap(tm_gap_list *list, tm_gap_queue *queue, uint32_t g, uint64_t start_ns, uint64_t end_ns) {
  const uint64_t rest_end_ns = list->gaps[g].end_ns;
  const bool has_rest = end_ns < rest_end_ns;
  if (list->gaps[g].start_ns == start_ns) {
    if (has_rest) list->gaps[g].start_ns = end_ns; else drop_gap(list, queue, g);
    return;
  }
  list->gaps[g].end_ns = start_ns;
  if (!has_rest) return;
  add_gap(list, queue, g, end_ns, rest_end_ns);
  forget_oldest(list, queue);
}

void tm_gap_list_book(tm_gap_list *list, uint32_t queue_number, uint64_t start_ns, uint64_t duration_ns) {
  tm_gap_queue *queue = &list->queues[queue_number];
  if (duration_ns == 0) return;         /* it is in nobody's way */
  const uint64_t end_ns = tm_solver_add(start_ns, duration_ns);
  if (start_ns >= queue->end_ns) {
    book_at_end(list, queue, start_ns, end_ns);
    return;
  }
  uint32_t g = queue->last_gap;
  while (list->gaps[g].start_ns > start_ns) g = list->gaps[g].previous;
  book_in_gap(list, queue, g, start_ns, end_ns);
}
