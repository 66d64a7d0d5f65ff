/* SPDX-License-Identifier: Apache-2.0 */
/* Operands on their ways: layout, alignment, padding, format, number of axes, packing. */
#include "schedule/lowering.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "ops/op_check.h"
#include "schedule/float_range.h"
#include "schedule/merged_axes.h"
#include "schedule/shared_axes.h"
#include "tensor/format.h"
#include "tensor/shape.h"

/* Alignment of the memory that moves write to, where nobody asks for more. */
#define STEP_ALIGNMENT 64u
#define LARGEST_ALIGNMENT (UINT64_C(1) << 21)

/* What a device asks for must not take the machine's memory: a padded operand may be so large in any case, or so many times
   what it was; a packed one, which may hold wider numbers, too. */
#define PADDED_BYTES_IN_ANY_CASE (UINT64_C(256) << 20)
#define MOST_TIMES_PADDED 4u
#define MOST_TIMES_PACKED 64u

/* What the changes of one operand come to. */
typedef struct wish {
  bool     is_touched;
  bool     is_dense;            /* it was asked to be; else it may go on repeating along an axis */
  bool     is_packed;
  bool     is_padded;
  uint32_t format;
  uint32_t private_format;
  uint64_t packed_bytes;
  uint64_t alignment;
  double   pad_value;
  uint64_t dims[TM_MAX_RANK];
} wish;

typedef struct lowering_work {
  tm_operation *operation;
  tm_operand   *operands;
  uint32_t      count;
  tm_lowering  *lowering;
  bool          expands;        /* what repeats along an axis is copied as often as it repeats */
  wish          wishes[TM_MAX_OPERANDS];
} lowering_work;

bool tm_answer_has_change(const tm_answer *answer, uint32_t kind) {
  for (uint32_t i = 0; i < answer->change_count; i++)
    if (answer->changes[i].kind == kind) return true;
  return false;
}

static bool is_block(uint32_t format) {
  const tm_format_info *info = tm_format_find(format);
  return info != NULL && info->kind == TM_KIND_BLOCK;
}

/* ---- padding ---- */

/* The neutral value along the axis; false where there is none.  What is padded along an independent axis is cropped from
   the output, so there anything will do. */
static bool neutral_value(const lowering_work *work, const tm_shared_axes *shared, double *out_value) {
  const tm_op_row *row = tm_op_find(work->operation->op);
  *out_value = 0;
  if (row->combine == TM_COMBINE_WORDS) return false;           /* they count elements */
  if (shared->role == TM_AXIS_INDEPENDENT) return true;
  *out_value = row->pad_value;
  return !isnan(row->pad_value);
}

/* Whether elements of the format can be that value, or stand for it: an integer's extremes for the infinities. */
static bool can_be(uint32_t format, double value) {
  const tm_format_info *info = tm_format_find(format);
  if (info == NULL || info->block_elements != 1) return false;
  return value == 0 || (info->has_arithmetic && info->kind != TM_KIND_BOOL && format != TM_FORMAT_F8_E4M3FN);
}

/* A product of scaled numbers subtracts zero points: padding must be 0 after that, which only scales say. */
static bool may_pad(const lowering_work *work) { return work->operation->op != TM_OP_MATMUL_SCALED; }

static bool wish_padding(lowering_work *work, const tm_change *change) {
  tm_shared_axes shared;
  double value;
  if (change->value == 0 || !may_pad(work) || !tm_shared_axes_find(work->operation, change->operand, change->axis, &shared))
    return false;
  if (!neutral_value(work, &shared, &value)) return false;
  for (uint32_t i = 0; i < work->count; i++) {
    const int32_t axis = shared.axes[i];
    if (axis == TM_NO_AXIS) continue;
    wish *w = &work->wishes[i];
    uint64_t padded;
    if (!tm_checked_round_up(w->dims[axis], change->value, &padded)) return false;
    if (padded == w->dims[axis]) continue;
    w->dims[axis] = padded;
    w->is_touched = w->is_padded = true;
    if (value != 0) w->pad_value = value;
    work->lowering->pads_sum |=
        work->operation->op == TM_OP_SUM && shared.role == TM_AXIS_SUMMED && tm_float_is(work->operands[i].format);
  }
  return true;
}

/* ---- one change ---- */

static bool is_alignment(uint64_t value) { return value != 0 && value <= LARGEST_ALIGNMENT && (value & (value - 1)) == 0; }

static bool wish_format(wish *w, uint32_t format) {
  w->format = format;
  return tm_float_is(format);
}

/* Only what does not change is worth packing, and may be: a packed copy of anything else would go stale. */
static bool wish_packing(const lowering_work *work, wish *w, const tm_change *change) {
  const tm_operand *operand = &work->operands[change->operand];
  w->is_packed = true;
  w->private_format = change->format;
  w->packed_bytes = change->value;
  return change->operand < work->operation->input_count && (operand->flags & TM_OPERAND_CONSTANT) != 0 &&
         change->format >= TM_FORMAT_PRIVATE && change->value != 0 && change->value <= (uint64_t)INT64_MAX &&
         operand->format < TM_FORMAT_PRIVATE;
}

