/* SPDX-License-Identifier: Apache-2.0 */
/* The table itself: lookup, the checks common to all rows, the normal form, work and splits. */
#include "unit/ops/op_case.h"

static void finds_rows(void **state) {
  (void)state;
  uint32_t count = 0;
  for (const tm_op_row *row; (row = tm_op_at(count)) != NULL; count++) {
    assert_ptr_equal(tm_op_find(row->op), row);
    assert_ptr_equal(tm_op_by_name(row->name, strlen(row->name)), row);
    assert_true(row->version >= 1 && row->summary != NULL && row->input_min <= row->input_max);
    assert_non_null(row->infer);
    assert_non_null(row->check);
    assert_non_null(row->work);
    assert_non_null(row->splittable);
    assert_non_null(row->units);
    assert_true((row->reference == NULL) == (row->op == TM_OP_CONVERT));
    assert_true((row->combine_words != NULL) == (row->combine == TM_COMBINE_WORDS));
  }
  assert_int_equal(count, 46);
  for (uint32_t op = 0; op < 1000; op++) {
    const tm_op_row *row = tm_op_find(op);
    if (row != NULL) assert_int_equal(row->op, op);
    count -= row != NULL;
  }
  assert_int_equal(count, 0);
  assert_null(tm_op_find(TM_OP_NONE));
  assert_null(tm_op_find(UINT32_MAX));
  assert_null(tm_op_find(TM_OP_FOREIGN));
  assert_null(tm_op_by_name("ad", 2));
  assert_null(tm_op_by_name("addx", 4));
}

/* Into the caller's case, since the operation points into it. */
static void sum_of_two(op_case *c) {
  *c = op_begin(TM_OP_ADD, NULL, 0);
  op_input(c, TM_FORMAT_F32, 2, DIMS(2, 3), VALUES(1, 2, 3, 4, 5, 6));
  op_input(c, TM_FORMAT_F32, 1, DIMS(3), VALUES(10, 20, 30));
  op_run(c, TM_FORMAT_NONE);
}

static void check_fails(op_case *c, const char *word) {
  assert_int_equal(tm_op_check(&c->operation, &c->error), TM_ERROR_ARGUMENT);
  if (strstr(c->error.text, word) == NULL) fail_msg("'%s' does not say '%s'", c->error.text, word);
  op_end(c);
}

static void checks_what_all_rows_share(void **state) {
  (void)state;
  op_case c;
  sum_of_two(&c);
  c.operation.version = 2;
  check_fails(&c, "version 2, expected 1");
  sum_of_two(&c);
  c.operation.op = 12345;
  check_fails(&c, "12345 is not known");
  sum_of_two(&c);
  c.operation.output_count = 2;
  check_fails(&c, "2 outputs, expected 1");
  sum_of_two(&c);
  c.operation.attributes = "extra";
  c.operation.attribute_bytes = 5;
  check_fails(&c, "5 bytes of attributes, expected 0");
  sum_of_two(&c);
  c.operands[0].element_count = 7;
  check_fails(&c, "add: a has 7 elements");
  sum_of_two(&c);
  c.operands[1].strides_bytes[3] = 4;
  check_fails(&c, "add: b: axis 3");
}

static void checks_outputs(void **state) {
  (void)state;
  op_case c;
  sum_of_two(&c);
  c.operands[2].strides_bytes[0] = 0;
  assert_int_equal(tm_operand_derive(&c.operands[2], NULL), TM_OK);
  check_fails(&c, "stride 0 on axis 0");
  sum_of_two(&c);
  assert_int_equal(tm_operand_contiguous(TM_FORMAT_F32, 2, DIMS(3, 2), &c.operands[2], NULL), TM_OK);
  check_fails(&c, "y has shape [3,2], expected [2,3]");
  sum_of_two(&c);
  assert_int_equal(tm_operand_contiguous(TM_FORMAT_I32, 2, DIMS(2, 3), &c.operands[2], NULL), TM_OK);
  check_fails(&c, "y has format i32, expected f32");
}

static void a_missing_attribute_is_found(void **state) {
  (void)state;
  op_case c = op_begin(TM_OP_SOFTMAX, NULL, sizeof(tm_axis_attributes));
  op_input(&c, TM_FORMAT_F32, 1, DIMS(3), NULL);
  op_refused(&c, TM_FORMAT_NONE, WORDS("softmax", "0 bytes of attributes, expected 8"));
}

