/* SPDX-License-Identifier: Apache-2.0 */
/* work_stream_lane.c - the lanes beside the caller's own: who gets one, what it takes, and when it goes. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"
#include "execute/work_stream_state.h"
#include "plugin/device.h"
#include "plugin/device_identity.h"

/* ---- prices ---- */

static tm_pull_offer ask_price(tm_work_stream *stream, const tm_device_slot *device, const tm_request *request) {
  tm_request own = *request;
  own.only_device = device->index;
  tm_quote quote;
  if (tm_placement_quote(stream->runner->table, &own, stream->runner->cancelled, &quote, NULL) != TM_OK || quote.total_ns == UINT64_MAX)
    return (tm_pull_offer){ TM_PULL_NEVER, 0, false };
  return (tm_pull_offer){ quote.total_ns, quote.setup_ns, quote.is_measured };
}

const tm_pull_offer *tm_work_stream_offer_of(const tm_work_stream_lane *lane, uint64_t kind) {
  for (uint32_t i = 0; i < TM_WORK_STREAM_OFFERS; i++)
    if (lane->offers[i].kind == kind) return &lane->offers[i].offer;
  return NULL;
}

static void keep_offer(tm_work_stream_lane *lane, uint64_t kind, const tm_pull_offer *offer) {
  lane->offers[lane->offer_count++ % TM_WORK_STREAM_OFFERS] = (tm_work_stream_offer){ kind, *offer };
}

/* Something was paid once; what others still have to pay has to be asked anew. */
static void forget_setups(tm_work_stream_lane *lane, uint64_t kind) {
  for (uint32_t i = 0; i < TM_WORK_STREAM_OFFERS; i++)
    if (lane->offers[i].kind != kind && lane->offers[i].offer.setup_ns != 0) lane->offers[i].kind = 0;
}

/* The first runs of a kind take longer than later ones. */
void tm_work_stream_learn_offer(tm_work_stream_lane *lane, const tm_work_stream_entry *entry, const tm_run_outcome *outcome) {
  const uint64_t taken_ns = entry->piece.load_ns + outcome->measured_ns;
  for (uint32_t i = 0; i < TM_WORK_STREAM_OFFERS; i++) {
    if (lane->offers[i].kind != entry->kind) continue;
    tm_pull_offer *offer = &lane->offers[i].offer;
    const bool is_first = !offer->is_measured || offer->setup_ns != 0;
    const uint64_t own_ns = is_first || taken_ns < offer->own_ns ? taken_ns : offer->own_ns - offer->own_ns / 4 + taken_ns / 4;
    if (offer->setup_ns != 0) forget_setups(lane, entry->kind);
    *offer = (tm_pull_offer){ own_ns, 0, true };
  }
}

/* ---- taking ---- */

#define NOTHING UINT32_MAX

/* Under the lock.  The entry that the lane has most advantage with among those worth its while; NOTHING: none is.  One whose
   price it does not know yet is in *out_unknown. */
static uint32_t choose(const tm_work_stream *stream, const tm_work_stream_lane *lane, uint32_t *out_unknown) {
  uint32_t best = NOTHING;
  double most = -1;
  *out_unknown = NOTHING;
  for (uint32_t i = 0; i < stream->window_count; i++) {
    const tm_work_stream_entry *entry = stream->window[i];
    const tm_pull_offer *offer = tm_work_stream_offer_of(lane, entry->kind);
    if (offer == NULL) *out_unknown = i;
    if (offer == NULL || !tm_pull_is_worth(&stream->pull, lane->index, offer)) continue;
    const double advantage = tm_pull_advantage(&stream->pull, lane->index, entry->piece.bytes, offer);
    if (advantage > most) {
      most = advantage;
      best = i;
    }
  }
  return best;
}

/* Under the lock, which is let go while the device is asked. */
static void learn_price(tm_work_stream_lane *lane, const tm_work_stream_entry *entry) {
  tm_work_stream *stream = lane->stream;
  const tm_request request = entry->piece.request;
  const uint64_t kind = entry->kind;
  tm_mutex_unlock(&stream->lock);
  const tm_pull_offer offer = ask_price(stream, lane->device, &request);
  tm_mutex_lock(&stream->lock);
  keep_offer(lane, kind, &offer);
}

/* Waits while there may be more that suits it.  NULL: there is not, or the stream is over. */
static tm_work_stream_entry *take_best(tm_work_stream_lane *lane) {
  tm_work_stream *stream = lane->stream;
  tm_work_stream_entry *taken = NULL;
  bool is_settled = false;
  tm_mutex_lock(&stream->lock);
  while (taken == NULL && !is_settled && !stream->is_over && !tm_work_stream_is_cancelled(stream)) {
    tm_work_stream_fill(stream);
    uint32_t unknown = NOTHING;
    const uint32_t best = choose(stream, lane, &unknown);
    if (unknown != NOTHING) {
      learn_price(lane, stream->window[unknown]);
    } else if (best != NOTHING) {
      taken = tm_work_stream_take(stream, best);
    } else if (!stream->is_at_end) {
      (void)tm_condition_wait(&stream->changed, &stream->lock, UINT64_MAX);
    } else {
      is_settled = true;
    }
  }
  tm_mutex_unlock(&stream->lock);
  return taken;
}

