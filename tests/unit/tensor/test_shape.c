/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "tensor/shape.h"

#define DIMS(...) (const uint64_t[]){ __VA_ARGS__ }

static tm_operand dense(uint32_t format, uint32_t rank, const uint64_t *dims) {
  tm_operand operand;
  tm_error error = TM_ERROR_INIT;
  if (tm_operand_contiguous(format, rank, dims, &operand, &error) != TM_OK) fail_msg("%s", error.text);
  return operand;
}

static void makes_dense_rows(void **state) {
  (void)state;
  const tm_operand x = dense(TM_FORMAT_F32, 3, DIMS(2, 3, 5));
  assert_int_equal(x.strides_bytes[0], 60);
  assert_int_equal(x.strides_bytes[1], 20);
  assert_int_equal(x.strides_bytes[2], 4);
  assert_int_equal(x.element_count, 30);
  assert_int_equal(x.byte_count, 120);
  assert_int_equal(x.flags, TM_OPERAND_CONTIGUOUS);
  assert_int_equal(x.dims[3], 0);
}

static void a_scalar_has_one_element(void **state) {
  (void)state;
  const tm_operand x = dense(TM_FORMAT_F64, 0, NULL);
  assert_int_equal(x.element_count, 1);
  assert_int_equal(x.byte_count, 8);
  assert_int_equal(x.flags, TM_OPERAND_CONTIGUOUS | TM_OPERAND_SCALAR);
  assert_true(dense(TM_FORMAT_I8, 3, DIMS(1, 1, 1)).flags & TM_OPERAND_SCALAR);
}

static void an_empty_tensor_has_no_bytes(void **state) {
  (void)state;
  const tm_operand x = dense(TM_FORMAT_F16, 3, DIMS(4, 0, 7));
  assert_int_equal(x.element_count, 0);
  assert_int_equal(x.byte_count, 0);
  assert_int_equal(x.flags, TM_OPERAND_CONTIGUOUS);
  assert_int_equal(tm_operand_bytes_below(&x), 0);
}

static void packed_and_block_formats_step_by_blocks(void **state) {
  (void)state;
  const tm_operand i4 = dense(TM_FORMAT_I4, 2, DIMS(3, 6));
  assert_int_equal(i4.strides_bytes[1], 1);
  assert_int_equal(i4.strides_bytes[0], 3);
  assert_int_equal(i4.byte_count, 9);
  const tm_operand q4 = dense(TM_FORMAT_Q4_0, 2, DIMS(3, 64));
  assert_int_equal(q4.strides_bytes[1], 18);
  assert_int_equal(q4.strides_bytes[0], 36);
  assert_int_equal(q4.byte_count, 108);
  assert_true(q4.flags & TM_OPERAND_CONTIGUOUS);
}

