/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_lane.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"
#include "jobs/merge_equals.h"
#include "jobs/merge_nans.h"
#include "jobs/merge_tiles.h"
#include "jobs/merge_trim.h"
#include "tensor/shape.h"

#define SETTINGS_BYTES 512u
#define WORDS_BYTES 2304u       /* of a comparison */

_Static_assert(TM_MERGE_MOST_SETTINGS * sizeof(uint64_t) <= SETTINGS_BYTES, "settings have room");
_Static_assert(TM_COMPARISON_WORDS * sizeof(uint64_t) <= WORDS_BYTES && WORDS_BYTES % TM_BEST_ALIGNMENT == 0, "words have room");

/* What lies in a lane's room: settings, words, then what files that are not mapped are read into, then blocks, or copies of what is
   compared in another form. */
typedef struct room_places {
  unsigned char *settings, *words, *next;
} room_places;

static uint64_t padded(uint64_t bytes) { return (bytes + TM_BEST_ALIGNMENT - 1) & ~(uint64_t)(TM_BEST_ALIGNMENT - 1); }

static const tm_archive *archive_of(const tm_merge_open *open, const tm_merge_input *input) {
  return open->settings->sources[input->source].archive;
}

static uint32_t format_of(const tm_merge_open *open, const tm_merge_input *input) {
  return tm_archive_tensor_at(archive_of(open, input), input->tensor)->format;
}

static bool is_blocks(const tm_merge_open *open) { return tm_merge_computed_format(open->item) != open->item->format; }

/* What is read before an input, to be hashed with it. */
static uint64_t lead_in_bytes(const tm_merge_open *open, const tm_work_stream_piece *piece, uint32_t input) {
  return tm_merge_bytes_of(piece->request.operands[input].format, tm_merge_piece_lead_in(open, piece));
}

static uint64_t room_bytes(const tm_merge_open *open, const tm_work_stream_piece *piece) {
  const uint64_t elements = tm_merge_piece_elements(piece);
  uint64_t bytes = SETTINGS_BYTES + WORDS_BYTES;
  for (uint32_t i = 0; i < piece->request.input_count; i++) {
    const tm_merge_input *input = tm_merge_piece_input(open, piece, i);
    if (input != NULL && tm_archive_mapped(archive_of(open, input), input->tensor) == NULL)
      bytes += padded(tm_merge_bytes_of(format_of(open, input), elements) + lead_in_bytes(open, piece, i));
    if (tm_merge_piece_copies(open, piece) != TM_FORMAT_NONE) bytes += padded(piece->request.operands[i].byte_count);
  }
  if (tm_merge_piece_computes(piece) && is_blocks(open)) bytes += padded(tm_merge_bytes_of(open->item->format, elements));
  return bytes;
}

static room_places places_in(void *memory) {
  unsigned char *start = memory;
  return (room_places){ start, start + SETTINGS_BYTES, start + SETTINGS_BYTES + WORDS_BYTES };
}

/* ---------------------------------------------------------------------------------------------------------- running ---- */

static tm_status run(tm_merge_lanes *lanes, const tm_request *request, void *const *pointers, uint64_t bytes, tm_error *error) {
  tm_run_outcome outcome;
  TM_TRY(tm_runner_run(&lanes->runner, request, pointers, &outcome, error));
  tm_job_count_use(lanes->job, &outcome, bytes);
  return TM_OK;
}

static void begin_request(uint32_t op, uint32_t input_count, tm_request *request) {
  const tm_op_row *row = tm_op_find(op);
  memset(request, 0, sizeof *request);
  request->op = op;
  request->version = row->version;
  request->attribute_bytes = row->attribute_bytes;
  request->worst_numerics = TM_NUMERICS_N0;
  request->only_device = TM_ANY_DEVICE;
  request->input_count = input_count;
  request->output_count = 1;
}

static tm_status dense(uint32_t format, uint64_t elements, const void *data, tm_operand *operand, tm_error *error) {
  TM_TRY(tm_operand_contiguous(format, 1, &elements, operand, error));
  operand->alignment = tm_alignment_of(data);
  return TM_OK;
}

/* Some elements in some format. */
typedef struct values {
  uint32_t    format;
  const void *data;
} values;

