/* SPDX-License-Identifier: Apache-2.0 */
/* work_stream_batch.c - small pieces of a stream, many at once. */
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "execute/work_stream_state.h"

/* As many at once as take about so long. */
#define FIRST_MOST 8u
#define SHORT_NS UINT64_C(2500000)
#define LONG_NS UINT64_C(10000000)

/* One piece in so many runs by itself, so that its device's prices stay true. */
#define ALONE_ONE_IN 16u

static bool is_small(const tm_work_stream *stream, const tm_work_stream_entry *entry) {
  return entry->piece.bytes <= stream->work->small_bytes;
}

static bool is_for_batch(tm_work_stream_lane *lane, const tm_work_stream_entry *first) {
  const tm_work_stream *stream = lane->stream;
  if (!is_small(stream, first) || first->piece.bytes == 0 || stream->work->deliver != NULL) return false;
  if (!tm_batch_is_wanted(stream->runner->table->market.inventory)) return false;
  return lane->batch == NULL || (!lane->batch->has_failed && ++lane->batch->batch_count % ALONE_ONE_IN != 0);
}

static bool open_batch(tm_work_stream_lane *lane) {
  tm_work_stream *stream = lane->stream;
  if (lane->batch != NULL) return true;
  lane->batch = tm_memory_calloc(stream->runner->table->memory, 1, sizeof *lane->batch);
  if (lane->batch == NULL) return false;
  tm_batch_init(&lane->batch->runs, stream->runner);
  lane->batch->most = FIRST_MOST;
  tm_mutex_lock(&stream->lock);
  for (uint32_t i = 0; i < TM_BATCH_MOST; i++) stream->spare[stream->spare_count++] = &lane->batch->pool[i];
  tm_mutex_unlock(&stream->lock);
  return true;
}

/* Under the lock: of the window, the first small one that is worth the lane's while on top of what it has; window_count: none. */
static uint32_t find_small(const tm_work_stream_lane *lane, tm_pull_offer *inout_sum) {
  const tm_work_stream *stream = lane->stream;
  for (uint32_t i = 0; i < stream->window_count; i++) {
    if (!is_small(stream, stream->window[i])) continue;
    if (lane->device == NULL) return i;                 /* the caller takes what there is */
    const tm_pull_offer *offer = tm_work_stream_offer_of(lane, stream->window[i]->kind);
    if (offer == NULL || offer->own_ns == TM_PULL_NEVER) continue;
    const tm_pull_offer sum = { inout_sum->own_ns + offer->own_ns, offer->setup_ns, offer->is_measured };
    if (!tm_pull_is_worth(&stream->pull, lane->index, &sum)) continue;
    *inout_sum = sum;
    return i;
  }
  return stream->window_count;
}

/* Takes more small pieces for the lane, beside the first. */
static void take_more(tm_work_stream_lane *lane) {
  tm_work_stream *stream = lane->stream;
  tm_work_stream_batch *batch = lane->batch;
  uint64_t bytes = batch->taken[0]->piece.bytes;
  const tm_pull_offer *first = tm_work_stream_offer_of(lane, batch->taken[0]->kind);
  tm_pull_offer sum = first == NULL ? (tm_pull_offer){ 0, 0, false } : *first;
  tm_mutex_lock(&stream->lock);
  while (batch->taken_count < batch->most && bytes < TM_BATCH_BYTES) {
    tm_work_stream_fill(stream);
    const uint32_t index = stream->is_over ? stream->window_count : find_small(lane, &sum);
    if (index == stream->window_count) break;
    tm_work_stream_entry *entry = tm_work_stream_take(stream, index);
    batch->taken[batch->taken_count++] = entry;
    bytes += entry->piece.bytes;
  }
  tm_mutex_unlock(&stream->lock);
}

static bool add(tm_work_stream_lane *lane, const tm_work_stream_entry *entry) {
  tm_work_stream *stream = lane->stream;
  tm_request own = entry->piece.request;
  if (lane->device != NULL) own.only_device = lane->device->index;
  else if (tm_work_stream_suits_home(stream, &own)) own.only_device = stream->home;
  return tm_batch_add(&lane->batch->runs, &own);
}

/* Those that may not join are in out_rest. */
static void gather(tm_work_stream_lane *lane, tm_work_stream_rest *out_rest) {
  tm_work_stream_batch *batch = lane->batch;
  const uint32_t count = batch->taken_count;
  batch->taken_count = 1;
  for (uint32_t i = 1; i < count; i++) {
    tm_work_stream_entry *entry = batch->taken[i];
    if (add(lane, entry)) batch->taken[batch->taken_count++] = entry;
    else out_rest->entries[out_rest->count++] = entry;
  }
}

