/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/diff_stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"
#include "execute/work_stream.h"
#include "jobs/tensor_tiles.h"
#include "jobs/transpose_guess.h"
#include "jobs/transposed_view.h"
#include "tensor/shape.h"

/* Pairs that are under way: rows come in order, whoever is done first. */
#define OPEN_PAIRS 256u
#define NO_SIDE 2u

typedef struct open_pair {
  tm_diff_pair            *pair;
  const tm_archive_tensor *tensors[2];  /* NULL: there is none on that side */
  const tm_format_info    *infos[2];
  tm_diff_road             road;
  uint32_t                 flipped;     /* the side whose axes are read in reverse order; NO_SIDE: none */
  _Atomic uint64_t         elements_left;       /* of VALUES those that no tile has brought in yet, of BYTES 1 until it is done */
  _Atomic uint32_t         has_other_blocks;    /* of VALUES: 1 once bytes of blocks of one format differ */
  uint64_t                 counted_bytes;       /* of the job's total */
  tm_byte_comparison       bytes;
  uint64_t                 words[TM_COMPARISON_WORDS];
} open_pair;

typedef struct diff_stream {
  tm_diff_setting *setting;
  tm_diff_pair    *pairs;
  uint64_t         pair_count;
  open_pair       *open;                /* OPEN_PAIRS, a ring */
  _Atomic uint64_t opened;              /* pairs that have or had a place in it: changed under the stream's lock */
  _Atomic uint64_t closed;              /* of these, those that are through: changed by the job's thread */
  uint64_t         scanned;             /* the job's thread's: no pair before this one waits for its bytes to be compared */
  uint64_t         next_element;        /* under the stream's lock: of the pair opened last */
} diff_stream;

static open_pair *open_at(const diff_stream *stream, uint64_t index) { return &stream->open[index % OPEN_PAIRS]; }

static const tm_archive *archive_of(const diff_stream *stream, uint32_t side) { return stream->setting->sources[side].archive; }

static uint64_t tensor_of(const tm_diff_pair *pair, uint32_t side) { return side == 0 ? pair->a : pair->b; }

static bool counts(const tm_diff_pair *pair, uint32_t side) { return side == 0 ? pair->counts_a : pair->counts_b; }

/* ---- what is compared, and how ---- */

static bool is_incomplete(const tm_archive_tensor *tensor) { return (tensor->flags & TM_ARCHIVE_TENSOR_INCOMPLETE) != 0; }

/* One tensor, and no two of one content. */
static bool is_same_tensor(const diff_stream *stream, const open_pair *open) {
  const tm_archive_tensor *a = open->tensors[0], *b = open->tensors[1];
  return stream->setting->are_same_files && open->pair->a == open->pair->b && a->file_index == b->file_index && a->offset == b->offset;
}

/* A type whose size is not known has no bytes though it has elements. */
static tm_diff_road road_of(const diff_stream *stream, const open_pair *open) {
  const tm_archive_tensor *a = open->tensors[0], *b = open->tensors[1];
  if (a == NULL || b == NULL || is_incomplete(a) || is_incomplete(b) || a->element_count != b->element_count) return TM_DIFF_ROAD_NONE;
  const bool has_values = open->infos[0] != NULL && open->infos[0]->has_values && open->infos[1] != NULL && open->infos[1]->has_values;
  if (has_values) return TM_DIFF_ROAD_VALUES;
  if (!tm_diff_have_same_type(a, b) || a->bytes != b->bytes) return TM_DIFF_ROAD_NONE;
  const bool has_bytes = a->bytes != 0 || a->element_count == 0 || is_same_tensor(stream, open);
  return has_bytes ? TM_DIFF_ROAD_BYTES : TM_DIFF_ROAD_NONE;
}

static void begin_bytes(const diff_stream *stream, open_pair *open) {
  const tm_byte_side a = { archive_of(stream, 0), open->pair->a }, b = { archive_of(stream, 1), open->pair->b };
  const uint64_t unit_bytes = open->infos[0] == NULL ? 1 : open->infos[0]->block_bytes;
  tm_byte_comparison_init(&open->bytes, a, b, open->tensors[0]->bytes, unit_bytes);
}