static bool take_change(lowering_work *work, const tm_change *change) {
  wish *w = &work->wishes[change->operand];
  if (change->kind != TM_CHANGE_PAD && change->kind != TM_CHANGE_REDUCE_RANK) w->is_touched = true;
  switch (change->kind) {
    case TM_CHANGE_CONTIGUOUS: w->is_dense = true; return true;
    case TM_CHANGE_ALIGN: w->alignment = tm_max_u64(w->alignment, change->value); return is_alignment(change->value);
    case TM_CHANGE_PAD: return wish_padding(work, change);
    case TM_CHANGE_CAST:
    case TM_CHANGE_DEQUANTIZE: return wish_format(w, change->format);
    case TM_CHANGE_CONVERT: return wish_packing(work, w, change);
    case TM_CHANGE_REDUCE_RANK: return true;
    default: return false;
  }
}

/* ---- one way ---- */

/* The operation that leads from one format to the other, on the way in or out. */
static uint32_t move_op(uint32_t from, uint32_t to, bool is_output) {
  if (from == to) return TM_OP_COPY;
  if (is_block(from)) return is_output ? TM_OP_NONE : TM_OP_DEQUANTIZE;
  return tm_float_is(from) ? TM_OP_CAST : TM_OP_NONE;
}

/* Figures about a format (which values are subnormal, which bits are equal) are not those of another, and what a cast does
   with values beyond its target's range is lost when it is done in two. */
static bool depends_on_format(const tm_operation *operation, bool is_output) {
  const tm_op_row *row = tm_op_find(operation->op);
  return row == NULL || row->combine == TM_COMBINE_WORDS || (row->op == TM_OP_CAST && is_output);
}

static bool is_bearable(const tm_operand *padded, const tm_operand *as_it_was) {
  return padded->byte_count <= PADDED_BYTES_IN_ANY_CASE || padded->byte_count / MOST_TIMES_PADDED <= as_it_was->byte_count;
}

static bool make_dense(const wish *w, const tm_operand *original, tm_operand_way *way) {
  tm_operand unpadded;
  if (tm_operand_contiguous(w->format, original->rank, w->dims, &way->dense, NULL) != TM_OK) return false;
  if (tm_operand_contiguous(w->format, original->rank, original->dims, &unpadded, NULL) != TM_OK) return false;
  if (!is_bearable(&way->dense, &unpadded)) return false;
  way->dense.alignment = (uint32_t)w->alignment;
  way->dense.flags |= original->flags & TM_OPERAND_CONSTANT;
  way->inside = way->dense;
  memcpy(way->inside.dims, original->dims, sizeof way->inside.dims);
  return tm_operand_derive(&way->inside, NULL) == TM_OK;
}

/* An operand that is only packed stays where it is until then. */
static bool only_packs(const wish *w, const tm_operand *original) {
  return w->is_packed && !w->is_padded && w->format == original->format && (original->flags & TM_OPERAND_CONTIGUOUS) != 0 &&
         original->alignment >= w->alignment;
}

/* Axes along which an input repeats and may go on to: one of them is moved. */
static uint32_t repeated_axes(const lowering_work *work, const wish *w, uint32_t index) {
  const tm_operand *operand = &work->operands[index];
  uint32_t mask = 0;
  if (w->is_dense || work->expands || index >= work->operation->input_count) return 0;
  for (uint32_t i = 0; i < operand->rank; i++)
    if (operand->strides_bytes[i] == 0 && operand->dims[i] > 1 && w->dims[i] == operand->dims[i]) mask |= 1u << i;
  return mask;
}

static void set_extents(tm_operand *operand, uint32_t mask, const uint64_t *dims) {
  for (uint32_t i = 0; i < operand->rank; i++) {
    if ((mask >> i & 1u) == 0) continue;
    operand->dims[i] = dims == NULL ? 1 : dims[i];
    if (dims != NULL) operand->strides_bytes[i] = 0;
  }
  (void)tm_operand_derive(operand, NULL);
}

static bool make_way(lowering_work *work, uint32_t index) {
  tm_lowering *lowering = work->lowering;
  const wish *w = &work->wishes[index];
  tm_operand *operand = &work->operands[index];
  const bool is_output = index >= work->operation->input_count;
  if (lowering->way_count == TM_MAX_CHANGES) return false;
  tm_operand_way *way = &lowering->ways[lowering->way_count++];
  *way = (tm_operand_way){ .operand = index, .op = move_op(operand->format, w->format, is_output), .is_padded = w->is_padded,
                           .pad_value = w->pad_value, .original = *operand };
  if (way->op == TM_OP_NONE || (way->op != TM_OP_COPY && depends_on_format(work->operation, is_output))) return false;
  if (w->is_padded && !can_be(w->format, w->pad_value)) return false;
  const uint32_t values = way->op == TM_OP_DEQUANTIZE ? TM_FORMAT_F32 : operand->format;        /* blocks decode to f32 values */
  lowering->loses_bits |= way->op != TM_OP_COPY && !tm_float_holds(w->format, values);
  lowering->rounds_output |= way->op == TM_OP_CAST && is_output;
  if (only_packs(w, operand)) {
    way->op = TM_OP_NONE;
    way->dense = way->inside = *operand;
    *operand = way->dense;
    return true;
  }
  const uint32_t repeated = repeated_axes(work, w, index);
  wish once = *w;
  for (uint32_t i = 0; i < operand->rank; i++)
    if ((repeated >> i & 1u) != 0) once.dims[i] = 1;
  set_extents(&way->original, repeated, NULL);
  if (!make_dense(&once, &way->original, way)) return false;
  *operand = way->dense;
  set_extents(operand, repeated, w->dims);
  return true;
}