static tm_status load(tm_work_stream_lane *lane, tm_error *error) {
  tm_work_stream_batch *batch = lane->batch;
  void *pointers[TM_MAX_OPERANDS];
  for (uint32_t i = 0; i < batch->taken_count; i++) {
    TM_TRY(tm_work_stream_load(lane, &batch->taken[i]->piece, pointers, error));
    tm_batch_put(&batch->runs, i, pointers);
  }
  return TM_OK;
}

static void adapt(tm_work_stream_batch *batch) {
  const uint64_t taken_ns = batch->runs.taken_ns;
  if (taken_ns > LONG_NS && batch->most > 1) batch->most /= 2;
  if (taken_ns < SHORT_NS && batch->taken_count == batch->most && batch->most < TM_BATCH_MOST) batch->most *= 2;
}

static void finish(tm_work_stream_lane *lane, uint64_t begin_ns) {
  tm_work_stream *stream = lane->stream;
  tm_work_stream_batch *batch = lane->batch;
  const uint64_t taken_ns = (tm_now_ns() - begin_ns) / batch->taken_count;
  adapt(batch);
  if (lane->device == NULL) tm_work_stream_recruit(stream, &batch->taken[0]->piece, batch->runs.device->index);
  tm_mutex_lock(&stream->lock);
  for (uint32_t i = 0; i < batch->taken_count; i++) {
    tm_run_outcome outcome;
    tm_batch_outcome(&batch->runs, i, &outcome);
    tm_work_stream_learn_offer(lane, batch->taken[i], &outcome);
    tm_work_stream_finish(stream, lane->index, batch->taken[i], tm_batch_result(&batch->runs, i, 0), &outcome, taken_ns);
  }
  tm_mutex_unlock(&stream->lock);
}

/* That is no fault: a run by itself needs less. */
static bool lacks_room(tm_status status) { return status == TM_ERROR_NO_MEMORY || status == TM_BUSY; }

/* Each runs by itself, now and later, which tells who is at fault and finds somebody else. */
static void fall_back(tm_work_stream_lane *lane, tm_status status, const tm_error *error, tm_work_stream_rest *out_rest) {
  tm_work_stream *stream = lane->stream;
  tm_work_stream_batch *batch = lane->batch;
  char note[sizeof error->text];
  batch->has_failed = true;
  for (uint32_t i = 0; i < batch->taken_count; i++) out_rest->entries[out_rest->count++] = batch->taken[i];
  if (lacks_room(status)) return;
  snprintf(note, sizeof note, "%s: small pieces run one by one from now on: %.400s", batch->runs.device->name, error->text);
  tm_mutex_lock(&stream->lock);
  stream->work->note(stream->work->context, note);
  tm_mutex_unlock(&stream->lock);
}

static tm_status run_batch(tm_work_stream_lane *lane, tm_work_stream_rest *out_rest, tm_error *error) {
  const uint64_t begin = tm_now_ns();
  tm_error own = TM_ERROR_INIT;
  tm_status status = load(lane, &own);
  const bool is_loaded = status == TM_OK;
  if (is_loaded) status = tm_batch_run(&lane->batch->runs, &own);
  const bool is_last_word = !is_loaded || status == TM_ERROR_CANCELLED || lane->stream->runner->is_strict;
  if (status != TM_OK && is_last_word && !lacks_room(status))
    return tm_fail_native(error, is_loaded ? tm_runner_told_status(lane->stream->runner, status) : status, own.native_code, "%s",
                          own.text);
  if (status == TM_OK) finish(lane, begin);
  else fall_back(lane, status, &own, out_rest);
  return TM_OK;
}

tm_status tm_work_stream_run_together(tm_work_stream_lane *lane, tm_work_stream_entry *first, tm_work_stream_rest *out_rest,
                                      tm_error *error) {
  out_rest->entries[0] = first;
  out_rest->count = 1;
  if (!is_for_batch(lane, first) || !open_batch(lane) || !add(lane, first)) return TM_OK;
  tm_work_stream_batch *batch = lane->batch;
  batch->taken[0] = first;
  batch->taken_count = 1;
  take_more(lane);
  out_rest->count = 0;
  gather(lane, out_rest);
  const tm_status status = run_batch(lane, out_rest, error);
  tm_batch_clear(&batch->runs);
  return status;
}