static void identify(const diff_stream *stream, open_pair *open, tm_diff_pair *pair) {
  open->pair = pair;
  for (uint32_t side = 0; side < 2; side++) {
    const uint64_t index = tensor_of(pair, side);
    open->tensors[side] = index == TM_DIFF_NO_TENSOR ? NULL : tm_archive_tensor_at(archive_of(stream, side), index);
    open->infos[side] = open->tensors[side] == NULL ? NULL : tm_format_find(open->tensors[side]->format);
  }
  open->road = road_of(stream, open);
}

static void begin_pair(const diff_stream *stream, open_pair *open, tm_diff_pair *pair) {
  identify(stream, open, pair);
  open->flipped = NO_SIDE;
  open->counted_bytes = 0;
  atomic_store(&open->has_other_blocks, 0);
  memset(open->words, 0, sizeof open->words);
  if (open->road == TM_DIFF_ROAD_BYTES) begin_bytes(stream, open);
  const uint64_t values = open->road == TM_DIFF_ROAD_VALUES ? open->tensors[0]->element_count : 0;
  atomic_store(&open->elements_left, open->road == TM_DIFF_ROAD_BYTES ? 1 : values);
}

/* ---- tensors of one name and of reversed shapes ---- */

static void look_for_transpose(const diff_stream *stream, open_pair *open) {
  tm_diff_pair *pair = open->pair;
  if (open->road != TM_DIFF_ROAD_VALUES || !tm_transposed_is_possible(open->tensors[0], open->tensors[1])) return;
  const uint32_t flipped = tm_transposed_choose(open->tensors[0], open->tensors[1]);
  const tm_transpose_side sides[2] = { { archive_of(stream, 0), pair->a }, { archive_of(stream, 1), pair->b } };
  if (pair->paired == TM_DIFF_PAIRED_BY_NAME || pair->paired == TM_DIFF_PAIRED_AS_SINGLE)
    pair->is_transposed = tm_transpose_guess(sides[1 - flipped], sides[flipped], tm_job_cancel_flag(stream->setting->job));
  if (pair->is_transposed) open->flipped = flipped;
}

/* ---- tiles, under the stream's lock ---- */

/* What is counted before it is known to be a pair could be counted twice. */
static void advance_progress(const diff_stream *stream, open_pair *open, uint64_t bytes_a, uint64_t bytes_b) {
  if (open->pair->is_tentative) return;
  const uint64_t bytes = (open->pair->counts_a ? bytes_a : 0) + (open->pair->counts_b ? bytes_b : 0);
  open->counted_bytes += bytes;
  tm_job_advance(stream->setting->job, bytes, 0);
}

/* TM_END: there are no more; TM_PENDING: a row has to be written first. */
static tm_status open_next(diff_stream *stream) {
  const uint64_t index = atomic_load_explicit(&stream->opened, memory_order_relaxed);
  if (index == stream->pair_count) return TM_END;
  if (index - atomic_load(&stream->closed) == OPEN_PAIRS) return TM_PENDING;
  begin_pair(stream, open_at(stream, index), &stream->pairs[index]);
  look_for_transpose(stream, open_at(stream, index));
  stream->next_element = 0;
  atomic_store(&stream->opened, index + 1);
  return TM_OK;
}

/* The pair opened last, if tiles of it are left. */
static open_pair *unfinished(const diff_stream *stream) {
  const uint64_t opened = atomic_load_explicit(&stream->opened, memory_order_relaxed);
  if (opened == 0) return NULL;
  open_pair *open = open_at(stream, opened - 1);
  return open->road == TM_DIFF_ROAD_VALUES && stream->next_element < open->tensors[0]->element_count ? open : NULL;
}

/* NULL: it has to be read. */
static const char *mapped_at(const diff_stream *stream, const open_pair *open, uint32_t side, uint64_t begin) {
  if (side == open->flipped) return NULL;
  const char *mapped = tm_archive_mapped(archive_of(stream, side), tensor_of(open->pair, side));
  return mapped == NULL ? NULL : mapped + tm_format_bytes_of(open->infos[side], begin);
}

