/* SPDX-License-Identifier: Apache-2.0 */
/* An operation part by part. */
#include <string.h>

#include "base/checked.h"
#include "schedule/float_range.h"
#include "schedule/lowering.h"
#include "schedule/merged_axes.h"
#include "schedule/shared_axes.h"
#include "tensor/format.h"
#include "tensor/shape.h"

/* More parts than this are not worth the device that wants them. */
#define MOST_PARTS 65536u

/* What is cut, how, and at which multiples. */
typedef struct cut {
  tm_shared_axes shared;
  uint32_t       operand;
  uint32_t       axis;
  uint64_t       most;          /* elements a part */
  uint64_t       unit;          /* of parts but the last */
  bool           drops_axis;
} cut;

static uint32_t operand_count(const tm_request *request) { return request->input_count + request->output_count; }

static bool has_axis(const cut *c, uint32_t operand) { return c->shared.axes[operand] != TM_NO_AXIS; }

static uint32_t first_sharing(const tm_request *whole, const cut *c) {
  uint32_t operand = 0;
  while (operand + 1 < operand_count(whole) && !has_axis(c, operand)) operand++;
  return operand;
}

/* ---- what to cut ---- */

/* Blocks stay whole; figures over all elements combine at multiples of so many. */
static uint64_t unit_of(const tm_request *whole, const tm_op_row *row, const cut *c) {
  uint64_t unit = 1;
  for (uint32_t i = 0; i < operand_count(whole); i++) {
    const tm_format_info *info = tm_format_find(whole->operands[i].format);
    if (has_axis(c, i) && info != NULL && (uint32_t)c->shared.axes[i] + 1 == whole->operands[i].rank)
      unit = tm_max_u64(unit, info->block_elements);
  }
  if (row->combine != TM_COMBINE_WORDS) return unit;
  const tm_operand *x = &whole->operands[0];
  const uint64_t row_elements = x->element_count / tm_max_u64(1, x->dims[c->shared.axes[0]]);
  const uint64_t needed = row->split_elements / tm_common_divisor(row->split_elements, tm_max_u64(1, row_elements));
  return needed / tm_common_divisor(needed, unit) * unit;
}

/* Dense inputs of figures over all elements are one long row: then any part will do, not only whole rows. */
static void flatten(tm_request *whole, const tm_op_row *row, cut *c) {
  bool all_dense = row->combine == TM_COMBINE_WORDS;
  for (uint32_t i = 0; i < whole->input_count; i++) all_dense &= (whole->operands[i].flags & TM_OPERAND_CONTIGUOUS) != 0;
  const tm_operand first = whole->operands[0];
  if (!all_dense || first.rank < 2 || first.element_count == 0) return;
  const uint64_t row_elements = first.element_count / first.dims[c->shared.axes[0]];
  if (!tm_checked_mul(c->most, row_elements, &c->most)) return;
  for (uint32_t i = 0; i < whole->input_count; i++) {
    tm_operand *x = &whole->operands[i];
    const tm_operand old = *x;
    if (tm_operand_contiguous(old.format, 1, &old.element_count, x, NULL) != TM_OK) continue;
    x->flags |= old.flags & TM_OPERAND_CONSTANT;
    x->alignment = old.alignment;
    c->shared.axes[i] = 0;
  }
}

static bool is_matrix_axis(const tm_operation *operation, const tm_shared_axes *shared) {
  if (tm_op_find(operation->op)->op_class != TM_CLASS_MATMUL) return false;
  const int32_t axis = shared->axes[operation->input_count];
  return axis == TM_NO_AXIS || (uint32_t)axis + 2 >= operation->operands[operation->input_count].rank;
}

/* A loop that loses the axis must not leave attributes that count it. */
static bool can_loop(const tm_operation *operation, const tm_shared_axes *shared) {
  const tm_op_row *row = tm_op_find(operation->op);
  return shared->role == TM_AXIS_INDEPENDENT && (row->op_class == TM_CLASS_MATMUL || row->merged_operands != 0) &&
         !is_matrix_axis(operation, shared);
}

/* The first split that is asked for; without one, the loop that stands for axes that do not merge. */
static const tm_change *choose_change(const tm_answer *answer) {
  const tm_change *chosen = NULL;
  for (uint32_t i = answer->change_count; i-- > 0;) {
    const tm_change *change = &answer->changes[i];
    if (change->kind == TM_CHANGE_SPLIT_ABOVE) chosen = change;
    if (change->kind == TM_CHANGE_REDUCE_RANK && (chosen == NULL || chosen->kind == TM_CHANGE_REDUCE_RANK)) chosen = change;
  }
  return chosen;
}

static bool find_cut(const tm_operation *operation, const tm_answer *answer, cut *out_cut) {
  const tm_change *change = choose_change(answer);
  if (change == NULL) return false;
  const bool loops = change->kind == TM_CHANGE_REDUCE_RANK;
  out_cut->operand = change->operand;
  out_cut->axis = loops ? 0 : change->axis;
  out_cut->drops_axis = loops;
  out_cut->most = loops ? 1 : change->value;
  if (!tm_shared_axes_find(operation, out_cut->operand, out_cut->axis, &out_cut->shared)) return false;
  return !loops || can_loop(operation, &out_cut->shared);
}

