/* SPDX-License-Identifier: Apache-2.0 */
/* copy, transpose, gather, fill, convert. */
#include "unit/ops/op_case.h"

static void copies_any_format(void **state) {
  (void)state;
  unsigned char bytes[2 * 144];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 37 + 11);
  op_case c = op_begin(TM_OP_COPY, NULL, 0);
  op_input_bytes(&c, TM_FORMAT_Q4_K, 2, DIMS(2, 256), bytes);
  op_run(&c, TM_FORMAT_NONE);
  op_expect_bytes(&c, bytes, sizeof bytes);
}

static void transposes(void **state) {
  (void)state;
  const tm_transpose_attributes attributes = { { 2, 0, 1 } };
  op_case c = op_begin(TM_OP_TRANSPOSE, &attributes, sizeof attributes);
  op_input(&c, TM_FORMAT_I16, 3, DIMS(2, 1, 3), VALUES(1, 2, 3, 4, 5, 6));
  op_run(&c, TM_FORMAT_NONE);
  op_expect_dims(&c, 3, DIMS(3, 2, 1));
  op_expect(&c, 6, VALUES(1, 4, 2, 5, 3, 6));
}

static void transposes_around_blocks(void **state) {
  (void)state;
  const tm_transpose_attributes attributes = { { 1, 0, 2 } };
  op_case c = op_begin(TM_OP_TRANSPOSE, &attributes, sizeof attributes);
  op_input_bytes(&c, TM_FORMAT_I4, 3, DIMS(2, 2, 4), (const uint8_t[]){ 1, 2, 3, 4, 5, 6, 7, 8 });
  op_run(&c, TM_FORMAT_NONE);
  op_expect_bytes(&c, (const uint8_t[]){ 1, 2, 5, 6, 3, 4, 7, 8 }, 8);
}

static op_case gather(uint32_t axis, uint32_t format, uint32_t rank, const uint64_t *dims, const double *x,
                      uint32_t index_rank, const uint64_t *index_dims, const double *indices) {
  static tm_axis_attributes attributes;
  attributes.axis = axis;
  op_case c = op_begin(TM_OP_GATHER, &attributes, sizeof attributes);
  op_input(&c, format, rank, dims, x);
  op_input(&c, TM_FORMAT_I64, index_rank, index_dims, indices);
  op_run(&c, TM_FORMAT_NONE);
  return c;
}

static void gathers_rows(void **state) {
  (void)state;
  op_case c = gather(0, TM_FORMAT_F32, 2, DIMS(3, 2), VALUES(1, 2, 3, 4, 5, 6), 1, DIMS(4), VALUES(2, 0, 2, 1));
  op_expect_dims(&c, 2, DIMS(4, 2));
  op_expect(&c, 8, VALUES(5, 6, 1, 2, 5, 6, 3, 4));
}

static void outside_gives_zero_bits(void **state) {
  (void)state;
  op_case c = gather(0, TM_FORMAT_F32, 2, DIMS(2, 2), VALUES(1, 2, 3, 4), 1, DIMS(3), VALUES(-1, 2, 1));
  op_expect(&c, 6, VALUES(0, 0, 0, 0, 3, 4));
  c = gather(0, TM_FORMAT_F32, 1, DIMS(0), VALUES(0), 1, DIMS(2), VALUES(0, 5));
  op_expect(&c, 2, VALUES(0, 0));
}

