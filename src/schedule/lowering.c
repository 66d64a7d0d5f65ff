/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/lowering.h"

#include <stdio.h>
#include <string.h>

#include "tensor/format.h"
#include "tensor/shape.h"

/* Significant bits of a float format; what a cast keeps or loses is decided by them.  0: not a float we cast. */
static uint32_t precision(uint32_t format) {
  switch (format) {
    case TM_FORMAT_F64: return 53;
    case TM_FORMAT_F32: return 24;
    case TM_FORMAT_F16: return 11;
    case TM_FORMAT_BF16: return 8;
    case TM_FORMAT_F8_E4M3FN: return 4;
    case TM_FORMAT_F8_E5M2: return 3;
    default: return 0;
  }
}

/* f16 has fewer exponent bits than bf16 although it has more precision: neither holds the other. */
static bool holds(uint32_t wide, uint32_t narrow) {
  if (wide == TM_FORMAT_F16 && narrow == TM_FORMAT_BF16) return false;
  return precision(wide) >= precision(narrow);
}

static uint32_t step_op(const tm_change *change, uint32_t format, bool is_output) {
  switch (change->kind) {
    case TM_CHANGE_CONTIGUOUS:
    case TM_CHANGE_ALIGN: return TM_OP_COPY;
    case TM_CHANGE_CAST:
      return precision(format) != 0 && precision(change->format) != 0 ? TM_OP_CAST : TM_OP_NONE;
    case TM_CHANGE_DEQUANTIZE: return is_output ? TM_OP_NONE : TM_OP_DEQUANTIZE;
    default: return TM_OP_NONE;
  }
}

/* A later change of the same operand replaces a copy: a cast makes it dense and aligned as well. */
static tm_lowering_step *step_for(tm_lowering *lowering, uint32_t operand) {
  for (uint32_t i = 0; i < lowering->step_count; i++)
    if (lowering->steps[i].operand == operand) return &lowering->steps[i];
  return &lowering->steps[lowering->step_count++];
}

static bool apply(const tm_operation *operation, const tm_change *change, tm_operand *operands, tm_lowering *lowering) {
  const bool is_output = change->operand >= operation->input_count;
  tm_operand *operand = &operands[change->operand];
  const uint32_t op = step_op(change, operand->format, is_output);
  if (op == TM_OP_NONE) return false;
  const uint32_t format = op == TM_OP_COPY ? operand->format : change->format;
  tm_operand changed;
  if (tm_operand_contiguous(format, operand->rank, operand->dims, &changed, NULL) != TM_OK) return false;
  changed.flags |= operand->flags & TM_OPERAND_CONSTANT;
  changed.alignment = 64;
  if (op == TM_OP_CAST && is_output) lowering->narrows_output |= !holds(operand->format, format);
  if (op == TM_OP_CAST && !is_output) lowering->narrows_input |= !holds(format, operand->format);
  tm_lowering_step *step = step_for(lowering, change->operand);
  if (op != TM_OP_COPY || step->op == TM_OP_NONE) step->op = op;
  step->operand = change->operand;
  step->changed = changed;
  *operand = changed;
  return true;
}

bool tm_lowering_make(const tm_operation *operation, const tm_answer *answer, tm_operand *operands, tm_lowering *out_lowering) {
  memset(out_lowering, 0, sizeof *out_lowering);
  for (uint32_t i = 0; i < answer->change_count; i++)
    if (!apply(operation, &answer->changes[i], operands, out_lowering)) return false;
  return out_lowering->step_count != 0;
}

void tm_lowering_request(const tm_lowering_step *step, const tm_operand *original, bool is_output, tm_request *out_request) {
  memset(out_request, 0, sizeof *out_request);
  const tm_op_row *row = tm_op_find(step->op);
  out_request->op = step->op;
  out_request->version = row == NULL ? 1 : row->version;
  out_request->worst_numerics = TM_NUMERICS_N0;
  out_request->only_device = TM_ANY_DEVICE;
  out_request->operands_as_they_are = 1;
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