/* ---- how parts become one ---- */

static bool choose_join(const tm_request *whole, const tm_op_row *row, const cut *c, tm_split *split) {
  const tm_operand *y = &whole->operands[whole->input_count];
  if (whole->output_count != 1) return false;
  if (row->combine == TM_COMBINE_WORDS) {
    split->join = TM_JOIN_WORDS;
    return tm_operand_contiguous(y->format, y->rank, y->dims, &split->sum, NULL) == TM_OK;
  }
  if (row->combine != TM_COMBINE_CONCATENATE || c->shared.role == TM_AXIS_COUPLED) return false;
  split->join = c->shared.role == TM_AXIS_SUMMED ? TM_JOIN_ADD : TM_JOIN_SIDE_BY_SIDE;
  if (split->join != TM_JOIN_ADD) return true;
  /* Partial sums are rounded once each, so never to less than f32. */
  const uint32_t format = tm_float_is(y->format) && y->format != TM_FORMAT_F64 ? TM_FORMAT_F32 : y->format;
  return tm_operand_contiguous(format, y->rank, y->dims, &split->sum, NULL) == TM_OK;
}

/* ---- parts ---- */

static uint32_t alignment_after(uint32_t alignment, int64_t step_bytes) {
  const uint64_t step = (uint64_t)step_bytes, lowest = step & (~step + 1);
  return step == 0 ? alignment : (uint32_t)tm_min_u64(alignment, lowest);
}

static bool cut_operand(const cut *c, const tm_split *split, uint32_t index, uint64_t elements, tm_operand *operand) {
  const uint32_t axis = (uint32_t)c->shared.axes[index];
  operand->dims[axis] = elements;
  operand->alignment = alignment_after(operand->alignment, split->steps_bytes[index]);
  if (tm_operand_derive(operand, NULL) != TM_OK) return false;
  if (split->drops_axis) tm_operand_drop_axis(operand, axis);
  return true;
}

static bool make_part(const tm_request *whole, const cut *c, const tm_split *split, uint64_t elements, tm_request *out_part) {
  *out_part = *whole;
  for (uint32_t i = 0; i < operand_count(whole); i++)
    if (has_axis(c, i) && !cut_operand(c, split, i, elements, &out_part->operands[i])) return false;
  if (split->join != TM_JOIN_SIDE_BY_SIDE) {
    out_part->operands[whole->input_count] = split->sum;
    out_part->operands[whole->input_count].alignment = 64;
  }
  return true;
}

static void measure_steps(const tm_request *whole, const cut *c, tm_split *split) {
  for (uint32_t i = 0; i < operand_count(whole); i++) {
    const tm_operand *operand = &whole->operands[i];
    const tm_format_info *info = tm_format_find(operand->format);
    if (!has_axis(c, i)) continue;
    const uint32_t axis = (uint32_t)c->shared.axes[i];
    const uint64_t steps = axis + 1 == operand->rank && info != NULL ? split->part / info->block_elements : split->part;
    split->steps_bytes[i] = (int64_t)steps * operand->strides_bytes[axis];
  }
}

bool tm_lowering_split(const tm_request *given, const tm_answer *answer, tm_lowering *out_lowering) {
  memset(out_lowering, 0, sizeof *out_lowering);
  out_lowering->kind = TM_LOWERING_SPLIT;
  out_lowering->has_inner = true;
  tm_split *split = &out_lowering->split;
  tm_request whole = *given;
  const tm_operation operation = tm_request_operation(&whole);
  const tm_op_row *row = tm_op_find(whole.op);
  cut c = { .most = 0 };
  if (row == NULL || !find_cut(&operation, answer, &c) || !choose_join(&whole, row, &c, split)) return false;
  flatten(&whole, row, &c);
  const tm_operand *sharing = &whole.operands[first_sharing(&whole, &c)];
  if (row->combine == TM_COMBINE_WORDS && (row->splittable(&operation) >> c.shared.axes[0] & 1u) == 0) return false;
  const uint64_t unit = unit_of(&whole, row, &c);
  split->operand = c.operand;
  split->axis = c.axis;
  split->drops_axis = c.drops_axis;
  split->extent = sharing->dims[c.shared.axes[first_sharing(&whole, &c)]];
  split->part = c.drops_axis ? 1 : c.most - c.most % unit;
  if (split->part == 0 || (!c.drops_axis && split->part >= split->extent)) return false;
  split->count = tm_divide_up(split->extent, split->part);
  if (split->count > MOST_PARTS || split->count == 0) return false;
  measure_steps(&whole, &c, split);
  whole.flags += TM_REQUEST_SPLIT;
  const uint64_t rest = split->extent % split->part;
  if (!make_part(&whole, &c, split, split->part, &out_lowering->inner)) return false;
  return rest == 0 || make_part(&whole, &c, split, rest, &out_lowering->tail);
}
