/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/lowering.h"

#include <stdio.h>
#include <string.h>

#include "tensor/format.h"
#include "tensor/shape.h"

/* Alignment of the memory that steps write to. */
#define STEP_ALIGNMENT 64u

/* What a float format holds: significant bits, the exponent of its lowest bit, and that of its largest value. */
typedef struct float_range {
  uint32_t format;
  int32_t  precision;
  int32_t  lowest_bit;
  int32_t  largest;
} float_range;

static const float_range ranges[] = {
  { TM_FORMAT_F64, 53, -1074, 1023 }, { TM_FORMAT_F32, 24, -149, 127 },    { TM_FORMAT_F16, 11, -24, 15 },
  { TM_FORMAT_BF16, 8, -133, 127 },   { TM_FORMAT_F8_E4M3FN, 4, -9, 8 },   { TM_FORMAT_F8_E5M2, 3, -16, 15 },
};

static const float_range *range_of(uint32_t format) {
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
    if (ranges[i].format == format) return &ranges[i];
  return NULL;
}

/* Whether every value of `narrow` survives in `wide`. */
static bool holds(uint32_t wide, uint32_t narrow) {
  const float_range *w = range_of(wide), *n = range_of(narrow);
  return w != NULL && n != NULL && w->precision >= n->precision && w->lowest_bit <= n->lowest_bit && w->largest >= n->largest;
}

static bool is_block(uint32_t format) {
  const tm_format_info *info = tm_format_find(format);
  return info != NULL && info->kind == TM_KIND_BLOCK;
}

/* The operand's format after `change`; TM_FORMAT_NONE when it is of a kind that is not lowered. */
static uint32_t format_after(const tm_change *change, uint32_t format) {
  switch (change->kind) {
    case TM_CHANGE_CONTIGUOUS: return format;
    case TM_CHANGE_ALIGN: return change->value <= STEP_ALIGNMENT ? format : TM_FORMAT_NONE;
    case TM_CHANGE_CAST:
    case TM_CHANGE_DEQUANTIZE: return range_of(change->format) != NULL ? change->format : TM_FORMAT_NONE;
    default: return TM_FORMAT_NONE;
  }
}

/* The operation that leads from one format to the other, on the way in or out. */
static uint32_t step_op(uint32_t from, uint32_t to, bool is_output) {
  if (from == to) return TM_OP_COPY;
  if (is_block(from)) return is_output ? TM_OP_NONE : TM_OP_DEQUANTIZE;
  return range_of(from) != NULL ? TM_OP_CAST : TM_OP_NONE;
}

/* Figures about a format (which values are subnormal, which bits are equal) are not those of another, and what a cast does
   with values beyond its target's range is lost when it is done in two. */
static bool depends_on_format(const tm_operation *operation, bool is_output) {
  const tm_op_row *row = tm_op_find(operation->op);
  return row == NULL || row->combine == TM_COMBINE_WORDS || (row->op == TM_OP_CAST && is_output);
}

static bool add_step(const tm_operation *operation, uint32_t index, uint32_t format, tm_operand *operand, tm_lowering *lowering) {
  const bool is_output = index >= operation->input_count;
  const uint32_t op = step_op(operand->format, format, is_output);
  if (op == TM_OP_NONE || (op != TM_OP_COPY && depends_on_format(operation, is_output))) return false;
  tm_operand changed;
  if (tm_operand_contiguous(format, operand->rank, operand->dims, &changed, NULL) != TM_OK) return false;
  changed.flags |= operand->flags & TM_OPERAND_CONSTANT;
  changed.alignment = STEP_ALIGNMENT;
  /* Blocks decode to f32 values. */
  const uint32_t values = op == TM_OP_DEQUANTIZE ? TM_FORMAT_F32 : operand->format;
  lowering->loses_bits |= op != TM_OP_COPY && !holds(format, values);
  lowering->rounds_output |= op == TM_OP_CAST && is_output;
  lowering->steps[lowering->step_count++] = (tm_lowering_step){ .op = op, .operand = index, .changed = changed };
  *operand = changed;
  return true;
}

bool tm_lowering_make(const tm_operation *operation, const tm_answer *answer, tm_operand *operands, tm_lowering *out_lowering) {
  memset(out_lowering, 0, sizeof *out_lowering);
  const uint32_t count = operation->input_count + operation->output_count;
  for (uint32_t index = 0; index < count; index++) {
    uint32_t format = operands[index].format;
    bool is_touched = false;
    for (uint32_t i = 0; i < answer->change_count; i++) {
      if (answer->changes[i].operand != index) continue;
      is_touched = true;
      format = format_after(&answer->changes[i], format);
      if (format == TM_FORMAT_NONE) return false;
    }
    if (is_touched && !add_step(operation, index, format, &operands[index], out_lowering)) return false;
  }
  return out_lowering->step_count != 0;
}

void tm_lowering_request(const tm_lowering_step *step, const tm_operand *original, bool is_output, tm_request *out_request) {
  memset(out_request, 0, sizeof *out_request);
  const tm_op_row *row = tm_op_find(step->op);
  out_request->op = step->op;
  out_request->version = row == NULL ? 1 : row->version;
  out_request->worst_numerics = TM_NUMERICS_N0;
  out_request->only_device = TM_ANY_DEVICE;
  out_request->flags = TM_REQUEST_AS_IS;
  out_request->input_count = 1;
  out_request->output_count = 1;
  out_request->attribute_bytes = row == NULL ? 0 : row->attribute_bytes;
  out_request->operands[0] = is_output ? step->changed : *original;
  out_request->operands[1] = is_output ? *original : step->changed;
}

static const char *step_word(uint32_t op) {
  switch (op) {
    case TM_OP_COPY: return "contiguous";
    case TM_OP_CAST: return "cast";
    default: return "dequantize";
  }
}

void tm_lowering_describe(const tm_lowering *lowering, uint32_t input_count, char *text, uint64_t capacity) {
  text[0] = '\0';
  for (uint32_t i = 0; i < lowering->step_count; i++) {
    const tm_lowering_step *step = &lowering->steps[i];
    const bool is_output = step->operand >= input_count;
    const char letter = (char)(is_output ? 'y' : 'a' + (char)step->operand);
    const tm_format_info *format = tm_format_find(step->changed.format);
    const size_t used = strlen(text);
    if (step->op == TM_OP_COPY)
      snprintf(text + used, capacity - used, "%s%s(%c)", i == 0 ? "" : ", ", step_word(step->op), letter);
    else
      snprintf(text + used, capacity - used, "%s%s(%c, %s)", i == 0 ? "" : ", ", step_word(step->op), letter,
               format == NULL ? "?" : format->name);
  }
}
