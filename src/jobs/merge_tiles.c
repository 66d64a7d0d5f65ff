/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_tiles.h"

#include "base/checked.h"
#include "jobs/merge_arc.h"
#include "jobs/merge_trim.h"
#include "tensor/format.h"

#define UNITS_IN_TILE 48u
/* Lanes of the stream and what devices take for themselves share what the application allows. */
#define TILES_IN_MEMORY 6u
/* Lanes, windows, notes, open tensors. */
#define FIXED_BYTES (UINT64_C(1) << 20)
#define MOST_COPIED_BYTES (UINT64_C(4) << 20)

uint64_t tm_merge_bytes_of(uint32_t format, uint64_t elements) {
  const tm_format_info *info = tm_format_find(format);
  return elements / info->block_elements * info->block_bytes;
}

uint64_t tm_merge_unit_of(uint32_t format) {
  return tm_format_find(format) == NULL ? TM_MERGE_UNIT_ELEMENTS : tm_merge_bytes_of(format, TM_MERGE_UNIT_ELEMENTS);
}

uint32_t tm_merge_computed_format(const tm_merge_item *item) {
  return tm_format_find(item->format)->kind == TM_KIND_BLOCK ? TM_FORMAT_F32 : item->format;
}

static uint64_t unmapped_bytes(const tm_merge_settings *settings, const tm_merge_input *input, uint64_t elements) {
  const tm_archive *archive = settings->sources[input->source].archive;
  if (tm_archive_mapped(archive, input->tensor) != NULL) return 0;
  return tm_merge_bytes_of(tm_archive_tensor_at(archive, input->tensor)->format, elements);
}

uint64_t tm_merge_unit_bytes(const tm_merge_settings *settings, const tm_merge_item *item) {
  const uint64_t elements = TM_MERGE_UNIT_ELEMENTS;
  if (item->action != TM_MERGE_ACTION_COMPUTE) return 0;
  uint64_t bytes = tm_merge_bytes_of(tm_merge_computed_format(item), elements), rest = 0;
  if (tm_merge_computed_format(item) != item->format) bytes += tm_merge_bytes_of(item->format, elements);
  for (uint32_t i = 0; i < item->input_count; i++)
    bytes += unmapped_bytes(settings, &item->inputs[i], elements) + TM_BEST_ALIGNMENT;
  if (item->method == TM_MERGE_SLERP) bytes += tm_merge_arc_bytes(settings, item, elements);
  if (item->rest != NULL) rest = unmapped_bytes(settings, item->rest, elements);
  return bytes + rest;
}

uint64_t tm_merge_copy_unit(const tm_merge_settings *settings, const tm_merge_item *item) {
  if (item->action != TM_MERGE_ACTION_COPY) return 0;
  const tm_merge_input *input = &item->inputs[0];
  if (tm_archive_mapped(settings->sources[input->source].archive, input->tensor) != NULL) return 0;
  return tm_merge_unit_of(item->format);
}

static uint64_t share_bytes(const tm_memory *memory) {
  const uint64_t used = atomic_load(&memory->used_bytes), limit = memory->limit_bytes;
  if (limit == 0) return UINT64_MAX;
  return limit <= used ? 0 : (limit - used) / TILES_IN_MEMORY;
}

uint64_t tm_merge_copy_bytes(const tm_memory *memory, uint64_t unit_bytes) {
  const uint64_t bytes = tm_min_u64(share_bytes(memory), MOST_COPIED_BYTES);
  return unit_bytes == 0 ? 0 : tm_max_u64(1, bytes / unit_bytes) * unit_bytes;
}

uint64_t tm_merge_copy_step(uint64_t room_bytes, uint64_t unit_bytes) {
  const uint64_t bytes = room_bytes == 0 ? MOST_COPIED_BYTES : room_bytes;
  return bytes / unit_bytes * unit_bytes;
}

uint64_t tm_merge_fixed_bytes(const tm_merge_settings *settings) {
  if (settings->method != TM_MERGE_TIES) return FIXED_BYTES;
  return FIXED_BYTES + (TM_MERGE_OPEN_HISTOGRAMS + 2) * TM_MAGNITUDE_BINS * sizeof(uint64_t);
}

uint64_t tm_merge_most_units(const tm_memory *memory, uint64_t unit_bytes) {
  if (memory->limit_bytes == 0) return UNITS_IN_TILE;
  return tm_max_u64(1, share_bytes(memory) / tm_max_u64(1, unit_bytes));
}

uint64_t tm_merge_tile_units(const tm_merge_item *item, uint64_t most_units) {
  return tm_max_u64(1, tm_min_u64(most_units, UNITS_IN_TILE / (item->input_count + 1)));
}

static uint64_t common_bytes(const tm_merge_settings *settings, const tm_merge_item *item, const tm_merge_input *input) {
  const tm_archive_tensor *tensor = tm_archive_tensor_at(settings->sources[input->source].archive, input->tensor);
  return item->action == TM_MERGE_ACTION_COPY ? tensor->bytes : tm_merge_bytes_of(tensor->format, item->common_count);
}

uint64_t tm_merge_read_bytes(const tm_merge_settings *settings, const tm_merge_item *item) {
  uint64_t bytes = 0;
  const uint64_t first = item->input_count == 0 ? 0 : common_bytes(settings, item, &item->inputs[0]);
  for (uint32_t i = 0; i < item->input_count; i++) {
    const uint64_t own = common_bytes(settings, item, &item->inputs[i]);
    bytes += own;
    if (item->action != TM_MERGE_ACTION_COMPUTE) continue;
    if (item->method == TM_MERGE_SLERP) bytes += own;
    if (item->method == TM_MERGE_TIES && i > 0 && item->inputs[i].density < 1 && item->common_count > TM_MERGE_TRIM_SMALL)
      bytes += 2 * (own + first);
  }
  if (item->rest == NULL) return bytes;
  const tm_archive_tensor *rest = tm_archive_tensor_at(settings->sources[item->rest->source].archive, item->rest->tensor);
  return bytes + tm_merge_bytes_of(rest->format, item->element_count - item->common_count);
}