static tm_status convert(tm_merge_lanes *lanes, uint32_t op, values from, values to, uint64_t elements, tm_error *error) {
  tm_request request;
  begin_request(op, 1, &request);
  TM_TRY(dense(from.format, elements, from.data, &request.operands[0], error));
  TM_TRY(dense(to.format, elements, to.data, &request.operands[1], error));
  void *const pointers[] = { (void *)(uintptr_t)from.data, (void *)(uintptr_t)to.data };
  return run(lanes, &request, pointers, 0, error);
}

/* ---------------------------------------------------------------------------------------------------------- loading ---- */

/* Elements of a tile are numbered from the tensor's first one. */
static void load_settings(const tm_merge_open *open, const tm_work_stream_piece *piece, void *settings) {
  const double one = 1;
  memcpy(settings, open->numbers, open->number_count * sizeof *open->numbers);
  if (piece->begin >= open->item->common_count) memcpy(settings, &one, sizeof one);
  else if (piece->request.op == TM_OP_DARE_SUM) memcpy(settings, &piece->begin, sizeof piece->begin);
}

/* Of a small tensor all of what is common is one piece. */
static void trim_small(const tm_merge_open *open, const tm_work_stream_piece *piece, void *const *pointers, void *settings) {
  const tm_merge_item *item = open->item;
  const tm_operand *operands = piece->request.operands;
  const tm_merge_elements base = { operands[0].format, pointers[0] };
  if (piece->request.op != TM_OP_TIES_SUM || item->common_count > TM_MERGE_TRIM_SMALL) return;
  for (uint32_t i = 1; i < item->input_count; i++) {
    if (!(item->inputs[i].density < 1)) continue;
    const tm_merge_elements model = { operands[i + 1].format, pointers[i + 1] };
    const double threshold = tm_merge_trim_threshold(model, base, item->common_count,
                                                     tm_merge_trim_kept(item->common_count, item->inputs[i].density));
    memcpy((unsigned char *)settings + 2 * i * sizeof threshold, &threshold, sizeof threshold);
  }
}

/* Where it is, or read into the room. */
static tm_status find_input(const tm_merge_open *open, const tm_work_stream_piece *piece, uint32_t index, room_places *places,
                            void **out_data, tm_error *error) {
  const tm_merge_input *input = tm_merge_piece_input(open, piece, index);
  const tm_archive *archive = archive_of(open, input);
  const char *mapped = tm_archive_mapped(archive, input->tensor);
  const uint32_t format = format_of(open, input);
  const uint64_t offset = tm_merge_bytes_of(format, piece->begin), before = lead_in_bytes(open, piece, index);
  *out_data = mapped != NULL ? (void *)(uintptr_t)(mapped + offset) : places->next + before;
  if (mapped != NULL) return TM_OK;
  const uint64_t read_bytes = before + tm_merge_bytes_of(format, tm_merge_piece_elements(piece));
  TM_TRY(tm_archive_read(archive, input->tensor, offset - before, places->next, read_bytes, error));
  places->next += padded(read_bytes);
  return TM_OK;
}

/* Into the room, in the form in which it is compared. */
static tm_status copy_input(tm_merge_lanes *lanes, const tm_work_stream_piece *piece, uint32_t index, room_places *places,
                            void **pointer, tm_error *error) {
  const tm_merge_open *open = piece->subject;
  const tm_operand *operand = &piece->request.operands[index];
  const values from = { format_of(open, tm_merge_piece_input(open, piece, index)), *pointer };
  const values to = { operand->format, places->next };
  *pointer = places->next;
  places->next += padded(operand->byte_count);
  if (!open->is_scaled) return convert(lanes, TM_OP_CAST, from, to, operand->element_count, error);
  tm_merge_arc_scale(from.format, from.data, operand->element_count, open->shifts[index], *pointer);
  return TM_OK;
}

