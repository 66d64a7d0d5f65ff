/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/layout.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/checked.h"
#include "base/error.h"
#include "formats/archive_builder.h"
#include "formats/stored_form.h"

typedef struct extent {
  uint64_t begin;
  uint64_t end;
  uint64_t index;               /* of the tensor */
} extent;

/* Empty tensors claim nothing.  One of unknown size claims its first byte at least. */
static uint64_t claimed_bytes(const tm_archive_tensor *tensor) {
  const bool is_open = (tensor->flags & TM_ARCHIVE_TENSOR_UNKNOWN_TYPE) != 0 && tensor->element_count != 0;
  return is_open ? tm_max_u64(tensor->bytes, 1) : tm_stored_bytes(tensor);
}

static uint64_t collect(const tm_archive_tensor *tensors, uint64_t count, extent *extents) {
  uint64_t used = 0;
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t bytes = claimed_bytes(&tensors[i]);
    if (bytes != 0) extents[used++] = (extent){ tensors[i].offset, tensors[i].offset + bytes, i };
  }
  return used;
}

static void merge_runs(const extent *from, extent *to, uint64_t begin, uint64_t middle, uint64_t end) {
  uint64_t left = begin, right = middle;
  for (uint64_t i = begin; i < end; i++) {
    const bool takes_left = left < middle && (right == end || from[left].begin <= from[right].begin);
    to[i] = takes_left ? from[left++] : from[right++];
  }
}

/* Merge sort with all memory given by the caller, n log n whatever the file holds.  The result is in the array returned. */
static extent *sort_extents(extent *extents, extent *spare, uint64_t count) {
  for (uint64_t width = 1; width < count; width *= 2) {
    for (uint64_t begin = 0; begin < count; begin += 2 * width)
      merge_runs(extents, spare, begin, tm_min_u64(begin + width, count), tm_min_u64(begin + 2 * width, count));
    extent *swapped = extents;
    extents = spare;
    spare = swapped;
  }
  return extents;
}

static bool is_sorted(const extent *extents, uint64_t count) {
  for (uint64_t i = 1; i < count; i++)
    if (extents[i].begin < extents[i - 1].begin) return false;
  return true;
}

static tm_status fail_overlap(const tm_layout *layout, const tm_archive_tensor *tensors, const extent *a, const extent *b,
                              tm_error *error) {
  const tm_shown_name first = tm_show_name(tensors[a->index].name), second = tm_show_name(tensors[b->index].name);
  if (a->begin == b->begin)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: tensors \"%s\" and \"%s\" overlap: both begin at offset %" PRIu64, layout->label,
                   first.text, second.text, a->begin);
  return tm_fail(error, TM_ERROR_CORRUPT,
                 "%s: tensors \"%s\" and \"%s\" overlap: the first ends at offset %" PRIu64 ", the second begins at %" PRIu64,
                 layout->label, first.text, second.text, a->end, b->begin);
}

static tm_status fail_gap(const tm_layout *layout, uint64_t begin, uint64_t end, tm_error *error) {
  return tm_fail(error, TM_ERROR_CORRUPT, "%s: %" PRIu64 " byte%s at offset %" PRIu64 " belong%s to no tensor; this "
                 "format allows no gaps", layout->label, end - begin, end - begin == 1 ? "" : "s", begin,
                 end - begin == 1 ? "s" : "");
}

static tm_status walk(const tm_layout *layout, const tm_archive_tensor *tensors, const extent *extents, uint64_t count,
                      tm_error *error) {
  uint64_t end = layout->data_begin;
  for (uint64_t i = 0; i < count; i++) {
    if (i > 0 && extents[i].begin < end) return fail_overlap(layout, tensors, &extents[i - 1], &extents[i], error);
    if (extents[i].begin > end && !layout->has_gaps) return fail_gap(layout, end, extents[i].begin, error);
    end = extents[i].end;
  }
  if (end < layout->file_bytes && !layout->has_gaps) return fail_gap(layout, end, layout->file_bytes, error);
  return TM_OK;
}

tm_status tm_layout_check(tm_memory *memory, const tm_layout *layout, const tm_archive_tensor *tensors, uint64_t count,
                          tm_error *error) {
  uint64_t bytes;
  extent *extents = NULL;
  if (tm_checked_mul(count, 2 * sizeof *extents, &bytes)) extents = tm_memory_alloc(memory, bytes, 0);
  if (extents == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "%s: no memory to check its header", layout->label);
  const uint64_t used = collect(tensors, count, extents);
  const extent *sorted = is_sorted(extents, used) ? extents : sort_extents(extents, extents + count, used);
  const tm_status status = walk(layout, tensors, sorted, used, error);
  tm_memory_free(memory, extents, bytes);
  return status;
}
