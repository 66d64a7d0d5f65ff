/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/merge_open.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/content_hash.h"
#include "base/error.h"
#include "jobs/merge_tiles.h"
#include "jobs/merge_trim.h"
#include "jobs/merge_weights.h"
#include "tensor/shape.h"
#include "tensormorph/canonical_sum.h"

#define SETTINGS_INPUT 1u

static uint64_t bits_of(double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}

/* --------------------------------------------------------------------------------------------------------- settings ---- */

static void set_weights(tm_merge_open *open, const double *weights) {
  open->number_count = open->item->input_count;
  for (uint32_t i = 0; i < open->item->input_count; i++) open->numbers[i] = bits_of(weights[i]);
}

static void set_linear(tm_merge_open *open) {
  double weights[TM_MERGE_MOST_SOURCES];
  for (uint32_t i = 0; i < open->item->input_count; i++) weights[i] = open->item->inputs[i].weight;
  set_weights(open, weights);
  open->keeps_equal = open->item->is_mean != 0;
}

/* What decides which elements of a model's difference are kept. */
static uint64_t dare_key(const tm_merge_open *open, uint32_t model) {
  const tm_string name = open->item->name;
  const unsigned char place[4] = { (unsigned char)model, (unsigned char)(model >> 8), 0, 0 };
  return tm_hash_number(name.data, name.length, tm_hash_number(place, sizeof place, open->settings->seed));
}

/* Task arithmetic is dare that keeps everything. */
static void set_dare(tm_merge_open *open) {
  const bool is_rescaled = (open->settings->flags & TM_MERGE_NO_RESCALE) == 0;
  const bool drops = open->item->method == TM_MERGE_DARE;
  open->number_count = 1 + TM_DARE_WORDS * (open->item->input_count - 1);
  open->numbers[0] = 0;
  for (uint32_t i = 1; i < open->item->input_count; i++) {
    const tm_merge_input *input = &open->item->inputs[i];
    const double density = drops ? input->density : 1;
    uint64_t *words = &open->numbers[1 + TM_DARE_WORDS * (i - 1)];
    words[TM_DARE_WEIGHT] = bits_of(input->weight * open->item->scale);
    words[TM_DARE_FACTOR] = bits_of(is_rescaled ? 1 / density : 1);
    words[TM_DARE_THRESHOLD] = (uint64_t)floor(density * 0x1p32);
    words[TM_DARE_KEY] = dare_key(open, input->source);
  }
}

static void set_ties(tm_merge_open *open) {
  open->number_count = 1 + 2 * (open->item->input_count - 1);
  open->numbers[0] = bits_of(open->item->scale);
  for (uint32_t i = 1; i < open->item->input_count; i++) {
    open->numbers[2 * i - 1] = bits_of(open->item->inputs[i].weight);
    open->numbers[2 * i] = bits_of(0);
  }
}

static double word_sum(const tm_merge_open *open, uint32_t word) { return tm_sum_read(open->words + word); }

static void set_slerp(tm_merge_open *open) {
  double weights[2], angle;
  const double dot = word_sum(open, TM_COMPARISON_DOT);
  const double square_a = word_sum(open, TM_COMPARISON_NORM_A), square_b = word_sum(open, TM_COMPARISON_NORM_B);
  tm_merge_weights_slerp(dot, square_a, square_b, open->item->t, open->item->is_wide == 0, weights, &angle);
  set_weights(open, weights);
  open->keeps_equal = isnan(angle) && open->item->is_wide != 0;
  if (isnan(angle)) (void)snprintf(open->text, sizeof open->text, "%.6g, %.6g (linear)", weights[0], weights[1]);
  else (void)snprintf(open->text, sizeof open->text, "%.6g, %.6g (angle %.6g)", weights[0], weights[1], angle);
  open->arc = (tm_merge_arc){ { weights[0], weights[1] }, angle };
  open->weights_text = open->text;
}

/* ----------------------------------------------------------------------------------------------------------- passes ---- */

static bool is_trimmed(const tm_merge_input *input) { return input->density < 1; }

