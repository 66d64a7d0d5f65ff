/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/diff_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/text.h"
#include "jobs/diff_content.h"
#include "jobs/diff_pairing.h"
#include "jobs/diff_stream.h"
#include "jobs/tensor_tiles.h"

typedef struct diff_state {
  tm_runner          runner;
  tm_memory         *memory;
  tm_inventory      *inventory;
  tm_arena           arena;             /* the patterns */
  tm_selection_rules rules;
  tm_job_source      sources[2];
  uint32_t           flags;
  tm_selection       selection;
  tm_diff_pairing    pairing;
  tm_diff_setting    setting;
  tm_content_digester digester;
} diff_state;

static void note_bytes(const diff_state *state) {
  char text[160];
  if (state->setting.byte_compared_bytes == 0) return;
  (void)snprintf(text, sizeof text, "%" PRIu64 " bytes were compared without a device: their types cannot be decoded",
                 state->setting.byte_compared_bytes);
  tm_job_add_note(state->setting.job, text);
}

/* A gate that looks at nothing would let everything pass. */
static tm_status check_hidden(const diff_state *state, tm_error *error) {
  char text[160];
  const uint64_t count = state->setting.hidden_count;
  if (count == 0) return TM_OK;
  if (tm_job_row_count(state->setting.job) == 0)
    return tm_fail(error, TM_ERROR_NOT_FOUND, "nothing is left to compare: of every pair one name or both are excluded");
  (void)snprintf(text, sizeof text, "%" PRIu64 " pair%s left out: one of the two names is excluded", count, count == 1 ? " is" : "s are");
  tm_job_add_note(state->setting.job, text);
  return TM_OK;
}

static tm_status compare_by_name(diff_state *state, tm_error *error) {
  tm_diff_pairs pairs;
  tm_diff_pairs_init(&pairs, state->memory);
  tm_status status = tm_diff_pairing_by_name(&state->pairing, &pairs, error);
  if (status == TM_OK) status = tm_diff_stream_run(&state->setting, pairs.items, pairs.count, error);
  for (uint64_t i = 0; i < pairs.count && status == TM_OK; i++)
    if (!pairs.items[i].is_equal) tm_diff_pairing_mark_unequal(&state->pairing, &pairs.items[i]);
  tm_diff_pairs_deinit(&pairs);
  return status;
}

static bool is_any_left(const diff_state *state, uint32_t side) {
  const tm_diff_side *one = &state->pairing.sides[side];
  for (uint64_t i = 0; i < one->count; i++)
    if (tm_diff_pairing_has(&state->pairing, side, i, TM_DIFF_SELECTED) && tm_diff_pairing_is_left(&state->pairing, side, i)) return true;
  return false;
}

static tm_status compare_alike(diff_state *state, const tm_diff_round *round, tm_error *error) {
  tm_diff_pairs pairs;
  tm_diff_pairs_init(&pairs, state->memory);
  tm_status status = tm_diff_content_pair(&state->pairing, &state->digester, round, &pairs, error);
  if (status == TM_OK) status = tm_diff_stream_run(&state->setting, pairs.items, pairs.count, error);
  for (uint64_t i = 0; i < pairs.count && status == TM_OK; i++)
    if (pairs.items[i].is_confirmed) tm_diff_pairing_mark(&state->pairing, &pairs.items[i]);
  tm_diff_pairs_deinit(&pairs);
  return status;
}

static void note_ambiguous(const diff_state *state) {
  char text[200];
  const uint64_t count = tm_diff_pairing_ambiguous_count(&state->pairing);
  if (count == 0) return;
  (void)snprintf(text, sizeof text,
                 "%" PRIu64 " tensors under other names, each a constant or very small, are equal to several and were not paired", count);
  tm_job_add_note(state->setting.job, text);
}

/* Of the rows nobody could tell: each of them only says that its pair differs. */
static tm_status note_moved(diff_state *state, tm_error *error) {
  tm_diff_moved moved;
  char names[2][200], text[640];
  TM_TRY(tm_diff_content_find_moved(&state->pairing, &state->digester, &moved, error));
  if (moved.count == 0) return TM_OK;
  for (uint32_t side = 0; side < 2; side++) {
    const tm_string name = tm_archive_tensor_at(state->sources[side].archive, moved.first[side])->name;
    tm_text_escape(name.data, name.length, names[side], sizeof names[side]);
  }
  (void)snprintf(text, sizeof text, "%" PRIu64 " tensors that differ from those of their names are in the second checkpoint under other "
                 "names; the first, %s, is %s there", moved.count, names[0], names[1]);
  tm_job_add_note(state->setting.job, text);
  return TM_OK;
}

