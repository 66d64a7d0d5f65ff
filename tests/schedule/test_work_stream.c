/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of small operations over accelerators that do as they are told: who takes part, and what happens when one fails,
   or the work does, or whoever wanted it goes. */
#define _POSIX_C_SOURCE 200809L
#include "schedule/stream_case.h"

static void two_devices_share(void **state) {
  static stream_case one;
  (void)state;
  prepare(&one, LONG_NS + LONG_NS / 10);
  one.waits_for_helper = true;
  open_stream(&one, "ab", "reference");
  if (run(&one, false) != TM_OK) fail_msg("%s", one.error.text);
  assert_whole(&one);
  assert_int_equal(one.report.lane_count, 2);
  assert_true(one.report.bound_ns != 0 && one.report.elapsed_ns != 0);
  assert_true(atomic_load(&one.fakes.controls[1].launches) != 0);
  fake_case_close(&one.fakes);
}

/* One piece is copied while the other is computed. */
static void memory_of_its_own_gets_two_lanes(void **state) {
  static stream_case one;
  (void)state;
  prepare(&one, LONG_NS + LONG_NS / 10);
  one.waits_for_helper = true;
  one.await_in_launch = 2;
  one.count = MOST_PIECES;
  one.fakes.controls[1].memory = silicon;
  open_stream(&one, "ab", "reference");
  if (run(&one, false) != TM_OK) fail_msg("%s", one.error.text);
  assert_whole(&one);
  assert_int_equal(atomic_load(&one.fakes.controls[1].most_in_launch), 2);
  fake_case_close(&one.fakes);
}

/* What comes first does not suit the helper, so it waits for what does. */
static void mixed_work_finds_who_suits_it(void **state) {
  static stream_case one;
  (void)state;
  prepare(&one, LONG_NS + LONG_NS / 10);
  one.waits_for_helper = true;
  one.copies = 40;
  one.fakes.controls[1].only_op = TM_OP_NEG;
  open_stream(&one, "ab", "reference");
  if (run(&one, false) != TM_OK) fail_msg("%s", one.error.text);
  assert_whole(&one);
  assert_true(atomic_load(&one.fakes.controls[1].launches) != 0);
  fake_case_close(&one.fakes);
}

/* A device that works in the host's memory and does not come back may still use what it was given: nothing of that is freed, and
   the stream ends, since what its pieces lie in may go with whoever wanted them. */
static void a_hang_ends_it_and_frees_nothing(void **state) {
  static stream_case cases[2];
  (void)state;
  for (uint32_t who = 0; who < 2; who++) {
    stream_case *one = &cases[who];
    prepare(one, LONG_NS + LONG_NS / 10);
    one->waits_for_helper = true;
    one->count = MOST_PIECES;
    one->fakes.patience_ns = 800000000;
    one->fakes.alloc = keep_alloc;
    one->fakes.free = keep_free;
    fake_control *hanging = &one->fakes.controls[who];
    hanging->is_asynchronous = 1;
    hanging->hang_at = 12;
    open_stream(one, "ab", "reference");
    assert_int_equal(run(one, false), TM_ERROR_INTERNAL);
    assert_non_null(strstr(one->error.text, "may still use"));
    assert_non_null(hanging->held_input);
    const float *input = hanging->held_input, *output = hanging->held_output;
    assert_true(input[0] >= 1 && output[0] == -input[0]);       /* as they were: nobody else got them, and they were not freed */
    fake_case_close(&one->fakes);
    assert_true(input[0] >= 1 && output[0] == -input[0]);
  }
}

static void one_silicon_is_one_lane(void **state) {
  static stream_case one;
  (void)state;
  prepare(&one, LONG_NS + LONG_NS / 10);
  one.fakes.controls[0].resource = one.fakes.controls[1].resource = silicon;
  open_stream(&one, "ab", "reference");
  assert_int_equal(run(&one, false), TM_OK);
  assert_whole(&one);
  assert_int_equal(one.report.lane_count, 1);
  fake_case_close(&one.fakes);
}

