/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of small operations over accelerators that do as they are told: who takes part, and what happens when one fails,
   or the work does, or whoever wanted it goes. */
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "fakes/fake_case.h"

#include "api/context.h"
#include "base/error.h"
#include "execute/work_stream.h"
#include "tensor/shape.h"

#define PIECES 200u
#define MOST_PIECES 2000u
#define ELEMENTS 256u
#define PIECE_BYTES (ELEMENTS * sizeof(float))
#define LONG_NS UINT64_C(300000)

static const tm_identity silicon = { { 7 } };

/* y = -x in PIECES pieces; what goes wrong, and when. */
typedef struct stream_case {
  fake_case        fakes;
  float            x[MOST_PIECES][ELEMENTS];
  uint32_t         done[MOST_PIECES];   /* how often */
  uint32_t         count;               /* of pieces */
  _Atomic uint32_t issued;
  _Atomic uint32_t finished;
  uint32_t         notes;
  _Atomic uint32_t retries;
  uint32_t         copies;              /* the first of them copy instead */
  uint32_t         await_in_launch;     /* waits until the helper has that many launches at once */
  uint32_t         at;                  /* pieces done when this happens: */
  fake_control    *breaks;              /* it fails from then on */
  bool             waits_for_helper;
  uint32_t         stop_next, stop_load, stop_done, stop_advance, cancel;
  _Atomic uint32_t cancelled;
  tm_work_stream_report report;
  tm_error         error;
} stream_case;

static tm_status next(void *context, tm_work_stream_piece *piece, tm_error *error) {
  stream_case *one = context;
  if (one->stop_next != 0 && one->issued == one->stop_next) return tm_fail(error, TM_ERROR_IO, "no next");
  if (one->issued == one->count) return TM_END;
  const uint64_t elements = ELEMENTS;
  memset(&piece->request, 0, sizeof piece->request);
  piece->request.op = one->issued < one->copies ? TM_OP_COPY : TM_OP_NEG;
  piece->request.version = 1;
  piece->request.only_device = TM_ANY_DEVICE;
  piece->request.input_count = piece->request.output_count = 1;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(tm_operand_contiguous(TM_FORMAT_F32, 1, &elements, &piece->request.operands[i], error), TM_OK);
    piece->request.operands[i].alignment = 4;
  }
  piece->bytes = PIECE_BYTES;
  piece->begin = one->issued++;
  return TM_OK;
}

