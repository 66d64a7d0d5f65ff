/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"
#include "jobs/cancel_wish.h"

#define COMPARED_BYTES (UINT64_C(1) << 18)

/* -------------------------------------------------------------------------------------------------------- gathering ---- */

void tm_merge_parts_drop(tm_merge_parts *parts, uint32_t index) {
  parts->count--;
  memmove(&parts->items[index], &parts->items[index + 1], (parts->count - index) * sizeof parts->items[0]);
}

void tm_merge_parts_keep(tm_merge_parts *parts, uint32_t index) {
  parts->items[0] = parts->items[index];
  parts->items[0].weight = 1;
  parts->count = 1;
}

static tm_merge_part *part_of(const tm_merge_settings *settings, tm_merge_parts *parts, uint32_t source) {
  for (uint32_t i = 0; i < parts->count; i++)
    if (settings->same_as[parts->items[i].source] == settings->same_as[source]) return &parts->items[i];
  return NULL;
}

static void add(const tm_merge_settings *settings, tm_string name, uint32_t source, double weight, double density,
                tm_merge_parts *parts) {
  const tm_archive *archive = settings->sources[source].archive;
  tm_merge_part part = { .source = source, .weight = weight, .density = density };
  if (tm_archive_find(archive, name.data, name.length, &part.index)) part.tensor = tm_archive_tensor_at(archive, part.index);
  parts->items[parts->count++] = part;
}

/* Weights of one checkpoint add up where only the sum counts. */
static void add_model(const tm_merge_settings *settings, tm_string name, uint32_t model, const tm_merge_figures *figures,
                      tm_merge_parts *parts) {
  const double weight = figures->weights[model];
  const bool adds_up = settings->method == TM_MERGE_LINEAR || settings->method == TM_MERGE_TASK;
  tm_merge_part *same = adds_up ? part_of(settings, parts, model) : NULL;
  if (weight == 0 || (same != NULL && tm_merge_is_base(settings, same))) return;
  if (same != NULL) same->weight += weight;
  else add(settings, name, model, weight, figures->densities[model], parts);
}

static void drop_weightless(const tm_merge_settings *settings, tm_merge_parts *parts) {
  for (uint32_t i = parts->count; i-- > 0;)
    if (parts->items[i].weight == 0 && !tm_merge_is_base(settings, &parts->items[i])) tm_merge_parts_drop(parts, i);
}

/* A sum of nothing is zeros, of the shape that all of them have. */
static void add_weightless(const tm_merge_settings *settings, tm_string name, tm_merge_parts *parts) {
  for (uint32_t i = 0; i < settings->model_count; i++)
    if (part_of(settings, parts, i) == NULL) add(settings, name, i, 0, 1, parts);
}

static void gather_slerp(const tm_merge_settings *settings, tm_string name, const tm_merge_figures *figures,
                         tm_merge_parts *parts) {
  const bool is_one = settings->same_as[1] == 0;
  if (figures->t != 1 || is_one) add(settings, name, 0, 1 - figures->t, 1, parts);
  if (figures->t != 0 && !is_one) add(settings, name, 1, figures->t, 1, parts);
}

tm_status tm_merge_parts_gather(const tm_merge_settings *settings, tm_string name, const tm_merge_figures *figures,
                                tm_merge_parts *out_parts, tm_error *error) {
  out_parts->count = 0;
  if (settings->method == TM_MERGE_SLERP) {
    gather_slerp(settings, name, figures, out_parts);
    return TM_OK;
  }
  if (tm_merge_has_base(settings)) add(settings, name, settings->lead, 0, 1, out_parts);
  for (uint32_t i = 0; i < settings->model_count; i++) add_model(settings, name, i, figures, out_parts);
  drop_weightless(settings, out_parts);
  if (out_parts->count == 0 && settings->method == TM_MERGE_LINEAR && (settings->flags & TM_MERGE_KEEP_WEIGHTS) != 0)
    add_weightless(settings, name, out_parts);
  if (out_parts->count != 0) return TM_OK;
  char shown[160];
  (void)tm_text_escape(name.data, name.length, shown, sizeof shown);
  return tm_fail(error, TM_ERROR_ARGUMENT, "tensor '%s': all models have a weight of 0, which leaves them out, and nothing to "
                 "merge; give one of them another weight", shown);
}

/* ------------------------------------------------------------------------------------------------------------ order ---- */

static bool is_before(const tm_merge_settings *settings, const tm_merge_part *one, const tm_merge_part *other) {
  const uint32_t rank = settings->ranks[one->source], other_rank = settings->ranks[other->source];
  if (one->weight != other->weight) return one->weight < other->weight;
  if (one->density != other->density) return one->density < other->density;
  return rank != other_rank ? rank < other_rank : one->source < other->source;
}

