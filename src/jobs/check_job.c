/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/check_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"
#include "execute/work_stream.h"
#include "jobs/check_files.h"
#include "jobs/check_values.h"
#include "jobs/content_ties.h"
#include "jobs/stats_figures.h"
#include "jobs/stats_tiles.h"

/* Tensors that are under way: rows come in file order, whoever is done first. */
#define OPEN_TENSORS 256u

/* Who looks at a tensor's values.  Floats are counted by statistics, on any device.  What no operation reads, and what has to be
   hashed meanwhile, the library looks at itself. */
typedef enum road { ROAD_NONE, ROAD_STREAM, ROAD_HOST } road;

typedef struct open_tensor {
  const tm_selected       *item;
  const tm_job_source     *source;
  const tm_archive_tensor *tensor;
  const tm_format_info    *info;
  tm_tie_entry            *tie;         /* NULL: nothing is equal to it */
  road                     road;
  _Atomic uint64_t         elements_left;       /* that nobody has looked at yet */
  uint64_t                 words[TM_STATS_WORDS];
  tm_host_scan             scan;        /* the job's thread's */
  _Atomic uint32_t         has_failed;  /* it could not be read: the first who sees it tells why */
  tm_error                 failure;
} open_tensor;

typedef struct check_state {
  tm_runner            runner;
  tm_memory           *memory;
  tm_inventory        *inventory;
  tm_arena             arena;           /* paths and patterns */
  const char         **paths;
  uint32_t             path_count;
  uint32_t             worst_numerics;
  tm_archive_options   archive_options;
  tm_selection_rules   rules;
  tm_job              *job;
  tm_check_files       files;
  tm_selection         selection;
  tm_content_ties      ties;
  tm_host_scanner      scanner;
  uint64_t             host_bytes;
  _Atomic uint32_t    *is_broken;       /* by source: it could not be read, which is said once */
  open_tensor         *open;            /* OPEN_TENSORS, a ring */
  _Atomic uint64_t     opened;          /* tensors that have or had a place in it: changed under the stream's lock */
  _Atomic uint64_t     closed;          /* of these, those whose rows are written: changed by the job's thread */
  uint64_t             scanned;         /* the job's thread's: all before this are not, or not any more, for the library itself */
  uint64_t             next_element;    /* these two under the stream's lock: of the tensor opened last */
  uint64_t             tile_bytes;
  uint64_t             read_tile_bytes; /* the most where a tile needs memory, since its file is not mapped */
} check_state;

static open_tensor *open_at(const check_state *state, uint64_t index) { return &state->open[index % OPEN_TENSORS]; }

/* ---- tiles, under the stream's lock ---- */

static bool can_examine(const tm_archive_tensor *tensor, const tm_format_info *info) {
  if ((tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) != 0) return false;
  return tensor->element_count == 0 || (info != NULL && tm_value_scan_knows(info));
}

static road road_of(const check_state *state, const open_tensor *open) {
  const tm_archive_tensor *tensor = open->tensor;
  if (!can_examine(tensor, open->info) || tensor->element_count == 0) return ROAD_NONE;
  if (atomic_load(&state->is_broken[open->item->source]) != 0) return ROAD_NONE;
  const bool is_float = open->info->kind == TM_KIND_FLOAT && open->info->has_arithmetic;
  return is_float && open->tie == NULL ? ROAD_STREAM : ROAD_HOST;
}

/* TM_END: there are no more; TM_PENDING: a row has to be written first. */
static tm_status open_next(check_state *state) {
  const uint64_t index = atomic_load_explicit(&state->opened, memory_order_relaxed);
  if (index == state->selection.count) return TM_END;
  if (index - atomic_load(&state->closed) == OPEN_TENSORS) return TM_PENDING;
  open_tensor *open = open_at(state, index);
  open->item = &state->selection.items[index];
  open->source = &state->files.sources[open->item->source];
  open->tensor = tm_archive_tensor_at(open->source->archive, open->item->tensor);
  open->info = tm_format_find(open->tensor->format);
  open->tie = tm_content_ties_find(&state->ties, index);
  open->road = road_of(state, open);
  open->failure = (tm_error)TM_ERROR_INIT;
  atomic_store(&open->has_failed, 0);
  if (open->road == ROAD_HOST) tm_host_scan_init(&open->scan, open->source->archive, open->item->tensor, open->tie != NULL);
  tm_stats_words_init(open->words);
  atomic_store(&open->elements_left, open->road == ROAD_NONE ? 0 : open->tensor->element_count);
  state->next_element = 0;
  atomic_store(&state->opened, index + 1);
  return TM_OK;
}