tm_status tm_merge_lane_load(tm_merge_lanes *lanes, const tm_work_stream_piece *piece, tm_work_stream_room *room,
                             void **out_pointers, tm_error *error) {
  const tm_merge_open *open = piece->subject;
  const uint64_t bytes = room_bytes(open, piece);
  void *memory = tm_work_stream_room_take(room, bytes);
  if (memory == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a tile of %llu bytes", (unsigned long long)bytes);
  room_places places = places_in(memory);
  for (uint32_t i = 0; i < piece->request.input_count; i++) {
    out_pointers[i] = places.settings;
    if (tm_merge_piece_input(open, piece, i) == NULL) {
      load_settings(open, piece, places.settings);
      continue;
    }
    tm_status status = find_input(open, piece, i, &places, &out_pointers[i], error);
    if (status == TM_OK && tm_merge_piece_copies(open, piece) != TM_FORMAT_NONE)
      status = copy_input(lanes, piece, i, &places, &out_pointers[i], error);
    TM_TRY(tm_merge_name_tensor(open->item, status, error));
  }
  trim_small(open, piece, out_pointers, places.settings);
  return TM_OK;
}

/* ------------------------------------------------------------------------------------------------------- measuring ---- */

/* Compares b with a, adding what comes of it to `words`, which the lock guards. */
static tm_status compare(tm_merge_lanes *lanes, values a, values b, uint64_t elements, void *part, uint64_t *words,
                         tm_error *error) {
  tm_request request;
  begin_request(TM_OP_COMPARE_TENSORS, 2, &request);
  TM_TRY(dense(a.format, elements, a.data, &request.operands[0], error));
  TM_TRY(dense(b.format, elements, b.data, &request.operands[1], error));
  TM_TRY(dense(TM_FORMAT_U64, TM_COMPARISON_WORDS, part, &request.operands[2], error));
  void *const pointers[] = { (void *)(uintptr_t)a.data, (void *)(uintptr_t)b.data, part };
  TM_TRY(run(lanes, &request, pointers, 0, error));
  tm_mutex_lock(&lanes->lock);
  tm_op_find(TM_OP_COMPARE_TENSORS)->combine_words(words, part);
  tm_mutex_unlock(&lanes->lock);
  return TM_OK;
}

/* The operand that is the leading checkpoint's; UINT32_MAX: it takes no part. */
static uint32_t find_lead(const tm_merge_open *open, const tm_work_stream_piece *piece) {
  for (uint32_t i = 0; i < piece->request.input_count; i++) {
    const tm_merge_input *input = tm_merge_piece_input(open, piece, i);
    if (input != NULL && input->source == open->settings->lead) return i;
  }
  return UINT32_MAX;
}

/* --------------------------------------------------------------------------------------------------------- hashing ---- */

void tm_merge_hash_add(tm_string name, uint32_t format, uint64_t unit, const void *data, uint64_t bytes, tm_content_hash *hash) {
  const uint64_t first = tm_hash_number(name.data, name.length, 0) + unit, unit_bytes = tm_merge_unit_of(format);
  const unsigned char *next = data;
  for (uint64_t done = 0, index = first; done < bytes; done += unit_bytes, index++)
    tm_content_hash_add(hash, index, next + done, tm_min_u64(unit_bytes, bytes - done));
}

/* ------------------------------------------------------------------------------------------------------- finishing ---- */

/* So many units at once, of what the threads of the pool share. */
#define UNITS_TOGETHER 4u

/* A computed piece: its inputs are hashed, its result is written. */
typedef struct finishing {
  tm_merge_lanes             *lanes;
  const tm_merge_open        *open;
  const tm_work_stream_piece *piece;
  void *const                *pointers;
  const void                 *result;
  tm_status                   status;   /* these two under the lock: the first failure */
  tm_error                    error;
} finishing;

/* A checkpoint that is named twice is hashed once. */
static bool is_hashed(const finishing *f, uint32_t operand) {
  const uint32_t *same_as = f->open->settings->same_as;
  const tm_merge_input *input = tm_merge_piece_input(f->open, f->piece, operand);
  for (uint32_t i = 0; i < operand; i++) {
    const tm_merge_input *before = tm_merge_piece_input(f->open, f->piece, i);
    if (before != NULL && same_as[before->source] == same_as[input->source]) return true;
  }
  return false;
}

/* A unit of which the rest has more is hashed with it. */
static uint64_t left_to_rest(const finishing *f, uint64_t end, const tm_merge_input *input) {
  const tm_merge_item *item = f->open->item;
  const uint32_t *same_as = f->open->settings->same_as;
  if (item->rest == NULL || f->piece->begin + end != item->common_count) return 0;
  return same_as[item->rest->source] == same_as[input->source] ? item->common_count % TM_MERGE_UNIT_ELEMENTS : 0;
}

static void hash_range(finishing *f, uint64_t first, uint64_t elements) {
  const tm_merge_open *open = f->open;
  const uint64_t lead_in = tm_merge_piece_lead_in(open, f->piece);
  const uint64_t unit = (f->piece->begin + first) / TM_MERGE_UNIT_ELEMENTS;
  for (uint32_t i = 0; i < f->piece->request.input_count; i++) {
    const tm_merge_input *input = tm_merge_piece_input(open, f->piece, i);
    const uint32_t format = f->piece->request.operands[i].format;
    tm_content_hash hash = { 0, 0 };
    if (input == NULL || is_hashed(f, i)) continue;
    const uint64_t hashed = lead_in + elements - left_to_rest(f, first + elements, input);
    const unsigned char *data = (const unsigned char *)f->pointers[i] + tm_merge_bytes_of(format, first);
    data -= tm_merge_bytes_of(format, lead_in);
    tm_merge_hash_add(open->item->name, format, unit, data, tm_merge_bytes_of(format, hashed), &hash);
    tm_mutex_lock(&f->lanes->lock);
    tm_content_hash_merge(&f->lanes->hashes[open->settings->same_as[input->source]], &hash);
    tm_mutex_unlock(&f->lanes->lock);
  }
}

static void write_range(finishing *f, uint64_t first, uint64_t elements) {
  const uint32_t format = f->open->item->format;
  const unsigned char *data = (const unsigned char *)f->result + tm_merge_bytes_of(format, first);
  const uint64_t offset = tm_merge_bytes_of(format, f->piece->begin + first);
  tm_error error = TM_ERROR_INIT;
  const tm_status status = tm_checkpoint_writer_write(f->lanes->plan->writer, f->open->index, offset, data,
                                                      tm_merge_bytes_of(format, elements), &error);
  if (status == TM_OK) return;
  tm_mutex_lock(&f->lanes->lock);
  if (f->status == TM_OK) {
    f->status = status;
    f->error = error;
  }
  tm_mutex_unlock(&f->lanes->lock);
}

static void finish_units(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  finishing *f = argument;
  const uint64_t all = tm_merge_piece_elements(f->piece), first = begin * TM_MERGE_UNIT_ELEMENTS;
  const uint64_t elements = tm_min_u64(all, end * TM_MERGE_UNIT_ELEMENTS) - first;
  (void)lane;
  hash_range(f, first, elements);
  write_range(f, first, elements);
}

static tm_status finish(finishing *f, tm_error *error) {
  tm_pool *pool = atomic_load(&f->lanes->plan->inventory->pool);
  const uint64_t units = tm_divide_up(tm_merge_piece_elements(f->piece), TM_MERGE_UNIT_ELEMENTS);
  f->error = (tm_error)TM_ERROR_INIT;
  tm_pool_run(pool, units, UNITS_TOGETHER, finish_units, f);
  return f->status == TM_OK ? TM_OK : tm_fail_native(error, f->status, f->error.native_code, "%s", f->error.text);
}

/* ------------------------------------------------------------------------------------------------------- delivering ---- */

/* Computed values, of which any may be NaN. */
typedef struct computed_values {
  uint32_t       format;
  uint64_t       elements;
  unsigned char *data;
} computed_values;

static void unify_units(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const computed_values *computed = argument;
  const uint64_t first = begin * TM_MERGE_UNIT_ELEMENTS;
  (void)lane;
  tm_merge_nans_unify(computed->format, tm_min_u64(computed->elements, end * TM_MERGE_UNIT_ELEMENTS) - first,
                      computed->data + tm_merge_bytes_of(computed->format, first));
}

static void unify(tm_merge_lanes *lanes, uint32_t format, uint64_t elements, void *data) {
  computed_values computed = { format, elements, data };
  tm_pool *pool = atomic_load(&lanes->plan->inventory->pool);
  tm_pool_run(pool, tm_divide_up(elements, TM_MERGE_UNIT_ELEMENTS), UNITS_TOGETHER, unify_units, &computed);
}

/* Inputs of a mean and what was computed of them. */
typedef struct mean_values {
  tm_merge_elements inputs[TM_MERGE_MOST_SOURCES];
  uint32_t          input_count;
  computed_values   computed;
} mean_values;

static void keep_units(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const mean_values *mean = argument;
  const computed_values *computed = &mean->computed;
  const uint64_t first = begin * TM_MERGE_UNIT_ELEMENTS;
  tm_merge_elements inputs[TM_MERGE_MOST_SOURCES];
  (void)lane;
  for (uint32_t i = 0; i < mean->input_count; i++) {
    const tm_merge_elements *input = &mean->inputs[i];
    inputs[i] = (tm_merge_elements){ input->format, (const unsigned char *)input->data + tm_merge_bytes_of(input->format, first) };
  }
  tm_merge_equals_keep(inputs, mean->input_count, tm_min_u64(computed->elements, end * TM_MERGE_UNIT_ELEMENTS) - first,
                       computed->format, computed->data + tm_merge_bytes_of(computed->format, first));
}

static void keep_equal(tm_merge_lanes *lanes, const tm_work_stream_piece *piece, void *const *pointers, computed_values computed) {
  const tm_merge_open *open = piece->subject;
  mean_values mean = { .input_count = 0, .computed = computed };
  if (!open->keeps_equal || piece->begin >= open->item->common_count) return;
  for (uint32_t i = 0; i < piece->request.input_count; i++)
    if (tm_merge_piece_input(open, piece, i) != NULL)
      mean.inputs[mean.input_count++] = (tm_merge_elements){ piece->request.operands[i].format, pointers[i] };
  tm_pool *pool = atomic_load(&lanes->plan->inventory->pool);
  tm_pool_run(pool, tm_divide_up(computed.elements, TM_MERGE_UNIT_ELEMENTS), UNITS_TOGETHER, keep_units, &mean);
}

static bool has_nonfinite(const void *words) {
  uint64_t count;
  memcpy(&count, (const unsigned char *)words + TM_COMPARISON_NONFINITE * sizeof count, sizeof count);
  return count != 0;
}

/* Where there is nothing to compare with, what is no number is counted all the same. */
static tm_status count_nonfinite(tm_merge_lanes *lanes, tm_merge_open *open, uint64_t elements, values result, void *words,
                                 tm_error *error) {
  uint64_t own[TM_COMPARISON_WORDS] = { 0 };
  TM_TRY(compare(lanes, result, result, elements, words, own, error));
  tm_mutex_lock(&lanes->lock);
  open->change[TM_COMPARISON_NONFINITE] += own[TM_COMPARISON_NONFINITE];
  tm_mutex_unlock(&lanes->lock);
  return TM_OK;
}

/* Blocks were made of such values already. */
static void unify_result(tm_merge_lanes *lanes, const tm_merge_open *open, uint64_t elements, values result) {
  if (!is_blocks(open)) unify(lanes, result.format, elements, (void *)(uintptr_t)result.data);
}

/* Of the pairs that words tell of, those that were not broken before; and, since which NaN it was depends on who computed, which of
   them have equal bits once it is one for all. */
static tm_status look_at_broken(tm_merge_lanes *lanes, tm_merge_open *open, uint64_t elements, values before, values result,
                                void *words, tm_error *error) {
  const uint64_t *part = words, pairs = part[TM_COMPARISON_NONFINITE], equal = part[TM_COMPARISON_EQUAL_BITS];
  uint64_t unified[TM_COMPARISON_WORDS] = { 0 }, own[TM_COMPARISON_WORDS] = { 0 };
  unify_result(lanes, open, elements, result);
  TM_TRY(compare(lanes, before, result, elements, words, unified, error));
  TM_TRY(compare(lanes, before, before, elements, words, own, error));
  tm_mutex_lock(&lanes->lock);
  open->broken_count += pairs - own[TM_COMPARISON_NONFINITE];
  open->change[TM_COMPARISON_EQUAL_BITS] += unified[TM_COMPARISON_EQUAL_BITS] - equal;
  tm_mutex_unlock(&lanes->lock);
  return TM_OK;
}

static tm_status measure(tm_merge_lanes *lanes, tm_merge_open *open, const tm_work_stream_piece *piece, void *const *pointers,
                         values result, void *words, tm_error *error) {
  const uint32_t lead = find_lead(open, piece);
  const uint64_t elements = tm_merge_piece_elements(piece);
  if (lead == UINT32_MAX) {
    TM_TRY(count_nonfinite(lanes, open, elements, result, words, error));
    if (has_nonfinite(words)) unify_result(lanes, open, elements, result);
    return TM_OK;
  }
  const values before = { piece->request.operands[lead].format, pointers[lead] };
  TM_TRY(compare(lanes, before, result, elements, words, open->change, error));
  return has_nonfinite(words) ? look_at_broken(lanes, open, elements, before, result, words, error) : TM_OK;
}

/* A mapped file that shrank is zeros from there on: that is noticed before more is made of them. */
static tm_status check_inputs(const tm_merge_open *open, const tm_work_stream_piece *piece, tm_error *error) {
  for (uint32_t i = 0; i < piece->request.input_count; i++) {
    const tm_merge_input *input = tm_merge_piece_input(open, piece, i);
    if (input == NULL) continue;
    TM_TRY(tm_merge_name_tensor(open->item, tm_archive_check_tensor(archive_of(open, input), input->tensor, error), error));
  }
  return TM_OK;
}

/* Which NaN it was tells in the scale of a block. */
static tm_status make_blocks_anew(tm_merge_lanes *lanes, values computed, values blocks, uint64_t elements, tm_error *error) {
  unify(lanes, computed.format, elements, (void *)(uintptr_t)computed.data);
  return convert(lanes, TM_OP_QUANTIZE, computed, blocks, elements, error);
}

/* What is written: the computed values, of NaN one for all, or blocks of them. */
static tm_status find_result(tm_merge_lanes *lanes, const tm_work_stream_piece *piece, room_places places, void *const *pointers,
                             values *out_result, tm_error *error) {
  tm_merge_open *open = piece->subject;
  const uint64_t elements = tm_merge_piece_elements(piece);
  void *data = pointers[piece->request.input_count];
  const values computed = { tm_merge_computed_format(open->item), data };
  *out_result = computed;
  keep_equal(lanes, piece, pointers, (computed_values){ computed.format, elements, data });
  if (open->item->is_nothing && piece->begin < open->item->common_count)        /* 0 times infinity is none */
    memset(data, 0, (size_t)tm_merge_bytes_of(computed.format, elements));
  if (is_blocks(open)) {
    const uint64_t bytes = padded(tm_merge_bytes_of(open->item->format, elements));
    *out_result = (values){ open->item->format, places.settings + room_bytes(open, piece) - bytes };
    TM_TRY(convert(lanes, TM_OP_QUANTIZE, computed, *out_result, elements, error));
    TM_TRY(compare(lanes, computed, *out_result, elements, places.words, open->loss, error));
    if (has_nonfinite(places.words)) TM_TRY(make_blocks_anew(lanes, computed, *out_result, elements, error));
  }
  return measure(lanes, open, piece, pointers, *out_result, places.words, error);
}

tm_status tm_merge_lane_deliver(tm_merge_lanes *lanes, const tm_work_stream_piece *piece, tm_work_stream_room *room,
                                void *const *pointers, tm_error *error) {
  const tm_merge_open *open = piece->subject;
  values result;
  TM_TRY(check_inputs(open, piece, error));
  if (!tm_merge_piece_computes(piece)) return TM_OK;
  const tm_status status = find_result(lanes, piece, places_in(room->block.memory), pointers, &result, error);
  TM_TRY(tm_merge_name_tensor(open->item, status, error));
  finishing rest = { .lanes = lanes, .open = open, .piece = piece, .pointers = pointers, .result = result.data };
  return finish(&rest, error);
}

tm_status tm_merge_name_tensor(const tm_merge_item *item, tm_status status, tm_error *error) {
  char name[256];
  if (status == TM_OK || status == TM_ERROR_CANCELLED) return status;
  (void)tm_text_escape(item->name.data, item->name.length, name, sizeof name);
  tm_error_prefix(error, "tensor '%s'", name);
  return status;
}
