/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/stats_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "tensor/format.h"
#include "tensor/shape.h"
#include "tensormorph/canonical_sum.h"

/* Tiles are whole superblocks, so that the sums do not depend on their size (canonical_sum.h).  They grow and shrink with
   the time that reading and computing one takes: large enough that starting one costs nothing, small enough to be
   cancelled between two. */
#define SUPERBLOCK_ELEMENTS UINT64_C(32768)
#define SMALLEST_TILE_BYTES (UINT64_C(1) << 17)
#define FIRST_TILE_BYTES (UINT64_C(1) << 20)
#define LARGEST_TILE_BYTES (UINT64_C(32) << 20)
#define SHORT_TILE_NS UINT64_C(4000000)
#define LONG_TILE_NS UINT64_C(40000000)

/* Where the mean is large beside the deviation, the difference of the mean square and the squared mean has lost what it was
   to tell.  Then the tensor is read again and its distance from the mean is summed: see centred_pass.  It is when the
   relative error of a mean square, times how much larger it is than the variance, exceeds this. */
#define VARIANCE_TOLERANCE 2e-7
#define WIDE_SUM_ERROR 1e-13    /* f64 lanes */
#define SHORT_SUM_ERROR 1.2e-8  /* f32 chains: canonical_sum.h */
#define CENTRED_TILE_ELEMENTS (8 * SUPERBLOCK_ELEMENTS)

enum { FILE_COLUMN, NAME, DTYPE, SHAPE, COUNT, NAN_COUNT, POS_INF, NEG_INF, ZERO, SUBNORMAL, MIN, MAX, ABS_MAX, MEAN, STD, L2,
       COLUMN_COUNT };

static const tm_column columns[COLUMN_COUNT] = {
  [FILE_COLUMN] = { "file", TM_COLUMN_TEXT, 0, "the checkpoint, as it was named" },
  [NAME] = { "name", TM_COLUMN_TEXT, 0, "the tensor's name" },
  [DTYPE] = { "dtype", TM_COLUMN_TEXT, 0, "its format" },
  [SHAPE] = { "shape", TM_COLUMN_SHAPE, 0, "its extents, outermost first" },
  [COUNT] = { "count", TM_COLUMN_COUNT, 0, "elements" },
  [NAN_COUNT] = { "nan", TM_COLUMN_COUNT, 0, "elements that are not a number" },
  [POS_INF] = { "pos_inf", TM_COLUMN_COUNT, 0, "elements that are +infinity" },
  [NEG_INF] = { "neg_inf", TM_COLUMN_COUNT, 0, "elements that are -infinity" },
  [ZERO] = { "zero", TM_COLUMN_COUNT, 0, "elements that are +0 or -0" },
  [SUBNORMAL] = { "subnormal", TM_COLUMN_COUNT, 0, "elements that are subnormal in the tensor's format" },
  [MIN] = { "min", TM_COLUMN_NUMBER, 0, "smallest finite value" },
  [MAX] = { "max", TM_COLUMN_NUMBER, 0, "largest finite value" },
  [ABS_MAX] = { "abs_max", TM_COLUMN_NUMBER, 0, "largest finite magnitude" },
  [MEAN] = { "mean", TM_COLUMN_NUMBER, 0, "mean of the finite values" },
  [STD] = { "std", TM_COLUMN_NUMBER, 0, "population standard deviation of the finite values" },
  [L2] = { "l2", TM_COLUMN_NUMBER, 0, "square root of the sum of squares of the finite values" },
};

typedef struct stats_state {
  tm_runner        runner;
  tm_memory       *memory;
  tm_arena         arena;               /* the patterns */
  tm_selection_rules rules;
  tm_selection     selection;           /* made by the job's thread */
  tm_job_source   *sources;
  uint32_t         source_count;
  uint32_t         worst_numerics;
  uint64_t         tile_bytes;
  tm_scratch_block buffer;              /* for tiles of files that are not mapped */
} stats_state;

/* ---- one tensor ---- */

static void make_request(const stats_state *state, tm_request *request) {
  memset(request, 0, sizeof *request);
  const tm_op_row *row = tm_op_find(TM_OP_STATS);
  const uint64_t words = TM_STATS_WORDS;
  request->op = TM_OP_STATS;
  request->version = row->version;
  request->worst_numerics = state->worst_numerics;
  request->only_device = TM_ANY_DEVICE;
  request->input_count = 1;
  request->output_count = 1;
  (void)tm_operand_contiguous(TM_FORMAT_U64, 1, &words, &request->operands[1], NULL);
  request->operands[1].alignment = 8;
}

