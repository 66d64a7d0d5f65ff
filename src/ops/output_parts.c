/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/output_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/result_closeness.h"
#include "ops/op_check.h"
#include "ops/op_measure.h"
#include "ops/output_terms.h"
#include "tensor/codec.h"
#include "tensor/format.h"
#include "tensor/shape.h"

#define A_SCALE 2u              /* inputs of a scaled product, from a's and b's */
#define NO_AXIS UINT32_MAX

/* ---- what a part is ---- */

/* The axis of y that a part is all of; NO_AXIS: it is an element, or as many as the longest block has. */
static uint32_t axis_of_part(const tm_operation *operation) {
  const tm_operand *y = tm_output_of(operation);
  switch (operation->op) {
    case TM_OP_STATS:
    case TM_OP_COMPARE_TENSORS:
    case TM_OP_MAGNITUDES: return 0;
    case TM_OP_SOFTMAX: return ((const tm_axis_attributes *)operation->attributes)->axis;
    case TM_OP_LAYER_NORM:
    case TM_OP_RMS_NORM:
    case TM_OP_ROPE:
    case TM_OP_ATTENTION: return y->rank - 1;
    default: return NO_AXIS;
  }
}

static bool is_product(const tm_operation *operation) {
  return operation->op == TM_OP_MATMUL || operation->op == TM_OP_MATMUL_SCALED;
}

static uint64_t blocks_along(const tm_operand *operand, const tm_format_info *info, uint32_t axis) {
  return axis + 1 == operand->rank ? operand->dims[axis] / info->block_elements : operand->dims[axis];
}

static void add_axis(tm_output_parts *parts, uint64_t extent, int64_t step_bytes) {
  parts->dims[parts->rank] = extent;
  parts->steps_bytes[parts->rank++] = step_bytes;
}

/* The space that units number, row by row. */
static void lay_out(tm_output_parts *parts, const tm_operand *y, const tm_format_info *info, uint32_t axis) {
  for (uint32_t i = 0; i < y->rank; i++) {
    const uint32_t unit = i + 1 == y->rank ? parts->unit_elements : 1;
    if (i != axis) add_axis(parts, y->dims[i] / unit, y->strides_bytes[i] * (int64_t)(i + 1 == y->rank ? unit / info->block_elements : 1));
  }
}

/* All parts go to one place, so only a part's own axis has steps. */
static void fold_output(tm_output_parts *parts, const tm_format_info *info, uint32_t axis) {
  tm_operand *y = &parts->operands[parts->whole->input_count];
  for (uint32_t i = 0; i < y->rank; i++) {
    const bool is_own = i == axis || (axis == NO_AXIS && i + 1 == y->rank && parts->unit_elements > 1);
    y->strides_bytes[i] = is_own ? (int64_t)info->block_bytes : 0;
  }
  y->flags &= ~TM_OPERAND_CONTIGUOUS;
}

/* One column of b, and of what goes with it. */
static void take_one_column(tm_output_parts *parts) {
  const tm_matmul_attributes *attributes = parts->whole->attributes;    /* both attribute structs begin with the transposes */
  const uint32_t inputs = parts->whole->input_count;
  for (uint32_t i = 1; i < inputs; i += 2) {            /* b, its scale and its zero point */
    tm_operand *operand = &parts->operands[i];
    const uint32_t axis = operand->rank == 0 ? 0 : operand->rank - (attributes->transpose_b ? 2 : 1);
    if (operand->rank != 0) operand->dims[axis] = 1;
  }
  parts->operands[inputs].dims[parts->operands[inputs].rank - 1] = 1;
}

static void count_elements(tm_operand *operand) {
  operand->element_count = 1;
  for (uint32_t i = 0; i < operand->rank; i++) operand->element_count *= operand->dims[i];
}