static bool make_ways(lowering_work *work) {
  for (uint32_t i = 0; i < work->count; i++)
    if (work->wishes[i].is_touched && !make_way(work, i)) return false;
  return true;
}

/* ---- fewer axes ---- */

/* A dense copy of an operand whose axes do not merge as they lie. */
static bool make_dense_way(void *context, uint32_t index) {
  lowering_work *work = context;
  for (uint32_t i = 0; i < work->lowering->way_count; i++)
    if (work->lowering->ways[i].operand == index) return false;   /* it is as dense as it gets */
  work->wishes[index].is_dense = true;
  memcpy(work->wishes[index].dims, work->operands[index].dims, sizeof work->wishes[index].dims);
  return make_way(work, index);
}

static bool reduce_ranks(lowering_work *work, const tm_answer *answer) {
  for (uint32_t i = 0; i < answer->change_count; i++) {
    const tm_change *change = &answer->changes[i];
    if (change->kind != TM_CHANGE_REDUCE_RANK) continue;
    if (!tm_merged_axes_reduce(work->operation, work->operands, work->lowering->attributes, change->operand, change->value,
                               make_dense_way, work))
      return false;
  }
  return true;
}

static bool present(lowering_work *work) {
  for (uint32_t i = 0; i < work->lowering->way_count; i++) {
    tm_operand_way *way = &work->lowering->ways[i];
    const wish *w = &work->wishes[way->operand];
    way->presented = work->operands[way->operand];
    if (!w->is_packed) continue;
    if ((way->presented.flags & TM_OPERAND_CONTIGUOUS) == 0) return false;
    if (w->packed_bytes / MOST_TIMES_PACKED > tm_max_u64(PADDED_BYTES_IN_ANY_CASE / MOST_TIMES_PACKED, way->presented.byte_count))
      return false;
    way->is_kept = true;
    way->packed = (tm_operand){ .format = w->private_format,
                                .rank = way->presented.rank,
                                .element_count = way->presented.element_count,
                                .byte_count = w->packed_bytes,
                                .alignment = STEP_ALIGNMENT,
                                .flags = TM_OPERAND_CONSTANT };
    memcpy(way->packed.dims, way->presented.dims, sizeof way->packed.dims);
    work->operands[way->operand] = way->packed;
  }
  return true;
}

static void begin(lowering_work *work) {
  for (uint32_t i = 0; i < work->count; i++) {
    wish *w = &work->wishes[i];
    *w = (wish){ .format = work->operands[i].format, .alignment = STEP_ALIGNMENT };
    memcpy(w->dims, work->operands[i].dims, sizeof w->dims);
  }
}

static bool change(lowering_work *work, const tm_answer *answer) {
  tm_operation *operation = work->operation;
  memset(work->lowering, 0, sizeof *work->lowering);
  work->lowering->kind = TM_LOWERING_CHANGED;
  if (operation->attribute_bytes != 0) memcpy(work->lowering->attributes, operation->attributes, operation->attribute_bytes);
  const void *given = operation->attributes;
  if (operation->attribute_bytes != 0) operation->attributes = work->lowering->attributes;
  begin(work);
  bool is_good = true;
  for (uint32_t i = 0; i < answer->change_count && is_good; i++) is_good = take_change(work, &answer->changes[i]);
  const bool reduces = tm_answer_has_change(answer, TM_CHANGE_REDUCE_RANK);
  is_good = is_good && make_ways(work) && (!reduces || reduce_ranks(work, answer)) && present(work);
  if (!is_good) operation->attributes = given;
  return is_good && (work->lowering->way_count != 0 || reduces);
}

/* What repeats is first left to, which keeps batches with one b one product; packing wants all of it. */
bool tm_lowering_change(tm_operation *operation, tm_operand *operands, const tm_answer *answer, tm_lowering *out_lowering) {
  tm_operand given[TM_MAX_OPERANDS];
  lowering_work work = { .operation = operation, .operands = operands, .count = operation->input_count + operation->output_count,
                         .lowering = out_lowering };
  if (operation->attribute_bytes > sizeof out_lowering->attributes) return false;
  operation->operands = operands;
  memcpy(given, operands, work.count * sizeof *given);
  if (change(&work, answer)) return true;
  memcpy(operands, given, work.count * sizeof *given);
  work.expands = true;
  return change(&work, answer);
}
