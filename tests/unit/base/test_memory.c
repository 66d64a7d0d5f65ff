/* SPDX-License-Identifier: Apache-2.0 */
/* Counted and limited memory, arenas in it, and sizes that do not overflow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/memory_limit.h"

static void allocations_are_aligned_and_counted(void **state) {
  (void)state;
  static const uint64_t alignments[] = { 0, 1, 8, 64, 4096 };
  tm_memory memory;
  tm_memory_init(&memory, 0);
  for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; i++) {
    void *block = tm_memory_alloc(&memory, 100, alignments[i]);
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % (alignments[i] < 16 ? 16 : alignments[i]), 0);
    assert_int_equal(atomic_load(&memory.used_bytes), 100);
    memset(block, 1, 100);
    tm_memory_free(&memory, block, 100);
    assert_int_equal(atomic_load(&memory.used_bytes), 0);
  }
  assert_int_equal(atomic_load(&memory.peak_bytes), 100);
  tm_memory_free(&memory, NULL, 100);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

static void addresses_tell_their_alignment(void **state) {
  (void)state;
  _Alignas(128) static const char bytes[256];
  static const uint32_t expected[][2] = { { 0, 64 }, { 1, 1 }, { 2, 2 }, { 3, 1 }, { 8, 8 }, { 24, 8 }, { 32, 32 }, { 64, 64 }, { 96, 32 }, { 128, 64 } };
  for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
    assert_int_equal(tm_alignment_of(bytes + expected[i][0]), expected[i][1]);
  assert_int_equal(tm_alignment_of(NULL), 64);
}

static void nothing_is_a_block_too(void **state) {
  (void)state;
  tm_memory memory;
  tm_memory_init(&memory, 1);
  void *a = tm_memory_alloc(&memory, 0, 0), *b = tm_memory_calloc(&memory, 0, 8);
  assert_true(a != NULL && b != NULL && a != b);
  tm_memory_free(&memory, a, 0);
  tm_memory_free(&memory, b, 0);
}

static void a_peak_of_its_own(void **state) {
  (void)state;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  void *kept = tm_memory_alloc(&memory, 10, 0);
  tm_memory_free(&memory, tm_memory_alloc(&memory, 90, 0), 90);
  static const uint64_t sizes[][2] = { { 40, 100 }, { 200, 210 } };     /* and the peak that stays */
  for (size_t i = 0; i < 2; i++) {
    const uint64_t before = tm_memory_begin_peak(&memory);
    assert_int_equal(before, 100);
    tm_memory_free(&memory, tm_memory_alloc(&memory, sizes[i][0], 0), sizes[i][0]);
    assert_int_equal(tm_memory_end_peak(&memory, before), 10 + sizes[i][0]);
    assert_int_equal(atomic_load(&memory.peak_bytes), sizes[i][1]);
  }
  tm_memory_free(&memory, kept, 10);
}

static void only_want_of_memory_names_the_limit(void **state) {
  (void)state;
  tm_memory memory;
  tm_error error = TM_ERROR_INIT;
  tm_memory_init(&memory, 0);
  (void)tm_fail(&error, TM_ERROR_NO_MEMORY, "no memory for this");
  assert_int_equal(tm_memory_name_limit(&memory, TM_ERROR_NO_MEMORY, &error), TM_ERROR_NO_MEMORY);
  memory.limit_bytes = 5000;
  assert_int_equal(tm_memory_name_limit(&memory, TM_ERROR_IO, &error), TM_ERROR_IO);
  assert_string_equal(error.text, "no memory for this");
  assert_int_equal(tm_memory_name_limit(&memory, TM_ERROR_NO_MEMORY, NULL), TM_ERROR_NO_MEMORY);
  assert_int_equal(tm_memory_name_limit(&memory, TM_ERROR_NO_MEMORY, &error), TM_ERROR_NO_MEMORY);
  assert_string_equal(error.text, "no memory for this; 5.00 kB are allowed in all (max_memory_bytes)");
  void *kept = tm_memory_alloc(&memory, 3000, 0);
  assert_null(tm_memory_alloc(&memory, 4000, 0));
  tm_memory_free(&memory, kept, 3000);
  (void)tm_fail(&error, TM_ERROR_NO_MEMORY, "no memory for this");
  assert_int_equal(tm_memory_name_limit(&memory, TM_ERROR_NO_MEMORY, &error), TM_ERROR_NO_MEMORY);
  assert_string_equal(error.text, "no memory for this; 5.00 kB are allowed in all (max_memory_bytes), and at least 7.00 kB are needed");
}

