/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/content_ties.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/format.h"

/* From the middle: ends are padded with zeros more often. */
#define SAMPLE_BYTES 1024u

static int compare_numbers(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

/* What has to be equal before contents can be. */
static int compare_kinds(const tm_tie_entry *a, const tm_tie_entry *b) {
  if (a->set != b->set) return compare_numbers(a->set, b->set);
  if (a->format != b->format) return compare_numbers(a->format, b->format);
  if (a->bytes != b->bytes) return compare_numbers(a->bytes, b->bytes);
  return compare_numbers(a->sample, b->sample);
}

static int compare_contents(const tm_tie_entry *a, const tm_tie_entry *b) {
  if (a->is_known != b->is_known) return a->is_known ? -1 : 1;
  if (a->hash.low != b->hash.low) return compare_numbers(a->hash.low, b->hash.low);
  if (a->hash.high != b->hash.high) return compare_numbers(a->hash.high, b->hash.high);
  return compare_kinds(a, b);
}

static int by_item(const void *left, const void *right) {
  return compare_numbers(((const tm_tie_entry *)left)->item, ((const tm_tie_entry *)right)->item);
}

static int by_kind(const void *left, const void *right) {
  const int order = compare_kinds(left, right);
  return order != 0 ? order : by_item(left, right);
}

static int by_content(const void *left, const void *right) {
  const int order = compare_contents(left, right);
  return order != 0 ? order : by_item(left, right);
}

static void sort(tm_content_ties *ties, int (*compare)(const void *, const void *)) {
  if (ties->count > 1) qsort(ties->entries, (size_t)ties->count, sizeof *ties->entries, compare);
}

/* Keeps those that may be equal to a neighbour. */
static void drop_loners(tm_content_ties *ties) {
  uint64_t kept = 0;
  bool is_like_last = false;
  for (uint64_t i = 0; i < ties->count; i++) {
    const bool is_like_next = i + 1 < ties->count && compare_kinds(&ties->entries[i], &ties->entries[i + 1]) == 0;
    if (is_like_last || is_like_next) ties->entries[kept++] = ties->entries[i];
    is_like_last = is_like_next;
  }
  ties->count = kept;
}

/* A single number is equal to many without meaning anything. */
static bool can_be_tied(const tm_archive_tensor *tensor) {
  return tensor->format != TM_FORMAT_NONE && tensor->element_count > 1 && tensor->bytes != 0 &&
         (tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) == 0;
}

static const tm_archive_tensor *tensor_of(const tm_job_source *sources, const tm_selected *item) {
  return tm_archive_tensor_at(sources[item->source].archive, item->tensor);
}

/* What cannot be read here cannot be read later either, and is told then. */
static void take_sample(const tm_job_source *sources, const tm_selected *item, tm_tie_entry *entry) {
  unsigned char bytes[SAMPLE_BYTES];
  tm_content_hash hash = { 0, 0 };
  const uint64_t count = tm_min_u64(entry->bytes, SAMPLE_BYTES);
  if (tm_archive_read(sources[item->source].archive, item->tensor, (entry->bytes - count) / 2, bytes, count, NULL) != TM_OK) return;
  tm_content_hash_add(&hash, 0, bytes, count);
  entry->sample = hash.low;
}

static tm_status list_all(tm_content_ties *ties, const tm_job_source *sources, const uint32_t *sets, const tm_selection *selection,
                          tm_error *error) {
  ties->entries = tm_memory_calloc(ties->memory, selection->count, sizeof *ties->entries);
  if (ties->entries == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of tensors");
  ties->capacity = selection->count;
  for (uint64_t i = 0; i < selection->count; i++) {
    const tm_archive_tensor *tensor = tensor_of(sources, &selection->items[i]);
    if (!can_be_tied(tensor)) continue;
    ties->entries[ties->count++] = (tm_tie_entry){ .set = sets[selection->items[i].source], .format = tensor->format,
                                                   .bytes = tensor->bytes, .item = i, .first = i };
  }
  return TM_OK;
}

tm_status tm_content_ties_make(tm_content_ties *ties, const tm_job *job, tm_memory *memory, const tm_job_source *sources,
                               const uint32_t *sets, const tm_selection *selection, tm_error *error) {
  *ties = (tm_content_ties){ .memory = memory };
  TM_TRY(list_all(ties, sources, sets, selection, error));
  sort(ties, by_kind);
  drop_loners(ties);
  sort(ties, by_item);    /* files are read in their order */
  for (uint64_t i = 0; i < ties->count; i++) {
    if (i % TM_TENSORS_BETWEEN_LOOKS == 0 && tm_job_is_cancelled(job)) return TM_ERROR_CANCELLED;
    take_sample(sources, &selection->items[ties->entries[i].item], &ties->entries[i]);
  }
  sort(ties, by_kind);
  drop_loners(ties);
  sort(ties, by_item);
  return TM_OK;
}

void tm_content_ties_deinit(tm_content_ties *ties) {
  tm_memory_free(ties->memory, ties->entries, ties->capacity * sizeof *ties->entries);
}

tm_tie_entry *tm_content_ties_find(const tm_content_ties *ties, uint64_t item) {
  const tm_tie_entry wanted = { .item = item };
  return ties->count == 0 ? NULL : bsearch(&wanted, ties->entries, (size_t)ties->count, sizeof wanted, by_item);
}

void tm_content_ties_group(tm_content_ties *ties) {
  sort(ties, by_content);
  for (uint64_t i = 1; i < ties->count; i++) {
    tm_tie_entry *entry = &ties->entries[i];
    if (entry->is_known && compare_contents(entry, entry - 1) == 0) entry->first = (entry - 1)->first;
  }
  sort(ties, by_item);
}