/* The tensor opened last, if tiles of it are left. */
static open_tensor *unfinished(const check_state *state) {
  const uint64_t opened = atomic_load_explicit(&state->opened, memory_order_relaxed);
  if (opened == 0) return NULL;
  open_tensor *open = open_at(state, opened - 1);
  return open->road == ROAD_STREAM && state->next_element < open->tensor->element_count ? open : NULL;
}

/* The rest of a tensor whose file failed is not worth reading.  What was not read is not counted as done. */
static void drop_rest(check_state *state, open_tensor *open) {
  const uint64_t rest = open->tensor->element_count - state->next_element;
  state->next_element += rest;
  atomic_fetch_sub(&open->elements_left, rest);
}

static tm_status next_tile(void *context, tm_work_stream_piece *out_piece, tm_error *error) {
  check_state *state = context;
  open_tensor *open = unfinished(state);
  if (open != NULL && atomic_load(&open->has_failed) != 0) {
    drop_rest(state, open);
    open = NULL;
  }
  while (open == NULL) {
    const tm_status status = open_next(state);
    if (status != TM_OK) return status;
    open = unfinished(state);
  }
  const uint64_t begin = state->next_element;
  const tm_tensor_tile_limits limits = { state->tile_bytes, state->read_tile_bytes, state->worst_numerics };
  const tm_status status = tm_stats_tile_next(open->source->archive, open->item->tensor, begin, &limits, out_piece, error);
  out_piece->subject = open;
  if (status == TM_OK) state->next_element += tm_stats_piece_elements(out_piece);
  return tm_tensor_name_failure(open->tensor, status, error);
}

static tm_status tile_done(void *context, const tm_work_stream_piece *piece, const void *result, const tm_run_outcome *outcome,
                           tm_error *error) {
  check_state *state = context;
  open_tensor *open = piece->subject;
  (void)error;
  tm_op_find(TM_OP_STATS)->combine_words(open->words, result);
  const uint64_t examined_bytes = atomic_load(&open->has_failed) == 0 ? piece->bytes : 0;
  tm_job_count_use(state->job, outcome, examined_bytes);
  tm_job_count_piece(state->job, outcome, open->tensor->name);
  tm_tensor_tile_adapt(&state->tile_bytes, piece->bytes, piece->load_ns + outcome->measured_ns);
  tm_job_advance(state->job, examined_bytes, 0);
  atomic_fetch_sub(&open->elements_left, tm_stats_piece_elements(piece));
  return TM_OK;
}

static void note_stream(void *context, const char *text) {
  const check_state *state = context;
  tm_job_add_note(state->job, text);
}

/* ---- on a lane's thread ---- */

/* What is wrong with one file costs the others nothing. */
static bool is_of_the_file(tm_status status) {
  return status == TM_ERROR_IO || status == TM_ERROR_CHANGED || status == TM_ERROR_CORRUPT || status == TM_ERROR_NOT_FOUND;
}

static void take_failure(open_tensor *open, const tm_error *error) {
  if (atomic_fetch_add(&open->has_failed, 1) == 0) open->failure = *error;
}

/* What cannot be read counts as zeros: its row says so instead of what was counted.  Of a mapped file that was cut
   off only zeros are left, which are not worth reading either, so whether it still is what it was is asked each time. */