static void normal_form_expands_and_merges(void **state) {
  (void)state;
  op_case c = op_begin(TM_OP_MUL, NULL, 0);
  op_input(&c, TM_FORMAT_F32, 3, DIMS(4, 1, 6), NULL);
  op_input(&c, TM_FORMAT_F32, 0, NULL, NULL);
  op_run(&c, TM_FORMAT_NONE);
  tm_op_normalize(&c.operation, c.operands);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(c.operands[i].rank, 1);
    assert_int_equal(c.operands[i].dims[0], 24);
  }
  assert_int_equal(c.operands[1].strides_bytes[0], 0);
  assert_int_equal(c.operands[0].strides_bytes[0], 4);
  assert_int_equal(c.operation.flags, TM_OPERATION_ALL_SAME_SHAPE | TM_OPERATION_ALL_SAME_FORMAT);
  op_end(&c);
}

static void normal_form_keeps_what_cannot_merge(void **state) {
  (void)state;
  op_case c;
  sum_of_two(&c);
  c.operation.flags = TM_OPERATION_RUN_TO_RUN;
  tm_op_normalize(&c.operation, c.operands);
  assert_int_equal(c.operands[0].rank, 2);
  assert_int_equal(c.operands[1].strides_bytes[0], 0);
  assert_int_equal(c.operands[1].strides_bytes[1], 4);
  assert_int_equal(c.operands[1].dims[0], 2);
  assert_true(c.operation.flags & TM_OPERATION_RUN_TO_RUN);
  assert_false(c.operation.flags & TM_OPERATION_ALL_CONTIGUOUS);
  op_end(&c);
}

/* [3,1,4], [12], [1,12,1] and with it every dense shape of the same size are one signature. */
static void one_signature_for_many_shapes(void **state) {
  (void)state;
  const uint64_t dims[][3] = { { 3, 1, 4 }, { 12, 1, 1 }, { 1, 12, 1 }, { 1, 1, 12 } };
  tm_operand first = { 0 };
  for (int i = 0; i < 4; i++) {
    op_case c = op_begin(TM_OP_EXP, NULL, 0);
    op_input(&c, TM_FORMAT_F16, 3, dims[i], NULL);
    op_run(&c, TM_FORMAT_NONE);
    tm_op_normalize(&c.operation, c.operands);
    if (i == 0) first = c.operands[0];
    assert_memory_equal(&c.operands[0], &first, sizeof first);
    assert_memory_equal(&c.operands[1], &first, sizeof first);
    op_end(&c);
  }
}

static void scalars_and_empty_tensors_get_rank_1(void **state) {
  (void)state;
  op_case c = op_begin(TM_OP_NEG, NULL, 0);
  op_input(&c, TM_FORMAT_F32, 0, NULL, VALUES(1));
  op_run(&c, TM_FORMAT_NONE);
  tm_op_normalize(&c.operation, c.operands);
  assert_int_equal(c.operands[0].rank, 1);
  assert_int_equal(c.operands[0].dims[0], 1);
  assert_int_equal(c.operands[0].strides_bytes[0], 4);
  op_end(&c);
  c = op_begin(TM_OP_NEG, NULL, 0);
  op_input(&c, TM_FORMAT_F32, 3, DIMS(5, 0, 2), NULL);
  op_run(&c, TM_FORMAT_NONE);
  tm_op_normalize(&c.operation, c.operands);
  assert_int_equal(c.operands[0].rank, 1);
  assert_int_equal(c.operands[0].dims[0], 0);
  assert_true(c.operation.flags & TM_OPERATION_ALL_CONTIGUOUS);
  op_end(&c);
}

static void merges_rows_of_blocks(void **state) {
  (void)state;
  op_case c = op_begin(TM_OP_DEQUANTIZE, NULL, 0);
  op_input(&c, TM_FORMAT_Q4_0, 3, DIMS(2, 3, 64), NULL);
  op_run(&c, TM_FORMAT_NONE);
  tm_op_normalize(&c.operation, c.operands);
  assert_int_equal(c.operands[0].rank, 1);
  assert_int_equal(c.operands[0].dims[0], 384);
  assert_int_equal(c.operands[0].strides_bytes[0], 18);
  assert_int_equal(c.operands[1].strides_bytes[0], 4);
  op_end(&c);
}

static void matmul_batches_get_equal_ranks(void **state) {
  (void)state;
  const tm_matmul_attributes attributes = { 0, 0 };
  op_case c = op_begin(TM_OP_MATMUL, &attributes, sizeof attributes);
  op_input(&c, TM_FORMAT_F32, 3, DIMS(5, 2, 3), NULL);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(3, 4), NULL);
  op_run(&c, TM_FORMAT_NONE);
  tm_op_normalize(&c.operation, c.operands);
  assert_int_equal(c.operands[1].rank, 3);
  assert_int_equal(c.operands[1].dims[0], 5);
  assert_int_equal(c.operands[1].strides_bytes[0], 0);
  op_end(&c);
}

