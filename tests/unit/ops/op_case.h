/* SPDX-License-Identifier: Apache-2.0 */
/* op_case.h - for tests of operations: one operation with its operands' memory, run through its reference. */
#ifndef TM_TESTS_OP_CASE_H
#define TM_TESTS_OP_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "ops/op_table.h"
#include "tensor/codec.h"
#include "tensor/format.h"
#include "tensor/shape.h"

#define DIMS(...) (const uint64_t[]){ __VA_ARGS__ }
#define VALUES(...) (const double[]){ __VA_ARGS__ }

typedef struct op_case {
  tm_operation operation;
  tm_operand   operands[TM_MAX_OPERANDS];
  void        *pointers[TM_MAX_OPERANDS];
  tm_error     error;
} op_case;

/* Starts an operation; `attributes` must outlive it. */
static inline op_case op_begin(uint32_t op, const void *attributes, uint32_t attribute_bytes) {
  op_case c = { .operation = { .struct_size = sizeof(tm_operation), .op = op, .version = tm_op_find(op)->version, .attributes = attributes,
                               .attribute_bytes = attribute_bytes, .output_count = 1 },
                .error = TM_ERROR_INIT };
  return c;
}

static inline void op_encode(uint32_t format, const double *values, uint64_t count, void *bytes) {
  const tm_codec *codec = tm_codec_find(format);
  assert_non_null(codec);
  codec->encode(values, count, bytes);
}

static inline void *op_alloc(uint64_t bytes) {
  void *memory = calloc(1, (size_t)bytes + 1);
  assert_non_null(memory);
  return memory;
}

/* Adds a dense input with these values. */
static inline void op_input(op_case *c, uint32_t format, uint32_t rank, const uint64_t *dims, const double *values) {
  const uint32_t i = c->operation.input_count++;
  assert_int_equal(tm_operand_contiguous(format, rank, dims, &c->operands[i], &c->error), TM_OK);
  c->pointers[i] = op_alloc(c->operands[i].byte_count);
  if (values != NULL) op_encode(format, values, c->operands[i].element_count, c->pointers[i]);
}

/* The same with these bytes. */
static inline void op_input_bytes(op_case *c, uint32_t format, uint32_t rank, const uint64_t *dims, const void *bytes) {
  op_input(c, format, rank, dims, NULL);
  const uint32_t i = c->operation.input_count - 1;
  memcpy(c->pointers[i], bytes, (size_t)c->operands[i].byte_count);
}

/* Infers the output (TM_FORMAT_NONE: the default format). */
static inline tm_status op_infer(op_case *c, uint32_t format) {
  tm_operand *y = &c->operands[c->operation.input_count];
  c->operation.operands = c->operands;
  memset(y, 0, sizeof *y);
  y->format = format;
  return tm_op_infer_outputs(&c->operation, y, &c->error);
}

/* Infers, checks, and computes all units. */
static inline void op_run(op_case *c, uint32_t format) {
  const uint32_t y = c->operation.input_count;
  const tm_op_row *row = tm_op_find(c->operation.op);
  assert_non_null(row);
  if (op_infer(c, format) != TM_OK) fail_msg("infer: %s", c->error.text);
  c->pointers[y] = op_alloc(c->operands[y].byte_count);
  memset(c->pointers[y], 0xa5, (size_t)c->operands[y].byte_count);
  if (tm_op_check(&c->operation, &c->error) != TM_OK) fail_msg("check: %s", c->error.text);
  row->reference(&c->operation, c->pointers, 0, row->units(&c->operation));
}

static inline const tm_operand *op_y(const op_case *c) { return &c->operands[c->operation.input_count]; }

static inline void op_end(op_case *c) {
  for (uint32_t i = 0; i < TM_MAX_OPERANDS; i++) free(c->pointers[i]);
}

/* Bits of two f64 are equal, or both are NaN. */
static inline int op_same(double a, double b) { return (a != a && b != b) || memcmp(&a, &b, sizeof a) == 0; }

/* Compares the output's values and frees the case. */
static inline void op_expect(op_case *c, uint64_t count, const double *expected) {
  const tm_operand *y = op_y(c);
  assert_int_equal(y->element_count, count);
  double *values = op_alloc(count * sizeof *values);
  tm_codec_find(y->format)->decode(c->pointers[c->operation.input_count], count, values);
  for (uint64_t i = 0; i < count; i++)
    if (!op_same(values[i], expected[i]))
      fail_msg("%s: y[%u] is %a (%g), expected %a (%g)", tm_op_find(c->operation.op)->name, (unsigned)i, values[i],
               values[i], expected[i], expected[i]);
  free(values);
  op_end(c);
}

static inline void op_expect_bytes(op_case *c, const void *expected, uint64_t bytes) {
  assert_int_equal(op_y(c)->byte_count, bytes);
  assert_memory_equal(c->pointers[c->operation.input_count], expected, (size_t)bytes);
  op_end(c);
}

static inline void op_expect_dims(const op_case *c, uint32_t rank, const uint64_t *dims) {
  assert_int_equal(op_y(c)->rank, rank);
  for (uint32_t i = 0; i < rank; i++) assert_int_equal(op_y(c)->dims[i], dims[i]);
}

/* Infer must refuse with a text that holds every word of the NULL-terminated list. */
static inline void op_refused(op_case *c, uint32_t format, const char *const *words) {
  assert_int_equal(op_infer(c, format), TM_ERROR_ARGUMENT);
  for (; *words != NULL; words++)
    if (strstr(c->error.text, *words) == NULL) fail_msg("'%s' does not say '%s'", c->error.text, *words);
  op_end(c);
}
#define WORDS(...) (const char *const[]){ __VA_ARGS__, NULL }

#endif
