/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_order.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "jobs/cancel_wish.h"

#define STEP_BYTES (UINT64_C(1) << 16)
#define SAMPLE_BYTES UINT64_C(4096)
#define SAMPLES 3u

typedef struct comparison {
  const volatile uint32_t *cancelled;
  const tm_archive *a, *b;
  unsigned char    *room;       /* two steps */
  tm_error         *error;
  int               order;      /* below, at or above 0, as with memcmp */
} comparison;

/* -------------------------------------------------------------------------------------------------------- structure ---- */

static int order_numbers(uint64_t a, uint64_t b) { return a < b ? -1 : a > b; }

static int order_texts(tm_string a, tm_string b) {
  const uint64_t common = tm_min_u64(a.length, b.length);
  const int order = common == 0 ? 0 : memcmp(a.data, b.data, (size_t)common);
  return order != 0 ? order : order_numbers(a.length, b.length);
}

static int order_shapes(const tm_archive_tensor *a, const tm_archive_tensor *b) {
  int order = order_numbers(a->rank, b->rank);
  for (uint32_t i = 0; i < a->rank && order == 0; i++) order = order_numbers(a->dims[i], b->dims[i]);
  return order;
}

static int order_tensors(const tm_archive_tensor *a, const tm_archive_tensor *b) {
  int order = order_texts(a->name, b->name);
  if (order == 0) order = order_numbers(a->format, b->format);
  if (order == 0 && a->format == TM_FORMAT_NONE) order = strcmp(a->type_name, b->type_name);
  if (order == 0) order = order_shapes(a, b);
  return order != 0 ? order : order_numbers(a->bytes, b->bytes);
}

static void compare_structure(comparison *c) {
  const uint64_t count = tm_archive_tensor_count(c->a);
  c->order = order_numbers(count, tm_archive_tensor_count(c->b));
  for (uint64_t i = 0; i < count && c->order == 0; i++)
    c->order = order_tensors(tm_archive_tensor_at(c->a, i), tm_archive_tensor_at(c->b, i));
}

/* ---------------------------------------------------------------------------------------------------------- content ---- */

static tm_status compare_bytes(comparison *c, uint64_t tensor, uint64_t offset, uint64_t bytes) {
  TM_TRY(tm_cancel_wish_check(c->cancelled, c->error));
  TM_TRY(tm_archive_read(c->a, tensor, offset, c->room, bytes, c->error));
  TM_TRY(tm_archive_read(c->b, tensor, offset, c->room + STEP_BYTES, bytes, c->error));
  c->order = memcmp(c->room, c->room + STEP_BYTES, (size_t)bytes);
  return TM_OK;
}

/* Of what cannot be read nothing is merged either. */
static bool is_whole(const comparison *c, uint64_t tensor) {
  const uint32_t flags = tm_archive_tensor_at(c->a, tensor)->flags | tm_archive_tensor_at(c->b, tensor)->flags;
  return (flags & TM_ARCHIVE_TENSOR_INCOMPLETE) == 0;
}

/* At the beginning, in the middle and at the end. */
static tm_status compare_samples(comparison *c) {
  for (uint64_t i = 0; i < tm_archive_tensor_count(c->a); i++) {
    const uint64_t all = tm_archive_tensor_at(c->a, i)->bytes, bytes = tm_min_u64(all, SAMPLE_BYTES);
    for (uint64_t sample = 0; sample < SAMPLES && bytes != 0 && is_whole(c, i); sample++) {
      TM_TRY(compare_bytes(c, i, (all - bytes) / (SAMPLES - 1) * sample, bytes));
      if (c->order != 0) return TM_OK;
    }
  }
  return TM_OK;
}

static tm_status compare_all(comparison *c) {
  for (uint64_t i = 0; i < tm_archive_tensor_count(c->a); i++) {
    const uint64_t all = is_whole(c, i) ? tm_archive_tensor_at(c->a, i)->bytes : 0;
    for (uint64_t offset = 0; offset < all; offset += STEP_BYTES) {
      TM_TRY(compare_bytes(c, i, offset, tm_min_u64(STEP_BYTES, all - offset)));
      if (c->order != 0) return TM_OK;
    }
  }
  return TM_OK;
}

static tm_status compare(comparison *c) {
  compare_structure(c);
  if (c->order == 0) TM_TRY(compare_samples(c));
  return c->order == 0 ? compare_all(c) : TM_OK;
}

/* ------------------------------------------------------------------------------------------------------------ ranks ---- */

/* The rank of `source` among those before it, each of which has one; those that come behind it move up. */
static tm_status rank_one(const tm_merge_settings *settings, uint32_t source, unsigned char *room, uint32_t *ranks,
                          tm_error *error) {
  const tm_job_source *sources = settings->sources;
  uint32_t rank = 0;
  for (uint32_t i = 0; i < source; i++) {
    comparison c = { .cancelled = settings->cancelled, .a = sources[i].archive, .b = sources[source].archive, .room = room,
                     .error = error };
    if (settings->same_as[i] != i) continue;
    TM_TRY(compare(&c));
    if (c.order == 0) {
      ranks[source] = ranks[i];
      return TM_OK;
    }
    if (c.order < 0 && ranks[i] >= rank) rank = ranks[i] + 1;
  }
  for (uint32_t i = 0; i < source; i++) ranks[i] += ranks[i] >= rank;
  ranks[source] = rank;
  return TM_OK;
}

tm_status tm_merge_order_find(const tm_merge_settings *settings, tm_memory *memory, uint32_t *out_ranks, tm_error *error) {
  const uint32_t *same_as = settings->same_as;
  unsigned char *room = tm_memory_alloc(memory, 2 * STEP_BYTES, 0);
  if (room == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to compare checkpoints");
  tm_status status = TM_OK;
  for (uint32_t i = 0; i < settings->source_count && status == TM_OK; i++) {
    if (same_as[i] == i) status = rank_one(settings, i, room, out_ranks, error);
    else out_ranks[i] = out_ranks[same_as[i]];
  }
  tm_memory_free(memory, room, 2 * STEP_BYTES);
  return status;
}