static tm_status load_tile(void *context, const tm_work_stream_piece *piece, tm_work_stream_room *room, void **out_pointers,
                           tm_error *error) {
  open_tensor *open = piece->subject;
  const uint64_t offset = piece->begin / open->info->block_elements * open->info->block_bytes;
  const char *mapped = tm_archive_mapped(open->source->archive, open->item->tensor);
  tm_error own = TM_ERROR_INIT;
  (void)context;
  if (mapped != NULL) {
    out_pointers[0] = (void *)(uintptr_t)(mapped + offset);
    if (tm_archive_check_tensor(open->source->archive, open->item->tensor, &own) != TM_OK) take_failure(open, &own);
    return TM_OK;
  }
  void *memory = tm_work_stream_room_take(room, piece->bytes);
  if (memory == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a tile of %" PRIu64 " bytes", piece->bytes);
  out_pointers[0] = memory;
  const tm_status status = tm_archive_read(open->source->archive, open->item->tensor, offset, memory, piece->bytes, &own);
  if (status == TM_OK) return TM_OK;
  if (!is_of_the_file(status)) return tm_fail(error, status, "%s", own.text);
  memset(memory, 0, (size_t)piece->bytes);
  take_failure(open, &own);
  return TM_OK;
}

/* ---- what the library looks at itself, on the job's thread ---- */

static void finish_scan(open_tensor *open) {
  if (open->tie != NULL && atomic_load(&open->has_failed) == 0) {
    open->tie->hash = open->scan.hash;
    open->tie->is_known = true;
  }
  atomic_store(&open->elements_left, 0);
}

/* Whether the file still is what it was is asked each time, as above. */
static tm_status step_tensor(check_state *state, open_tensor *open, tm_error *error) {
  uint64_t bytes = 0;
  tm_error own = TM_ERROR_INIT;
  const bool is_broken = atomic_load(&state->is_broken[open->item->source]) != 0;
  tm_status status = is_broken ? TM_ERROR_CHANGED : tm_host_scan_step(&state->scanner, &open->scan, &bytes, &own);
  if (status == TM_OK) status = tm_archive_check_tensor(open->source->archive, open->item->tensor, &own);
  if (status != TM_OK && !is_of_the_file(status)) return tm_fail(error, status, "%s", own.text);
  if (status == TM_OK) {
    state->host_bytes += bytes;
    tm_job_advance(state->job, bytes, 0);
  } else {
    take_failure(open, &own);
    open->scan.next = open->scan.end;
  }
  if (tm_host_scan_is_done(&open->scan)) finish_scan(open);
  return TM_OK;
}

/* One step of the first tensor that needs one.  Places of the ring before the first one that is not closed are others' by now. */
static tm_status scan_some(check_state *state, tm_error *error) {
  state->scanned = tm_max_u64(state->scanned, atomic_load(&state->closed));
  for (; state->scanned < atomic_load(&state->opened); state->scanned++) {
    open_tensor *open = open_at(state, state->scanned);
    if (open->road != ROAD_HOST || atomic_load(&open->elements_left) == 0) continue;
    return tm_tensor_name_failure(open->tensor, step_tensor(state, open, error), error);
  }
  return TM_OK;
}

/* ---- rows, on the job's thread ---- */

/* Of a model in several files the one that holds the tensor. */
static const char *file_of(const tm_job_source *source, const tm_archive_tensor *tensor) {
  tm_archive_file file;
  const bool is_set = tm_archive_file_count(source->archive) > 1;
  return is_set && tm_archive_file_at(source->archive, tensor->file_index, &file) ? file.path : source->path;
}

static tm_status report_unexamined(check_state *state, const open_tensor *open, tm_error *error) {
  char type[128];
  tm_check_row row;
  tm_check_row_init(&row, TM_CHECK_FINDING, "unexamined", file_of(open->source, open->tensor), open->tensor);
  tm_text_escape(open->tensor->type_name, strlen(open->tensor->type_name), type, sizeof type);
  (void)snprintf(row.message, sizeof row.message, "its type (%s) is unknown to this version, so its values were not examined",
                 type);
  return tm_check_row_add(state->job, &row, error);
}

static tm_status report_failure(check_state *state, const open_tensor *open, const tm_error *failure, tm_error *error) {
  tm_check_row row;
  if (atomic_exchange(&state->is_broken[open->item->source], 1) != 0) return TM_OK;
  tm_check_row_init(&row, TM_CHECK_TROUBLE, failure->code == TM_ERROR_CHANGED ? "changed" : "unreadable",
                    file_of(open->source, open->tensor), open->tensor);
  (void)snprintf(row.message, sizeof row.message, "%.900s; it and what follows in this file was not examined", failure->text);
  return tm_check_row_add(state->job, &row, error);
}

/* A single zero is no news. */
static bool is_all_zero(const open_tensor *open) {
  if (open->tensor->element_count == 1) return false;
  return open->road == ROAD_HOST ? !open->scan.values.has_nonzero : open->words[TM_STATS_ZERO] == open->words[TM_STATS_COUNT];
}

static bool has_nonfinite(const open_tensor *open) {
  const tm_value_scan *values = &open->scan.values;
  if (open->road == ROAD_HOST) return values->nan_count + values->pos_inf_count + values->neg_inf_count != 0;
  return open->words[TM_STATS_NAN] + open->words[TM_STATS_POS_INF] + open->words[TM_STATS_NEG_INF] != 0;
}

static tm_status report_values(check_state *state, const open_tensor *open, tm_error *error) {
  const tm_checked_tensor checked = { state->job, &state->scanner, file_of(open->source, open->tensor), open->source->archive,
                                      open->item->tensor };
  if (has_nonfinite(open)) {
    TM_TRY(tm_check_values_report_nonfinite(&checked, error));
  } else if (is_all_zero(open)) {
    if (open->tie != NULL) open->tie->is_known = false;         /* that all zeros are equal is no news */
    TM_TRY(tm_check_values_report_zero(&checked, error));
  }
  return TM_OK;
}

/* A file that changed was not what its bytes said, so that is looked at before anything is told of them. */
static tm_status write_rows_of(check_state *state, open_tensor *open, tm_error *error) {
  const tm_archive_tensor *tensor = open->tensor;
  const bool is_whole = (tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) == 0;
  const bool is_known = open->info != NULL && tm_value_scan_knows(open->info);
  tm_error own = TM_ERROR_INIT;
  if (is_whole && !is_known && tensor->element_count != 0) return report_unexamined(state, open, error);
  if (open->road == ROAD_NONE) return TM_OK;
  if (atomic_load(&open->has_failed) == 0) {
    tm_status status = tm_archive_check_tensor(open->source->archive, open->item->tensor, &own);
    if (status == TM_OK) status = report_values(state, open, &own);
    if (status != TM_OK && !is_of_the_file(status)) return tm_fail(error, status, "%s", own.text);
    if (status != TM_OK) take_failure(open, &own);
  }
  if (atomic_load(&open->has_failed) == 0) return TM_OK;
  if (open->tie != NULL) open->tie->is_known = false;
  return report_failure(state, open, &open->failure, error);
}

/* A tensor without elements takes no road, and nothing of it is left to examine. */
static bool was_examined(const open_tensor *open) {
  if (open->road == ROAD_NONE) return open->tensor->element_count == 0 && can_examine(open->tensor, open->info);
  return atomic_load(&open->has_failed) == 0;
}

static tm_status write_rows(check_state *state, tm_error *error) {
  uint64_t closed = atomic_load_explicit(&state->closed, memory_order_relaxed);
  for (; closed < atomic_load(&state->opened); closed++) {
    open_tensor *open = open_at(state, closed);
    if (atomic_load(&open->elements_left) != 0) break;
    const tm_status status = write_rows_of(state, open, error);
    if (status != TM_OK) return tm_tensor_name_failure(open->tensor, status, error);
    if (was_examined(open)) tm_job_advance(state->job, 0, 1);
    atomic_store(&state->closed, closed + 1);
  }
  return TM_OK;
}

static tm_status advance(void *context, tm_error *error) {
  check_state *state = context;
  TM_TRY(scan_some(state, error));
  return write_rows(state, error);
}

/* ---- tied tensors ---- */

static const tm_archive_tensor *tensor_of(const check_state *state, uint64_t index, const tm_job_source **out_source) {
  const tm_selected *item = &state->selection.items[index];
  *out_source = &state->files.sources[item->source];
  return tm_archive_tensor_at((*out_source)->archive, item->tensor);
}

static tm_status report_tie(check_state *state, const tm_tie_entry *entry, tm_error *error) {
  const tm_job_source *source, *other_source;
  const tm_archive_tensor *tensor = tensor_of(state, entry->item, &source), *other = tensor_of(state, entry->first, &other_source);
  char name[400];
  tm_check_row row;
  tm_check_row_init(&row, TM_CHECK_NOTE, "tied", file_of(source, tensor), tensor);
  row.other = other->name;
  tm_text_escape(other->name.data, other->name.length, name, sizeof name);
  (void)snprintf(row.message, sizeof row.message, "holds the same %" PRIu64 " bytes as %s%s%.400s", tensor->bytes, name,
                 source == other_source ? "" : " of ", source == other_source ? "" : file_of(other_source, other));
  return tm_check_row_add(state->job, &row, error);
}

static tm_status report_ties(check_state *state, tm_error *error) {
  const tm_content_ties *ties = &state->ties;
  tm_content_ties_group(&state->ties);
  for (uint64_t i = 0; i < ties->count; i++)
    if (ties->entries[i].first != ties->entries[i].item) TM_TRY(report_tie(state, &ties->entries[i], error));
  return TM_OK;
}

/* ---- the job ---- */

/* Of the tensors that the stream's tiles are made of. */
static uint64_t bytes_of_tiles(const check_state *state) {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < state->selection.count; i++) {
    open_tensor open = { .item = &state->selection.items[i] };
    open.tensor = tm_archive_tensor_at(state->files.sources[open.item->source].archive, open.item->tensor);
    open.info = tm_format_find(open.tensor->format);
    open.tie = tm_content_ties_find(&state->ties, i);
    if (road_of(state, &open) == ROAD_STREAM) bytes += open.tensor->bytes;
  }
  return bytes;
}