bool tm_output_parts_init(tm_output_parts *parts, const tm_operation *operation) {
  const tm_op_row *row = tm_op_find(operation->op);
  const uint32_t count = operation->input_count + operation->output_count;
  memset(parts, 0, sizeof *parts);
  if (row == NULL || row->reference == NULL || operation->output_count != 1) return false;
  for (uint32_t i = 0; i < count; i++)
    if (tm_format_find(operation->operands[i].format) == NULL) return false;
  const tm_operand *y = tm_output_of(operation);
  const tm_format_info *info = tm_format_find(y->format);
  if (y->element_count == 0) return false;
  parts->whole = operation;
  parts->operation = *operation;
  memcpy(parts->operands, operation->operands, count * sizeof *parts->operands);
  parts->operation.operands = parts->operands;
  const uint32_t axis = axis_of_part(operation);
  parts->unit_elements = axis == NO_AXIS && row->units == tm_units_elementwise ? tm_unit_elements(operation) : 1;
  parts->part_blocks = axis != NO_AXIS ? blocks_along(y, info, axis) : parts->unit_elements / info->block_elements;
  parts->part_bytes = parts->part_blocks * info->block_bytes;
  parts->part_step_bytes = axis != NO_AXIS ? y->strides_bytes[axis] : y->rank == 0 ? 0 : y->strides_bytes[y->rank - 1];
  lay_out(parts, y, info, axis);
  fold_output(parts, info, axis);
  parts->columns = 1;
  parts->count = row->units(operation);
  if (is_product(operation)) {
    parts->columns = y->dims[y->rank - 1];
    parts->count *= parts->columns;
    take_one_column(parts);
  }
  for (uint32_t i = 0; i < count; i++) count_elements(&parts->operands[i]);
  return parts->count != 0;
}

/* Whether an element of y, or a line of it, needs only those at the same place of operands of the same dims. */
static bool reads_in_place(const tm_operation *operation) {
  const tm_operand *y = tm_output_of(operation);
  const uint32_t op_class = tm_op_find(operation->op)->op_class;
  if (op_class == TM_CLASS_ELEMENTWISE || op_class == TM_CLASS_TRANSCENDENTAL) return true;
  switch (operation->op) {
    case TM_OP_CAST:
    case TM_OP_QUANTIZE:
    case TM_OP_DEQUANTIZE:
    case TM_OP_LAYER_NORM:
    case TM_OP_RMS_NORM: return true;
    case TM_OP_SOFTMAX: return axis_of_part(operation) + 1 == y->rank;
    default: return false;
  }
}

void tm_output_parts_reads(const tm_output_parts *parts, uint64_t index, uint32_t input, uint64_t *out_begin, uint64_t *out_count) {
  const tm_operand *x = &parts->whole->operands[input], *y = tm_output_of(parts->whole);
  const bool is_own = reads_in_place(parts->whole) && tm_same_dims(x, y);
  *out_count = is_own ? y->element_count / parts->count : x->element_count;
  *out_begin = is_own ? index * *out_count : 0;
}

/* ---- one part ---- */

/* Where a part is: its index in the parts' space, and where it begins in y. */
typedef struct place {
  uint64_t index[TM_MAX_RANK];
  int64_t  offset_bytes;
} place;

static place place_of(const tm_output_parts *parts, uint64_t index) {
  place at = { .offset_bytes = 0 };
  for (uint32_t i = parts->rank; i-- > 0; index /= parts->dims[i]) {
    at.index[i] = index % parts->dims[i];
    at.offset_bytes += (int64_t)at.index[i] * parts->steps_bytes[i];
  }
  return at;
}

/* Entries of a scale lie further apart than columns. */
static int64_t column_offset(const tm_output_parts *parts, uint32_t input, uint64_t column) {
  const tm_matmul_attributes *attributes = parts->whole->attributes;
  const tm_operand *operand = &parts->whole->operands[input];
  if (operand->rank == 0) return 0;
  const uint32_t axis = operand->rank - (attributes->transpose_b ? 2 : 1);
  const uint64_t group = operand->dims[axis] == 0 ? 1 : parts->columns / operand->dims[axis];
  return (int64_t)(column / (group == 0 ? 1 : group)) * operand->strides_bytes[axis];
}

/* Computes the part.  Where it is a piece of a line, the line begins before the room by as much as the piece comes after its
   beginning. */
static void compute(const tm_output_parts *parts, void *const *pointers, uint64_t index, const place *at, char *room) {
  const uint32_t inputs = parts->whole->input_count;
  void *own[TM_MAX_OPERANDS];
  memcpy(own, pointers, inputs * sizeof *own);
  const uint64_t column = index % parts->columns, unit = index / parts->columns;
  for (uint32_t i = 1; parts->columns > 1 && i < inputs; i += 2) own[i] = (char *)own[i] + column_offset(parts, i, column);
  const uint64_t ahead = parts->unit_elements > 1 && parts->rank != 0 ? at->index[parts->rank - 1] * parts->part_bytes : 0;
  own[inputs] = (void *)((uintptr_t)room - ahead);
  tm_op_find(parts->operation.op)->reference(&parts->operation, own, unit, unit + 1);
}