static void the_limit_holds_to_the_byte(void **state) {
  (void)state;
  tm_memory memory;
  tm_memory_init(&memory, 1000);
  void *a = tm_memory_alloc(&memory, 600, 0);
  assert_non_null(a);
  assert_null(tm_memory_alloc(&memory, 401, 0));
  assert_int_equal(atomic_load(&memory.used_bytes), 600);
  void *b = tm_memory_alloc(&memory, 400, 0);
  assert_non_null(b);
  assert_null(tm_memory_alloc(&memory, 1, 0));
  assert_int_equal(atomic_load(&memory.peak_bytes), 1000);
  tm_memory_free(&memory, a, 600);
  tm_memory_free(&memory, b, 400);
  assert_null(tm_memory_alloc(&memory, UINT64_MAX, 0));
}

static void absurd_sizes_give_nothing(void **state) {
  (void)state;
  tm_memory memory;
  tm_memory_init(&memory, UINT64_C(1) << 40);
  assert_null(tm_memory_alloc(&memory, UINT64_MAX, 4096));
  assert_null(tm_memory_calloc(&memory, UINT64_MAX / 2, 3));
  assert_null(tm_memory_grow(&memory, NULL, 0, UINT64_MAX / 2, 3));
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

static void growing_keeps_the_content(void **state) {
  (void)state;
  tm_memory memory;
  tm_memory_init(&memory, 64);
  uint32_t *numbers = tm_memory_calloc(&memory, 4, sizeof *numbers);
  assert_non_null(numbers);
  for (uint32_t i = 0; i < 4; i++) {
    assert_int_equal(numbers[i], 0);
    numbers[i] = i;
  }
  assert_null(tm_memory_grow(&memory, numbers, 4, 100, sizeof *numbers));
  for (uint32_t i = 0; i < 4; i++) assert_int_equal(numbers[i], i);
  uint32_t *grown = tm_memory_grow(&memory, numbers, 4, 12, sizeof *numbers);
  assert_non_null(grown);
  for (uint32_t i = 0; i < 4; i++) assert_int_equal(grown[i], i);
  assert_int_equal(atomic_load(&memory.used_bytes), 48);
  tm_memory_free(&memory, grown, 48);
}

typedef struct stock {
  tm_memory memory;
  void     *kept;
  uint64_t  kept_bytes;
  uint32_t  calls;
} stock;

static void give_back(void *reclaim_context) {
  stock *own = reclaim_context;
  own->calls++;
  tm_memory_free(&own->memory, own->kept, own->kept_bytes);
  own->kept = NULL;
}

static void what_is_kept_yields(void **state) {
  (void)state;
  stock own = { .kept_bytes = 800 };
  tm_memory_init(&own.memory, 1000);
  own.kept = tm_memory_alloc(&own.memory, 800, 0);
  own.memory.reclaim = give_back;
  own.memory.reclaim_context = &own;
  assert_null(tm_memory_try_alloc(&own.memory, 500, 0));
  assert_int_equal(own.calls, 0);
  void *block = tm_memory_alloc(&own.memory, 500, 0);
  assert_non_null(block);
  assert_int_equal(own.calls, 1);
  assert_null(tm_memory_alloc(&own.memory, 600, 0));
  assert_int_equal(own.calls, 2);
  tm_memory_free(&own.memory, block, 500);
}

static void *no_alloc(void *context, uint64_t bytes, uint64_t alignment) {
  uint64_t *wanted = context;
  *wanted = bytes + alignment;
  return NULL;
}

static void a_failed_allocator_costs_nothing(void **state) {
  (void)state;
  uint64_t wanted = 0;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  memory.alloc = no_alloc;
  memory.context = &wanted;
  assert_null(tm_memory_alloc(&memory, 100, 64));
  assert_int_equal(wanted, 164);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
  tm_arena arena;
  tm_arena_init(&arena, &memory);
  assert_null(tm_arena_alloc(&arena, 1));
  assert_null(tm_arena_string(&arena, "x", 1));
  tm_arena_deinit(&arena);
}

static void arenas_hold_blocks_of_any_size(void **state) {
  (void)state;
  tm_memory memory;
  tm_memory_init(&memory, 0);
  tm_arena arena;
  tm_arena_init(&arena, &memory);
  unsigned char *blocks[300];
  for (uint32_t i = 0; i < 300; i++) {
    const uint64_t bytes = i % 50 == 49 ? 100000 : i;
    blocks[i] = tm_arena_alloc(&arena, bytes);
    assert_non_null(blocks[i]);
    assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
    memset(blocks[i], (int)(i & 0xff), (size_t)bytes);
  }
  for (uint32_t i = 1; i < 300; i++)
    for (uint64_t b = 0; b < (i % 50 == 49 ? 100000 : i); b++) assert_int_equal(blocks[i][b], i & 0xff);
  const unsigned char *zeros = tm_arena_calloc(&arena, 100, 8);
  for (int i = 0; i < 800; i++) assert_int_equal(zeros[i], 0);
  assert_string_equal(tm_arena_string(&arena, "words that end here", 5), "words");
  assert_string_equal(tm_arena_string(&arena, NULL, 0), "");
  assert_null(tm_arena_calloc(&arena, UINT64_MAX / 4, 8));
  assert_null(tm_arena_alloc(&arena, UINT64_MAX));
  tm_arena_deinit(&arena);
  assert_int_equal(atomic_load(&memory.used_bytes), 0);
}

static void sizes_do_not_wrap(void **state) {
  (void)state;
  uint64_t result = 7;
  assert_false(tm_checked_add(UINT64_MAX, 1, &result));
  assert_false(tm_checked_mul(UINT64_C(1) << 32, UINT64_C(1) << 32, &result));
  assert_false(tm_checked_round_up(UINT64_MAX, 2, &result));
  assert_int_equal(result, 7);
  assert_true(tm_checked_add(UINT64_MAX - 1, 1, &result));
  assert_true(result == UINT64_MAX);
  assert_true(tm_checked_round_up(10, 4, &result));
  assert_int_equal(result, 12);
  assert_true(tm_checked_round_up(12, 3, &result));
  assert_int_equal(result, 12);
  assert_true(tm_checked_round_up(UINT64_MAX, 5, &result));     /* which divides it */
  assert_int_equal(tm_divide_up(10, 4), 3);
  assert_true(tm_divide_up(UINT64_MAX, 2) == UINT64_C(1) << 63);
  assert_int_equal(tm_divide_up(0, 4), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(allocations_are_aligned_and_counted),
    cmocka_unit_test(addresses_tell_their_alignment),
    cmocka_unit_test(nothing_is_a_block_too),
    cmocka_unit_test(a_peak_of_its_own),
    cmocka_unit_test(only_want_of_memory_names_the_limit),
    cmocka_unit_test(the_limit_holds_to_the_byte),
    cmocka_unit_test(absurd_sizes_give_nothing),
    cmocka_unit_test(growing_keeps_the_content),
    cmocka_unit_test(what_is_kept_yields),
    cmocka_unit_test(a_failed_allocator_costs_nothing),
    cmocka_unit_test(arenas_hold_blocks_of_any_size),
    cmocka_unit_test(sizes_do_not_wrap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