/* ---- running ---- */

/* What it keeps from piece to piece is of use to others. */
static void give_room(tm_work_stream_lane *lane) {
  tm_scratch_give(lane->room.scratch, lane->room.block);
  lane->room.block = (tm_scratch_block){ NULL, 0 };
}

/* Under the lock.  It is nobody's any more, and the stream ends. */
static void fail_piece(tm_work_stream *stream, tm_status status, const tm_error *error) {
  stream->in_flight--;
  tm_work_stream_fail(stream, status, error);
}

/* The piece goes back, and the lane goes; but for a strict runner, where the data are at fault, and after a hang. */
static void give_up(tm_work_stream_lane *lane, tm_work_stream_entry *entry, bool is_loaded, tm_status status, tm_error *error) {
  tm_work_stream *stream = lane->stream;
  char note[sizeof error->text];
  snprintf(note, sizeof note, "%s helps no more: %.400s", lane->device->name, error->text);
  tm_mutex_lock(&stream->lock);
  lane->is_held = tm_work_stream_is_held(stream, status);       /* then nobody else may use what it was given */
  if (!lane->is_held) give_room(lane);
  const bool lacks_room = !is_loaded && status == TM_ERROR_NO_MEMORY;
  const bool is_end = !is_loaded || stream->runner->is_strict || status == TM_ERROR_CANCELLED || lane->is_held;
  if (is_end && !lacks_room) {
    if (is_loaded) tm_work_stream_blame(stream, &entry->piece, status, error);
    fail_piece(stream, status, error);
  } else {
    tm_work_stream_give_back(stream, entry);
    stream->work->note(stream->work->context, note);
  }
  tm_mutex_unlock(&stream->lock);
}

static bool run_one(tm_work_stream_lane *lane, tm_work_stream_entry *entry) {
  tm_work_stream *stream = lane->stream;
  void *pointers[TM_MAX_OPERANDS];
  tm_run_outcome outcome;
  tm_error error = TM_ERROR_INIT;
  const uint64_t begin = tm_now_ns();
  tm_status status = tm_work_stream_load(lane, &entry->piece, pointers, &error);
  const bool is_loaded = status == TM_OK;
  tm_request own = entry->piece.request;
  own.only_device = lane->device->index;
  if (is_loaded) status = tm_runner_run(stream->runner, &own, pointers, &outcome, &error);
  if (status != TM_OK) {
    give_up(lane, entry, is_loaded, status, &error);
    return false;
  }
  tm_work_stream_learn_offer(lane, entry, &outcome);
  status = tm_work_stream_deliver(lane, &entry->piece, pointers, &error);
  tm_mutex_lock(&stream->lock);
  if (status == TM_OK) tm_work_stream_finish(stream, lane->index, entry, lane->result, &outcome, tm_now_ns() - begin);
  else fail_piece(stream, status, &error);
  tm_mutex_unlock(&stream->lock);
  return status == TM_OK;
}

/* What the lane has no use for any more, from `begin` on. */
static void give_back_rest(tm_work_stream_lane *lane, const tm_work_stream_rest *rest, uint32_t begin) {
  tm_mutex_lock(&lane->stream->lock);
  for (uint32_t i = rest->count; i > begin; i--) tm_work_stream_give_back(lane->stream, rest->entries[i - 1]);
  tm_mutex_unlock(&lane->stream->lock);
}

static bool run_some(tm_work_stream_lane *lane, tm_work_stream_entry *first) {
  tm_work_stream *stream = lane->stream;
  tm_work_stream_rest rest;
  tm_error error = TM_ERROR_INIT;
  const tm_status status = tm_work_stream_run_together(lane, first, &rest, &error);
  if (status != TM_OK) {
    tm_mutex_lock(&stream->lock);
    tm_work_stream_fail(stream, status, &error);
    tm_mutex_unlock(&stream->lock);
    return false;
  }
  for (uint32_t i = 0; i < rest.count; i++) {
    if (run_one(lane, rest.entries[i])) continue;
    give_back_rest(lane, &rest, i + 1);
    return false;
  }
  return true;
}

static void *lane_thread(void *argument) {
  tm_work_stream_lane *lane = argument;
  tm_work_stream *stream = lane->stream;
  tm_work_stream_entry *entry;
  while ((entry = take_best(lane)) != NULL && run_some(lane, entry)) continue;
  tm_mutex_lock(&stream->lock);
  stream->pull.lanes[lane->index].is_gone = true;
  tm_condition_wake_all(&stream->changed);
  tm_mutex_unlock(&stream->lock);
  return NULL;
}

