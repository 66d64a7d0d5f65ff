/* SPDX-License-Identifier: Apache-2.0 */
/* stream_case.h - a stream of small negations over accelerators that do as they are told.  Whoever includes it asks for POSIX. */
#ifndef TM_TESTS_STREAM_CASE_H
#define TM_TESTS_STREAM_CASE_H

#include <pthread.h>
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
#define HELPER_LOADS 30u

static const tm_identity silicon = { { 7 } };

/* y = -x in PIECES pieces; what goes wrong, and when. */
typedef struct stream_case {
  fake_case        fakes;
  float            x[MOST_PIECES][ELEMENTS];
  uint32_t         done[MOST_PIECES];   /* how often */
  uint32_t         device[MOST_PIECES];
  uint8_t          by_caller[MOST_PIECES];      /* 1: on the thread that runs the stream */
  pthread_t        caller;
  fake_control    *helper;
  _Atomic bool     is_helped;           /* another thread took a piece */
  uint32_t         count;               /* of pieces */
  _Atomic uint32_t issued;
  _Atomic uint32_t finished;
  uint32_t         notes;
  uint32_t         batch_notes;         /* that pieces run one by one */
  _Atomic uint32_t retries;
  uint64_t         small_bytes;
  uint32_t         copies;              /* the first of them copy instead */
  uint32_t         await_in_launch;     /* waits until the helper has that many launches at once */
  uint32_t         at;                  /* pieces done when this happens: */
  fake_control    *breaks;              /* it fails from then on */
  bool             waits_for_helper;
  bool             is_lenient;          /* results may be wrong: */
  uint32_t         wrong;               /* how many were */
  bool             helper_lacks_room;   /* to load anything, but for its first pieces */
  _Atomic uint32_t helper_loads;
  uint32_t         stop_next, stop_load, stop_done, stop_advance, cancel;
  _Atomic uint32_t cancelled;
  tm_work_stream_report report;
  tm_error         error;
} stream_case;

static inline tm_status next(void *context, tm_work_stream_piece *piece, tm_error *error) {
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

static inline tm_status load(void *context, const tm_work_stream_piece *piece, tm_work_stream_room *room, void **pointers, tm_error *error) {
  stream_case *one = context;
  one->by_caller[piece->begin] = pthread_equal(pthread_self(), one->caller) != 0;
  if (!one->by_caller[piece->begin]) one->is_helped = true;
  if (one->stop_load != 0 && piece->begin == one->stop_load) return tm_fail(error, TM_ERROR_IO, "no data");
  const bool is_short = one->helper_lacks_room && !one->by_caller[piece->begin] && one->helper_loads++ >= HELPER_LOADS;
  if (is_short) return tm_fail(error, TM_ERROR_NO_MEMORY, "no room for a helper");
  pointers[0] = tm_work_stream_room_take(room, PIECE_BYTES);
  if (pointers[0] == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no room");
  memcpy(pointers[0], one->x[piece->begin], PIECE_BYTES);
  return TM_OK;
}

static inline tm_status done(void *context, const tm_work_stream_piece *piece, const void *result, const tm_run_outcome *outcome, tm_error *error) {
  stream_case *one = context;
  const float *y = result, sign = piece->request.op == TM_OP_NEG ? -1 : 1;
  bool is_right = true;
  for (uint32_t i = 0; i < ELEMENTS; i++) is_right &= y[i] == sign * one->x[piece->begin][i];
  assert_true(is_right || one->is_lenient);
  one->wrong += !is_right;
  one->retries += outcome->retries;
  one->done[piece->begin]++;
  one->device[piece->begin] = outcome->device;
  one->finished++;
  if (one->at != 0 && one->finished >= one->at && one->breaks != NULL) atomic_store(&one->breaks->launch_status, TM_ERROR_INTERNAL);
  if (one->at != 0 && one->finished == one->at && one->cancel) atomic_store(&one->cancelled, 1);
  return one->stop_done != 0 && one->finished == one->stop_done ? tm_fail(error, TM_ERROR_LIMIT, "no more") : TM_OK;
}

static inline tm_status advance(void *context, tm_error *error) {
  stream_case *one = context;
  /* On a busy machine a thread starts late: the caller's own lane waits for it once, for as long as that may take. */
  const fake_control *helper = one->helper;
  const bool is_unhelped = !one->is_helped, must_wait = one->waits_for_helper && one->finished >= one->copies + 20;
  for (uint32_t i = 0; must_wait && !one->is_helped && i < 10000; i++) (void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  if (must_wait) one->waits_for_helper = false;
  if (!is_unhelped && atomic_load(&helper->most_in_launch) < one->await_in_launch)
    (void)nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
  return one->stop_advance != 0 && one->issued >= one->stop_advance ? tm_fail(error, TM_ERROR_CORRUPT, "no row") : TM_OK;
}

static inline void note(void *context, const char *text) {
  stream_case *one = context;
  const bool is_lane = strstr(text, "helps no more") != NULL;
  assert_true(is_lane || strstr(text, "one by one from now on") != NULL);
  if (is_lane) one->notes++;
  else one->batch_notes++;
}

static inline void prepare(stream_case *one, uint64_t helper_ns) {
  memset(one, 0, sizeof *one);
  one->count = PIECES;
  one->helper = &one->fakes.controls[1];
  for (uint32_t i = 0; i < MOST_PIECES; i++)
    for (uint32_t j = 0; j < ELEMENTS; j++) one->x[i][j] = (float)(i * ELEMENTS + j + 1);
  one->fakes.controls[0].cost_ns = one->fakes.controls[0].real_ns = LONG_NS;
  one->fakes.controls[1].cost_ns = one->fakes.controls[1].real_ns = helper_ns;
}

/* With prices as they are declared, so that who is where does not depend on how busy the machine is. */
static inline void open_stream(stream_case *one, const char *letters, const char *excluded) {
  fake_case_open(&one->fakes, letters, excluded);
  atomic_store(&one->fakes.context->correction.is_frozen, true);
}

static inline tm_status run(stream_case *one, bool is_strict) {
  tm_runner runner = one->fakes.context->runner;
  runner.is_strict = is_strict;
  runner.cancelled = &one->cancelled;
  one->error.struct_size = sizeof one->error;
  one->caller = pthread_self();
  const tm_work_stream_source source = { .context = one, .bytes_total = one->count * PIECE_BYTES, .result_bytes = PIECE_BYTES,
                                         .small_bytes = one->small_bytes,
                                         .next = next, .load = load, .done = done, .advance = advance, .note = note };
  return tm_work_stream_run(&runner, &source, &one->report, &one->error);
}

static inline void assert_whole(const stream_case *one) {
  for (uint32_t i = 0; i < one->count; i++) assert_int_equal(one->done[i], 1);
}

/* Memory that is reachable for ever: what a device that hangs may still touch is never given back. */
typedef struct kept_block {
  _Alignas(64) struct kept_block *next;
} kept_block;
static _Atomic(kept_block *) kept_blocks;

static inline void *keep_alloc(void *context, uint64_t bytes, uint64_t alignment) {
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

static inline void keep_free(void *context, void *memory, uint64_t bytes) {
  (void)context;
  if (memory != NULL) memset(memory, 0xdd, (size_t)bytes);      /* who uses it afterwards finds this */
}

#endif
