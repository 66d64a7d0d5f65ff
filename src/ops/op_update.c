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
  const tm_operand *rows, *start, *output;
  const char       *rows_address, *start_address;
  tm_operand        spaces[2];          /* what is written, what stays */
  void             *space_pointers[2];
  uint32_t          axis;
} update;

static int64_t start_at(const update *u, uint64_t row) {
  const tm_element_stream stream = tm_stream_along(u->start, 0);
  int64_t start;
  tm_stream_load_integer(&stream, u->start_address + (int64_t)row * stream.step_bytes, 1, &start);
  return start;
}

/* The row of a slice that replaces `place`; NO_ROW if none does. */
static uint64_t row_for(const update *u, int64_t start, uint64_t place) {
  int64_t row;
  const bool fits = place <= INT64_MAX && !__builtin_sub_overflow((int64_t)place, start, &row);
  return fits && row >= 0 && (uint64_t)row < u->rows->dims[u->axis] ? (uint64_t)row : NO_ROW;
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

static void replace(const update *u, const tm_walk *walk, uint64_t row, uint64_t elements) {
  const tm_element_stream from = tm_stream_along(u->rows, u->rows->rank - 1);
  tm_stream_move(&from, row_address(u, walk, row), &walk->streams[0], walk->addresses[0], elements);
}

static bool is_along_line(const update *u) { return u->axis + 1 == u->output->rank; }

/* Elements of y from `begin` on: each is of a row, or stays.  `start` NULL: all stay. */
static void move_slice(const update *u, uint64_t begin, uint64_t count, const int64_t *start) {
  tm_walk walk = tm_walk_begin(&u->spaces[0], u->spaces, u->space_pointers, 2, begin);
  for (uint64_t left = count, n; left > 0; left -= n) {
    n = start != NULL && is_along_line(u) ? 1 : tm_walk_line(&walk, left);
    const uint64_t row = start == NULL ? NO_ROW : row_for(u, *start, walk.index[u->axis]);
    if (row == NO_ROW) keep(&walk, n);
    else replace(u, &walk, row, n);
    tm_walk_advance(&walk, n);
  }
}

/* Elements of y, all at one place of the axis. */
static void move_row(const update *u, uint64_t row, uint64_t begin, uint64_t count) {
  tm_walk walk = tm_walk_begin(&u->spaces[0], u->spaces, u->space_pointers, 2, begin);
  for (uint64_t left = count, n; left > 0; left -= n) {
    n = tm_walk_line(&walk, left);
    replace(u, &walk, row, n);
    tm_walk_advance(&walk, n);
  }
}

/* Row by row, so that the last of a place wins, and each costs what it moves. */
static void move_listed(const update *u, uint64_t begin, uint64_t end) {
  const uint64_t length = u->output->dims[u->axis];
  uint64_t inner = 1;
  for (uint32_t i = u->axis + 1; i < u->output->rank; i++) inner *= u->output->dims[i];
  for (uint64_t row = 0; row < u->rows->dims[u->axis]; row++) {
    const int64_t place = start_at(u, row);
    if (place < 0 || (uint64_t)place >= length) continue;
    for (uint64_t outer = begin / (length * inner); outer * length * inner < end; outer++) {
      const uint64_t first = (outer * length + (uint64_t)place) * inner;
      const uint64_t from = tm_max_u64(first, begin), to = tm_min_u64(first + inner, end);
      if (from < to) move_row(u, row, from, to - from);
    }
  }
}

static void reference(const tm_operation *operation, void *const *pointers, uint64_t begin, uint64_t end) {
  const tm_axis_attributes *attributes = operation->attributes;
  const uint64_t unit = tm_unit_elements(operation);
  const update u = { .rows = &operation->operands[ROWS], .start = &operation->operands[START], .output = tm_output_of(operation),
                     .rows_address = pointers[ROWS], .start_address = pointers[START], .axis = attributes->axis,
                     .spaces = { *tm_output_of(operation), operation->operands[STATE] },
                     .space_pointers = { pointers[operation->input_count], pointers[STATE] } };
  if (begin >= end) return;
  const int64_t start = u.start->rank == 0 ? start_at(&u, 0) : 0;
  move_slice(&u, begin * unit, (end - begin) * unit, u.start->rank == 0 ? &start : NULL);
  if (u.start->rank != 0) move_listed(&u, begin * unit, end * unit);
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

/* In place only the rows move. */
static void work(const tm_operation *operation, tm_work *out_work) {
  tm_operand touched[4];
  tm_operation moved = *operation;
  for (uint32_t i = 0; i < 4; i++) touched[i] = operation->operands[i];
  if ((touched[3].flags & TM_OPERAND_IN_PLACE) != 0) {
    touched[STATE].element_count = touched[STATE].byte_count = 0;
    touched[3] = touched[ROWS];
  }
  moved.operands = touched;
  tm_work_of(&moved, 0, out_work);
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
     .work = work,
     .splittable = splittable,
     .units = tm_units_elementwise,
     .reference = reference,
     .input_names = {"state", "rows", "start"},
     .may_alias = 0x1,
     .is_repeatable = true},
};
TM_OP_ROWS_COUNT(update);
