/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/stats_job.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"
#include "execute/work_stream.h"
#include "jobs/centred_pass.h"
#include "jobs/stats_row.h"
#include "jobs/stats_tiles.h"

/* Tensors whose tiles are under way: rows come in file order, whoever is done first. */
#define OPEN_TENSORS 256u

typedef struct open_tensor {
  const tm_selected       *item;
  const tm_archive        *archive;
  const tm_archive_tensor *tensor;
  const tm_format_info    *info;
  bool                     has_figures;
  _Atomic uint64_t         elements_left;       /* that no tile has brought in yet */
  uint64_t                 words[TM_STATS_WORDS];
} open_tensor;

typedef struct stats_state {
  tm_runner        runner;
  tm_memory       *memory;
  tm_arena         arena;               /* the patterns */
  tm_selection_rules rules;
  tm_selection     selection;           /* made by the job's thread */
  tm_job_source   *sources;
  uint32_t         source_count;
  uint32_t         worst_numerics;
  tm_job          *job;
  tm_work_stream_room   room;                /* of the second pass */
  open_tensor     *open;                /* OPEN_TENSORS, a ring */
  _Atomic uint64_t opened;              /* tensors that have or had a place in it: changed under the stream's lock */
  _Atomic uint64_t closed;              /* of these, those whose row is written: changed by the job's thread */
  uint64_t         next_element;        /* these two under the stream's lock: of the tensor opened last */
  uint64_t         tile_bytes;
  uint64_t         read_tile_bytes;     /* the most where a tile needs memory, since its file is not mapped */
} stats_state;

/* ---- tiles, under the stream's lock ---- */

static open_tensor *open_at(const stats_state *state, uint64_t index) { return &state->open[index % OPEN_TENSORS]; }

/* TM_END: there are no more; TM_PENDING: a row has to be written first. */
static tm_status open_next(stats_state *state) {
  const uint64_t index = atomic_load_explicit(&state->opened, memory_order_relaxed);
  if (index == state->selection.count) return TM_END;
  if (index - atomic_load(&state->closed) == OPEN_TENSORS) return TM_PENDING;
  open_tensor *open = open_at(state, index);
  open->item = &state->selection.items[index];
  open->archive = state->sources[open->item->source].archive;
  open->tensor = tm_archive_tensor_at(open->archive, open->item->tensor);
  open->info = tm_format_find(open->tensor->format);
  open->has_figures = !tm_stats_row_has_none(state->job, open->tensor);
  if (!open->has_figures) tm_job_advance(state->job, open->tensor->bytes, 0);
  tm_stats_words_init(open->words);
  atomic_store(&open->elements_left, open->has_figures ? open->tensor->element_count : 0);
  state->next_element = 0;
  atomic_store(&state->opened, index + 1);
  return TM_OK;
}

/* The tensor opened last, if tiles of it are left. */
static open_tensor *unfinished(const stats_state *state) {
  const uint64_t opened = atomic_load_explicit(&state->opened, memory_order_relaxed);
  if (opened == 0) return NULL;
  open_tensor *open = open_at(state, opened - 1);
  return open->has_figures && state->next_element < open->tensor->element_count ? open : NULL;
}

static tm_status next_tile(void *context, tm_work_stream_piece *out_piece, tm_error *error) {
  stats_state *state = context;
  open_tensor *open = unfinished(state);
  while (open == NULL) {
    const tm_status status = open_next(state);
    if (status != TM_OK) return status;
    open = unfinished(state);
  }
  const uint64_t begin = state->next_element;
  const tm_tensor_tile_limits limits = { state->tile_bytes, state->read_tile_bytes, state->worst_numerics };
  const tm_status status = tm_stats_tile_next(open->archive, open->item->tensor, begin, &limits, out_piece, error);
  out_piece->subject = open;
  if (status == TM_OK) state->next_element += tm_stats_piece_elements(out_piece);
  return tm_tensor_name_failure(open->tensor, status, error);
}

