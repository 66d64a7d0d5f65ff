/* SPDX-License-Identifier: Apache-2.0 */
/* Booking time: the earliest start that fits, as a plain list of what is booked says it, and never two at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "problem_builder.h"
#include "solver/gap_list.h"

#define BOOKINGS 400u
#define QUEUES   2u

typedef struct booking {
  uint64_t start_ns;
  uint64_t end_ns;
} booking;

typedef struct booked_queue {
  booking  bookings[BOOKINGS];
  uint32_t count;
} booked_queue;

static bool is_free(const booked_queue *queue, uint64_t start_ns, uint64_t end_ns) {
  for (uint32_t i = 0; i < queue->count; i++) {
    if (queue->bookings[i].start_ns < end_ns && start_ns < queue->bookings[i].end_ns) return false;
  }
  return true;
}

/* The earliest start is `ready_ns` or where something ends. */
static uint64_t find_plainly(const booked_queue *queue, uint64_t ready_ns, uint64_t duration_ns) {
  uint64_t best = is_free(queue, ready_ns, ready_ns + duration_ns) ? ready_ns : UINT64_MAX;
  for (uint32_t i = 0; i < queue->count; i++) {
    const uint64_t start_ns = queue->bookings[i].end_ns;
    if (start_ns >= ready_ns && start_ns < best && is_free(queue, start_ns, start_ns + duration_ns)) best = start_ns;
  }
  return best;
}

/* Returns whether all starts were the earliest. */
static bool book_randomly(uint64_t seed, uint32_t count, uint32_t span) {
  tm_memory memory;
  tm_arena arena;
  tm_gap_list list;
  static booked_queue queues[QUEUES];
  bool is_earliest = true;
  memset(queues, 0, sizeof queues);
  tm_memory_init(&memory, 0);
  tm_arena_init(&arena, &memory);
  assert_int_equal(tm_gap_list_init(&list, QUEUES, count, &arena, NULL), TM_OK);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t q = builder_below(&seed, QUEUES);
    const uint64_t ready_ns = builder_below(&seed, span), duration_ns = 1 + builder_below(&seed, 6);
    const uint64_t start_ns = tm_gap_list_find(&list, q, ready_ns, duration_ns);
    assert_true(start_ns >= ready_ns);
    assert_true(is_free(&queues[q], start_ns, start_ns + duration_ns));
    is_earliest = is_earliest && start_ns == find_plainly(&queues[q], ready_ns, duration_ns);
    tm_gap_list_book(&list, q, start_ns, duration_ns);
    queues[q].bookings[queues[q].count++] = (booking){ start_ns, start_ns + duration_ns };
  }
  tm_arena_deinit(&arena);
  return is_earliest;
}

static void test_few_gaps(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 2000; seed++) assert_true(book_randomly(seed, TM_MOST_GAPS, 200));
}

/* With more gaps than are remembered some starts are later than they could be, but still nothing overlaps. */
static void test_many_gaps(void **state) {
  (void)state;
  uint32_t later = 0;
  for (uint64_t seed = 1; seed <= 100; seed++) later += !book_randomly(seed, BOOKINGS, 5000);
  assert_true(later > 0);
}

static void test_no_time(void **state) {
  (void)state;
  tm_memory memory;
  tm_arena arena;
  tm_gap_list list;
  tm_memory_init(&memory, 0);
  tm_arena_init(&arena, &memory);
  assert_int_equal(tm_gap_list_init(&list, 1, 8, &arena, NULL), TM_OK);
  tm_gap_list_book(&list, 0, 10, 10);                   /* a gap from 0 to 10 */
  assert_int_equal(tm_gap_list_find(&list, 0, 10, 0), 10);
  tm_gap_list_book(&list, 0, 10, 0);                    /* is in nobody's way */
  assert_int_equal(tm_gap_list_find(&list, 0, 0, 10), 0);
  tm_gap_list_book(&list, 0, 0, 10);
  assert_int_equal(tm_gap_list_find(&list, 0, 0, 1), 20);
  assert_int_equal(tm_gap_list_find(&list, 0, 0, TM_SOLVER_MOST_NS), 20);
  tm_gap_list_book(&list, 0, 20, TM_SOLVER_MOST_NS);
  assert_int_equal(tm_gap_list_find(&list, 0, 0, 1), TM_SOLVER_MOST_NS);
  tm_gap_list_clear(&list);
  assert_int_equal(tm_gap_list_find(&list, 0, 3, 1), 3);
  tm_arena_deinit(&arena);
  assert_int_equal(memory.used_bytes, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_few_gaps), cmocka_unit_test(test_many_gaps),
                                      cmocka_unit_test(test_no_time) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