static uint64_t tile_elements(const diff_stream *stream, const open_pair *open, uint64_t begin) {
  const tm_diff_setting *setting = stream->setting;
  const bool is_mapped = mapped_at(stream, open, 0, 0) != NULL && mapped_at(stream, open, 1, 0) != NULL;
  const uint64_t bytes = is_mapped ? setting->tile_bytes : tm_min_u64(setting->tile_bytes, setting->read_tile_bytes);
  const uint64_t superblock_bytes = tm_format_bytes_of(open->infos[0], TM_TILE_SUPERBLOCK_ELEMENTS) +
                                    tm_format_bytes_of(open->infos[1], TM_TILE_SUPERBLOCK_ELEMENTS);
  return tm_tensor_tile_elements(superblock_bytes, bytes, open->tensors[0]->element_count - begin);
}

static tm_status fill_request(const diff_stream *stream, const open_pair *open, uint64_t begin, uint64_t elements, tm_request *out_request,
                              tm_error *error) {
  const uint64_t words = TM_COMPARISON_WORDS;
  memset(out_request, 0, sizeof *out_request);
  out_request->op = TM_OP_COMPARE_TENSORS;
  out_request->version = tm_op_find(TM_OP_COMPARE_TENSORS)->version;
  out_request->worst_numerics = stream->setting->worst_numerics;
  out_request->only_device = TM_ANY_DEVICE;
  out_request->input_count = 2;
  out_request->output_count = 1;
  for (uint32_t side = 0; side < 2; side++) {
    const char *mapped = mapped_at(stream, open, side, begin);
    TM_TRY(tm_operand_contiguous(open->infos[side]->format, 1, &elements, &out_request->operands[side], error));
    out_request->operands[side].alignment = mapped == NULL ? TM_SCRATCH_ALIGNMENT : tm_alignment_of(mapped);
    if (mapped != NULL) out_request->flags |= TM_REQUEST_UNMEASURED;
  }
  TM_TRY(tm_operand_contiguous(TM_FORMAT_U64, 1, &words, &out_request->operands[2], error));
  out_request->operands[2].alignment = 8;
  return TM_OK;
}

static tm_status next_tile(void *context, tm_work_stream_piece *out_piece, tm_error *error) {
  diff_stream *stream = context;
  open_pair *open = unfinished(stream);
  while (open == NULL) {
    const tm_status status = open_next(stream);
    if (status != TM_OK) return status;
    open = unfinished(stream);
  }
  const uint64_t begin = stream->next_element, elements = tile_elements(stream, open, begin);
  const tm_status status = fill_request(stream, open, begin, elements, &out_piece->request, error);
  if (status != TM_OK) return tm_tensor_name_failure(open->tensors[0], status, error);
  out_piece->bytes = tm_format_bytes_of(open->infos[0], elements) + tm_format_bytes_of(open->infos[1], elements);
  out_piece->begin = begin;
  out_piece->subject = open;
  stream->next_element += elements;
  return TM_OK;
}

static uint64_t piece_elements(const tm_work_stream_piece *piece) { return piece->request.operands[0].element_count; }

static tm_status tile_done(void *context, const tm_work_stream_piece *piece, const void *result, const tm_run_outcome *outcome,
                           tm_error *error) {
  const diff_stream *stream = context;
  open_pair *open = piece->subject;
  const uint64_t elements = piece_elements(piece);
  (void)error;
  tm_op_find(TM_OP_COMPARE_TENSORS)->combine_words(open->words, result);
  tm_job_count_use(stream->setting->job, outcome, piece->bytes);
  tm_job_count_piece(stream->setting->job, outcome, open->tensors[0]->name);
  tm_tensor_tile_adapt(&stream->setting->tile_bytes, piece->bytes, piece->load_ns + outcome->measured_ns);
  advance_progress(stream, open, tm_format_bytes_of(open->infos[0], elements), tm_format_bytes_of(open->infos[1], elements));
  atomic_fetch_sub(&open->elements_left, elements);
  return TM_OK;
}

static void note_stream(void *context, const char *text) {
  const diff_stream *stream = context;
  tm_job_add_note(stream->setting->job, text);
}