static void refuses(uint32_t format, uint32_t rank, const uint64_t *dims, const char *word) {
  tm_operand operand = { .rank = 99 };
  tm_error error = TM_ERROR_INIT;
  assert_int_equal(tm_operand_contiguous(format, rank, dims, &operand, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(operand.rank, 99);
  if (strstr(error.text, word) == NULL) fail_msg("'%s' does not say '%s'", error.text, word);
}

static void refuses_what_cannot_be(void **state) {
  (void)state;
  refuses(TM_FORMAT_F32, 9, DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1), "rank 9");
  refuses(TM_FORMAT_NONE, 1, DIMS(1), "not known");
  refuses(TM_FORMAT_PRIVATE + 1, 1, DIMS(1), "not known");
  refuses(TM_FORMAT_I4, 1, DIMS(3), "3 elements");
  refuses(TM_FORMAT_U4, 0, NULL, "rank 0");
  refuses(TM_FORMAT_Q8_0, 2, DIMS(64, 33), "33 elements");
  refuses(TM_FORMAT_F32, 2, DIMS(UINT64_C(1) << 32, UINT64_C(1) << 32), "64 bits");
  refuses(TM_FORMAT_F64, 1, DIMS(UINT64_C(1) << 61), "64 bits");
  refuses(TM_FORMAT_I8, 3, DIMS(1, UINT64_MAX, UINT64_MAX), "64 bits");
}

static void counts_beyond_32_bits(void **state) {
  (void)state;
  const tm_operand x = dense(TM_FORMAT_BF16, 3, DIMS(3, 1u << 16, 1u << 17));
  assert_true(x.element_count == UINT64_C(3) << 33);
  assert_true(x.byte_count == UINT64_C(3) << 34);
  const tm_operand largest = dense(TM_FORMAT_I8, 1, DIMS((uint64_t)INT64_MAX));
  assert_true(largest.byte_count == (uint64_t)INT64_MAX);
}

static void takes_rank_8(void **state) {
  (void)state;
  const tm_operand x = dense(TM_FORMAT_I16, 8, DIMS(2, 1, 3, 1, 2, 2, 1, 2));
  assert_int_equal(x.element_count, 48);
  assert_int_equal(x.strides_bytes[0], 48);
}

static void derives_views(void **state) {
  (void)state;
  tm_operand x = dense(TM_FORMAT_F32, 2, DIMS(4, 6));
  x.flags |= TM_OPERAND_CONSTANT;
  x.alignment = 64;
  x.dims[1] = 3;
  assert_int_equal(tm_operand_derive(&x, NULL), TM_OK);
  assert_int_equal(x.flags, TM_OPERAND_CONSTANT);
  assert_int_equal(x.alignment, 64);
  assert_int_equal(x.element_count, 12);
  assert_int_equal(x.byte_count, 3 * 24 + 2 * 4 + 4);
  x.dims[0] = 1;
  assert_int_equal(tm_operand_derive(&x, NULL), TM_OK);
  assert_true(x.flags & TM_OPERAND_CONTIGUOUS);
}

static void negative_strides_reach_below(void **state) {
  (void)state;
  tm_operand x = dense(TM_FORMAT_F32, 2, DIMS(4, 6));
  x.strides_bytes[0] = -24;
  assert_int_equal(tm_operand_derive(&x, NULL), TM_OK);
  assert_int_equal(x.byte_count, 96);
  assert_int_equal(tm_operand_bytes_below(&x), 72);
  assert_false(x.flags & TM_OPERAND_CONTIGUOUS);
  x.strides_bytes[1] = -4;
  assert_int_equal(tm_operand_bytes_below(&x), 92);
}

static void derive_checks_strides(void **state) {
  (void)state;
  tm_operand q = dense(TM_FORMAT_Q4_0, 2, DIMS(3, 64));
  q.strides_bytes[1] = 36;
  assert_int_equal(tm_operand_derive(&q, NULL), TM_ERROR_ARGUMENT);
  tm_operand x = dense(TM_FORMAT_F32, 1, DIMS(3));
  x.dims[1] = 7;
  assert_int_equal(tm_operand_derive(&x, NULL), TM_ERROR_ARGUMENT);
  x = dense(TM_FORMAT_F32, 2, DIMS(3, 3));
  x.strides_bytes[0] = INT64_MIN;
  assert_int_equal(tm_operand_derive(&x, NULL), TM_ERROR_ARGUMENT);
}

static void broadcasts_by_the_numpy_rule(void **state) {
  (void)state;
  const tm_operand x = dense(TM_FORMAT_F32, 2, DIMS(3, 1));
  tm_operand y;
  assert_true(tm_operand_broadcast(&x, 3, DIMS(2, 3, 5), &y));
  assert_int_equal(y.strides_bytes[0], 0);
  assert_int_equal(y.strides_bytes[1], 4);
  assert_int_equal(y.strides_bytes[2], 0);
  assert_int_equal(y.element_count, 30);
  assert_int_equal(y.byte_count, 12);
  assert_true(tm_operand_broadcast(&x, 2, DIMS(3, 0), &y));
  assert_int_equal(y.element_count, 0);
  assert_false(tm_operand_broadcast(&x, 2, DIMS(4, 1), &y));
  assert_false(tm_operand_broadcast(&x, 1, DIMS(3), &y));
  assert_false(tm_operand_broadcast(&x, 9, DIMS(1, 1, 1, 1, 1, 1, 1, 3, 1), &y));
  const tm_operand scalar = dense(TM_FORMAT_F32, 0, NULL);
  assert_true(tm_operand_broadcast(&scalar, 2, DIMS(7, 9), &y));
  assert_int_equal(y.byte_count, 4);
}

static void blocks_repeat_on_outer_axes_only(void **state) {
  (void)state;
  const tm_operand q = dense(TM_FORMAT_Q8_0, 2, DIMS(1, 32));
  tm_operand y;
  assert_true(tm_operand_broadcast(&q, 3, DIMS(2, 5, 32), &y));
  assert_int_equal(y.byte_count, 34);
  assert_false(tm_operand_broadcast(&q, 2, DIMS(1, 64), &y));
}

static void finds_common_dims(void **state) {
  (void)state;
  const tm_operand set[] = {dense(TM_FORMAT_F32, 2, DIMS(3, 1)), dense(TM_FORMAT_F32, 3, DIMS(2, 1, 5)),
                            dense(TM_FORMAT_F32, 0, NULL)};
  uint32_t rank;
  uint64_t dims[TM_MAX_RANK];
  assert_true(tm_broadcast_dims(set, 3, &rank, dims));
  assert_int_equal(rank, 3);
  assert_int_equal(dims[0], 2);
  assert_int_equal(dims[1], 3);
  assert_int_equal(dims[2], 5);
  const tm_operand wrong[] = { dense(TM_FORMAT_F32, 1, DIMS(2)), dense(TM_FORMAT_F32, 1, DIMS(3)) };
  assert_false(tm_broadcast_dims(wrong, 2, &rank, dims));
  const tm_operand empty[] = { dense(TM_FORMAT_F32, 1, DIMS(0)), dense(TM_FORMAT_F32, 1, DIMS(1)) };
  assert_true(tm_broadcast_dims(empty, 2, &rank, dims));
  assert_int_equal(dims[0], 0);
}

static void prints_dims(void **state) {
  (void)state;
  char text[16];
  const tm_operand x = dense(TM_FORMAT_F32, 2, DIMS(4096, 64));
  tm_format_dims(&x, text, sizeof text);
  assert_string_equal(text, "[4096,64]");
  tm_format_dims(&x, text, 5);
  assert_string_equal(text, "[409");
  const tm_operand scalar = dense(TM_FORMAT_F32, 0, NULL);
  tm_format_dims(&scalar, text, sizeof text);
  assert_string_equal(text, "[]");
}

static void compares_dims(void **state) {
  (void)state;
  const tm_operand a = dense(TM_FORMAT_F32, 2, DIMS(2, 3));
  const tm_operand b = dense(TM_FORMAT_I8, 2, DIMS(2, 3));
  const tm_operand c = dense(TM_FORMAT_F32, 3, DIMS(1, 2, 3));
  assert_true(tm_same_dims(&a, &b));
  assert_false(tm_same_dims(&a, &c));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(makes_dense_rows),
    cmocka_unit_test(a_scalar_has_one_element),
    cmocka_unit_test(an_empty_tensor_has_no_bytes),
    cmocka_unit_test(packed_and_block_formats_step_by_blocks),
    cmocka_unit_test(refuses_what_cannot_be),
    cmocka_unit_test(counts_beyond_32_bits),
    cmocka_unit_test(takes_rank_8),
    cmocka_unit_test(derives_views),
    cmocka_unit_test(negative_strides_reach_below),
    cmocka_unit_test(derive_checks_strides),
    cmocka_unit_test(broadcasts_by_the_numpy_rule),
    cmocka_unit_test(blocks_repeat_on_outer_axes_only),
    cmocka_unit_test(finds_common_dims),
    cmocka_unit_test(prints_dims),
    cmocka_unit_test(compares_dims),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
