/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_memory.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory_limit.h"
#include "base/shown_size.h"
#include "jobs/merge_row.h"
#include "jobs/merge_tiles.h"

/* Of a row the texts without those that are counted one by one, and a short weight with what comes between two. */
#define ROW_TEXT_BYTES 12u
#define WEIGHT_TEXT_BYTES 5u
/* Of a tensor in the writer and in the header of the result, beside its name. */
#define WRITER_TENSOR_BYTES 300u

/* Not more than it takes. */
static uint64_t row_bytes(const tm_merge_settings *settings, const tm_merge_item *item) {
  uint64_t texts = 0;
  for (uint32_t i = 0; i < item->input_count; i++) {
    const uint32_t source = item->inputs[i].source;
    texts += WEIGHT_TEXT_BYTES + (source < settings->model_count ? strlen(settings->names[source]) : 0);
  }
  return TM_MERGE_JOB_COLUMNS * TM_JOB_CELL_BYTES + ROW_TEXT_BYTES + item->name.length + item->rank * sizeof(uint64_t) + texts;
}

static uint64_t rows_bytes(const tm_merge_plan *plan) {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < plan->totals.tensor_count; i++) bytes += row_bytes(&plan->settings, &plan->items[i]);
  return bytes;
}

void tm_merge_plan_add_up_memory(tm_merge_plan *plan, uint64_t peak_bytes) {
  const uint64_t limit = plan->memory->limit_bytes, used = atomic_load(&plan->memory->used_bytes);
  const uint64_t fixed = tm_merge_fixed_bytes(&plan->settings) + rows_bytes(plan);
  const uint64_t header = plan->totals.file_bytes - tm_min_u64(plan->totals.file_bytes, plan->totals.written_bytes);
  /* The writer gives its headers back before there are many rows. */
  const uint64_t least = fixed - tm_min_u64(fixed, header) + 2 * plan->unit_bytes + plan->copy_unit_bytes;
  const uint64_t most = plan->unit_bytes * tm_merge_most_units(plan->memory, plan->unit_bytes);
  const uint64_t tiles = 2 * tm_min_u64(plan->tile_bytes, most) + tm_merge_copy_bytes(plan->memory, plan->copy_unit_bytes);
  char text[200];
  plan->totals.memory_bytes = tm_max_u64(peak_bytes, used + fixed + tiles);
  if (limit == 0 || (used <= limit && limit - used >= least)) return;
  (void)snprintf(text, sizeof text, "memory: the merge takes at least %s in all, and %s are allowed",
                 tm_show_needed(used + least).text, tm_show_available(limit).text);
  tm_merge_plan_add_problem(plan, text);
}

/* As if all models had the tensors of the largest: items are moved once while they are listed, and once when they all are. */
static uint64_t guess_bytes(const tm_merge_settings *settings) {
  uint64_t bytes = 0;
  for (uint32_t s = 0; s < settings->source_count; s++) {
    const tm_archive *archive = settings->sources[s].archive;
    const uint64_t each = 2 * sizeof(tm_merge_item) + settings->source_count * sizeof(tm_merge_input) + WRITER_TENSOR_BYTES +
                          TM_MERGE_JOB_COLUMNS * TM_JOB_CELL_BYTES + ROW_TEXT_BYTES;
    uint64_t names = 0;
    for (uint64_t i = 0; i < tm_archive_tensor_count(archive); i++) names += tm_archive_tensor_at(archive, i)->name.length;
    bytes = tm_max_u64(bytes, tm_archive_tensor_count(archive) * each + 3 * names);
  }
  return bytes;
}

tm_status tm_merge_plan_fail_memory(const tm_memory *memory, const tm_merge_settings *settings, uint64_t used_bytes, tm_error *error) {
  const uint64_t guess = used_bytes + guess_bytes(settings) + tm_merge_fixed_bytes(settings);
  if (memory->limit_bytes == 0 || guess <= memory->limit_bytes) return tm_memory_name_limit(memory, TM_ERROR_NO_MEMORY, error);
  return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to plan a merge, which takes about %s; %s are allowed in all (max_memory_bytes)",
                 tm_show_needed(guess).text, tm_show_available(memory->limit_bytes).text);
}