static tm_status examine(check_state *state, tm_error *error) {
  const tm_work_stream_source work = { .context = state,
                                      .bytes_total = bytes_of_tiles(state),
                                      .result_bytes = TM_STATS_WORDS * sizeof(uint64_t),
                                      .small_bytes = TM_TILE_SMALL_BYTES,
                                      .next = next_tile,
                                      .load = load_tile,
                                      .done = tile_done,
                                      .advance = advance,
                                      .note = note_stream };
  TM_TRY(tm_work_stream_run(&state->runner, &work, NULL, error));
  while (atomic_load(&state->closed) < state->selection.count) {
    if (tm_job_is_cancelled(state->job)) return TM_ERROR_CANCELLED;
    TM_TRY(advance(state, error));
  }
  return TM_OK;
}

static void note_host_work(const check_state *state) {
  char text[200];
  if (state->host_bytes == 0) return;
  (void)snprintf(text, sizeof text,
                 "%" PRIu64 " bytes were examined without a device: scales of blocks, integers, tensors that may be equal",
                 state->host_bytes);
  tm_job_add_note(state->job, text);
}

/* What has no values that could be looked at is not part of the work. */
static void set_totals(const check_state *state) {
  uint64_t bytes = 0, count = 0;
  for (uint64_t i = 0; i < state->selection.count; i++) {
    const tm_selected *item = &state->selection.items[i];
    const tm_archive_tensor *tensor = tm_archive_tensor_at(state->files.sources[item->source].archive, item->tensor);
    if (!can_examine(tensor, tm_format_find(tensor->format))) continue;
    bytes += tensor->bytes;
    count++;
  }
  tm_job_set_totals(state->job, bytes, count);
}

