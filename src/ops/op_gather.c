/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather: y takes the place of x's axis by the axes of the indices.
 *
 *     axes of y:  [ x's outer axes | the indices' axes | x's inner axes ]
 *
 * A line of y lies in x along one axis with one index (outer or inner), or runs through the indices.
 */
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "ops/op_check.h"
#include "ops/op_measure.h"
#include "ops/op_rows.h"
#include "ops/walk.h"
#include "tensor/format.h"

typedef struct gather {
  const tm_operand *x;
  const tm_operand *indices;
  const char       *x_pointer;
  const char       *index_pointer;
  tm_element_stream index_stream;
  uint32_t          axis;
} gather;

static int64_t index_at(const gather *g, const char *address) {
  int64_t index;
  tm_stream_load_integer(&g->index_stream, address, 1, &index);
  return index;
}

/* Addresses in x and in the indices of the element of y at walk->index, x's as if the index were 0. */
static void locate(const gather *g, const tm_walk *walk, const char **out_x, const char **out_index) {
  const char *x = g->x_pointer;
  const char *index = g->index_pointer;
  const uint32_t rank = g->x->rank + g->indices->rank - 1;
  for (uint32_t i = 0; i < rank; i++) {
    const bool is_last = i + 1 == rank;
    const uint32_t inner = i - g->indices->rank + 1;
    const uint64_t at = is_last ? walk->index[i] / walk->streams[0].block_elements : walk->index[i];
    if (i < g->axis) x += (int64_t)at * g->x->strides_bytes[i];
    else if (i < g->axis + g->indices->rank) index += (int64_t)at * g->indices->strides_bytes[i - g->axis];
    else x += (int64_t)at * g->x->strides_bytes[inner];
  }
  *out_x = x;
  *out_index = index;
}

static void move_or_clear(const gather *g, int64_t index, const tm_element_stream *from, const char *x,
                          const tm_element_stream *to, char *y, uint64_t elements) {
  const bool is_inside = index >= 0 && (uint64_t)index < g->x->dims[g->axis];
  if (is_inside) tm_stream_move(from, x + index * g->x->strides_bytes[g->axis], to, y, elements);
  else tm_stream_clear(to, elements, y);
}

static void gather_line(const gather *g, const tm_walk *walk, uint64_t elements) {
  const char *x, *indices;
  const uint32_t rank = g->x->rank + g->indices->rank - 1;
  const tm_element_stream *to = &walk->streams[0];
  locate(g, walk, &x, &indices);
  const bool through_indices = rank > 0 && rank - 1 >= g->axis && rank - 1 < g->axis + g->indices->rank;
  if (!through_indices) {
    const uint32_t x_axis = rank > 0 && rank - 1 < g->axis ? rank - 1 : g->x->rank - 1;
    const tm_element_stream from = tm_stream_along(g->x, x_axis);
    move_or_clear(g, index_at(g, indices), &from, x, to, walk->addresses[0], elements);
    return;
  }
  const tm_element_stream from = tm_stream_along(g->x, g->axis);
  const int64_t step = g->indices->strides_bytes[g->indices->rank - 1];
  for (uint64_t i = 0; i < elements; i++)
    move_or_clear(g, index_at(g, indices + (int64_t)i * step), &from, x, to,
                  walk->addresses[0] + (int64_t)i * to->step_bytes, 1);
}

static void reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  const tm_axis_attributes *attributes = operation->attributes;
  const uint64_t unit = tm_unit_elements(operation);
  gather g = { .x = &operation->operands[0], .indices = &operation->operands[1], .x_pointer = pointers[0],
               .index_pointer = pointers[1], .axis = attributes->axis };
  g.index_stream = tm_stream_along(g.indices, TM_MAX_RANK);
  const tm_operand *y = tm_output_of(operation);
  tm_walk walk = tm_walk_begin(y, y, &pointers[2], 1, begin * unit);
  for (uint64_t left = (end - begin) * unit, n; left > 0; left -= n) {
    n = tm_walk_line(&walk, left);
    gather_line(&g, &walk, n);
    tm_walk_advance(&walk, n);
  }
}

static tm_status infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_axis_attributes *attributes = operation->attributes;
  const tm_operand *x = &operation->operands[0];
  const tm_operand *indices = &operation->operands[1];
  TM_TRY(tm_require_reserved(operation, attributes->reserved, error));
  TM_TRY(tm_require_format(operation, 0, TM_SET_ALL, error));
  TM_TRY(tm_require_index_format(operation, 1, error));
  TM_TRY(tm_require_axis(operation, 0, attributes->axis, error));
  if (tm_format_find(x->format)->block_elements > 1 && attributes->axis == x->rank - 1)
    return tm_fail(error, TM_ERROR_ARGUMENT,
                   "gather: x has format %s, so its last axis cannot be gathered; expected axis less than %u",
                   tm_format_title(x->format), (unsigned)(x->rank - 1));
  uint64_t dims[2 * TM_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t i = 0; i < attributes->axis; i++) dims[rank++] = x->dims[i];
  for (uint32_t i = 0; i < indices->rank; i++) dims[rank++] = indices->dims[i];
  for (uint32_t i = attributes->axis + 1; i < x->rank; i++) dims[rank++] = x->dims[i];
  TM_TRY(tm_choose_input_format(operation, 0, out_outputs, error));
  return tm_make_output(operation, rank, dims, out_outputs, error);
}

static void work(const tm_operation *operation, tm_work *out_work) {
  uint64_t touched;
  tm_work_of(operation, 0, out_work);
  if (tm_checked_add(out_work->written_bytes, operation->operands[1].byte_count, &touched))
    out_work->read_bytes = tm_min_u64(out_work->read_bytes, touched);
}

static uint32_t splittable(const tm_operation *operation) {
  const tm_axis_attributes *attributes = operation->attributes;
  return tm_axis_mask(operation->operands[0].rank) & ~(1u << attributes->axis);
}

const tm_op_row tm_op_rows_gather[] = {
    {.op = TM_OP_GATHER,
     .version = 1,
     .name = "gather",
     .summary = "slices of x by index; an index outside gives zero bits",
     .op_class = TM_CLASS_MOVE,
     .input_min = 2,
     .input_max = 2,
     .output_count = 1,
     .attribute_bytes = sizeof(tm_axis_attributes),
     .default_numerics = TM_NUMERICS_N0,
     .combine = TM_COMBINE_CONCATENATE,
     .infer = infer,
     .check = tm_check_outputs,
     .work = work,
     .splittable = splittable,
     .units = tm_units_elementwise,
     .reference = reference,
     .input_names = {"x", "indices"}},
};
TM_OP_ROWS_COUNT(gather);
