/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"
#include "formats/byte_buffer.h"
#include "jobs/merge_lane.h"
#include "jobs/merge_provenance.h"
#include "jobs/merge_row.h"
#include "jobs/merge_tiles.h"

typedef struct merge_state {
  tm_merge_lanes    lanes;
  tm_memory        *memory;
  tm_merge_plan    *plan;
  bool              has_lock;
  tm_merge_open    *open;               /* a ring of open_capacity */
  uint64_t         *words;              /* as many rooms of looked_words */
  uint64_t          looked_words;
  uint32_t          open_capacity;
  _Atomic uint64_t  opened;             /* items that have or had a place in it: changed under the stream's lock */
  _Atomic uint64_t  closed;             /* of these, those that are written: changed by the job's thread */
  uint64_t          most_units;
  uint64_t          broken_count;       /* elements that are finite in the leading checkpoint, and not in the result */
  const tm_merge_item *broken_first;
  uint64_t          nonfinite_count, nonfinite_tensors;         /* of which, in how many tensors */
  const tm_merge_item *nonfinite_first;
  tm_scratch_block  copy_room;          /* for files that are not mapped: copied_bytes, taken before tiles share what is left */
  uint64_t          copied_bytes;
} merge_state;

static tm_merge_open *open_at(const merge_state *state, uint64_t index) { return &state->open[index % state->open_capacity]; }

/* ------------------------------------------------------------------------------------ pieces, under the stream's lock ---- */

static tm_status open_next(merge_state *state) {
  const uint64_t index = atomic_load_explicit(&state->opened, memory_order_relaxed);
  if (index == state->plan->totals.tensor_count) return TM_END;
  if (index - atomic_load(&state->closed) == state->open_capacity) return TM_PENDING;
  uint64_t *words = state->words == NULL ? NULL : state->words + index % state->open_capacity * state->looked_words;
  tm_merge_open_begin(open_at(state, index), &state->plan->settings, &state->plan->items[index], index, words);
  atomic_store(&state->opened, index + 1);
  return TM_OK;
}

/* One with elements that no piece has; NULL: none of those that are open. */
static tm_merge_open *find_unfinished(const merge_state *state, bool *out_may_come) {
  const uint64_t opened = atomic_load_explicit(&state->opened, memory_order_relaxed);
  *out_may_come = false;
  for (uint64_t i = atomic_load(&state->closed); i < opened; i++) {
    tm_merge_open *open = open_at(state, i);
    if (tm_merge_open_has_more(open)) return open;
    const bool looks = open->pass != TM_MERGE_PASS_NONE && open->pass != TM_MERGE_PASS_COMPUTE;
    *out_may_come = *out_may_come || looks;
  }
  return NULL;
}

static tm_status next_piece(void *context, tm_work_stream_piece *out_piece, tm_error *error) {
  merge_state *state = context;
  bool may_come = false;
  tm_merge_open *open = find_unfinished(state, &may_come);
  while (open == NULL) {
    const tm_status status = open_next(state);
    if (status == TM_END && may_come) return TM_PENDING;        /* looking is followed by computing */
    if (status != TM_OK) return status;
    open = find_unfinished(state, &may_come);
  }
  const uint64_t units = tm_merge_tile_units(open->item, state->most_units);
  return tm_merge_name_tensor(open->item, tm_merge_open_next(open, units, out_piece, error), error);
}

/* Which nobody knew of when all that is to be read was added up. */
static bool is_second_look(const tm_work_stream_piece *piece) {
  const tm_merge_open *open = piece->subject;
  return open->is_scaled && !tm_merge_piece_computes(piece);
}

static tm_status piece_done(void *context, const tm_work_stream_piece *piece, const void *result, const tm_run_outcome *outcome,
                            tm_error *error) {
  merge_state *state = context;
  (void)error;
  tm_job_count_use(state->lanes.job, outcome, piece->bytes);
  tm_job_count_piece(state->lanes.job, outcome, ((const tm_merge_open *)piece->subject)->item->name);
  tm_job_advance(state->lanes.job, is_second_look(piece) ? 0 : piece->bytes, 0);
  tm_merge_open_done(piece->subject, piece, result);
  return TM_OK;
}

static void name_piece(void *context, const tm_work_stream_piece *piece, tm_status status, tm_error *error) {
  const tm_merge_open *open = piece->subject;
  (void)context;
  (void)tm_merge_name_tensor(open->item, status, error);
}

static void note_stream(void *context, const char *text) {
  const merge_state *state = context;
  tm_job_add_note(state->lanes.job, text);
}

/* ---- on a lane's thread ---- */

