/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/work_stream.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"
#include "execute/work_stream_state.h"

/* How many times as long as anywhere else work may take where the caller's thread keeps to. */
#define HOME_ADVANTAGE 2u

void *tm_work_stream_room_take(tm_work_stream_room *room, uint64_t bytes) {
  if (room->block.memory == NULL || room->block.bytes < bytes) {
    tm_scratch_give(room->scratch, room->block);
    room->block = tm_scratch_take(room->scratch, bytes);
  }
  return room->block.memory;
}

/* ---- what the lanes share, under the lock ---- */

void tm_work_stream_fail(tm_work_stream *stream, tm_status status, const tm_error *error) {
  if (stream->status == TM_OK) {
    stream->status = status;
    stream->error = *error;
  }
  stream->is_over = true;
  tm_condition_wake_all(&stream->changed);
}

/* TM_PENDING: not before others are done. */
static tm_status add_next(tm_work_stream *stream) {
  tm_work_stream_entry *entry = stream->spare[stream->spare_count - 1];
  tm_error error = TM_ERROR_INIT;
  const tm_status status = stream->work->next(stream->work->context, &entry->piece, &error);
  if (status == TM_END) stream->is_at_end = true;
  if (status < 0) tm_work_stream_fail(stream, status, &error);
  if (status != TM_OK) return status;
  entry->kind = tm_request_hash(&entry->piece.request) | 1;
  stream->window[stream->window_count++] = entry;
  stream->spare_count--;
  return TM_OK;
}

void tm_work_stream_fill(tm_work_stream *stream) {
  const uint32_t most = stream->pull.lane_count > 1 ? TM_WORK_STREAM_WINDOW : 1;
  while (!stream->is_at_end && !stream->is_over && stream->window_count < most)
    if (add_next(stream) != TM_OK) return;
}

tm_work_stream_entry *tm_work_stream_take(tm_work_stream *stream, uint32_t index) {
  tm_work_stream_entry *entry = stream->window[index];
  stream->window_count--;
  memmove(&stream->window[index], &stream->window[index + 1], (stream->window_count - index) * sizeof *stream->window);
  stream->pull.bytes_left -= tm_min_u64(stream->pull.bytes_left, entry->piece.bytes);
  stream->in_flight++;
  return entry;
}

void tm_work_stream_give_back(tm_work_stream *stream, tm_work_stream_entry *entry) {
  memmove(&stream->window[1], &stream->window[0], stream->window_count * sizeof *stream->window);
  stream->window[0] = entry;
  stream->window_count++;
  stream->pull.bytes_left += entry->piece.bytes;
  stream->in_flight--;
  stream->given_back_count++;
  tm_condition_wake_all(&stream->changed);
}

void tm_work_stream_finish(tm_work_stream *stream, uint32_t lane, tm_work_stream_entry *entry, const void *result, const tm_run_outcome *outcome,
                      uint64_t taken_ns) {
  tm_error error = TM_ERROR_INIT;
  stream->pull.lanes[lane].bytes_done += entry->piece.bytes;
  stream->pull.lanes[lane].busy_ns += taken_ns;
  stream->in_flight--;
  const tm_status status = stream->work->done(stream->work->context, &entry->piece, result, outcome, &error);
  if (status != TM_OK) tm_work_stream_fail(stream, status, &error);
  stream->spare[stream->spare_count++] = entry;
  if (stream->pull.lane_count > 1) tm_condition_wake_all(&stream->changed);
}

tm_status tm_work_stream_load(tm_work_stream_lane *lane, tm_work_stream_piece *piece, void **out_pointers, tm_error *error) {
  const tm_work_stream_source *work = lane->stream->work;
  const uint64_t begin = tm_now_ns();
  const tm_status status = work->load(work->context, piece, &lane->room, out_pointers, error);
  piece->load_ns = tm_now_ns() - begin;
  out_pointers[piece->request.input_count] = lane->result;
  return status;
}

tm_status tm_work_stream_deliver(tm_work_stream_lane *lane, const tm_work_stream_piece *piece, void *const *pointers, tm_error *error) {
  const tm_work_stream_source *work = lane->stream->work;
  if (work->deliver == NULL) return TM_OK;
  const tm_status status = work->deliver(work->context, piece, &lane->room, pointers, error);
  lane->is_held = tm_work_stream_is_held(lane->stream, status);
  return status;
}

void tm_work_stream_blame(const tm_work_stream *stream, const tm_work_stream_piece *piece, tm_status status, tm_error *error) {
  if (stream->work->blame != NULL) stream->work->blame(stream->work->context, piece, status, error);
}

void tm_work_stream_lane_deinit(tm_work_stream_lane *lane) {
  if (lane->batch != NULL) tm_batch_deinit(&lane->batch->runs);
  tm_memory_free(lane->stream->runner->table->memory, lane->batch, sizeof *lane->batch);
  lane->batch = NULL;
  if (lane->is_held) return;
  tm_scratch_give(lane->room.scratch, lane->room.block);
  tm_memory_free(lane->stream->runner->table->memory, lane->result, lane->stream->work->result_bytes);
}