static tm_status tile_done(void *context, const tm_work_stream_piece *piece, const void *result, const tm_run_outcome *outcome, tm_error *error) {
  stats_state *state = context;
  open_tensor *open = piece->subject;
  (void)error;
  tm_op_find(TM_OP_STATS)->combine_words(open->words, result);
  tm_job_count_use(state->job, outcome, piece->bytes);
  tm_job_count_piece(state->job, outcome, open->tensor->name);
  tm_tensor_tile_adapt(&state->tile_bytes, piece->bytes, piece->load_ns + outcome->measured_ns);
  tm_job_advance(state->job, piece->bytes, 0);
  atomic_fetch_sub(&open->elements_left, tm_stats_piece_elements(piece));
  return TM_OK;
}

static void note_stream(void *context, const char *text) {
  const stats_state *state = context;
  tm_job_add_note(state->job, text);
}

/* ---- on a lane's thread ---- */

static tm_status load_tile(void *context, const tm_work_stream_piece *piece, tm_work_stream_room *room, void **out_pointers, tm_error *error) {
  const open_tensor *open = piece->subject;
  const tm_format_info *info = open->info;
  (void)context;
  const tm_tensor_tile tile = { piece->begin, tm_stats_piece_elements(piece), piece->begin / info->block_elements * info->block_bytes, piece->bytes };
  const void *data = NULL;
  const tm_status status = tm_tensor_tile_load(open->archive, open->item->tensor, &tile, room, &data, error);
  out_pointers[0] = (void *)(uintptr_t)data;
  return tm_tensor_name_failure(open->tensor, status, error);
}

/* ---- rows, on the job's thread ---- */

static void count_use(void *context, const tm_run_outcome *outcome) {
  const stats_state *state = context;
  tm_job_count_use(state->job, outcome, 0);
}

/* Mean and variance, by a second pass where the first cannot tell. */
static tm_status find_moments(stats_state *state, const open_tensor *open, tm_moments *out_moments, tm_error *error) {
  *out_moments = tm_stats_moments(open->words);
  if (!tm_stats_must_centre(open->info, open->words, out_moments)) return TM_OK;
  const tm_centred_pass pass = { &state->runner, open->archive, open->item->tensor, open->info, out_moments->mean, &state->room };
  uint64_t distances[TM_STATS_WORDS];
  TM_TRY(tm_centred_pass_run(&pass, count_use, state, distances, error));
  const tm_moments centred = tm_stats_moments(distances);
  out_moments->mean += centred.mean;
  out_moments->variance = centred.variance;
  return TM_OK;
}

static tm_status write_row(stats_state *state, const open_tensor *open, tm_error *error) {
  tm_cell cells[TM_STATS_COLUMNS];
  tm_stats_row_identify(state->sources[open->item->source].path, open->tensor, cells);
  if (open->has_figures) {
    tm_moments moments;
    TM_TRY(tm_archive_check_tensor(open->archive, open->item->tensor, error));
    TM_TRY(find_moments(state, open, &moments, error));
    tm_stats_row_fill(open->words, &moments, cells);
    tm_stats_row_note_gaps(state->job, open->tensor, cells, moments.count);
  }
  TM_TRY(tm_job_add_row(state->job, cells, error));
  tm_job_advance(state->job, 0, 1);
  return TM_OK;
}

static tm_status write_rows(void *context, tm_error *error) {
  stats_state *state = context;
  uint64_t closed = atomic_load_explicit(&state->closed, memory_order_relaxed);
  for (; closed < atomic_load(&state->opened); closed++) {
    const open_tensor *open = open_at(state, closed);
    if (atomic_load(&open->elements_left) != 0) break;
    const tm_status status = write_row(state, open, error);
    if (status != TM_OK) return tm_tensor_name_failure(open->tensor, status, error);
    atomic_store(&state->closed, closed + 1);
  }
  return TM_OK;
}