static tm_status load_piece(void *context, const tm_work_stream_piece *piece, tm_work_stream_room *room, void **out_pointers,
                            tm_error *error) {
  merge_state *state = context;
  return tm_merge_lane_load(&state->lanes, piece, room, out_pointers, error);
}

static tm_status deliver_piece(void *context, const tm_work_stream_piece *piece, tm_work_stream_room *room, void *const *pointers,
                               tm_error *error) {
  merge_state *state = context;
  return tm_merge_lane_deliver(&state->lanes, piece, room, pointers, error);
}

/* ---------------------------------------------------------------------------------------------------------- copying ---- */

static const void *copy_source(merge_state *state, const tm_archive *archive, uint64_t tensor, uint64_t offset, uint64_t bytes,
                               tm_status *out_status, tm_error *error) {
  const char *mapped = tm_archive_mapped(archive, tensor);
  *out_status = TM_OK;
  if (mapped != NULL) return mapped + offset;
  *out_status = tm_archive_read(archive, tensor, offset, state->copy_room.memory, bytes, error);
  return state->copy_room.memory;
}

static void hash_copied(merge_state *state, const tm_merge_open *open, uint64_t offset, const void *data, uint64_t bytes) {
  const tm_merge_item *item = open->item;
  tm_content_hash hash = { 0, 0 };
  tm_merge_hash_add(item->name, item->format, offset / tm_merge_unit_of(item->format), data, bytes, &hash);
  tm_mutex_lock(&state->lanes.lock);
  tm_content_hash_merge(&state->lanes.hashes[state->plan->settings.same_as[item->inputs[0].source]], &hash);
  tm_mutex_unlock(&state->lanes.lock);
}

static tm_status copy_tensor(merge_state *state, const tm_merge_open *open, tm_error *error) {
  const tm_merge_input *input = &open->item->inputs[0];
  const tm_archive *archive = state->plan->settings.sources[input->source].archive;
  const bool is_mapped = tm_archive_mapped(archive, input->tensor) != NULL;
  const uint64_t step = tm_merge_copy_step(is_mapped ? 0 : state->copied_bytes, tm_merge_unit_of(open->item->format));
  tm_status status = TM_OK;
  for (uint64_t offset = 0; offset < open->item->bytes; offset += step) {
    const uint64_t bytes = tm_min_u64(step, open->item->bytes - offset);
    if (tm_job_is_cancelled(state->lanes.job)) return TM_ERROR_CANCELLED;
    const void *data = copy_source(state, archive, input->tensor, offset, bytes, &status, error);
    TM_TRY(status);
    TM_TRY(tm_archive_check_tensor(archive, input->tensor, error));
    hash_copied(state, open, offset, data, bytes);
    TM_TRY(tm_checkpoint_writer_write(state->plan->writer, open->index, offset, data, bytes, error));
    tm_job_advance(state->lanes.job, bytes, 0);
  }
  return TM_OK;
}

/* ------------------------------------------------------------------------------------------ rows, on the job's thread ---- */

/* Rows that are only taken over from it are no change, and nothing to measure one by. */
static bool has_lead(const merge_state *state, const tm_merge_item *item) {
  for (uint32_t i = 0; i < item->input_count; i++)
    if (item->inputs[i].source == state->plan->settings.lead) return true;
  return false;
}

static void count_nonfinite(merge_state *state, const tm_merge_open *open) {
  if (open->change[TM_COMPARISON_NONFINITE] == 0) return;
  if (state->nonfinite_tensors++ == 0) state->nonfinite_first = open->item;
  state->nonfinite_count += open->change[TM_COMPARISON_NONFINITE];
}

static void count_broken(merge_state *state, const tm_merge_open *open) {
  if (open->broken_count != 0 && state->broken_first == NULL) state->broken_first = open->item;
  state->broken_count += open->broken_count;
}

static void tell_broken(const merge_state *state) {
  char name[160], text[400];
  if (state->broken_first == NULL) return;
  (void)tm_text_escape(state->broken_first->name.data, state->broken_first->name.length, name, sizeof name);
  (void)snprintf(text, sizeof text, "%" PRIu64 " of these elements %s finite in the checkpoint that leads; the first tensor with "
                 "such is '%s'", state->broken_count, state->broken_count == 1 ? "is" : "are", name);
  tm_job_add_note(state->lanes.job, text);
}