/* ---- the caller's thread ---- */

bool tm_work_stream_is_cancelled(const tm_work_stream *stream) {
  return stream->runner->cancelled != NULL && atomic_load_explicit(stream->runner->cancelled, memory_order_relaxed) != 0;
}

/* The oldest piece.  TM_PENDING: another lane, or a row, has to get done first; TM_END: all is done. */
static tm_status take_oldest(tm_work_stream *stream, tm_work_stream_entry **out_entry) {
  tm_status status = TM_OK;
  tm_mutex_lock(&stream->lock);
  tm_work_stream_fill(stream);
  if (stream->is_over) {
    status = stream->status;
  } else if (stream->window_count != 0) {
    *out_entry = tm_work_stream_take(stream, 0);
  } else if (stream->in_flight != 0) {
    (void)tm_condition_wait(&stream->changed, &stream->lock, UINT64_MAX);
    status = TM_PENDING;
  } else {
    status = stream->is_at_end ? TM_END : TM_PENDING;
  }
  tm_mutex_unlock(&stream->lock);
  return status;
}

/* Whether some device may still use what one of the lanes was given. */
bool tm_work_stream_is_held(const tm_work_stream *stream, tm_status status) {
  const tm_inventory *inventory = stream->runner->table->market.inventory;
  if (status != TM_ERROR_INTERNAL) return false;
  for (uint32_t i = 0; i < inventory->device_count; i++)
    if (atomic_load(&inventory->devices[i]->is_stuck) || atomic_load(&inventory->devices[i]->unfinished_count) != 0) return true;
  return false;
}

/* ---- where the caller's own pieces run ---- */

static bool has_helpers(tm_work_stream *stream) {
  bool any = false;
  tm_mutex_lock(&stream->lock);
  for (uint32_t i = 1; i < stream->pull.lane_count && !any; i++) any = !stream->pull.lanes[i].is_gone;
  tm_mutex_unlock(&stream->lock);
  return any;
}

/* While there are helpers the caller's thread keeps to one device, so that it does not wait for theirs; but not for work that
   this one is far worse at. */
bool tm_work_stream_suits_home(tm_work_stream *stream, const tm_request *request) {
  if (stream->home == TM_ANY_DEVICE || request->only_device != TM_ANY_DEVICE) return false;
  if (!has_helpers(stream)) {
    stream->home = TM_ANY_DEVICE;
    return false;
  }
  tm_request own = *request;
  own.only_device = stream->home;
  const _Atomic uint32_t *cancelled = stream->runner->cancelled;
  tm_quote here, best;
  if (tm_placement_quote(stream->runner->table, &own, cancelled, &here, NULL) != TM_OK || here.total_ns == UINT64_MAX) return false;
  if (tm_placement_quote(stream->runner->table, request, cancelled, &best, NULL) != TM_OK) return false;
  return here.total_ns / HOME_ADVANTAGE <= best.total_ns;
}

/* What failed at home is made good elsewhere, and told of like any other fallback. */
static tm_status run_at_home(tm_work_stream *stream, const tm_request *request, void *const *pointers, tm_run_outcome *out_outcome,
                             tm_error *error) {
  tm_error first = TM_ERROR_INIT;
  if (!tm_work_stream_suits_home(stream, request)) return tm_runner_run(stream->runner, request, pointers, out_outcome, error);
  tm_request own = *request;
  own.only_device = stream->home;
  const tm_status status = tm_runner_run(stream->runner, &own, pointers, out_outcome, &first);
  if (status == TM_OK) return TM_OK;
  if (status == TM_ERROR_CANCELLED || stream->runner->is_strict || tm_work_stream_is_held(stream, status)) {
    *error = first;
    return status;
  }
  stream->home = TM_ANY_DEVICE;
  TM_TRY(tm_runner_run(stream->runner, request, pointers, out_outcome, error));
  out_outcome->retries++;
  out_outcome->fell_back = 1;
  snprintf(out_outcome->note, sizeof out_outcome->note, "%.250s", first.text);
  return TM_OK;
}

static tm_status run_piece(tm_work_stream *stream, tm_work_stream_entry *entry, tm_error *error) {
  tm_work_stream_lane *lane = &stream->lanes[0];
  void *pointers[TM_MAX_OPERANDS];
  tm_run_outcome outcome;
  const uint64_t begin = tm_now_ns();
  TM_TRY(tm_work_stream_load(lane, &entry->piece, pointers, error));
  const tm_status status = run_at_home(stream, &entry->piece.request, pointers, &outcome, error);
  lane->is_held = tm_work_stream_is_held(stream, status);
  if (status != TM_OK) tm_work_stream_blame(stream, &entry->piece, status, error);
  if (status != TM_OK) return status;
  TM_TRY(tm_work_stream_deliver(lane, &entry->piece, pointers, error));
  tm_work_stream_recruit(stream, &entry->piece, outcome.device);
  tm_mutex_lock(&stream->lock);
  tm_work_stream_finish(stream, lane->index, entry, lane->result, &outcome, tm_now_ns() - begin);
  tm_mutex_unlock(&stream->lock);
  return TM_OK;
}

