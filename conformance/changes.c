/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/changes.h"

#include <stdio.h>

#include "conformance/axes.h"

#define USUAL_ALIGNMENT 64u

static changes_result impossible(changes *out, const tm_change *change, const char *why) {
  snprintf(out->text, sizeof out->text, "a change of kind %u on operand %u that cannot be made: %s", change->kind, change->operand,
           why);
  return CHANGES_IMPOSSIBLE;
}

/* ---- one operand ---- */

static bool relayout(tm_operand *operand, uint32_t format, const uint64_t *dims) {
  const uint32_t flags = operand->flags & TM_OPERAND_CONSTANT;
  uint64_t own[TM_MAX_RANK];
  memcpy(own, dims, sizeof own);
  if (tm_operand_contiguous(format, operand->rank, own, operand, NULL) != TM_OK) return false;
  operand->alignment = USUAL_ALIGNMENT;
  operand->flags |= flags;
  return true;
}

static changes_result make_contiguous(changes *out, const tm_change *change) {
  tm_operand *operand = &out->changed.c.operands[change->operand];
  return relayout(operand, operand->format, operand->dims) ? CHANGES_MADE : impossible(out, change, "it has no dense form");
}

static changes_result make_aligned(changes *out, const tm_change *change) {
  tm_operand *operand = &out->changed.c.operands[change->operand];
  if (change->value == 0 || (change->value & (change->value - 1)) != 0) return impossible(out, change, "no power of two");
  if (change->value > USUAL_ALIGNMENT) return CHANGES_UNKNOWN;
  if (change->value > operand->alignment) operand->alignment = (uint32_t)change->value;
  return CHANGES_MADE;
}

static changes_result make_format(changes *out, const tm_change *change) {
  tm_operand *operand = &out->changed.c.operands[change->operand];
  const bool is_block = tm_format_find(operand->format)->kind == TM_KIND_BLOCK;
  if (is_block != (change->kind == TM_CHANGE_DEQUANTIZE)) return impossible(out, change, "not from this format");
  return relayout(operand, change->format, operand->dims) ? CHANGES_MADE
                                                          : impossible(out, change, "the format does not take its shape");
}

static changes_result make_packed(changes *out, const tm_change *change) {
  question *q = &out->changed;
  if (change->operand >= q->c.operation.input_count) return impossible(out, change, "only inputs are packed");
  if (change->format < TM_FORMAT_PRIVATE) return impossible(out, change, "not to a private format");
  if ((q->c.operands[change->operand].flags & TM_OPERAND_CONSTANT) == 0) return impossible(out, change, "it is no constant");
  if (q->c.operands[change->operand].element_count == 0) return CHANGES_UNKNOWN;
  if (change->value == 0) return impossible(out, change, "it says no size");
  q->packed[change->operand] = (packed_input){ .format = change->format, .bytes = change->value };
  return CHANGES_MADE;
}

/* ---- an axis of several ---- */

static bool has_axis(const changes *out, const tm_change *change) {
  return change->axis < out->changed.c.operands[change->operand].rank && change->value != 0;
}

static changes_result make_padded(changes *out, const tm_change *change) {
  kernel_case *c = &out->changed.c;
  axes a;
  if (!has_axis(out, change)) return impossible(out, change, "no such axis, or to no multiple");
  axes_label(c, &a);
  const uint8_t label = a.labels[change->operand][change->axis];
  const uint64_t extent = c->operands[change->operand].dims[change->axis];
  if (extent > UINT64_MAX - change->value) return impossible(out, change, "it would be too long");
  const uint64_t padded = (extent + change->value - 1) / change->value * change->value;
  for (uint32_t i = 0; padded != extent && i <= c->operation.input_count; i++) {
    tm_operand *operand = &c->operands[i];
    for (uint32_t axis = 0; axis < operand->rank; axis++) {
      if (label == AXES_NONE ? (i != change->operand || axis != change->axis) : a.labels[i][axis] != label) continue;
      const bool is_scale = c->operation.op == TM_OP_MATMUL_SCALED && i >= 2 && i < c->operation.input_count;
      if (operand->dims[axis] == 1 && (extent != 1 || is_scale)) continue;      /* it is repeated */
      if (operand->dims[axis] != extent) return CHANGES_UNKNOWN;        /* scales of blocks */
      operand->dims[axis] = padded;
      if (!relayout(operand, operand->format, operand->dims)) return impossible(out, change, "no whole blocks");
    }
  }
  return CHANGES_MADE;
}