bool tm_merge_open_looks(const tm_merge_item *item) {
  if (item->action != TM_MERGE_ACTION_COMPUTE) return false;
  bool looks = item->method == TM_MERGE_SLERP;
  const bool may_trim = item->method == TM_MERGE_TIES && item->common_count > TM_MERGE_TRIM_SMALL;
  for (uint32_t i = 1; i < item->input_count; i++) looks = looks || (may_trim && is_trimmed(&item->inputs[i]));
  return looks;
}

static uint64_t pass_elements(const tm_merge_open *open) {
  if (open->pass == TM_MERGE_PASS_NONE) return 0;
  return open->pass == TM_MERGE_PASS_COMPUTE ? open->item->element_count : open->item->common_count;
}

static void begin_pass(tm_merge_open *open, tm_merge_pass pass) {
  open->pass = pass;
  open->next_element = open->done_count = 0;
  if (pass == TM_MERGE_PASS_ARC) memset(open->words, 0, TM_COMPARISON_WORDS * sizeof *open->words);
  if (pass == TM_MERGE_PASS_UPPER || pass == TM_MERGE_PASS_LOWER) memset(open->words, 0, TM_MAGNITUDE_BINS * sizeof *open->words);
}

static void look_at_next(tm_merge_open *open) {
  const tm_merge_item *item = open->item;
  do open->looked_at++;
  while (open->looked_at < item->input_count && !is_trimmed(&item->inputs[open->looked_at]));
  if (open->looked_at == item->input_count) {
    begin_pass(open, TM_MERGE_PASS_COMPUTE);
    return;
  }
  open->above_count = tm_merge_trim_kept(item->common_count, item->inputs[open->looked_at].density);
  begin_pass(open, TM_MERGE_PASS_UPPER);
}

/* The bin in which the count of the largest is reached; what is left to find inside of it stays in above_count. */
static uint32_t find_bin(tm_merge_open *open) {
  uint32_t bin = TM_MAGNITUDE_BINS - 1;
  while (bin > 0 && open->words[bin] < open->above_count) open->above_count -= open->words[bin--];
  return bin;
}

static void set_threshold(tm_merge_open *open, uint32_t bits) {
  open->numbers[2 * open->looked_at] = bits_of(tm_merge_trim_value(bits));
}

/* Only f64 has values whose squares it does not hold. */
static bool needs_scaling(tm_merge_open *open) {
  if (open->is_scaled || open->item->is_wide == 0) return false;
  open->shifts[0] = tm_merge_arc_find_shift(word_sum(open, TM_COMPARISON_NORM_A));
  open->shifts[1] = tm_merge_arc_find_shift(word_sum(open, TM_COMPARISON_NORM_B));
  return open->shifts[0] != 0 || open->shifts[1] != 0;
}

static void end_pass(tm_merge_open *open) {
  switch (open->pass) {
    case TM_MERGE_PASS_ARC:
      if (needs_scaling(open)) {
        open->is_scaled = true;
        begin_pass(open, TM_MERGE_PASS_ARC);
        return;
      }
      set_slerp(open);
      begin_pass(open, TM_MERGE_PASS_COMPUTE);
      return;
    case TM_MERGE_PASS_UPPER:
      open->upper = find_bin(open);
      begin_pass(open, TM_MERGE_PASS_LOWER);
      return;
    case TM_MERGE_PASS_LOWER:
      set_threshold(open, open->upper << TM_MAGNITUDE_LOW_BITS | find_bin(open));
      look_at_next(open);
      return;
    default: atomic_store(&open->is_done, true); return;
  }
}

void tm_merge_open_begin(tm_merge_open *open, const tm_merge_settings *settings, const tm_merge_item *item, uint64_t index,
                         uint64_t *words) {
  *open = (tm_merge_open){ .settings = settings, .item = item, .index = index, .words = words };
  if (item->action != TM_MERGE_ACTION_COMPUTE) return;
  const bool has_common = item->common_count != 0;
  switch (item->method) {
    case TM_MERGE_TASK:
    case TM_MERGE_DARE: set_dare(open); break;
    case TM_MERGE_TIES: set_ties(open); break;
    case TM_MERGE_SLERP: break;
    default: set_linear(open); break;
  }
  begin_pass(open, TM_MERGE_PASS_COMPUTE);
  if (has_common && item->method == TM_MERGE_SLERP) begin_pass(open, TM_MERGE_PASS_ARC);
  if (item->method == TM_MERGE_TIES && tm_merge_open_looks(item)) look_at_next(open);
  if (pass_elements(open) == 0) atomic_store(&open->is_done, true);
}