/* ---- on a lane's thread ---- */

static uint64_t aligned_bytes(uint64_t bytes) { return tm_divide_up(bytes, TM_SCRATCH_ALIGNMENT) * TM_SCRATCH_ALIGNMENT; }

static tm_status read_part(const diff_stream *stream, const open_pair *open, uint32_t side, const tm_work_stream_piece *piece, void *memory,
                           tm_error *error) {
  const tm_archive *archive = archive_of(stream, side);
  const uint64_t tensor = tensor_of(open->pair, side), elements = piece_elements(piece);
  if (side == open->flipped)
    return tm_transposed_read(archive, tensor, piece->begin, elements, stream->setting->runner->cancelled, memory, error);
  const tm_format_info *info = open->infos[side];
  return tm_archive_read(archive, tensor, tm_format_bytes_of(info, piece->begin), memory, tm_format_bytes_of(info, elements), error);
}

/* Of a mapped file that was cut off only zeros are left: many tiles of them would take their time. */
static tm_status check_mapped(const diff_stream *stream, const open_pair *open, tm_error *error) {
  for (uint32_t side = 0; side < 2; side++) {
    if (tm_archive_mapped(archive_of(stream, side), tensor_of(open->pair, side)) == NULL) continue;
    const tm_status status = tm_archive_check_tensor(archive_of(stream, side), tensor_of(open->pair, side), error);
    if (status != TM_OK) return tm_tensor_name_failure(open->tensors[side], status, error);
  }
  return TM_OK;
}

/* Several blocks decode to the same values: that their bytes differ is seen here, as long as it is not known. */
static void compare_blocks(open_pair *open, uint64_t elements, void *const *pointers) {
  const tm_format_info *info = open->infos[0];
  if (info != open->infos[1] || info->kind != TM_KIND_BLOCK || open->flipped != NO_SIDE) return;
  if (atomic_load_explicit(&open->has_other_blocks, memory_order_relaxed) != 0) return;
  if (memcmp(pointers[0], pointers[1], (size_t)tm_format_bytes_of(info, elements)) != 0) atomic_store(&open->has_other_blocks, 1);
}