static uint32_t lowest_bit(uint64_t value) { return (uint32_t)(value & (~value + 1)); }

/* Elements [begin, end) of every axis with the label. */
static bool cut(kernel_case *c, const axes *a, uint8_t label, uint64_t extent, uint64_t begin, uint64_t end) {
  for (uint32_t i = 0; i <= c->operation.input_count; i++) {
    tm_operand *operand = &c->operands[i];
    for (uint32_t axis = 0; axis < operand->rank; axis++) {
      if (a->labels[i][axis] != label || operand->dims[axis] != extent) continue;
      const uint64_t block = axis + 1 == operand->rank ? tm_format_find(operand->format)->block_elements : 1;
      if (begin % block != 0) return false;
      const int64_t steps = (int64_t)(begin / block) * operand->strides_bytes[axis];
      const uint32_t aligned = lowest_bit(steps < 0 ? (uint64_t)-steps : (uint64_t)steps);
      if (aligned != 0 && aligned < operand->alignment) operand->alignment = aligned;
      operand->dims[axis] = end - begin;
      if (tm_operand_derive(operand, NULL) != TM_OK) return false;
    }
  }
  return true;
}

/* Rows of a softmax cannot be computed in parts, say. */
static bool may_be_split(const kernel_case *c, const axes *a, uint8_t label) {
  const uint32_t mask = tm_op_find(c->operation.op)->splittable(&c->operation);
  for (uint32_t axis = 0; axis < c->operands[0].rank; axis++)
    if (a->labels[0][axis] == label) return c->operation.op == TM_OP_MATMUL || (mask >> axis & 1u) != 0;
  return true;
}

static changes_result make_parts(changes *out, const tm_change *change) {
  kernel_case *c = &out->changed.c;
  axes a;
  if (!has_axis(out, change)) return impossible(out, change, "no such axis, or parts of nothing");
  axes_label(c, &a);
  const uint8_t label = a.labels[change->operand][change->axis];
  const uint64_t extent = c->operands[change->operand].dims[change->axis], part = change->value;
  if (extent <= part) return impossible(out, change, "it is no longer than a part");
  if (label == AXES_NONE || !may_be_split(c, &a, label)) return impossible(out, change, "not along this axis");
  question_copy(&out->changed, &out->last_part);
  out->has_last_part = true;
  out->is_other_operation = true;
  const uint64_t last = (extent - 1) / part * part;
  if (!cut(c, &a, label, extent, 0, part) || !cut(&out->last_part.c, &a, label, extent, last, extent))
    return impossible(out, change, "a part would end inside a block");
  return CHANGES_MADE;
}

/* ---- fewer axes ---- */

static bool merge_front(tm_operand *operand, uint32_t rank) {
  uint64_t dims[TM_MAX_RANK] = { 1 };
  if (operand->rank <= rank) return true;
  const uint32_t merged = operand->rank - rank + 1;
  for (uint32_t axis = 0; axis < operand->rank; axis++) {
    if (axis < merged) dims[0] *= operand->dims[axis];
    else dims[axis - merged + 1] = operand->dims[axis];
  }
  operand->rank = rank;
  return relayout(operand, operand->format, dims);
}

/* The first of the products that a stack of matrices stands for. */
static bool drop_front(tm_operand *operand, uint32_t rank) {
  if (operand->rank <= rank) return true;
  const uint32_t dropped = operand->rank - rank;
  tm_operand less = *operand;
  memset(less.dims, 0, sizeof less.dims);
  memset(less.strides_bytes, 0, sizeof less.strides_bytes);
  less.rank = rank;
  memcpy(less.dims, operand->dims + dropped, rank * sizeof less.dims[0]);
  memcpy(less.strides_bytes, operand->strides_bytes + dropped, rank * sizeof less.strides_bytes[0]);
  *operand = less;
  return tm_operand_derive(operand, NULL) == TM_OK;
}

static bool is_product(uint32_t op) { return op == TM_OP_MATMUL || op == TM_OP_MATMUL_SCALED; }

/* Where the axes that would be merged mean nothing to the operation; its attributes follow. */
static bool can_merge_front(kernel_case *c, uint32_t rank) {
  const uint32_t op = c->operation.op, removed = c->operands[0].rank - rank;
  if (tm_op_find(op)->merged_operands != 0 || op == TM_OP_LAYER_NORM || op == TM_OP_RMS_NORM) return true;
  if (op != TM_OP_SOFTMAX || c->attributes.axis.axis <= removed) return false;
  c->attributes.axis.axis -= removed;
  return true;
}