/* ---- recruiting ---- */

/* Looking costs a price of every device: nothing beside this. */
#define RECRUIT_EVERY_NS UINT64_C(2000000)

static bool is_same_resource(const tm_device_slot *one, const tm_device_slot *other) {
  static const tm_identity unknown;
  if (one == other) return true;
  return memcmp(&one->info.resource, &other->info.resource, sizeof unknown) == 0 &&
         memcmp(&one->info.resource, &unknown, sizeof unknown) != 0;
}

/* Under the lock.  Others of its silicon keep a device from getting a lane. */
static bool has_room_for(const tm_work_stream *stream, const tm_device_slot *device, const tm_device_slot *used) {
  uint32_t threads = device == used;
  if (device != used && is_same_resource(device, used)) return false;
  for (uint32_t i = 1; i < stream->pull.lane_count; i++) {
    const tm_device_slot *other = stream->lanes[i].device;
    if (other != device && is_same_resource(device, other)) return false;
    if (other != device) continue;
    threads++;
    if (stream->pull.lanes[i].is_gone || stream->pull.lanes[i].bytes_done == 0) return false;   /* it failed, or has yet to show */
  }
  const bool can_overlap = !device->is_host_memory && device->info.queue_count > 1;
  return threads < (can_overlap ? 2u : 1u);
}

static void start_lane(tm_work_stream *stream, tm_device_slot *device) {
  tm_work_stream_lane *lane = &stream->lanes[stream->pull.lane_count];
  *lane = (tm_work_stream_lane){ .stream = stream, .index = stream->pull.lane_count, .device = device,
                            .room = { .scratch = stream->runner->scratch } };
  lane->result = tm_memory_alloc(stream->runner->table->memory, stream->work->result_bytes, TM_BEST_ALIGNMENT);
  if (lane->result == NULL) return;
  tm_mutex_lock(&stream->lock);
  stream->pull.lanes[lane->index] = (tm_pull_lane){ 0, 0, false };
  stream->pull.lane_count++;
  tm_mutex_unlock(&stream->lock);
  if (tm_thread_start(&lane->thread, lane_thread, lane, NULL) == TM_OK) return;
  tm_mutex_lock(&stream->lock);
  stream->pull.lane_count--;
  tm_mutex_unlock(&stream->lock);
  tm_memory_free(stream->runner->table->memory, lane->result, stream->work->result_bytes);
}

/* Ties go by what a device is, never by its place in a list. */
static bool is_before(const tm_device_slot *one, const tm_device_slot *other) {
  return other == NULL || tm_device_identity_compare(one, other) < 0;
}

/* The device of a silicon that has no lane yet and makes most of pieces like this one. */
static tm_device_slot *find_helper(tm_work_stream *stream, const tm_work_stream_piece *like, const tm_device_slot *used) {
  const tm_inventory *inventory = stream->runner->table->market.inventory;
  tm_device_slot *best = NULL;
  double most = -1;
  for (uint32_t i = 0; i < inventory->device_count; i++) {
    tm_device_slot *device = inventory->devices[i];
    if (!device->is_watched || !tm_device_is_usable(device)) continue;      /* the last resort is no help */
    tm_mutex_lock(&stream->lock);
    const bool has_room = has_room_for(stream, device, used);
    tm_mutex_unlock(&stream->lock);
    if (!has_room) continue;
    const tm_pull_offer offer = ask_price(stream, device, &like->request);
    tm_mutex_lock(&stream->lock);
    const bool is_worth = tm_pull_is_worth(&stream->pull, stream->pull.lane_count, &offer);
    const double advantage = tm_pull_advantage(&stream->pull, stream->pull.lane_count, like->bytes, &offer);
    tm_mutex_unlock(&stream->lock);
    const bool is_better = advantage > most || (advantage == most && is_before(device, best));
    if (!is_worth || !is_better) continue;
    most = advantage;
    best = device;
  }
  return best;
}

void tm_work_stream_recruit(tm_work_stream *stream, const tm_work_stream_piece *like, uint32_t used) {
  const uint64_t now = tm_now_ns();
  if (now < stream->recruit_ns) return;
  stream->recruit_ns = now + RECRUIT_EVERY_NS;
  if (stream->pull.lane_count == TM_PULL_MOST_LANES || like->request.only_device != TM_ANY_DEVICE) return;
  tm_device_slot *device = find_helper(stream, like, stream->runner->table->market.inventory->devices[used]);
  if (device == NULL) return;
  start_lane(stream, device);
  stream->home = used;
}

void tm_work_stream_join(tm_work_stream *stream) {
  for (uint32_t i = 1; i < stream->pull.lane_count; i++) tm_thread_join(&stream->lanes[i].thread);
  for (uint32_t i = 1; i < stream->pull.lane_count; i++) tm_work_stream_lane_deinit(&stream->lanes[i]);
}