static void counts_work(void **state) {
  (void)state;
  tm_work work;
  op_case c;
  sum_of_two(&c);
  tm_op_find(TM_OP_ADD)->work(&c.operation, &work);
  assert_int_equal(work.flops, 6);
  assert_int_equal(work.read_bytes, 24 + 12);
  assert_int_equal(work.written_bytes, 24);
  tm_op_normalize(&c.operation, c.operands);
  tm_op_find(TM_OP_ADD)->work(&c.operation, &work);
  assert_int_equal(work.read_bytes, 24 + 12);
  op_end(&c);
  const tm_matmul_attributes attributes = { 0, 1 };
  c = op_begin(TM_OP_MATMUL, &attributes, sizeof attributes);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(2, 64), NULL);
  op_input(&c, TM_FORMAT_Q8_0, 2, DIMS(5, 64), NULL);
  op_run(&c, TM_FORMAT_NONE);
  tm_op_find(TM_OP_MATMUL)->work(&c.operation, &work);
  assert_int_equal(work.flops, 2 * 2 * 5 * 64);
  assert_int_equal(work.read_bytes, 512 + 5 * 68);
  assert_int_equal(work.written_bytes, 40);
  op_end(&c);
}

static void work_saturates(void **state) {
  (void)state;
  const tm_matmul_attributes attributes = { 0, 0 };
  const uint64_t large = UINT64_C(1) << 30;
  op_case c = op_begin(TM_OP_MATMUL, &attributes, sizeof attributes);
  c.operation.input_count = 2;
  c.operation.operands = c.operands;
  for (int i = 0; i < 3; i++)
    assert_int_equal(tm_operand_contiguous(TM_FORMAT_F32, 2, DIMS(large, large), &c.operands[i], NULL), TM_OK);
  assert_int_equal(tm_op_check(&c.operation, &c.error), TM_OK);
  tm_work work;
  tm_op_find(TM_OP_MATMUL)->work(&c.operation, &work);
  assert_true(work.flops == UINT64_MAX);
  assert_true(work.read_bytes == UINT64_C(1) << 63);
}

static uint32_t splits(op_case *c) {
  op_run(c, TM_FORMAT_NONE);
  const uint32_t mask = tm_op_find(c->operation.op)->splittable(&c->operation);
  op_end(c);
  return mask;
}

static void names_splittable_axes(void **state) {
  (void)state;
  const tm_axis_attributes axis = { 1, 0 };
  op_case c = op_begin(TM_OP_SOFTMAX, &axis, sizeof axis);
  op_input(&c, TM_FORMAT_F32, 3, DIMS(2, 3, 4), NULL);
  assert_int_equal(splits(&c), 5);
  const tm_reduce_attributes axes = { 4, 0 };
  c = op_begin(TM_OP_SUM, &axes, sizeof axes);
  op_input(&c, TM_FORMAT_F32, 3, DIMS(2, 3, 4), NULL);
  assert_int_equal(splits(&c), 3);
  const tm_matmul_attributes transposed = { 1, 0 };
  c = op_begin(TM_OP_MATMUL, &transposed, sizeof transposed);
  op_input(&c, TM_FORMAT_F32, 4, DIMS(1, 5, 3, 2), NULL);
  op_input(&c, TM_FORMAT_F32, 4, DIMS(7, 5, 3, 2), NULL);
  assert_int_equal(splits(&c), 8 | 2);
  c = op_begin(TM_OP_ADD, NULL, 0);
  op_input(&c, TM_FORMAT_F32, 1, DIMS(3), NULL);
  op_input(&c, TM_FORMAT_F32, 2, DIMS(2, 3), NULL);
  assert_int_equal(splits(&c), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(finds_rows),
    cmocka_unit_test(checks_what_all_rows_share),
    cmocka_unit_test(checks_outputs),
    cmocka_unit_test(a_missing_attribute_is_found),
    cmocka_unit_test(normal_form_expands_and_merges),
    cmocka_unit_test(normal_form_keeps_what_cannot_merge),
    cmocka_unit_test(one_signature_for_many_shapes),
    cmocka_unit_test(scalars_and_empty_tensors_get_rank_1),
    cmocka_unit_test(merges_rows_of_blocks),
    cmocka_unit_test(matmul_batches_get_equal_ranks),
    cmocka_unit_test(counts_work),
    cmocka_unit_test(work_saturates),
    cmocka_unit_test(names_splittable_axes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