static void tell_nonfinite(const merge_state *state) {
  char name[160], text[400];
  if (state->nonfinite_tensors == 0) return;
  (void)tm_text_escape(state->nonfinite_first->name.data, state->nonfinite_first->name.length, name, sizeof name);
  (void)snprintf(text, sizeof text, "%" PRIu64 " element%s in %" PRIu64 " tensor%s NaN or infinite, in the result or in the "
                 "checkpoint that leads; the first tensor is '%s'", state->nonfinite_count, state->nonfinite_count == 1 ? "" : "s",
                 state->nonfinite_tensors, state->nonfinite_count == 1 ? " is" : state->nonfinite_tensors == 1 ? " are" : "s are", name);
  tm_job_add_note(state->lanes.job, text);
}

static tm_status write_row(merge_state *state, const tm_merge_open *open, tm_error *error) {
  const tm_merge_item *item = open->item;
  tm_cell cells[TM_MERGE_JOB_COLUMNS];
  const bool is_computed = item->action == TM_MERGE_ACTION_COMPUTE;
  if (!is_computed) TM_TRY(copy_tensor(state, open, error));
  const bool has_blocks = is_computed && tm_merge_computed_format(item) != item->format;
  const bool is_led = has_lead(state, item);
  const tm_merge_outcome outcome = { open->weights_text, is_led ? open->change : NULL, has_blocks ? open->loss : NULL,
                                     open->broken_count };
  if (is_led) count_broken(state, open);
  if (is_computed) count_nonfinite(state, open);
  if (open->weights_text != NULL && tm_merge_plan_keep_arc(state->plan, open->index, &open->arc) != TM_OK)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a row");
  if (tm_merge_job_row_fill(state->plan, open->index, &outcome, cells) != TM_OK)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a row");
  TM_TRY(tm_job_add_row(state->lanes.job, cells, error));
  tm_job_advance(state->lanes.job, 0, 1);
  return TM_OK;
}

static tm_status write_rows(void *context, tm_error *error) {
  merge_state *state = context;
  uint64_t closed = atomic_load_explicit(&state->closed, memory_order_relaxed);
  for (; closed < atomic_load(&state->opened); closed++) {
    const tm_merge_open *open = open_at(state, closed);
    if (open->item->action == TM_MERGE_ACTION_COMPUTE && !atomic_load(&open->is_done)) break;
    TM_TRY(tm_merge_name_tensor(open->item, write_row(state, open, error), error));
    atomic_store(&state->closed, closed + 1);
  }
  return TM_OK;
}

/* ---------------------------------------------------------------------------------------------------------- the job ---- */

static tm_status run_stream(merge_state *state, tm_error *error) {
  const tm_merge_plan *plan = state->plan;
  uint64_t result_bytes = state->looked_words * sizeof *state->words;
  for (uint64_t i = 0; i < plan->totals.tensor_count; i++) {
    const tm_merge_item *item = &plan->items[i];
    if (item->action != TM_MERGE_ACTION_COMPUTE) continue;
    const uint64_t units = tm_merge_tile_units(item, state->most_units);
    const uint64_t elements = tm_min_u64(item->element_count, units * TM_MERGE_UNIT_ELEMENTS);
    result_bytes = tm_max_u64(result_bytes, tm_merge_bytes_of(tm_merge_computed_format(item), elements));
  }
  const tm_work_stream_source work = { .context = state,
                                       .bytes_total = plan->totals.read_bytes,
                                       .result_bytes = result_bytes,
                                       .next = next_piece,
                                       .load = load_piece,
                                       .deliver = deliver_piece,
                                       .blame = name_piece,
                                       .done = piece_done,
                                       .advance = write_rows,
                                       .note = note_stream };
  return tm_work_stream_run(&state->lanes.runner, &work, NULL, error);
}

static tm_status check_sources(const merge_state *state, tm_error *error) {
  const tm_merge_settings *settings = &state->plan->settings;
  for (uint32_t i = 0; i < settings->source_count; i++) TM_TRY(tm_archive_check_unchanged(settings->sources[i].archive, error));
  return TM_OK;
}

static tm_status tell_provenance(merge_state *state, tm_error *error) {
  tm_byte_buffer buffer;
  tm_byte_buffer_init(&buffer, state->memory);
  tm_merge_provenance_print(&state->plan->settings, state->lanes.hashes, &buffer);
  tm_mutex_lock(&state->plan->lock);
  const char *text = buffer.failed ? NULL : tm_arena_string(&state->plan->arena, (const char *)buffer.bytes, buffer.length);
  tm_mutex_unlock(&state->plan->lock);
  if (text != NULL) atomic_store(&state->plan->provenance, text);
  const tm_status status =
      text == NULL ? tm_fail(error, TM_ERROR_NO_MEMORY, "no memory to say how the merge was made")
                   : tm_checkpoint_writer_replace_late(state->plan->writer, (tm_string){ text, buffer.length }, error);
  tm_byte_buffer_deinit(&buffer);
  return status;
}

