/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: created, wrapped where the application has them, and viewed, never beyond their memory. */
#define _GNU_SOURCE
#include "api_case.h"

static tm_context *context;

static int open_context(void **state) {
  (void)state;
  return tm_context_create(NULL, &context, NULL);
}

static int close_context(void **state) {
  (void)state;
  tm_context_destroy(context);
  return 0;
}

static void created_tensors_are_zero_dense_and_aligned(void **state) {
  (void)state;
  const uint64_t dims[] = { 3, 5 };
  tm_tensor *tensor = NULL;
  assert_int_equal(tm_tensor_create(context, TM_FORMAT_F32, 2, dims, &tensor, NULL), TM_OK);
  const tm_operand *operand = tm_tensor_operand(tensor);
  assert_int_equal(operand->element_count, 15);
  assert_int_equal(operand->byte_count, 60);
  assert_int_equal(operand->strides_bytes[0], 20);
  assert_int_equal((uintptr_t)tm_tensor_data(tensor) % 64, 0);
  const unsigned char *bytes = tm_tensor_data(tensor);
  for (int i = 0; i < 60; i++) assert_int_equal(bytes[i], 0);
  tm_tensor_destroy(tensor);
  tm_tensor_destroy(NULL);
}

static void scalars_and_empty_tensors_exist(void **state) {
  (void)state;
  const uint64_t none[] = { 4, 0 };
  tm_tensor *scalar = NULL, *empty = NULL;
  assert_int_equal(tm_tensor_create(context, TM_FORMAT_I64, 0, NULL, &scalar, NULL), TM_OK);
  assert_int_equal(tm_tensor_operand(scalar)->element_count, 1);
  assert_int_equal(tm_tensor_create(context, TM_FORMAT_F32, 2, none, &empty, NULL), TM_OK);
  assert_int_equal(tm_tensor_operand(empty)->element_count, 0);
  tm_tensor_destroy(scalar);
  tm_tensor_destroy(empty);
  const tm_operand layout = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 4, 0 } };
  assert_int_equal(tm_tensor_wrap(context, &layout, NULL, 0, &empty, NULL), TM_OK);
  tm_tensor_destroy(empty);
}

