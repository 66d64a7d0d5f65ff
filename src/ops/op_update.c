/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update: a state with some rows replaced.  What is not replaced is copied, unless y lies where the state lies.  Nothing
 * that is read depends on what was written, so a second run changes nothing.
 */
#include "base/checked.h"
#include "base/error.h"
#include "ops/op_check.h"
#include "ops/op_measure.h"
#include "ops/op_rows.h"
#include "ops/walk.h"
#include "tensor/format.h"

#define STATE 0u
#define ROWS 1u
#define START 2u
#define NO_ROW UINT64_MAX

typedef struct update {
  const tm_operand *rows, *start;
  const char       *rows_address, *start_address;
  uint32_t          axis;
  uint64_t          found_place, found_row;     /* the last answer: neighbouring lines share their place */
} update;

static int64_t start_at(const update *u, uint64_t row) {
  const tm_element_stream stream = tm_stream_along(u->start, 0);
  int64_t start;
  tm_stream_load_integer(&stream, u->start_address + (int64_t)row * stream.step_bytes, 1, &start);
  return start;
}

/* The row that replaces `place`; NO_ROW if none does. */
static uint64_t search_row(const update *u, uint64_t place) {
  const uint64_t count = u->rows->dims[u->axis];
  if (place > INT64_MAX || count == 0) return NO_ROW;
  if (u->start->rank == 0) {
    int64_t row;
    const bool fits = !__builtin_sub_overflow((int64_t)place, start_at(u, 0), &row);
    return fits && row >= 0 && (uint64_t)row < count ? (uint64_t)row : NO_ROW;
  }
  for (uint64_t row = count; row-- > 0;)
    if (start_at(u, row) == (int64_t)place) return row;
  return NO_ROW;
}

static uint64_t row_for(update *u, uint64_t place) {
  if (place != u->found_place) u->found_row = search_row(u, place);
  u->found_place = place;
  return u->found_row;
}

/* Where the element of `rows` is that the element of y at walk->index becomes. */
static const char *row_address(const update *u, const tm_walk *walk, uint64_t row) {
  const char *address = u->rows_address;
  for (uint32_t i = 0; i < walk->rank; i++) {
    const uint64_t elements = i + 1 == walk->rank ? walk->streams[0].block_elements : 1;
    const uint64_t at = i == u->axis ? row : walk->index[i] / elements;
    address += (int64_t)at * u->rows->strides_bytes[i];
  }
  return address;
}

static void keep(const tm_walk *walk, uint64_t elements) {
  if (walk->addresses[0] != walk->addresses[1])
    tm_stream_move(&walk->streams[1], walk->addresses[1], &walk->streams[0], walk->addresses[0], elements);
}

static void move_line(update *u, const tm_walk *walk, uint64_t elements) {
  const uint64_t row = row_for(u, walk->index[u->axis]);
  const tm_element_stream from = tm_stream_along(u->rows, u->rows->rank - 1);
  if (row == NO_ROW) keep(walk, elements);
  else tm_stream_move(&from, row_address(u, walk, row), &walk->streams[0], walk->addresses[0], elements);
}

static void reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  const tm_axis_attributes *attributes = operation->attributes;
  const uint64_t unit = tm_unit_elements(operation);
  update u = { .rows = &operation->operands[ROWS], .start = &operation->operands[START], .rows_address = pointers[ROWS],
               .start_address = pointers[START], .axis = attributes->axis, .found_place = NO_ROW, .found_row = NO_ROW };
  const tm_operand spaces[2] = { *tm_output_of(operation), operation->operands[STATE] };
  void *const space_pointers[2] = { pointers[operation->input_count], pointers[STATE] };
  const bool along_line = u.axis + 1 == spaces[0].rank;
  tm_walk walk = tm_walk_begin(&spaces[0], spaces, space_pointers, 2, begin * unit);
  for (uint64_t left = (end - begin) * unit, n; left > 0; left -= n) {
    n = along_line ? 1 : tm_walk_line(&walk, left);
    move_line(&u, &walk, n);
    tm_walk_advance(&walk, n);
  }
}

/* ---- shapes ---- */

static tm_status require_start(const tm_operation *operation, uint64_t row_count, tm_error *error) {
  TM_TRY(tm_require_index_format(operation, START, error));
  if (operation->operands[START].rank == 0) return TM_OK;
  return tm_require_dims(operation, START, 1, &row_count, error);
}

static tm_status infer(const tm_operation *operation, tm_operand *out_outputs, tm_error *error) {
  const tm_axis_attributes *attributes = operation->attributes;
  const tm_operand *state = &operation->operands[STATE];
  const tm_operand *rows = &operation->operands[ROWS];
  TM_TRY(tm_require_reserved(operation, attributes->reserved, error));
  TM_TRY(tm_require_format(operation, STATE, TM_SET_ALL, error));
  TM_TRY(tm_require_same_format(operation, ROWS, STATE, error));
  TM_TRY(tm_require_axis(operation, STATE, attributes->axis, error));
  if (tm_format_find(state->format)->block_elements > 1 && attributes->axis == state->rank - 1)
    return tm_fail(error, TM_ERROR_ARGUMENT,
                   "update: state has format %s, so nothing can be replaced along its last axis; expected axis less than %u",
                   tm_format_title(state->format), (unsigned)(state->rank - 1));
  uint64_t dims[TM_MAX_RANK];
  for (uint32_t i = 0; i < state->rank; i++) dims[i] = i == attributes->axis ? rows->dims[i] : state->dims[i];
  TM_TRY(tm_require_dims(operation, ROWS, state->rank, dims, error));
  TM_TRY(require_start(operation, rows->dims[attributes->axis], error));
  TM_TRY(tm_choose_input_format(operation, STATE, out_outputs, error));
  return tm_make_output(operation, state->rank, state->dims, out_outputs, error);
}

static uint32_t splittable(const tm_operation *operation) {
  const tm_axis_attributes *attributes = operation->attributes;
  return tm_axis_mask(operation->operands[STATE].rank) & ~(1u << attributes->axis);
}

const tm_op_row tm_op_rows_update[] = {
    {.op = TM_OP_UPDATE,
     .version = 1,
     .name = "update",
     .summary = "a state with some rows replaced, in place where the caller wants it; what lies outside is left out",
     .op_class = TM_CLASS_MOVE,
     .input_min = 3,
     .input_max = 3,
     .output_count = 1,
     .attribute_bytes = sizeof(tm_axis_attributes),
     .default_numerics = TM_NUMERICS_N0,
     .combine = TM_COMBINE_CONCATENATE,
     .pad_value = __builtin_nan(""),
     .infer = infer,
     .check = tm_check_outputs,
     .work = tm_work_elementwise,
     .splittable = splittable,
     .units = tm_units_elementwise,
     .reference = reference,
     .input_names = {"state", "rows", "start"},
     .may_alias = 0x1,
     .is_repeatable = true},
};
TM_OP_ROWS_COUNT(update);