bool tm_merge_open_has_more(const tm_merge_open *open) { return open->next_element < pass_elements(open); }

static void combine(uint32_t op, uint64_t *words, const uint64_t *part) { tm_op_find(op)->combine_words(words, part); }

void tm_merge_open_done(tm_merge_open *open, const tm_work_stream_piece *piece, const uint64_t *result) {
  if (open->pass == TM_MERGE_PASS_ARC) combine(TM_OP_COMPARE_TENSORS, open->words, result);
  if (open->pass == TM_MERGE_PASS_UPPER || open->pass == TM_MERGE_PASS_LOWER) combine(TM_OP_MAGNITUDES, open->words, result);
  open->done_count += tm_merge_piece_elements(piece);
  if (open->done_count == pass_elements(open)) end_pass(open);
}

/* ----------------------------------------------------------------------------------------------------------- pieces ---- */

uint64_t tm_merge_piece_elements(const tm_work_stream_piece *piece) { return piece->request.operands[0].element_count; }

uint64_t tm_merge_piece_lead_in(const tm_merge_open *open, const tm_work_stream_piece *piece) {
  return piece->begin < open->item->common_count ? 0 : piece->begin % TM_MERGE_UNIT_ELEMENTS;
}

uint32_t tm_merge_piece_copies(const tm_merge_open *open, const tm_work_stream_piece *piece) {
  if (piece->request.op != TM_OP_COMPARE_TENSORS) return TM_FORMAT_NONE;
  return tm_merge_arc_format(open->settings, open->item, open->is_scaled);
}

bool tm_merge_piece_computes(const tm_work_stream_piece *piece) {
  return piece->request.op != TM_OP_COMPARE_TENSORS && piece->request.op != TM_OP_MAGNITUDES;
}

const tm_merge_input *tm_merge_piece_input(const tm_merge_open *open, const tm_work_stream_piece *piece, uint32_t input) {
  const tm_merge_item *item = open->item;
  if (piece->request.op == TM_OP_COMPARE_TENSORS) return &item->inputs[input];
  if (piece->request.op == TM_OP_MAGNITUDES) return &item->inputs[input == 0 ? open->looked_at : 0];
  if (input == SETTINGS_INPUT) return NULL;
  if (piece->begin >= item->common_count) return item->rest;
  return &item->inputs[input == 0 ? 0 : input - 1];
}

static uint32_t computing_op(const tm_merge_open *open, bool is_rest) {
  if (is_rest || open->item->method == TM_MERGE_LINEAR || open->item->method == TM_MERGE_SLERP) return TM_OP_WEIGHTED_SUM;
  return open->item->method == TM_MERGE_TIES ? TM_OP_TIES_SUM : TM_OP_DARE_SUM;
}

static void begin_request(const tm_merge_open *open, uint64_t begin, tm_request *request) {
  const bool is_rest = begin >= open->item->common_count;
  memset(request, 0, sizeof *request);
  request->input_count = 2;
  if (open->pass == TM_MERGE_PASS_ARC) {
    request->op = TM_OP_COMPARE_TENSORS;
  } else if (open->pass == TM_MERGE_PASS_COMPUTE) {
    request->op = computing_op(open, is_rest);
    request->input_count = is_rest ? 2 : 1 + open->item->input_count;
  } else {
    request->op = TM_OP_MAGNITUDES;
  }
  const tm_op_row *row = tm_op_find(request->op);
  request->version = row->version;
  request->attribute_bytes = row->attribute_bytes;
  request->worst_numerics = TM_NUMERICS_N0;
  request->only_device = TM_ANY_DEVICE;
  request->output_count = 1;
}

static void set_attributes(const tm_merge_open *open, tm_request *request) {
  const tm_magnitudes_attributes lower = { .within = 1, .upper = open->upper };
  const tm_ties_attributes ties = { .sum = (open->settings->flags & TM_MERGE_TIES_SUM) != 0 };
  if (request->op == TM_OP_MAGNITUDES && open->pass == TM_MERGE_PASS_LOWER) memcpy(request->attributes, &lower, sizeof lower);
  if (request->op == TM_OP_TIES_SUM) memcpy(request->attributes, &ties, sizeof ties);
}