static void wrong_shapes_are_refused(void **state) {
  (void)state;
  const uint64_t dims[] = { 2, 2, 2, 2, 2, 2, 2, 2, 2 }, huge[] = { UINT64_C(1) << 40, UINT64_C(1) << 40 }, odd[] = { 33 };
  tm_tensor *tensor = NULL;
  tm_error error = { .struct_size = sizeof error };
  assert_int_equal(tm_tensor_create(context, TM_FORMAT_F32, 9, dims, &tensor, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_tensor_create(context, 54321, 1, dims, &tensor, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_tensor_create(context, TM_FORMAT_NONE, 1, dims, &tensor, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_tensor_create(context, TM_FORMAT_F32, 2, huge, &tensor, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_tensor_create(context, TM_FORMAT_Q8_0, 1, odd, &tensor, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_tensor_create(context, TM_FORMAT_F32, 1, NULL, &tensor, &error), TM_ERROR_ARGUMENT);
  assert_null(tensor);
  const uint64_t large[] = { UINT64_C(1) << 58 };
  const tm_context_options options = { .struct_size = sizeof options, .max_memory_bytes = UINT64_C(1) << 40 };
  tm_context *limited = NULL;
  assert_int_equal(tm_context_create(&options, &limited, NULL), TM_OK);
  assert_int_equal(tm_tensor_create(limited, TM_FORMAT_U8, 1, large, &tensor, &error), TM_ERROR_NO_MEMORY);
  assert_null(tensor);
  assert_non_null(strstr(error.text, "288230376151711744"));
  tm_context_destroy(limited);
}

static void wrapped_memory_must_reach_far_enough(void **state) {
  (void)state;
  float memory[12] = { 0 };
  static const struct { tm_operand layout; int first; uint64_t bytes; tm_status status; } cases[] = {
    { { .format = TM_FORMAT_F32, .rank = 1, .dims = { 12 } }, 0, 48, TM_OK },
    { { .format = TM_FORMAT_F32, .rank = 1, .dims = { 12 } }, 0, 47, TM_ERROR_ARGUMENT },
    { { .format = TM_FORMAT_F32, .rank = 1, .dims = { 6 }, .strides_bytes = { 8 } }, 0, 44, TM_OK },
    { { .format = TM_FORMAT_F32, .rank = 1, .dims = { 6 }, .strides_bytes = { 8 } }, 0, 43, TM_ERROR_ARGUMENT },
    { { .format = TM_FORMAT_F32, .rank = 1, .dims = { 12 }, .strides_bytes = { -4 } }, 11, 4, TM_OK },
    { { .format = TM_FORMAT_F32, .rank = 1, .dims = { 12 }, .strides_bytes = { -4 } }, 11, 3, TM_ERROR_ARGUMENT },
    { { .format = TM_FORMAT_F32, .rank = 0 }, 0, 4, TM_OK },
    { { .format = TM_FORMAT_F32, .rank = 0 }, 0, 3, TM_ERROR_ARGUMENT },
    { { .format = TM_FORMAT_F32, .rank = 2, .dims = { 2, 6 }, .strides_bytes = { INT64_MAX, 4 } }, 0, 48, TM_ERROR_ARGUMENT },
    { { .format = TM_FORMAT_F32, .rank = 9 }, 0, 48, TM_ERROR_ARGUMENT },
    { { .format = TM_FORMAT_F32, .rank = 1, .dims = { 2 } }, 0, UINT64_MAX, TM_OK },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tm_tensor *tensor = NULL;
    assert_int_equal(tm_tensor_wrap(context, &cases[i].layout, memory + cases[i].first, cases[i].bytes, &tensor, NULL), cases[i].status);
    assert_int_equal(tensor != NULL, cases[i].status == TM_OK);
    if (tensor != NULL) assert_ptr_equal(tm_tensor_data(tensor), memory + cases[i].first);
    tm_tensor_destroy(tensor);
  }
  tm_tensor *tensor = NULL;
  assert_int_equal(tm_tensor_wrap(context, &cases[0].layout, NULL, 48, &tensor, NULL), TM_ERROR_ARGUMENT);
}

/* Only format, rank, dims, strides and the promise to leave the bytes alone are read. */
static void other_fields_of_a_layout_are_ignored(void **state) {
  (void)state;
  float memory[4] = { 0 };
  const tm_operand layout = { .format = TM_FORMAT_F32, .rank = 1, .dims = { 4, 7, 7 }, .strides_bytes = { 4, 9, 9 }, .element_count = 99,
                              .byte_count = 1, .alignment = 4096, .flags = 0xffffffffu & ~TM_OPERAND_CONSTANT };
  tm_tensor *tensor = NULL;
  assert_int_equal(tm_tensor_wrap(context, &layout, memory, sizeof memory, &tensor, NULL), TM_OK);
  const tm_operand *operand = tm_tensor_operand(tensor);
  assert_int_equal(operand->element_count, 4);
  assert_int_equal(operand->byte_count, 16);
  assert_int_equal(operand->flags, TM_OPERAND_CONTIGUOUS);
  assert_int_equal(operand->dims[1], 0);
  tm_tensor_destroy(tensor);
}

static void a_constant_stays_one_and_is_not_written(void **state) {
  (void)state;
  float memory[4] = { 1, 2, 3, 4 }, result[2];
  const tm_operand layout = { .format = TM_FORMAT_F32, .rank = 1, .dims = { 4 }, .flags = TM_OPERAND_CONSTANT };
  const tm_operand part = { .format = TM_FORMAT_F32, .rank = 1, .dims = { 2 } };
  tm_tensor *constant = NULL, *view = NULL, *plain = NULL;
  assert_int_equal(tm_tensor_wrap(context, &layout, memory, sizeof memory, &constant, NULL), TM_OK);
  assert_int_equal(tm_tensor_view(constant, &part, 8, &view, NULL), TM_OK);
  assert_int_equal(tm_tensor_wrap(context, &part, result, sizeof result, &plain, NULL), TM_OK);
  assert_true((tm_tensor_operand(view)->flags & TM_OPERAND_CONSTANT) != 0);
  assert_int_equal(tm_run(context, TM_OP_NEG, NULL, 0, &view, 1, &plain, 1, NULL, NULL), TM_OK);
  assert_true(result[0] == -3 && result[1] == -4);
  assert_int_equal(tm_run(context, TM_OP_NEG, NULL, 0, &plain, 1, &view, 1, NULL, NULL), TM_ERROR_ARGUMENT);
  assert_true(memory[2] == 3);
  tm_tensor_destroy(view);
  tm_tensor_destroy(plain);
  tm_tensor_destroy(constant);
}

static void views_stay_inside(void **state) {
  (void)state;
  const uint64_t dims[] = { 4, 4 };
  tm_tensor *whole = NULL;
  assert_int_equal(tm_tensor_create(context, TM_FORMAT_F32, 2, dims, &whole, NULL), TM_OK);
  static const struct { tm_operand layout; uint64_t offset; tm_status status; } cases[] = {
    { { .format = TM_FORMAT_F32, .rank = 1, .dims = { 4 }, .strides_bytes = { 16 } }, 12, TM_OK },              /* last column */
    { { .format = TM_FORMAT_F32, .rank = 1, .dims = { 4 }, .strides_bytes = { 16 } }, 16, TM_ERROR_ARGUMENT },
    { { .format = TM_FORMAT_F32, .rank = 1, .dims = { 16 }, .strides_bytes = { -4 } }, 60, TM_OK },             /* backwards */
    { { .format = TM_FORMAT_F32, .rank = 1, .dims = { 16 }, .strides_bytes = { -4 } }, 56, TM_ERROR_ARGUMENT },
    { { .format = TM_FORMAT_U8, .rank = 1, .dims = { 64 } }, 0, TM_OK },
    { { .format = TM_FORMAT_U8, .rank = 1, .dims = { 64 } }, 1, TM_ERROR_ARGUMENT },
    { { .format = TM_FORMAT_U8, .rank = 1, .dims = { 0 } }, 64, TM_OK },
    { { .format = TM_FORMAT_U8, .rank = 1, .dims = { 0 } }, 65, TM_ERROR_ARGUMENT },
    { { .format = TM_FORMAT_U8, .rank = 1, .dims = { 1 } }, UINT64_MAX, TM_ERROR_ARGUMENT },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tm_tensor *view = NULL;
    assert_int_equal(tm_tensor_view(whole, &cases[i].layout, cases[i].offset, &view, NULL), cases[i].status);
    assert_int_equal(view != NULL, cases[i].status == TM_OK);
    tm_tensor_destroy(view);
  }
  tm_tensor *tail = NULL, *again = NULL;
  assert_int_equal(tm_tensor_view(whole, &cases[0].layout, 12, &tail, NULL), TM_OK);
  const tm_operand back = { .format = TM_FORMAT_F32, .rank = 1, .dims = { 4 }, .strides_bytes = { -4 } };
  assert_int_equal(tm_tensor_view(tail, &back, 0, &again, NULL), TM_OK);        /* a view of a view, to the start of the first */
  assert_ptr_equal(tm_tensor_data(again), (char *)tm_tensor_data(whole) + 12);
  tm_tensor_destroy(again);
  tm_tensor_destroy(tail);
  tm_tensor_destroy(whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(created_tensors_are_zero_dense_and_aligned),
    cmocka_unit_test(scalars_and_empty_tensors_exist),
    cmocka_unit_test(wrong_shapes_are_refused),
    cmocka_unit_test(wrapped_memory_must_reach_far_enough),
    cmocka_unit_test(other_fields_of_a_layout_are_ignored),
    cmocka_unit_test(a_constant_stays_one_and_is_not_written),
    cmocka_unit_test(views_stay_inside),
  };
  return cmocka_run_group_tests(tests, open_context, close_context);
}