/* What is not mapped is read into the room, b's part behind a's. */
static tm_status place_tile(const diff_stream *stream, const tm_work_stream_piece *piece, tm_work_stream_room *room, void **out_pointers,
                            tm_error *error) {
  const open_pair *open = piece->subject;
  uint64_t offset = 0, places[2];
  if (piece->begin != 0) TM_TRY(check_mapped(stream, open, error));
  for (uint32_t side = 0; side < 2; side++) {
    out_pointers[side] = (void *)(uintptr_t)mapped_at(stream, open, side, piece->begin);
    places[side] = offset;
    if (out_pointers[side] == NULL) offset += aligned_bytes(tm_format_bytes_of(open->infos[side], piece_elements(piece)));
  }
  if (offset == 0) return TM_OK;
  char *memory = tm_work_stream_room_take(room, offset);
  if (memory == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a tile of %" PRIu64 " bytes", offset);
  for (uint32_t side = 0; side < 2; side++) {
    if (out_pointers[side] != NULL) continue;
    out_pointers[side] = memory + places[side];
    const tm_status status = read_part(stream, open, side, piece, out_pointers[side], error);
    if (status != TM_OK) return tm_tensor_name_failure(open->tensors[side], status, error);
  }
  return TM_OK;
}

static tm_status load_tile(void *context, const tm_work_stream_piece *piece, tm_work_stream_room *room, void **out_pointers,
                           tm_error *error) {
  TM_TRY(place_tile(context, piece, room, out_pointers, error));
  compare_blocks(piece->subject, piece_elements(piece), out_pointers);
  return TM_OK;
}

/* ---- bytes, on the job's thread ---- */

static tm_status step_bytes(diff_stream *stream, open_pair *open, tm_error *error) {
  uint64_t bytes = 0;
  uint32_t side = 0;
  if (!tm_byte_comparison_is_done(&open->bytes)) {
    const tm_status status = tm_byte_comparison_step(&stream->setting->comparer, &open->bytes, &bytes, &side, error);
    if (status != TM_OK) return tm_tensor_name_failure(open->tensors[side], status, error);
    TM_TRY(check_mapped(stream, open, error));
  }
  stream->setting->byte_compared_bytes += 2 * bytes;
  advance_progress(stream, open, bytes, bytes);
  if (tm_byte_comparison_is_done(&open->bytes)) atomic_store(&open->elements_left, 0);
  return TM_OK;
}

/* One step of the first pair that needs one.  Places of the ring before the first one that is not closed are others' by now. */
static tm_status compare_some_bytes(diff_stream *stream, tm_error *error) {
  stream->scanned = tm_max_u64(stream->scanned, atomic_load(&stream->closed));
  for (; stream->scanned < atomic_load(&stream->opened); stream->scanned++) {
    open_pair *open = open_at(stream, stream->scanned);
    if (open->road == TM_DIFF_ROAD_BYTES && atomic_load(&open->elements_left) != 0) return step_bytes(stream, open, error);
  }
  return TM_OK;
}

/* ---- rows, on the job's thread ---- */

static tm_diff_result result_of(const open_pair *open) {
  tm_diff_result result = { .pair = open->pair, .a = open->tensors[0], .b = open->tensors[1], .road = open->road, .words = open->words };
  if (open->road == TM_DIFF_ROAD_VALUES) result.has_other_blocks = atomic_load(&open->has_other_blocks) != 0;
  if (open->road != TM_DIFF_ROAD_BYTES) return result;
  const tm_byte_comparison *bytes = &open->bytes;
  result.has_equal_bytes = bytes->equal_units * bytes->unit_bytes == bytes->end;
  result.equal_count = bytes->equal_units * (open->infos[0] == NULL ? 0 : open->infos[0]->block_elements);
  if (result.has_equal_bytes) result.equal_count = open->tensors[0]->element_count;
  return result;
}

/* A file that changed was not what its bytes said. */
static tm_status check_files(const diff_stream *stream, const open_pair *open, tm_error *error) {
  if (open->road == TM_DIFF_ROAD_NONE) return TM_OK;
  for (uint32_t side = 0; side < 2; side++) {
    const tm_status status = tm_archive_check_tensor(archive_of(stream, side), tensor_of(open->pair, side), error);
    if (status != TM_OK) return tm_tensor_name_failure(open->tensors[side], status, error);
  }
  return TM_OK;
}

static void note_type(const diff_stream *stream, const open_pair *open, uint32_t side) {
  char type[128], note[256];
  const char *name = open->infos[side] == NULL ? open->tensors[side]->type_name : open->infos[side]->name;
  tm_text_escape(name, strlen(name), type, sizeof type);
  (void)snprintf(note, sizeof note, "tensors of type %s are compared byte by byte, and with no other type: this version cannot decode it", type);
  tm_job_add_note(stream->setting->job, note);
}

static void note_incomplete(const diff_stream *stream, const open_pair *open, uint32_t side) {
  char name[256], note[512];
  tm_error *incomplete = &stream->setting->incomplete;
  tm_text_escape(open->tensors[side]->name.data, open->tensors[side]->name.length, name, sizeof name);
  (void)snprintf(note, sizeof note, "%s: the file ends before the tensor does", name);
  tm_job_add_note(stream->setting->job, note);
  if (incomplete->code == TM_OK) (void)tm_fail(incomplete, TM_ERROR_CORRUPT, "tensor '%s': the file ends before it does", name);
}

static void note_gaps(const diff_stream *stream, const open_pair *open) {
  for (uint32_t side = 0; side < 2; side++) {
    if (open->tensors[side] == NULL) continue;
    if (is_incomplete(open->tensors[side])) note_incomplete(stream, open, side);
    else if (open->tensors[1 - side] != NULL && (open->infos[side] == NULL || !open->infos[side]->has_values)) note_type(stream, open, side);
  }
}

/* Why two that looked alike are no pair. */
static void note_unequal(const diff_stream *stream, const open_pair *open) {
  char names[2][200], note[512];
  for (uint32_t side = 0; side < 2; side++)
    tm_text_escape(open->tensors[side]->name.data, open->tensors[side]->name.length, names[side], sizeof names[side]);
  (void)snprintf(note, sizeof note, "%s and %s agree in a sample, but not as a whole: they were not paired", names[0], names[1]);
  tm_job_add_note(stream->setting->job, note);
}

/* What has no other side to be compared with may have been read whole, to look for its content; of its readings each counts a part. */
static bool was_read(const open_pair *open, uint32_t side) {
  return open->road != TM_DIFF_ROAD_NONE || open->pair->searched_bytes[side] != 0;
}

static tm_status close_pair(diff_stream *stream, open_pair *open, tm_error *error) {
  tm_diff_pair *pair = open->pair;
  const tm_diff_result result = result_of(open);
  TM_TRY(check_files(stream, open, error));
  if (pair->is_tentative && pair->paired != TM_DIFF_PAIRED_ROUNDED && !tm_diff_result_is_equal(&result)) {
    note_unequal(stream, open);
    return TM_OK;
  }
  if (!pair->is_hidden) {
    note_gaps(stream, open);
    TM_TRY(tm_diff_row_add(stream->setting->job, &result, error));
  }
  stream->setting->hidden_count += pair->is_hidden;
  pair->is_confirmed = true;
  pair->is_equal = tm_diff_result_is_equal(&result);
  uint64_t bytes = 0, items = 0;
  for (uint32_t side = 0; side < 2; side++) {
    if (open->tensors[side] == NULL || !counts(pair, side)) continue;
    if (was_read(open, side)) bytes += open->tensors[side]->bytes - pair->searched_bytes[side];
    items++;
  }
  tm_job_advance(stream->setting->job, bytes - open->counted_bytes, items);
  return TM_OK;
}

static tm_status advance(void *context, tm_error *error) {
  diff_stream *stream = context;
  TM_TRY(compare_some_bytes(stream, error));
  uint64_t closed = atomic_load_explicit(&stream->closed, memory_order_relaxed);
  for (; closed < atomic_load(&stream->opened); closed++) {
    open_pair *open = open_at(stream, closed);
    if (atomic_load(&open->elements_left) != 0) break;
    TM_TRY(close_pair(stream, open, error));
    atomic_store(&stream->closed, closed + 1);
  }
  return TM_OK;
}

/* ---- the whole ---- */

/* Of the pairs that tiles are made of. */
static uint64_t bytes_of_tiles(const diff_stream *stream) {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < stream->pair_count; i++) {
    open_pair *open = &stream->open[0];
    identify(stream, open, &stream->pairs[i]);
    if (open->road == TM_DIFF_ROAD_VALUES) bytes += open->tensors[0]->bytes + open->tensors[1]->bytes;
  }
  return bytes;
}