static void gathers_on_every_axis(void **state) {
  (void)state;
  const double x[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
  op_case c = gather(2, TM_FORMAT_U8, 3, DIMS(2, 2, 3), x, 2, DIMS(1, 2), VALUES(2, 0));
  op_expect_dims(&c, 4, DIMS(2, 2, 1, 2));
  op_expect(&c, 8, VALUES(2, 0, 5, 3, 8, 6, 11, 9));
  c = gather(1, TM_FORMAT_U8, 3, DIMS(2, 2, 3), x, 1, DIMS(3), VALUES(1, 1, 0));
  op_expect(&c, 18, VALUES(3, 4, 5, 3, 4, 5, 0, 1, 2, 9, 10, 11, 9, 10, 11, 6, 7, 8));
  /* Without index axes the gathered axis vanishes. */
  c = gather(2, TM_FORMAT_U8, 3, DIMS(2, 2, 3), x, 0, NULL, VALUES(1));
  op_expect_dims(&c, 2, DIMS(2, 2));
  op_expect(&c, 4, VALUES(1, 4, 7, 10));
  c = gather(0, TM_FORMAT_U8, 1, DIMS(3), x, 0, NULL, VALUES(2));
  op_expect_dims(&c, 0, NULL);
  op_expect(&c, 1, VALUES(2));
}

static void gathers_block_rows(void **state) {
  (void)state;
  unsigned char x[3 * 34], expected[2 * 34] = { 0 };
  for (size_t i = 0; i < sizeof x; i++) x[i] = (unsigned char)(i + 1);
  memcpy(expected, x + 68, 34);
  const tm_axis_attributes attributes = { 0, 0 };
  op_case c = op_begin(TM_OP_GATHER, &attributes, sizeof attributes);
  op_input_bytes(&c, TM_FORMAT_Q8_0, 2, DIMS(3, 32), x);
  op_input(&c, TM_FORMAT_I32, 1, DIMS(2), VALUES(2, 3));
  op_run(&c, TM_FORMAT_NONE);
  op_expect_bytes(&c, expected, sizeof expected);
}

static void fills_a_given_shape(void **state) {
  (void)state;
  op_case c = op_begin(TM_OP_FILL, NULL, 0);
  op_input(&c, TM_FORMAT_BF16, 0, NULL, VALUES(1.5));
  c.operation.operands = c.operands;
  tm_operand *y = &c.operands[1];
  y->rank = 2;
  y->dims[0] = 2;
  y->dims[1] = 3;
  assert_int_equal(tm_op_infer_outputs(&c.operation, y, &c.error), TM_OK);
  assert_int_equal(tm_op_check(&c.operation, &c.error), TM_OK);
  c.pointers[1] = op_alloc(y->byte_count);
  tm_op_find(TM_OP_FILL)->reference(&c.operation, c.pointers, 0, 6);
  op_expect(&c, 6, VALUES(1.5, 1.5, 1.5, 1.5, 1.5, 1.5));
}

static void convert_needs_a_backend(void **state) {
  (void)state;
  const tm_op_row *row = tm_op_find(TM_OP_CONVERT);
  assert_null(row->reference);
  op_case c = op_begin(TM_OP_CONVERT, NULL, 0);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(4, 4), NULL);
  assert_int_equal(op_infer(&c, TM_FORMAT_PRIVATE + 7), TM_OK);
  assert_int_equal(op_y(&c)->format, TM_FORMAT_PRIVATE + 7);
  assert_int_equal(tm_op_check(&c.operation, &c.error), TM_OK);
  assert_int_equal(row->units(&c.operation), 0);
  op_refused(&c, TM_FORMAT_F16, WORDS("convert", "f32", "f16", "private to a backend"));
}

static void refuses(void **state) {
  (void)state;
  const tm_transpose_attributes twice = { { 1, 1 } };
  op_case c = op_begin(TM_OP_TRANSPOSE, &twice, sizeof twice);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(2, 2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("permutation[1] is 1", "rank 2"));
  const tm_transpose_attributes swap = { { 1, 0 } };
  c = op_begin(TM_OP_TRANSPOSE, &swap, sizeof swap);
  op_input(&c, TM_FORMAT_Q8_0, 2, DIMS(32, 32), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("q8_0", "last axis must stay"));
  const tm_axis_attributes axis = { 1, 0 };
  c = op_begin(TM_OP_GATHER, &axis, sizeof axis);
  op_input(&c, TM_FORMAT_I4, 2, DIMS(2, 2), NULL);
  op_input(&c, TM_FORMAT_I32, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("i4", "last axis cannot be gathered"));
  c = op_begin(TM_OP_GATHER, &axis, sizeof axis);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_input(&c, TM_FORMAT_I32, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("axis 1", "less than 1"));
  const tm_axis_attributes first = { 0, 0 };
  c = op_begin(TM_OP_GATHER, &first, sizeof first);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(2), NULL);
  op_input(&c, TM_FORMAT_U8, 1, DIMS(2), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("indices", "u8", "i32 or i64"));
  c = op_begin(TM_OP_GATHER, &first, sizeof first);
  op_input(&c, TM_FORMAT_F32, 8, DIMS(1, 1, 1, 1, 1, 1, 1, 1), NULL);
  op_input(&c, TM_FORMAT_I32, 2, DIMS(1, 1), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("gather: y", "rank 9"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(copies_any_format),
    cmocka_unit_test(transposes),
    cmocka_unit_test(transposes_around_blocks),
    cmocka_unit_test(gathers_rows),
    cmocka_unit_test(outside_gives_zero_bits),
    cmocka_unit_test(gathers_on_every_axis),
    cmocka_unit_test(gathers_block_rows),
    cmocka_unit_test(fills_a_given_shape),
    cmocka_unit_test(convert_needs_a_backend),
    cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