static tm_status compare_by_content(diff_state *state, tm_error *error) {
  static const tm_diff_round rounds[] = {
    { TM_DIFF_LIKE_BYTES, 0, TM_FORMAT_NONE },      { TM_DIFF_LIKE_VALUES, 0, TM_FORMAT_NONE },
    { TM_DIFF_LIKE_TRANSPOSE, 1, TM_FORMAT_NONE },  { TM_DIFF_LIKE_TRANSPOSE, 0, TM_FORMAT_NONE },
    { TM_DIFF_LIKE_ROUNDED, 1, TM_FORMAT_BF16 },    { TM_DIFF_LIKE_ROUNDED, 0, TM_FORMAT_BF16 },
    { TM_DIFF_LIKE_ROUNDED, 1, TM_FORMAT_F16 },     { TM_DIFF_LIKE_ROUNDED, 0, TM_FORMAT_F16 },
  };
  for (uint32_t i = 0; i < sizeof rounds / sizeof rounds[0]; i++) {
    if (!is_any_left(state, 0) && !is_any_left(state, 1)) break;
    TM_TRY(compare_alike(state, &rounds[i], error));
  }
  note_ambiguous(state);
  return note_moved(state, error);
}

static tm_status list_rest(diff_state *state, tm_error *error) {
  tm_diff_pairs pairs;
  tm_diff_pairs_init(&pairs, state->memory);
  tm_status status = tm_diff_pairing_rest(&state->pairing, &pairs, error);
  if (status == TM_OK) status = tm_diff_stream_run(&state->setting, pairs.items, pairs.count, error);
  tm_diff_pairs_deinit(&pairs);
  return status;
}

static bool are_same_files(const tm_archive *a, const tm_archive *b) {
  tm_archive_file left, right;
  uint32_t i = 0;
  if (tm_archive_file_count(a) != tm_archive_file_count(b)) return false;
  while (tm_archive_file_at(a, i, &left) && tm_archive_file_at(b, i, &right) && tm_path_is_same(left.path, right.path)) i++;
  return i == tm_archive_file_count(a);
}

static tm_status run_diff(tm_job *job, void *state_pointer, tm_error *error) {
  diff_state *state = state_pointer;
  tm_diff_setting *setting = &state->setting;
  setting->job = job;
  state->runner.cancelled = tm_job_cancel_flag(job);
  setting->read_tile_bytes = tm_tensor_tile_share(state->memory, TM_TILE_SMALLEST_BYTES, TM_TILE_LARGEST_BYTES);
  tm_byte_comparer_init(&setting->comparer, state->memory, atomic_load(&state->inventory->pool), state->runner.scratch);
  state->digester = (tm_content_digester){ .memory = state->memory, .pool = atomic_load(&state->inventory->pool),
                                           .scratch = state->runner.scratch, .cancelled = state->runner.cancelled };
  setting->are_same_files = are_same_files(state->sources[0].archive, state->sources[1].archive);
  tm_job_sources_note(job, state->sources, 2);
  TM_TRY(tm_selection_make(job, state->memory, state->sources, 2, &state->rules, &state->selection, error));
  tm_job_set_totals(job, state->selection.bytes, state->selection.count);
  TM_TRY(tm_job_reserve_rows(job, tm_divide_up(state->selection.count, 2), error));     /* so many at least */
  TM_TRY(tm_diff_pairing_init(&state->pairing, state->memory, job, state->sources, &state->selection, &state->rules, error));
  TM_TRY(compare_by_name(state, error));
  if ((state->flags & TM_DIFF_BY_NAME) == 0) TM_TRY(compare_by_content(state, error));
  TM_TRY(list_rest(state, error));
  note_bytes(state);
  TM_TRY(check_hidden(state, error));
  if (setting->incomplete.code != TM_OK) return tm_fail(error, setting->incomplete.code, "%s", setting->incomplete.text);
  return TM_OK;
}

static void destroy_state(tm_memory *memory, void *state_pointer) {
  diff_state *state = state_pointer;
  if (state->setting.comparer.scratch != NULL) tm_byte_comparer_deinit(&state->setting.comparer);
  tm_content_digester_deinit(&state->digester);
  tm_diff_pairing_deinit(&state->pairing);
  tm_selection_deinit(&state->selection);
  tm_arena_deinit(&state->arena);
  tm_memory_free(memory, state, sizeof *state);
}

static const tm_job_work diff_work = {
  .columns = tm_diff_columns,
  .column_count = TM_DIFF_COLUMNS,
  .run = run_diff,
  .destroy = destroy_state,
};

tm_status tm_diff_job_start(tm_memory *memory, tm_inventory *inventory, const tm_runner *runner, const tm_diff_request *request,
                            tm_job **out_job, tm_error *error) {
  diff_state *state = tm_memory_calloc(memory, 1, sizeof *state);
  if (state == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a job");
  *state = (diff_state){ .runner = *runner, .memory = memory, .inventory = inventory, .flags = request->flags,
                         .selection = { .memory = memory }, .pairing = { .memory = memory } };
  memcpy(state->sources, request->sources, sizeof state->sources);
  state->setting = (tm_diff_setting){ .runner = &state->runner, .memory = memory, .sources = state->sources,
                                      .worst_numerics = request->worst_numerics, .tile_bytes = TM_TILE_FIRST_BYTES,
                                      .incomplete = TM_ERROR_INIT };
  tm_arena_init(&state->arena, memory);
  const tm_status status = tm_selection_rules_copy(&request->rules, &state->arena, &state->rules, error);
  if (status != TM_OK) {
    destroy_state(memory, state);
    return status;
  }
  const tm_job_plan plan = { .work = &diff_work, .state = state, .complete = request->complete,
                             .complete_context = request->complete_context };
  return tm_job_start(memory, inventory, &plan, out_job, error);
}