static tm_status run(diff_stream *stream, tm_error *error) {
  const tm_work_stream_source work = { .context = stream,
                                      .bytes_total = bytes_of_tiles(stream),
                                      .result_bytes = TM_COMPARISON_WORDS * sizeof(uint64_t),
                                      .small_bytes = TM_TILE_SMALL_BYTES,
                                      .next = next_tile,
                                      .load = load_tile,
                                      .done = tile_done,
                                      .advance = advance,
                                      .note = note_stream };
  TM_TRY(tm_work_stream_run(stream->setting->runner, &work, NULL, error));
  while (atomic_load(&stream->closed) < stream->pair_count) {
    if (tm_job_is_cancelled(stream->setting->job)) return TM_ERROR_CANCELLED;
    TM_TRY(advance(stream, error));
  }
  return TM_OK;
}

tm_status tm_diff_stream_run(tm_diff_setting *setting, tm_diff_pair *pairs, uint64_t pair_count, tm_error *error) {
  diff_stream stream = { .setting = setting, .pairs = pairs, .pair_count = pair_count };
  if (pair_count == 0) return TM_OK;
  stream.open = tm_memory_calloc(setting->memory, OPEN_PAIRS, sizeof *stream.open);
  if (stream.open == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a job");
  const tm_status status = run(&stream, error);
  tm_memory_free(setting->memory, stream.open, OPEN_PAIRS * sizeof *stream.open);
  return status;
}