static changes_result make_flat(changes *out, const tm_change *change) {
  kernel_case *c = &out->changed.c;
  const uint32_t rank = (uint32_t)change->value;
  const bool drops = is_product(c->operation.op);
  if (change->value == 0 || change->value > TM_MAX_RANK) return impossible(out, change, "to no rank");
  if (c->operands[change->operand].rank <= rank) return CHANGES_MADE;
  if (drops ? rank < 2 : !can_merge_front(c, rank)) return CHANGES_UNKNOWN;
  out->is_other_operation |= drops;
  for (uint32_t i = 0; i <= c->operation.input_count; i++)
    if (!(drops ? drop_front : merge_front)(&c->operands[i], rank)) return impossible(out, change, "it has no such form");
  return CHANGES_MADE;
}

/* ---- integers instead of floats ---- */

static bool is_float(const tm_operand *operand) { return tm_format_find(operand->format)->kind == TM_KIND_FLOAT; }

static changes_result make_integer(changes *out, const tm_change *change) {
  kernel_case *c = &out->changed.c;
  tm_operand *y = &c->operands[2];
  if (c->operation.op != TM_OP_MATMUL || change->operand > 1) return impossible(out, change, "no factor of a product");
  tm_operand *factor = &c->operands[change->operand];
  if (!is_float(factor) || change->format != TM_FORMAT_I8) return impossible(out, change, "only floats to i8");
  if (!relayout(factor, change->format, factor->dims)) return impossible(out, change, "it has no dense form");
  out->is_other_operation = true;
  return relayout(y, TM_FORMAT_I32, y->dims) ? CHANGES_MADE : impossible(out, change, "its result has no dense form");
}

/* ---- all of them ---- */

typedef changes_result (*make_fn)(changes *out, const tm_change *change);
static const make_fn makers[] = {
  [TM_CHANGE_CONTIGUOUS] = make_contiguous, [TM_CHANGE_ALIGN] = make_aligned,     [TM_CHANGE_PAD] = make_padded,
  [TM_CHANGE_CAST] = make_format,           [TM_CHANGE_DEQUANTIZE] = make_format, [TM_CHANGE_SPLIT_ABOVE] = make_parts,
  [TM_CHANGE_REDUCE_RANK] = make_flat,      [TM_CHANGE_CONVERT] = make_packed,    [TM_CHANGE_QUANTIZE] = make_integer,
};
#define KINDS (sizeof makers / sizeof makers[0])

static bool proposes(const tm_answer *answer, uint32_t kind) {
  for (uint32_t i = 0; i < answer->change_count; i++)
    if (answer->changes[i].kind == kind) return true;
  return false;
}

static changes_result make_kind(const tm_answer *answer, uint32_t kind, changes *out) {
  for (uint32_t i = 0; i < answer->change_count; i++) {
    const tm_change *change = &answer->changes[i];
    if (change->kind != kind) continue;
    if (change->operand > out->changed.c.operation.input_count) return impossible(out, change, "there is no such operand");
    const changes_result result = makers[kind](out, change);
    if (result != CHANGES_MADE) return result;
  }
  return CHANGES_MADE;
}

static changes_result settle(changes *out, question *q) {
  if (tm_op_check(&q->c.operation, NULL) != TM_OK) {
    snprintf(out->text, sizeof out->text, "changes after which it is no such operation any more");
    return CHANGES_IMPOSSIBLE;
  }
  tm_op_normalize(&q->c.operation, q->c.operands);
  return CHANGES_MADE;
}

changes_result changes_make(const question *q, const tm_answer *answer, changes *out) {
  memset(out, 0, sizeof *out);
  question_copy(q, &out->changed);
  out->changed.sweeps = false;
  for (uint32_t i = 0; i < answer->change_count; i++)
    if (answer->changes[i].kind == 0 || answer->changes[i].kind >= KINDS) return CHANGES_UNKNOWN;
  changes_result result = CHANGES_MADE;
  if (proposes(answer, TM_CHANGE_SPLIT_ABOVE)) {
    result = make_kind(answer, TM_CHANGE_SPLIT_ABOVE, out);
  } else {
    for (uint32_t kind = 1; kind < KINDS && result == CHANGES_MADE; kind++) result = make_kind(answer, kind, out);
  }
  if (result == CHANGES_MADE) result = settle(out, &out->changed);
  if (result == CHANGES_MADE && out->has_last_part) result = settle(out, &out->last_part);
  return result;
}