/* ---- the job ---- */

/* Of the tensors that tiles are made of. */
static uint64_t bytes_of_tiles(const stats_state *state) {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < state->selection.count; i++) {
    const tm_selected *item = &state->selection.items[i];
    const tm_archive_tensor *tensor = tm_archive_tensor_at(state->sources[item->source].archive, item->tensor);
    if (tm_stats_row_is_possible(tensor)) bytes += tensor->bytes;
  }
  return bytes;
}

static tm_status run_stats(tm_job *job, void *state_pointer, tm_error *error) {
  stats_state *state = state_pointer;
  state->job = job;
  state->read_tile_bytes = tm_tensor_tile_share(state->memory, TM_TILE_SMALLEST_BYTES, TM_TILE_LARGEST_BYTES);
  state->runner.cancelled = tm_job_cancel_flag(job);
  tm_job_sources_note(job, state->sources, state->source_count);
  TM_TRY(tm_selection_make(job, state->memory, state->sources, state->source_count, &state->rules, &state->selection, error));
  tm_job_set_totals(job, state->selection.bytes, state->selection.count);
  TM_TRY(tm_job_reserve_rows(job, state->selection.count, error));
  const tm_work_stream_source work = { .context = state,
                                      .bytes_total = bytes_of_tiles(state),
                                      .result_bytes = TM_STATS_WORDS * sizeof(uint64_t),
                                      .small_bytes = TM_TILE_SMALL_BYTES,
                                      .next = next_tile,
                                      .load = load_tile,
                                      .done = tile_done,
                                      .advance = write_rows,
                                      .note = note_stream };
  return tm_work_stream_run(&state->runner, &work, NULL, error);
}

static void destroy_state(tm_memory *memory, void *state_pointer) {
  stats_state *state = state_pointer;
  tm_scratch_give(state->room.scratch, state->room.block);
  tm_memory_free(memory, state->open, OPEN_TENSORS * sizeof *state->open);
  tm_selection_deinit(&state->selection);
  tm_arena_deinit(&state->arena);
  tm_memory_free(memory, state->sources, state->source_count * sizeof *state->sources);
  tm_memory_free(memory, state, sizeof *state);
}

static const tm_job_work stats_work = {
  .columns = tm_stats_columns,
  .column_count = TM_STATS_COLUMNS,
  .run = run_stats,
  .destroy = destroy_state,
};

static tm_status fill_state(stats_state *state, tm_memory *memory, const tm_stats_request *request, tm_error *error) {
  state->sources = tm_memory_calloc(memory, request->source_count, sizeof *state->sources);
  state->open = tm_memory_calloc(memory, OPEN_TENSORS, sizeof *state->open);
  if (state->sources == NULL || state->open == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a job");
  memcpy(state->sources, request->sources, request->source_count * sizeof *state->sources);
  return tm_selection_rules_copy(&request->rules, &state->arena, &state->rules, error);
}

tm_status tm_stats_job_start(tm_memory *memory, tm_inventory *inventory, const tm_runner *runner, const tm_stats_request *request,
                             tm_job **out_job, tm_error *error) {
  stats_state *state = tm_memory_calloc(memory, 1, sizeof *state);
  if (state == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a job");
  *state = (stats_state){ .runner = *runner, .memory = memory, .selection = { .memory = memory }, .source_count = request->source_count,
                          .worst_numerics = request->worst_numerics, .tile_bytes = TM_TILE_FIRST_BYTES,
                          .room = { .scratch = runner->scratch } };
  tm_arena_init(&state->arena, memory);
  const tm_status status = fill_state(state, memory, request, error);
  if (status != TM_OK) {
    destroy_state(memory, state);
    return status;
  }
  const tm_job_plan plan = { .work = &stats_work, .state = state, .complete = request->complete,
                             .complete_context = request->complete_context };
  return tm_job_start(memory, inventory, &plan, out_job, error);
}