/* The index in y of the first element of a part's block. */
static void index_in_output(const tm_output_parts *parts, const place *at, uint64_t block, uint64_t *out_index) {
  const tm_operand *y = tm_output_of(parts->whole);
  const uint32_t axis = axis_of_part(parts->whole);
  const uint64_t element = block * tm_format_find(y->format)->block_elements;
  for (uint32_t i = 0, from = 0; i < y->rank; i++) out_index[i] = i == axis ? element : at->index[from++];
  if (axis == NO_AXIS && y->rank != 0) out_index[y->rank - 1] = out_index[y->rank - 1] * parts->unit_elements + element;
}

/* Of the element, row by row; of its block where y has them. */
static uint64_t number_in_output(const tm_output_parts *parts, const uint64_t *index) {
  const tm_operand *y = tm_output_of(parts->whole);
  uint64_t number = 0;
  for (uint32_t i = 0; i < y->rank; i++) number = number * y->dims[i] + index[i];
  return number / tm_format_find(y->format)->block_elements;
}

static void say(const tm_output_parts *parts, const tm_result_element *element, uint64_t number, char *out_text) {
  const tm_format_info *info = tm_format_find(tm_output_of(parts->whole)->format);
  const char *name = tm_op_find(parts->whole->op)->name;
  const tm_codec *codec = tm_codec_find(info->format);
  double y, r;
  if (codec == NULL || info->block_elements != 1 || info->block_bytes > 8) {
    snprintf(out_text, TM_OUTPUT_FAULT_BYTES, "a wrong result for %s: block %llu differs", name, (unsigned long long)number);
    return;
  }
  codec->decode(element->actual, 1, &y);
  codec->decode(element->expected, 1, &r);
  snprintf(out_text, TM_OUTPUT_FAULT_BYTES, "a wrong result for %s: element %llu is %.9g, the reference's is %.9g", name,
           (unsigned long long)number, y, r);
}

/* Words of counts are exact in every class; the sums behind them have forms of their own. */
static uint64_t blocks_to_compare(const tm_output_parts *parts, const tm_answer *answer) {
  if (answer->numerics == TM_NUMERICS_N0) return parts->part_blocks;
  if (answer->numerics == TM_NUMERICS_N4) return 0;
  if (parts->whole->op == TM_OP_STATS) return TM_STATS_SUBNORMAL;
  return parts->whole->op == TM_OP_COMPARE_TENSORS ? TM_COMPARISON_EQUAL_BITS : parts->part_blocks;
}

static bool is_close(const tm_output_parts *parts, const tm_answer *answer, void *const *pointers, const uint64_t *index,
                     tm_part_terms *terms, tm_result_element *element) {
  const tm_operation *whole = parts->whole;
  const tm_format_info *info = tm_format_find(tm_output_of(whole)->format);
  if (memcmp(element->actual, element->expected, info->block_bytes) == 0) return true;
  if (answer->numerics == TM_NUMERICS_N3 && info->kind != TM_KIND_FLOAT) return true;
  if (tm_closeness_needs_terms(answer) && info->kind == TM_KIND_FLOAT) {
    double result = 0;
    tm_codec_find(info->format)->decode(element->expected, 1, &result);
    element->terms = isnan(result) ? 0 : tm_output_terms(whole, pointers, index, result, terms);
  }
  return tm_closeness_of(whole, answer, element) <= 1;
}

bool tm_output_parts_check(const tm_output_parts *parts, const tm_answer *answer, void *const *pointers, uint64_t index, void *room,
                           char out_text[TM_OUTPUT_FAULT_BYTES]) {
  const tm_format_info *info = tm_format_find(tm_output_of(parts->whole)->format);
  const place at = place_of(parts, index);
  const char *actual = (const char *)pointers[parts->whole->input_count] + at.offset_bytes;
  tm_part_terms terms;
  terms.column_count = 0;
  compute(parts, pointers, index, &at, room);
  for (uint64_t block = 0; block < blocks_to_compare(parts, answer); block++) {
    tm_result_element element = { .actual = actual + (int64_t)block * parts->part_step_bytes,
                                  .expected = (const char *)room + block * info->block_bytes };
    uint64_t in_output[TM_MAX_RANK];
    index_in_output(parts, &at, block, in_output);
    if (is_close(parts, answer, pointers, in_output, &terms, &element)) continue;
    say(parts, &element, number_in_output(parts, in_output), out_text);
    return false;
  }
  return true;
}