static tm_status load(void *context, const tm_work_stream_piece *piece, tm_work_stream_room *room, void **pointers, tm_error *error) {
  stream_case *one = context;
  if (one->stop_load != 0 && piece->begin == one->stop_load) return tm_fail(error, TM_ERROR_IO, "no data");
  pointers[0] = tm_work_stream_room_take(room, PIECE_BYTES);
  if (pointers[0] == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no room");
  memcpy(pointers[0], one->x[piece->begin], PIECE_BYTES);
  return TM_OK;
}

static tm_status done(void *context, const tm_work_stream_piece *piece, const void *result, const tm_run_outcome *outcome, tm_error *error) {
  stream_case *one = context;
  const float *y = result, sign = piece->request.op == TM_OP_NEG ? -1 : 1;
  for (uint32_t i = 0; i < ELEMENTS; i++) assert_true(y[i] == sign * one->x[piece->begin][i]);
  one->retries += outcome->retries;
  one->done[piece->begin]++;
  one->finished++;
  if (one->at != 0 && one->finished >= one->at && one->breaks != NULL) atomic_store(&one->breaks->launch_status, TM_ERROR_INTERNAL);
  if (one->at != 0 && one->finished == one->at && one->cancel) atomic_store(&one->cancelled, 1);
  return one->stop_done != 0 && one->finished == one->stop_done ? tm_fail(error, TM_ERROR_LIMIT, "no more") : TM_OK;
}

static tm_status advance(void *context, tm_error *error) {
  stream_case *one = context;
  /* On a busy machine a thread starts late: the caller's own lane waits for it, as long as it takes. */
  const fake_control *helper = &one->fakes.controls[1];
  const bool is_unhelped = atomic_load(&helper->launches) == 0;
  for (uint32_t i = 0; one->waits_for_helper && one->finished >= one->copies + 20 && atomic_load(&helper->launches) == 0 && i < 5000; i++)
    (void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  if (!is_unhelped && atomic_load(&helper->most_in_launch) < one->await_in_launch)
    (void)nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
  return one->stop_advance != 0 && one->issued >= one->stop_advance ? tm_fail(error, TM_ERROR_CORRUPT, "no row") : TM_OK;
}

static void note(void *context, const char *text) {
  stream_case *one = context;
  assert_non_null(strstr(text, "helps no more"));
  one->notes++;
}

static void prepare(stream_case *one, uint64_t helper_ns) {
  memset(one, 0, sizeof *one);
  one->count = PIECES;
  for (uint32_t i = 0; i < MOST_PIECES; i++)
    for (uint32_t j = 0; j < ELEMENTS; j++) one->x[i][j] = (float)(i * ELEMENTS + j + 1);
  one->fakes.controls[0].cost_ns = one->fakes.controls[0].real_ns = LONG_NS;
  one->fakes.controls[1].cost_ns = one->fakes.controls[1].real_ns = helper_ns;
}

static tm_status run(stream_case *one, bool is_strict) {
  tm_runner runner = one->fakes.context->runner;
  runner.is_strict = is_strict;
  runner.cancelled = &one->cancelled;
  one->error.struct_size = sizeof one->error;
  const tm_work_stream_source source = { .context = one, .bytes_total = one->count * PIECE_BYTES, .result_bytes = PIECE_BYTES,
                                         .next = next, .load = load, .done = done, .advance = advance, .note = note };
  return tm_work_stream_run(&runner, &source, &one->report, &one->error);
}

static void assert_whole(const stream_case *one) {
  for (uint32_t i = 0; i < one->count; i++) assert_int_equal(one->done[i], 1);
}

static void two_devices_share(void **state) {
  static stream_case one;
  (void)state;
  prepare(&one, LONG_NS + LONG_NS / 10);
  one.waits_for_helper = true;
  fake_case_open(&one.fakes, "ab", "reference");
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
  fake_case_open(&one.fakes, "ab", "reference");
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
  fake_case_open(&one.fakes, "ab", "reference");
  if (run(&one, false) != TM_OK) fail_msg("%s", one.error.text);
  assert_whole(&one);
  assert_true(atomic_load(&one.fakes.controls[1].launches) != 0);
  fake_case_close(&one.fakes);
}

/* Memory that is reachable for ever: what a device that hangs may still touch is never given back. */
typedef struct kept_block {
  _Alignas(64) struct kept_block *next;
} kept_block;
static _Atomic(kept_block *) kept_blocks;

static void *keep_alloc(void *context, uint64_t bytes, uint64_t alignment) {
  (void)context;
  const uint64_t ahead = alignment > sizeof(kept_block) ? alignment : sizeof(kept_block);
  char *memory = aligned_alloc(ahead, (ahead + bytes + ahead - 1) / ahead * ahead);
  if (memory == NULL) return NULL;
  kept_block *block = (kept_block *)(void *)(memory + ahead - sizeof *block);
  kept_block *first = atomic_load(&kept_blocks);
  do block->next = first;
  while (!atomic_compare_exchange_weak(&kept_blocks, &first, block));
  return memory + ahead;
}

static void keep_free(void *context, void *memory, uint64_t bytes) {
  (void)context;
  if (memory != NULL) memset(memory, 0xdd, (size_t)bytes);      /* who uses it afterwards finds this */
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
    one->fakes.patience_ns = 100000000;
    one->fakes.alloc = keep_alloc;
    one->fakes.free = keep_free;
    fake_control *hanging = &one->fakes.controls[who];
    hanging->is_asynchronous = 1;
    hanging->hang_at = 12;
    fake_case_open(&one->fakes, "ab", "reference");
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
  fake_case_open(&one.fakes, "ab", "reference");
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
  fake_case_open(&one.fakes, "ab", "reference");
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
      fake_case_open(&one.fakes, "ab", who == 2 ? NULL : "reference");
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
  fake_case_open(&one.fakes, "ab", "reference");
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
      fake_case_open(&one.fakes, "ab", "reference");
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
  fake_case_open(&one.fakes, "ab", "reference");
  assert_int_equal(run(&one, false), TM_ERROR_CANCELLED);
  assert_true(one.finished < 30);
  fake_case_close(&one.fakes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(two_devices_share), cmocka_unit_test(memory_of_its_own_gets_two_lanes),
    cmocka_unit_test(mixed_work_finds_who_suits_it), cmocka_unit_test(a_hang_ends_it_and_frees_nothing), cmocka_unit_test(one_silicon_is_one_lane), cmocka_unit_test(set_up_for_too_little_is_not_paid),
    cmocka_unit_test(failures_lose_nothing), cmocka_unit_test(strict_streams_fail), cmocka_unit_test(work_that_fails_ends_it),
    cmocka_unit_test(cancelled_streams_end),
  };
  return cmocka_run_group_tests_name("work_stream", tests, NULL, NULL);
}