/* In room of the best alignment. */
static uint32_t alignment_at(uint64_t offset_bytes) {
  const uint64_t lowest = offset_bytes & (~offset_bytes + 1);
  return lowest == 0 || lowest > TM_BEST_ALIGNMENT ? TM_BEST_ALIGNMENT : (uint32_t)lowest;
}

static tm_status set_input(const tm_merge_open *open, uint32_t input, uint64_t elements, tm_work_stream_piece *piece,
                           tm_error *error) {
  tm_operand *operand = &piece->request.operands[input];
  const tm_merge_input *wanted = tm_merge_piece_input(open, piece, input);
  if (wanted == NULL) {
    const uint64_t count = piece->begin >= open->item->common_count ? 1 : open->number_count;
    const uint32_t format = piece->request.op == TM_OP_DARE_SUM ? TM_FORMAT_U64 : TM_FORMAT_F64;
    TM_TRY(tm_operand_contiguous(format, 1, &count, operand, error));
    operand->alignment = TM_BEST_ALIGNMENT;
    return TM_OK;
  }
  const tm_archive *archive = open->settings->sources[wanted->source].archive;
  const uint32_t format = tm_archive_tensor_at(archive, wanted->tensor)->format;
  const char *mapped = tm_archive_mapped(archive, wanted->tensor);
  const uint32_t copied_as = tm_merge_piece_copies(open, piece);
  TM_TRY(tm_operand_contiguous(copied_as == TM_FORMAT_NONE ? format : copied_as, 1, &elements, operand, error));
  if (copied_as != TM_FORMAT_NONE) {
    operand->alignment = TM_BEST_ALIGNMENT;
    piece->bytes += tm_merge_bytes_of(format, elements);
    return TM_OK;
  }
  const uint64_t skipped_bytes = tm_merge_bytes_of(format, tm_merge_piece_lead_in(open, piece));
  const uint64_t offset = tm_merge_bytes_of(format, piece->begin);
  operand->alignment = mapped == NULL ? alignment_at(skipped_bytes) : tm_alignment_of(mapped + offset);
  if (mapped != NULL) piece->request.flags |= TM_REQUEST_UNMEASURED;
  piece->bytes += operand->byte_count;
  return TM_OK;
}

static tm_status set_result(const tm_merge_open *open, uint64_t elements, tm_request *request, tm_error *error) {
  tm_operand *operand = &request->operands[request->input_count];
  const uint64_t words = request->op == TM_OP_MAGNITUDES ? TM_MAGNITUDE_BINS : TM_COMPARISON_WORDS;
  if (open->pass == TM_MERGE_PASS_COMPUTE)
    TM_TRY(tm_operand_contiguous(tm_merge_computed_format(open->item), 1, &elements, operand, error));
  else
    TM_TRY(tm_operand_contiguous(TM_FORMAT_U64, 1, &words, operand, error));
  operand->alignment = TM_BEST_ALIGNMENT;
  return TM_OK;
}

tm_status tm_merge_open_next(tm_merge_open *open, uint64_t most_units, tm_work_stream_piece *out_piece, tm_error *error) {
  const uint64_t begin = open->next_element, common = open->item->common_count;
  const uint64_t end = begin < common ? common : open->item->element_count;
  *out_piece = (tm_work_stream_piece){ .subject = open, .begin = begin };
  const uint64_t lead_in = tm_merge_piece_lead_in(open, out_piece);
  const uint64_t most = lead_in != 0 ? TM_MERGE_UNIT_ELEMENTS - lead_in : most_units * TM_MERGE_UNIT_ELEMENTS;
  const uint64_t elements = tm_min_u64(end - begin, most);
  begin_request(open, begin, &out_piece->request);
  set_attributes(open, &out_piece->request);
  for (uint32_t i = 0; i < out_piece->request.input_count; i++) TM_TRY(set_input(open, i, elements, out_piece, error));
  TM_TRY(set_result(open, elements, &out_piece->request, error));
  open->next_element += elements;
  return TM_OK;
}