void tm_merge_parts_sort(const tm_merge_settings *settings, tm_merge_parts *parts) {
  const uint32_t first = parts->count != 0 && tm_merge_is_base(settings, &parts->items[0]) ? 1 : 0;
  for (uint32_t i = first + 1; i < parts->count; i++) {
    const tm_merge_part moved = parts->items[i];
    uint32_t place = i;
    for (; place > first && is_before(settings, &moved, &parts->items[place - 1]); place--)
      parts->items[place] = parts->items[place - 1];
    parts->items[place] = moved;
  }
}

/* ----------------------------------------------------------------------------------------------------------- telling ---- */

void tm_merge_parts_name(const tm_merge_settings *settings, const tm_merge_parts *parts, bool has_tensor, char *out_text,
                         uint64_t capacity) {
  uint64_t length = 0;
  out_text[0] = '\0';
  for (uint32_t i = 0; i < parts->count; i++) {
    const tm_merge_part *part = &parts->items[i];
    char shown[80];
    if ((part->tensor != NULL) != has_tensor) continue;
    const char *name = tm_merge_is_base(settings, part) ? "the base" : settings->names[part->source];
    (void)tm_text_escape(name, strlen(name), shown, sizeof shown);
    const int added = snprintf(out_text + length, capacity - length, "%s%s", length == 0 ? "" : ", ", shown);
    if (added < 0 || (uint64_t)added >= capacity - length - 4) {
      (void)snprintf(out_text + length, capacity - length, "...");
      return;
    }
    length += (uint64_t)added;
  }
}

/* ------------------------------------------------------------------------------------------------------- equal bytes ---- */

static bool are_alike(const tm_archive_tensor *a, const tm_archive_tensor *b) {
  return a->format == b->format && (a->format != TM_FORMAT_NONE || strcmp(a->type_name, b->type_name) == 0) && a->rank == b->rank &&
         a->bytes == b->bytes && (a->rank == 0 || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0);
}

/* Where it is, or read into the room. */
static tm_status find_bytes(const tm_archive *archive, uint64_t tensor, uint64_t offset, uint64_t bytes, unsigned char *room,
                            const void **out_bytes, tm_error *error) {
  const char *mapped = tm_archive_mapped(archive, tensor);
  *out_bytes = mapped != NULL ? (const void *)(mapped + offset) : room;
  return mapped != NULL ? TM_OK : tm_archive_read(archive, tensor, offset, room, bytes, error);
}

static tm_status compare_two(const tm_merge_settings *settings, const tm_merge_part *a, const tm_merge_part *b, unsigned char *room,
                             bool *out_are_equal, tm_error *error) {
  const tm_archive *left = settings->sources[a->source].archive, *right = settings->sources[b->source].archive;
  const void *left_bytes, *right_bytes;
  *out_are_equal = are_alike(a->tensor, b->tensor);
  if (!*out_are_equal || (left == right && a->index == b->index)) return TM_OK;
  for (uint64_t offset = 0; offset < a->tensor->bytes && *out_are_equal; offset += COMPARED_BYTES) {
    const uint64_t bytes = tm_min_u64(COMPARED_BYTES, a->tensor->bytes - offset);
    TM_TRY(tm_cancel_wish_check(settings->cancelled, error));
    TM_TRY(find_bytes(left, a->index, offset, bytes, room, &left_bytes, error));
    TM_TRY(find_bytes(right, b->index, offset, bytes, room + COMPARED_BYTES, &right_bytes, error));
    *out_are_equal = memcmp(left_bytes, right_bytes, (size_t)bytes) == 0;
  }
  TM_TRY(tm_archive_check_tensor(left, a->index, error));
  return tm_archive_check_tensor(right, b->index, error);
}

tm_status tm_merge_parts_compare(const tm_merge_settings *settings, tm_memory *memory, const tm_merge_parts *parts,
                                 bool *out_are_equal, tm_error *error) {
  *out_are_equal = true;
  if (parts->count == 1) return TM_OK;
  unsigned char *room = tm_memory_alloc(memory, 2 * COMPARED_BYTES, 0);
  if (room == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to compare tensors");
  tm_status status = TM_OK;
  bool are_equal = true;
  for (uint32_t i = 1; i < parts->count && are_equal && status == TM_OK; i++)
    status = compare_two(settings, &parts->items[0], &parts->items[i], room, &are_equal, error);
  tm_memory_free(memory, room, 2 * COMPARED_BYTES);
  if (status == TM_OK) *out_are_equal = are_equal;
  return status;
}