static void set_up_for_too_little_is_not_paid(void **state) {
  static stream_case one;
  (void)state;
  prepare(&one, LONG_NS / 10);
  one.fakes.controls[1].setup_ns = UINT64_C(100000000000000);   /* a day: no delay makes that worth it */
  open_stream(&one, "ab", "reference");
  assert_int_equal(run(&one, false), TM_OK);
  assert_whole(&one);
  assert_int_equal(atomic_load(&one.fakes.controls[1].launches), 0);
  fake_case_close(&one.fakes);
}

/* At any moment: the helper fails, the caller's device fails, or both do and the last resort is left. */
static void failures_lose_nothing(void **state) {
  static const uint32_t moments[] = { 1, 2, 7, 50, PIECES - 1 };
  static stream_case one;
  (void)state;
  for (uint32_t m = 0; m < sizeof moments / sizeof moments[0]; m++)
    for (uint32_t who = 0; who < 3; who++) {
      prepare(&one, LONG_NS + LONG_NS / 10);
      one.at = moments[m];
      one.breaks = &one.fakes.controls[who % 2];
      if (who == 2) atomic_store(&one.fakes.controls[1].launch_status, TM_ERROR_INTERNAL);
      open_stream(&one, "ab", who == 2 ? NULL : "reference");
      if (run(&one, false) != TM_OK) fail_msg("at %u, %u fails: %s", moments[m], who, one.error.text);
      assert_whole(&one);
      assert_true(one.notes <= 2);
      if (who < 2 && one.at + 20 < PIECES) assert_true(one.notes + one.retries != 0);    /* never silent */
      fake_case_close(&one.fakes);
    }
}

static void strict_streams_fail(void **state) {
  static stream_case one;
  (void)state;
  prepare(&one, LONG_NS + LONG_NS / 10);
  atomic_store(&one.fakes.controls[1].launch_status, TM_ERROR_INTERNAL);
  one.waits_for_helper = true;
  open_stream(&one, "ab", "reference");
  assert_int_equal(run(&one, true), TM_ERROR_INTERNAL);
  fake_case_close(&one.fakes);
}

static void work_that_fails_ends_it(void **state) {
  static const tm_status expected[] = { TM_ERROR_IO, TM_ERROR_IO, TM_ERROR_LIMIT, TM_ERROR_CORRUPT };
  static const char *const texts[] = { "no next", "no data", "no more", "no row" };
  static stream_case one;
  (void)state;
  for (uint32_t i = 0; i < 4; i++)
    for (uint32_t at = 1; at <= PIECES; at = at * 5 + 1) {
      prepare(&one, LONG_NS + LONG_NS / 10);
      uint32_t *const stops[] = { &one.stop_next, &one.stop_load, &one.stop_done, &one.stop_advance };
      *stops[i] = at;
      open_stream(&one, "ab", "reference");
      assert_int_equal(run(&one, false), expected[i]);
      assert_string_equal(one.error.text, texts[i]);
      for (uint32_t p = 0; p < PIECES; p++) assert_true(one.done[p] <= 1);
      fake_case_close(&one.fakes);
    }
}

static void cancelled_streams_end(void **state) {
  static stream_case one;
  (void)state;
  prepare(&one, LONG_NS + LONG_NS / 10);
  one.at = 20;
  one.cancel = 1;
  open_stream(&one, "ab", "reference");
  assert_int_equal(run(&one, false), TM_ERROR_CANCELLED);
  assert_true(one.finished < 30);
  fake_case_close(&one.fakes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(two_devices_share), cmocka_unit_test(memory_of_its_own_gets_two_lanes),
    cmocka_unit_test(mixed_work_finds_who_suits_it), cmocka_unit_test(a_hang_ends_it_and_frees_nothing),
    cmocka_unit_test(one_silicon_is_one_lane), cmocka_unit_test(set_up_for_too_little_is_not_paid),
    cmocka_unit_test(failures_lose_nothing), cmocka_unit_test(strict_streams_fail), cmocka_unit_test(work_that_fails_ends_it),
    cmocka_unit_test(cancelled_streams_end),
  };
  return cmocka_run_group_tests_name("work_stream", tests, NULL, NULL);
}