static uint64_t tile_elements(const stats_state *state, const tm_format_info *info) {
  const uint64_t superblock_bytes = SUPERBLOCK_ELEMENTS / info->block_elements * info->block_bytes;
  return tm_max_u64(1, state->tile_bytes / superblock_bytes) * SUPERBLOCK_ELEMENTS;
}

/* Whole tiles only: a short rest says nothing. */
static void adapt_tile(stats_state *state, uint64_t bytes, uint64_t taken_ns) {
  if (bytes < state->tile_bytes / 2) return;
  if (taken_ns < SHORT_TILE_NS && state->tile_bytes < LARGEST_TILE_BYTES) state->tile_bytes *= 2;
  if (taken_ns > LONG_TILE_NS && state->tile_bytes > SMALLEST_TILE_BYTES) state->tile_bytes /= 2;
}

/* The tile's bytes: where they lie, or read into the buffer. */
static tm_status tile_data(stats_state *state, const tm_selected *item, uint64_t offset, uint64_t bytes, const void **out_data,
                           tm_error *error) {
  const tm_archive *archive = state->sources[item->source].archive;
  const char *mapped = tm_archive_mapped(archive, item->tensor);
  if (mapped != NULL) {
    *out_data = mapped + offset;
    return TM_OK;
  }
  if (state->buffer.bytes < bytes) {
    tm_scratch_give(state->runner.scratch, state->buffer);
    state->buffer = tm_scratch_take(state->runner.scratch, bytes);
    if (state->buffer.memory == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a tile of %llu bytes", (unsigned long long)bytes);
  }
  *out_data = state->buffer.memory;
  return tm_archive_read(archive, item->tensor, offset, state->buffer.memory, bytes, error);
}

static tm_status run_tile(tm_job *job, stats_state *state, uint32_t format, const void *data, uint64_t elements, bool is_in_file,
                          uint64_t bytes, uint64_t *words, tm_error *error) {
  tm_request request;
  make_request(state, &request);
  if (is_in_file) request.flags |= TM_REQUEST_UNMEASURED;
  TM_TRY(tm_operand_contiguous(format, 1, &elements, &request.operands[0], error));
  request.operands[0].alignment = tm_alignment_of(data);
  uint64_t part[TM_STATS_WORDS];
  void *pointers[2] = { (void *)(uintptr_t)data, part };
  tm_run_outcome outcome;
  TM_TRY(tm_runner_run(&state->runner, &request, pointers, &outcome, error));
  tm_op_find(TM_OP_STATS)->combine_words(words, part);
  tm_job_count_use(job, &outcome, bytes);
  return TM_OK;
}

/* Words of no elements at all. */
static void init_words(uint64_t *words) {
  const double extremes[3] = { INFINITY, -INFINITY, 0 };
  memset(words, 0, TM_STATS_WORDS * sizeof *words);
  memcpy(&words[TM_STATS_MIN], extremes, sizeof extremes);
}

static tm_status run_tiles(tm_job *job, stats_state *state, const tm_selected *item, const tm_archive_tensor *tensor,
                           const tm_format_info *info, uint64_t *words, tm_error *error) {
  init_words(words);
  uint64_t elements;
  for (uint64_t begin = 0; begin < tensor->element_count; begin += elements) {
    if (tm_job_is_cancelled(job)) return TM_ERROR_CANCELLED;
    elements = tm_min_u64(tile_elements(state, info), tensor->element_count - begin);
    const uint64_t offset = begin / info->block_elements * info->block_bytes;
    const uint64_t bytes = elements / info->block_elements * info->block_bytes;
    const void *data = NULL;
    const uint64_t started = tm_now_ns();
    TM_TRY(tile_data(state, item, offset, bytes, &data, error));
    TM_TRY(run_tile(job, state, info->format, data, elements, data != state->buffer.memory, bytes, words, error));
    adapt_tile(state, bytes, tm_now_ns() - started);
    tm_job_advance(job, bytes, 0);
  }
  return tm_archive_check_tensor(state->sources[item->source].archive, item->tensor, error);
}

/* ---- the distance from the mean ---- */

/* One operation with one input and one more, 0-d, operand if `point` is not NULL; exact, like everything that bytes of a
   result depend on. */
static tm_status run_exact(stats_state *state, uint32_t op, uint32_t format, const void *data, const double *point, double *out_values,
                           uint64_t elements, tm_error *error) {
  tm_request request;
  memset(&request, 0, sizeof request);
  const tm_op_row *row = tm_op_find(op);
  request.op = op;
  request.version = row->version;
  request.attribute_bytes = row->attribute_bytes;
  request.worst_numerics = TM_NUMERICS_N0;
  request.only_device = TM_ANY_DEVICE;
  request.input_count = point == NULL ? 1 : 2;
  request.output_count = 1;
  const uint32_t result = request.input_count;
  TM_TRY(tm_operand_contiguous(format, 1, &elements, &request.operands[0], error));
  if (point != NULL) TM_TRY(tm_operand_contiguous(TM_FORMAT_F64, 0, NULL, &request.operands[1], error));
  TM_TRY(tm_operand_contiguous(TM_FORMAT_F64, 1, &elements, &request.operands[result], error));
  void *pointers[3] = { (void *)(uintptr_t)data, (void *)(uintptr_t)point, NULL };
  pointers[result] = out_values;
  for (uint32_t i = 0; i <= result; i++) request.operands[i].alignment = tm_alignment_of(pointers[i]);
  return tm_runner_run(&state->runner, &request, pointers, NULL, error);
}

/* x - centre of a tile as f64, in `distances`; `wide` has room for the values. */
static tm_status take_distances(stats_state *state, const tm_format_info *info, const void *data, uint64_t elements, double centre,
                                double *wide, double *distances, tm_error *error) {
  const void *values = data;
  if (info->format != TM_FORMAT_F64) {
    const uint32_t op = info->kind == TM_KIND_BLOCK ? TM_OP_DEQUANTIZE : TM_OP_CAST;
    TM_TRY(run_exact(state, op, info->format, data, NULL, wide, elements, error));
    values = wide;
  }
  return run_exact(state, TM_OP_SUB, TM_FORMAT_F64, values, &centre, distances, elements, error);
}

static tm_status centred_tiles(tm_job *job, stats_state *state, const tm_selected *item, const tm_format_info *info, double centre,
                               double *wide, double *distances, uint64_t *words, tm_error *error) {
  const uint64_t count = tm_archive_tensor_at(state->sources[item->source].archive, item->tensor)->element_count;
  uint64_t elements;
  for (uint64_t begin = 0; begin < count; begin += elements) {
    if (tm_job_is_cancelled(job)) return TM_ERROR_CANCELLED;
    elements = tm_min_u64(CENTRED_TILE_ELEMENTS, count - begin);
    const uint64_t offset = begin / info->block_elements * info->block_bytes;
    const uint64_t bytes = elements / info->block_elements * info->block_bytes;
    const void *data = NULL;
    TM_TRY(tile_data(state, item, offset, bytes, &data, error));
    TM_TRY(take_distances(state, info, data, elements, centre, wide, distances, error));
    TM_TRY(run_tile(job, state, TM_FORMAT_F64, distances, elements, false, 0, words, error));
  }
  return tm_archive_check_tensor(state->sources[item->source].archive, item->tensor, error);
}

/* The statistics of x - centre. */
static tm_status centred_pass(tm_job *job, stats_state *state, const tm_selected *item, const tm_format_info *info, double centre,
                              uint64_t *out_words, tm_error *error) {
  const uint64_t bytes = CENTRED_TILE_ELEMENTS * sizeof(double);
  const tm_scratch_block block = tm_scratch_take(state->runner.scratch, 2 * bytes);
  if (block.memory == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a tile of %llu bytes", (unsigned long long)(2 * bytes));
  double *wide = block.memory;
  init_words(out_words);
  const tm_status status = centred_tiles(job, state, item, info, centre, wide, wide + CENTRED_TILE_ELEMENTS, out_words, error);
  tm_scratch_give(state->runner.scratch, block);
  return status;
}

/* ---- figures ---- */

static double word_number(const uint64_t *words, uint32_t word) {
  double number;
  memcpy(&number, &words[word], sizeof number);
  return number;
}

/* Moments of the finite values. */
typedef struct moments {
  double count;
  double mean;
  double variance;
} moments;

static moments moments_of(const uint64_t *words) {
  moments m = { .count = (double)(words[TM_STATS_COUNT] - words[TM_STATS_NAN] - words[TM_STATS_POS_INF] - words[TM_STATS_NEG_INF]) };
  if (m.count == 0) return m;
  m.mean = tm_sum_read(words + TM_STATS_SUM) / m.count;
  m.variance = tm_sum_read(words + TM_STATS_SUM_SQUARES) / m.count - m.mean * m.mean;
  if (word_number(words, TM_STATS_MIN) == word_number(words, TM_STATS_MAX)) m.variance = 0;
  return m;
}

static bool sums_in_short_chains(const tm_format_info *info) {
  return info->kind == TM_KIND_BLOCK || (info->kind == TM_KIND_FLOAT && info->block_bytes < 4);
}

static bool must_centre(const tm_format_info *info, const uint64_t *words, const moments *m) {
  if (m->count == 0 || !isfinite(m->mean) || !isfinite(m->variance)) return false;
  if (word_number(words, TM_STATS_MIN) == word_number(words, TM_STATS_MAX)) return false;
  const double error = sums_in_short_chains(info) ? SHORT_SUM_ERROR : WIDE_SUM_ERROR;
  return m->mean * m->mean * error > VARIANCE_TOLERANCE * m->variance;
}

/* Mean and variance, by a second pass where the first cannot tell. */
static tm_status find_moments(tm_job *job, stats_state *state, const tm_selected *item, const tm_format_info *info, const uint64_t *words,
                              moments *out_moments, tm_error *error) {
  *out_moments = moments_of(words);
  if (!must_centre(info, words, out_moments)) return TM_OK;
  uint64_t distances[TM_STATS_WORDS];
  TM_TRY(centred_pass(job, state, item, info, out_moments->mean, distances, error));
  const moments centred = moments_of(distances);
  out_moments->mean += centred.mean;
  out_moments->variance = centred.variance;
  return TM_OK;
}

static void put_number(tm_cell *cell, double number) {
  *cell = (tm_cell){ .type = TM_COLUMN_NUMBER, .defined = isfinite(number) != 0, .number = number };
}

static void put_count(tm_cell *cell, uint64_t count) { *cell = (tm_cell){ .type = TM_COLUMN_COUNT, .defined = 1, .count = count }; }

static void put_text(tm_cell *cell, const char *text, uint64_t length) {
  *cell = (tm_cell){ .type = TM_COLUMN_TEXT, .defined = 1, .text = text, .count = length };
}

static void put_figures(tm_cell *cells, const uint64_t *words, const moments *m) {
  for (uint32_t i = 0; i <= TM_STATS_SUBNORMAL; i++) put_count(&cells[COUNT + i], words[i]);
  if (m->count == 0) return;
  put_number(&cells[MIN], word_number(words, TM_STATS_MIN));
  put_number(&cells[MAX], word_number(words, TM_STATS_MAX));
  put_number(&cells[ABS_MAX], word_number(words, TM_STATS_ABS_MAX));
  put_number(&cells[MEAN], m->mean);
  put_number(&cells[STD], isnan(m->variance) ? m->variance : sqrt(fmax(m->variance, 0)));
  put_number(&cells[L2], sqrt(tm_sum_read(words + TM_STATS_SUM_SQUARES)));
}

static void put_identity(tm_cell *cells, const stats_state *state, const tm_selected *item, const tm_archive_tensor *tensor) {
  const tm_format_info *info = tm_format_find(tensor->format);
  const char *dtype = info == NULL ? tensor->type_name : info->name;
  for (uint32_t i = 0; i < COLUMN_COUNT; i++) cells[i] = (tm_cell){ .type = columns[i].type };
  put_text(&cells[FILE_COLUMN], state->sources[item->source].path, strlen(state->sources[item->source].path));
  put_text(&cells[NAME], tensor->name.data, tensor->name.length);
  put_text(&cells[DTYPE], dtype, strlen(dtype));
  cells[SHAPE] = (tm_cell){ .type = TM_COLUMN_SHAPE, .defined = 1, .count = tensor->rank, .shape = tensor->dims };
  put_count(&cells[COUNT], tensor->element_count);
}

/* Why a tensor has no figures; false if it has.  One note a type, not one a tensor. */
static bool has_no_figures(tm_job *job, const tm_archive_tensor *tensor, const tm_format_info *info) {
  char note[512];
  char name[256];
  if ((tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) != 0) {
    tm_text_escape(tensor->name.data, tensor->name.length, name, sizeof name);
    snprintf(note, sizeof note, "%s: the file ends before the tensor does", name);
  } else if (info == NULL || !info->has_arithmetic) {
    tm_text_escape(tensor->type_name, strlen(tensor->type_name), name, sizeof name);
    snprintf(note, sizeof note, "tensors of type %s have no figures: this version cannot decode it", info == NULL ? name : info->name);
  } else {
    return false;
  }
  tm_job_add_note(job, note);
  return true;
}

/* Finite values whose squares or sum are beyond the range of f64. */
static void note_what_does_not_fit(tm_job *job, const tm_archive_tensor *tensor, const tm_cell *cells, double finite_count) {
  if (finite_count == 0 || (cells[MEAN].defined && cells[STD].defined && cells[L2].defined)) return;
  char note[512];
  char name[256];
  tm_text_escape(tensor->name.data, tensor->name.length, name, sizeof name);
  snprintf(note, sizeof note, "%s: its sums are beyond the range of f64; figures that rest on them are left out", name);
  tm_job_add_note(job, note);
}

static tm_status run_tensor(tm_job *job, stats_state *state, const tm_selected *item, tm_error *error) {
  const tm_archive_tensor *tensor = tm_archive_tensor_at(state->sources[item->source].archive, item->tensor);
  const tm_format_info *info = tm_format_find(tensor->format);
  tm_cell cells[COLUMN_COUNT];
  put_identity(cells, state, item, tensor);
  if (has_no_figures(job, tensor, info)) {
    tm_job_advance(job, tensor->bytes, 0);
  } else {
    uint64_t words[TM_STATS_WORDS];
    moments m;
    tm_status status = run_tiles(job, state, item, tensor, info, words, error);
    if (status == TM_OK) status = find_moments(job, state, item, info, words, &m, error);
    if (status != TM_OK) {
      char name[256];
      tm_text_escape(tensor->name.data, tensor->name.length, name, sizeof name);
      tm_error_prefix(error, "tensor '%s'", name);
      return status;
    }
    put_figures(cells, words, &m);
    note_what_does_not_fit(job, tensor, cells, m.count);
  }
  TM_TRY(tm_job_add_row(job, cells, error));
  tm_job_advance(job, 0, 1);
  return TM_OK;
}

/* ---- the job ---- */

static tm_status run_stats(tm_job *job, void *state_pointer, tm_error *error) {
  stats_state *state = state_pointer;
  state->runner.cancelled = tm_job_cancel_flag(job);
  tm_status status = tm_selection_make(job, state->memory, state->sources, state->source_count, &state->rules, &state->selection, error);
  if (status == TM_OK) tm_job_set_totals(job, state->selection.bytes, state->selection.count);
  for (uint64_t i = 0; i < state->selection.count && status == TM_OK; i++) {
    if (tm_job_is_cancelled(job)) return TM_ERROR_CANCELLED;
    status = run_tensor(job, state, &state->selection.items[i], error);
  }
  return status;
}

static void destroy_state(tm_memory *memory, void *state_pointer) {
  stats_state *state = state_pointer;
  tm_scratch_give(state->runner.scratch, state->buffer);
  tm_selection_deinit(&state->selection);
  tm_arena_deinit(&state->arena);
  tm_memory_free(memory, state->sources, state->source_count * sizeof *state->sources);
  tm_memory_free(memory, state, sizeof *state);
}

static const tm_job_work stats_work = {
  .columns = columns,
  .column_count = COLUMN_COUNT,
  .run = run_stats,
  .destroy = destroy_state,
};

static tm_status fill_state(stats_state *state, tm_memory *memory, const tm_stats_request *request, tm_error *error) {
  state->sources = tm_memory_calloc(memory, request->source_count, sizeof *state->sources);
  if (state->sources == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a job");
  memcpy(state->sources, request->sources, request->source_count * sizeof *state->sources);
  return tm_selection_rules_copy(&request->rules, &state->arena, &state->rules, error);
}

tm_status tm_stats_job_start(tm_memory *memory, tm_inventory *inventory, const tm_runner *runner, const tm_stats_request *request,
                             tm_job **out_job, tm_error *error) {
  stats_state *state = tm_memory_calloc(memory, 1, sizeof *state);
  if (state == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a job");
  *state = (stats_state){ .runner = *runner, .memory = memory, .selection = { .memory = memory }, .source_count = request->source_count,
                          .worst_numerics = request->worst_numerics, .tile_bytes = FIRST_TILE_BYTES };
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