static tm_status run_some(tm_work_stream *stream, tm_work_stream_entry *first, tm_error *error) {
  tm_work_stream_rest rest;
  TM_TRY(tm_work_stream_run_together(&stream->lanes[0], first, &rest, error));
  for (uint32_t i = 0; i < rest.count; i++) TM_TRY(run_piece(stream, rest.entries[i], error));
  return TM_OK;
}

static tm_status run_next(tm_work_stream *stream, tm_error *error) {
  tm_work_stream_entry *entry = NULL;
  if (tm_work_stream_is_cancelled(stream)) return tm_fail(error, TM_ERROR_CANCELLED, "cancelled");
  const tm_status status = take_oldest(stream, &entry);
  if (status == TM_OK) TM_TRY(run_some(stream, entry, error));
  if (status >= 0) TM_TRY(stream->work->advance(stream->work->context, error));
  return status;
}

static tm_status run_caller(tm_work_stream *stream, tm_error *error) {
  tm_status status = TM_OK;
  while (status == TM_OK || status == TM_PENDING) status = run_next(stream, error);
  return status == TM_END ? TM_OK : status;
}

/* ---- life ---- */

static tm_status init(tm_work_stream *stream, const tm_runner *runner, const tm_work_stream_source *work) {
  tm_memory *memory = runner->table->memory;
  memset(stream, 0, sizeof *stream);
  stream->runner = runner;
  stream->work = work;
  stream->error.struct_size = sizeof stream->error;
  stream->home = TM_ANY_DEVICE;
  stream->pull.lane_count = 1;
  stream->pull.bytes_left = work->bytes_total;
  stream->lanes = tm_memory_calloc(memory, TM_PULL_MOST_LANES, sizeof *stream->lanes);
  stream->entries = tm_memory_calloc(memory, TM_WORK_STREAM_ENTRIES, sizeof *stream->entries);
  if (stream->lanes == NULL || stream->entries == NULL || tm_mutex_init(&stream->lock) != TM_OK) return TM_ERROR_NO_MEMORY;
  if (tm_condition_init(&stream->changed) != TM_OK) {
    tm_mutex_deinit(&stream->lock);
    return TM_ERROR_NO_MEMORY;
  }
  while (stream->spare_count < TM_WORK_STREAM_ENTRIES) {
    stream->spare[stream->spare_count] = &stream->entries[stream->spare_count];
    stream->spare_count++;
  }
  return TM_OK;
}

static void free_lists(tm_work_stream *stream) {
  tm_memory *memory = stream->runner->table->memory;
  tm_memory_free(memory, stream->entries, TM_WORK_STREAM_ENTRIES * sizeof *stream->entries);
  tm_memory_free(memory, stream->lanes, TM_PULL_MOST_LANES * sizeof *stream->lanes);
}

static void deinit(tm_work_stream *stream) {
  tm_condition_deinit(&stream->changed);
  tm_mutex_deinit(&stream->lock);
  free_lists(stream);
}

static void report(const tm_work_stream *stream, uint64_t begin_ns, tm_work_stream_report *out_report) {
  *out_report = (tm_work_stream_report){ .elapsed_ns = tm_now_ns() - begin_ns, .bound_ns = tm_pull_bound_ns(&stream->pull),
                                    .given_back_count = stream->given_back_count };
  for (uint32_t i = 0; i < stream->pull.lane_count; i++) out_report->lane_count += stream->pull.lanes[i].bytes_done != 0;
}

static tm_status run_lanes(tm_work_stream *stream, tm_error *error) {
  tm_work_stream_lane *own = &stream->lanes[0];
  own->stream = stream;
  own->room.scratch = stream->runner->scratch;
  own->result = tm_memory_alloc(stream->runner->table->memory, stream->work->result_bytes, TM_BEST_ALIGNMENT);
  if (own->result == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a stream of operations");
  tm_status status = run_caller(stream, error);
  tm_mutex_lock(&stream->lock);
  stream->is_over = true;
  tm_condition_wake_all(&stream->changed);
  tm_mutex_unlock(&stream->lock);
  tm_work_stream_join(stream);
  tm_work_stream_lane_deinit(own);
  if (stream->status == TM_OK || status == TM_ERROR_CANCELLED) return status;
  *error = stream->error;
  return stream->status;
}

tm_status tm_work_stream_run(const tm_runner *runner, const tm_work_stream_source *work, tm_work_stream_report *out_report, tm_error *error) {
  tm_work_stream stream;
  const uint64_t begin_ns = tm_now_ns();
  if (init(&stream, runner, work) != TM_OK) {
    free_lists(&stream);
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a stream of operations");
  }
  tm_error own = TM_ERROR_INIT;
  const tm_status status = run_lanes(&stream, &own);
  if (out_report != NULL) report(&stream, begin_ns, out_report);
  deinit(&stream);
  return status == TM_OK ? TM_OK : tm_fail_native(error, status, own.native_code, "%s", own.text);
}