/* Where files are not what they should be nobody knows what else a pattern would match: that is a note, and their rows stay. */
static tm_status select_tensors(check_state *state, tm_error *error) {
  const tm_check_files *files = &state->files;
  tm_error own = TM_ERROR_INIT;
  const tm_status status = tm_selection_make(state->job, state->memory, files->sources, (uint32_t)files->source_count, &state->rules,
                                             &state->selection, &own);
  if (status == TM_OK) return TM_OK;
  if (status != TM_ERROR_NOT_FOUND || files->fault_count == 0) return tm_fail(error, status, "%s", own.text);
  tm_job_add_note(state->job, own.text);
  return TM_OK;
}

static tm_status run_check(tm_job *job, void *state_pointer, tm_error *error) {
  check_state *state = state_pointer;
  state->job = job;
  state->runner.cancelled = tm_job_cancel_flag(job);
  state->read_tile_bytes = tm_tensor_tile_share(state->memory, TM_TILE_SMALLEST_BYTES, TM_TILE_LARGEST_BYTES);
  TM_TRY(tm_host_scanner_init(&state->scanner, state->memory, atomic_load(&state->inventory->pool), state->runner.scratch, error));
  for (uint32_t i = 0; i < state->path_count; i++)
    TM_TRY(tm_check_files_open(&state->files, job, &state->archive_options, state->paths[i], error));
  const tm_check_files *files = &state->files;
  if (files->source_count == 0) return TM_OK;
  state->is_broken = tm_memory_calloc(state->memory, files->source_count, sizeof *state->is_broken);
  if (state->is_broken == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a job");
  TM_TRY(select_tensors(state, error));
  set_totals(state);
  TM_TRY(tm_content_ties_make(&state->ties, job, state->memory, files->sources, files->sets, &state->selection, error));
  TM_TRY(examine(state, error));
  note_host_work(state);
  return report_ties(state, error);
}

static void destroy_state(tm_memory *memory, void *state_pointer) {
  check_state *state = state_pointer;
  tm_pool *pool = state->inventory == NULL ? NULL : atomic_load(&state->inventory->pool);
  for (uint64_t i = 0; i < state->files.source_count && pool != NULL; i++)
    tm_archive_forget_pages(state->files.sources[i].archive, pool);
  tm_host_scanner_deinit(&state->scanner);
  tm_content_ties_deinit(&state->ties);
  tm_selection_deinit(&state->selection);
  tm_memory_free(memory, state->is_broken, state->files.source_count * sizeof *state->is_broken);
  tm_memory_free(memory, state->open, OPEN_TENSORS * sizeof *state->open);
  tm_check_files_deinit(&state->files);
  tm_arena_deinit(&state->arena);
  tm_memory_free(memory, state, sizeof *state);
}

static const tm_job_work check_work = {
  .columns = tm_check_columns,
  .column_count = TM_CHECK_COLUMNS,
  .run = run_check,
  .destroy = destroy_state,
};

static tm_status copy_paths(check_state *state, const char *const *paths, tm_error *error) {
  state->paths = tm_arena_calloc(&state->arena, state->path_count, sizeof *state->paths);
  for (uint32_t i = 0; state->paths != NULL && i < state->path_count; i++) {
    state->paths[i] = tm_arena_string(&state->arena, paths[i], strlen(paths[i]));
    if (state->paths[i] == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a job");
  }
  return state->paths == NULL ? tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a job") : TM_OK;
}

static tm_status fill_state(check_state *state, tm_memory *memory, const tm_check_request *request, tm_error *error) {
  state->open = tm_memory_calloc(memory, OPEN_TENSORS, sizeof *state->open);
  if (state->open == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a job");
  TM_TRY(copy_paths(state, request->paths, error));
  return tm_selection_rules_copy(&request->rules, &state->arena, &state->rules, error);
}

tm_status tm_check_job_start(tm_memory *memory, tm_inventory *inventory, const tm_runner *runner, const tm_check_request *request,
                             tm_job **out_job, tm_error *error) {
  check_state *state = tm_memory_calloc(memory, 1, sizeof *state);
  if (state == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a job");
  *state = (check_state){ .runner = *runner, .memory = memory, .inventory = inventory, .path_count = request->path_count,
                          .worst_numerics = request->worst_numerics, .archive_options = request->archive_options,
                          .selection = { .memory = memory }, .ties = { .memory = memory }, .tile_bytes = TM_TILE_FIRST_BYTES };
  state->archive_options.allow_incomplete = true;
  state->archive_options.leaves_parts_untold = true;
  tm_arena_init(&state->arena, memory);
  tm_check_files_init(&state->files, memory);
  const tm_status status = fill_state(state, memory, request, error);
  if (status != TM_OK) {
    destroy_state(memory, state);
    return status;
  }
  const tm_job_plan plan = {
      .work = &check_work, .state = state, .complete = request->complete, .complete_context = request->complete_context };
  return tm_job_start(memory, inventory, &plan, out_job, error);
}
