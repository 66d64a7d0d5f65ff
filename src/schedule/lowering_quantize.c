/* SPDX-License-Identifier: Apache-2.0 */
/* A product of floats as one of integers; how good that is, and how it is made sure of: execute/quantized_run.h. */
#include <string.h>

#include "ops/op_check.h"
#include "schedule/lowering.h"
#include "tensor/shape.h"

/* Sums of so many products of 127 by 127 still fit an i32. */
#define LONGEST_SUM UINT64_C(133143)

static bool wants_quantized(const tm_answer *answer) {
  for (uint32_t i = 0; i < answer->change_count; i++) {
    const tm_change *change = &answer->changes[i];
    if (change->kind == TM_CHANGE_QUANTIZE && (change->operand > 1 || change->format != TM_FORMAT_I8)) return false;
  }
  return true;
}

static bool has_values(uint32_t format) { return (tm_format_set(format) & (TM_SET_FLOAT | TM_SET_ANY_BLOCK)) != 0; }

/* The integers of one factor, dense; what is repeated along a batch axis is there once. */
static bool make_factor(const tm_operand *original, tm_operand *out_factor) {
  uint64_t dims[TM_MAX_RANK];
  for (uint32_t i = 0; i < original->rank; i++)
    dims[i] = i + 2 < original->rank && original->strides_bytes[i] == 0 && original->dims[i] != 0 ? 1 : original->dims[i];
  if (tm_operand_contiguous(TM_FORMAT_I8, original->rank, dims, out_factor, NULL) != TM_OK) return false;
  out_factor->alignment = 64;
  out_factor->flags |= original->flags & TM_OPERAND_CONSTANT;
  return true;
}

static uint64_t inner_extent(const tm_request *whole) {
  const tm_operation operation = tm_request_operation(whole);
  const tm_matmul_attributes *attributes = operation.attributes;
  const tm_operand *a = &operation.operands[0];
  return a->dims[a->rank - (attributes->transpose_a != 0 ? 2 : 1)];
}

bool tm_lowering_quantize(const tm_request *whole, const tm_answer *answer, tm_lowering *out_lowering) {
  memset(out_lowering, 0, sizeof *out_lowering);
  out_lowering->kind = TM_LOWERING_QUANTIZED;
  out_lowering->has_inner = true;
  const tm_operand *a = &whole->operands[0], *b = &whole->operands[1], *y = &whole->operands[2];
  tm_request *inner = &out_lowering->inner;
  if (whole->op != TM_OP_MATMUL || !wants_quantized(answer) || !has_values(a->format) || !has_values(b->format)) return false;
  if (y->element_count == 0 || a->element_count == 0 || inner_extent(whole) > LONGEST_SUM) return false;
  *inner = *whole;
  inner->worst_numerics = TM_NUMERICS_N0;
  inner->flags = (whole->flags & (TM_REQUEST_RUN_TO_RUN | TM_REQUEST_UNMEASURED)) | TM_REQUEST_QUANTIZED;
  if (!make_factor(a, &inner->operands[0]) || !make_factor(b, &inner->operands[1])) return false;
  if (tm_operand_contiguous(TM_FORMAT_I32, y->rank, y->dims, &inner->operands[2], NULL) != TM_OK) return false;
  inner->operands[2].alignment = 64;
  return true;
}

/* ---- after the product ---- */

/* [.., M, 1] of a, [.., 1, N] of b; a batch axis that the factor lacks has extent 1. */
void tm_lowering_scales_operand(const tm_request *inner, uint32_t factor, tm_operand *out_scales) {
  const tm_operand *from = &inner->operands[factor], *y = &inner->operands[2];
  uint64_t dims[TM_MAX_RANK];
  for (uint32_t i = 0; i < y->rank; i++) dims[i] = i + 2 < y->rank ? from->dims[i] : 1;
  const uint32_t own = factor == 0 ? y->rank - 2 : y->rank - 1;
  dims[own] = y->dims[own];
  (void)tm_operand_contiguous(TM_FORMAT_F32, y->rank, dims, out_scales, NULL);
  out_scales->alignment = 64;
}

static void begin_step(uint32_t op, uint32_t input_count, tm_request *out_request) {
  const tm_op_row *row = tm_op_find(op);
  memset(out_request, 0, sizeof *out_request);
  out_request->op = op;
  out_request->version = row->version;
  out_request->worst_numerics = TM_NUMERICS_N0;
  out_request->flags = TM_REQUEST_AS_IS;
  out_request->only_device = TM_ANY_DEVICE;
  out_request->input_count = input_count;
  out_request->output_count = 1;
  out_request->attribute_bytes = row->attribute_bytes;
}

void tm_lowering_rescale_request(const tm_request *inner, const tm_operand *y, uint32_t step, tm_request *out_request) {
  tm_operand dense;
  (void)tm_operand_contiguous(TM_FORMAT_F32, y->rank, y->dims, &dense, NULL);
  dense.alignment = 64;
  const bool is_cast = step == TM_RESCALE_TO_FLOAT || step == TM_RESCALE_TO_FORMAT;
  begin_step(is_cast ? TM_OP_CAST : TM_OP_MUL, is_cast ? 1 : 2, out_request);
  out_request->operands[0] = step == TM_RESCALE_TO_FLOAT ? inner->operands[2] : dense;
  if (!is_cast) tm_lowering_scales_operand(inner, step == TM_RESCALE_ROWS ? 0 : 1, &out_request->operands[1]);
  const bool is_last = step == TM_RESCALE_TO_FORMAT || (step == TM_RESCALE_COLUMNS && y->format == TM_FORMAT_F32);
  out_request->operands[is_cast ? 1 : 2] = is_last ? *y : dense;
}