static tm_status write_all(merge_state *state, tm_error *error) {
  TM_TRY(tm_checkpoint_writer_begin(state->plan->writer, error));
  TM_TRY(run_stream(state, error));
  TM_TRY(write_rows(state, error));     /* copies that came after the last piece */
  tell_nonfinite(state);
  tell_broken(state);
  TM_TRY(check_sources(state, error));
  TM_TRY(tell_provenance(state, error));
  return tm_checkpoint_writer_finish(state->plan->writer, error);
}

static tm_status run_merge(tm_job *job, void *state_pointer, tm_error *error) {
  merge_state *state = state_pointer;
  const tm_merge_plan *plan = state->plan;
  state->lanes.job = job;
  state->lanes.runner.cancelled = tm_job_cancel_flag(job);
  tm_job_set_totals(job, plan->totals.read_bytes, plan->totals.tensor_count);
  if (tm_job_is_cancelled(job)) return TM_ERROR_CANCELLED;
  const tm_status status = write_all(state, error);
  if (status != TM_OK) tm_checkpoint_writer_abandon(plan->writer);
  return status;
}

static void cancel_merge(void *state_pointer) {
  const merge_state *state = state_pointer;
  tm_checkpoint_writer_cancel(state->plan->writer);
}

static void destroy_state(tm_memory *memory, void *state_pointer) {
  merge_state *state = state_pointer;
  if (state->copy_room.memory != NULL) tm_scratch_give(state->lanes.runner.scratch, state->copy_room);
  tm_memory_free(memory, state->open, state->open_capacity * sizeof *state->open);
  tm_memory_free(memory, state->words, state->open_capacity * state->looked_words * sizeof *state->words);
  if (state->has_lock) tm_mutex_deinit(&state->lanes.lock);
  tm_memory_free(memory, state, sizeof *state);
}

static const tm_job_work merge_work = {
  .columns = tm_merge_job_column_list,
  .column_count = TM_MERGE_JOB_COLUMNS,
  .run = run_merge,
  .cancel = cancel_merge,
  .destroy = destroy_state,
};

static uint64_t words_for_looking(const tm_merge_plan *plan) {
  uint64_t words = 0;
  for (uint64_t i = 0; i < plan->totals.tensor_count; i++) {
    const tm_merge_item *item = &plan->items[i];
    if (!tm_merge_open_looks(item)) continue;
    words = tm_max_u64(words, item->method == TM_MERGE_TIES ? TM_MAGNITUDE_BINS : TM_COMPARISON_WORDS);
  }
  return words;
}

static tm_status fill_state(merge_state *state, tm_error *error) {
  state->looked_words = words_for_looking(state->plan);
  state->open_capacity = state->looked_words > TM_COMPARISON_WORDS ? TM_MERGE_OPEN_HISTOGRAMS : TM_MERGE_OPEN_TENSORS;
  state->open = tm_memory_calloc(state->memory, state->open_capacity, sizeof *state->open);
  if (state->looked_words != 0)
    state->words = tm_memory_calloc(state->memory, state->open_capacity * state->looked_words, sizeof *state->words);
  state->has_lock = tm_mutex_init(&state->lanes.lock) == TM_OK;
  state->copied_bytes = tm_merge_copy_bytes(state->memory, state->plan->copy_unit_bytes);
  if (state->copied_bytes != 0) state->copy_room = tm_scratch_take(state->lanes.runner.scratch, state->copied_bytes);
  const bool has_room = state->copied_bytes == 0 || state->copy_room.memory != NULL;
  state->most_units = tm_merge_most_units(state->memory, state->plan->unit_bytes);
  const bool has_words = state->looked_words == 0 || state->words != NULL;
  return state->open != NULL && has_words && has_room && state->has_lock ? TM_OK
                                                                         : tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a job");
}

tm_status tm_merge_job_start(tm_merge_plan *plan, tm_job_complete_fn complete, void *complete_context, tm_job **out_job,
                             tm_error *error) {
  merge_state *state = tm_memory_calloc(plan->memory, 1, sizeof *state);
  if (state == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a job");
  state->memory = plan->memory;
  state->plan = state->lanes.plan = plan;
  state->lanes.runner = plan->runner;
  const tm_status status = fill_state(state, error);
  if (status != TM_OK) {
    destroy_state(plan->memory, state);
    return status;
  }
  const tm_job_plan job = { .work = &merge_work, .state = state, .complete = complete, .complete_context = complete_context };
  return tm_job_start(plan->memory, plan->inventory, &job, out_job, error);
}
