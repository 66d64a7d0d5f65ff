/* SPDX-License-Identifier: Apache-2.0 */
/* Each kind of change, and combinations, through the public API: what comes out is what the reference computes. */
#include "fakes/picky_case.h"

static const uint64_t extents[] = { 1, 2, 3, 7, 13, 32, 33 };
#define EXTENTS (sizeof extents / sizeof extents[0])

static void destroy_inputs(picky_call *call) {
  for (uint32_t i = 0; i < call->input_count; i++) tm_tensor_destroy(call->inputs[i]);
}

static void compare_and_destroy(picky_case *one, picky_call *call) {
  picky_compare(one, call);
  destroy_inputs(call);
}

static picky_call matmul_call(picky_case *one, uint32_t format, uint64_t m, uint64_t k, uint64_t n) {
  const uint64_t a[] = { m, k }, b[] = { k, n };
  static const tm_matmul_attributes plain;
  return (picky_call){ .op = TM_OP_MATMUL,
                       .attributes = &plain,
                       .attribute_bytes = sizeof plain,
                       .input_count = 2,
                       .worst_numerics = TM_NUMERICS_N2,
                       .inputs = { picky_tensor(one, format, 2, a, m * 1000 + k), picky_tensor(one, format, 2, b, k * 1000 + n) } };
}

/* ---- layouts ---- */

static void alignment_is_given_up_to_2_mib(void **state) {
  (void)state;
  for (uint64_t alignment = 128; alignment <= UINT64_C(1) << 21; alignment <<= 2) {
    picky_case one = { .control = { .rules = { { .kind = TM_CHANGE_ALIGN, .operand = 0, .value = alignment },
                                               { .kind = TM_CHANGE_ALIGN, .operand = 1, .value = alignment } } } };
    picky_case_open(&one);
    const uint64_t dims[] = { 5, 7 };
    picky_call call = { .op = TM_OP_NEG, .input_count = 1, .inputs = { picky_tensor(&one, TM_FORMAT_F32, 2, dims, 1) } };
    compare_and_destroy(&one, &call);
    picky_case_close(&one);
  }
}

/* ---- padding ---- */

static void products_are_padded_along_each_axis(void **state) {
  (void)state;
  picky_case one = {
    .control = { .rules = { { .op = TM_OP_MATMUL, .kind = TM_CHANGE_PAD, .operand = 0, .axis_from_last = 0, .value = 32 },
                            { .op = TM_OP_MATMUL, .kind = TM_CHANGE_PAD, .operand = 1, .axis_from_last = 0, .value = 16 },
                            { .op = TM_OP_MATMUL, .kind = TM_CHANGE_PAD, .operand = 0, .axis_from_last = 1, .value = 4 } } }
  };
  picky_case_open(&one);
  for (size_t m = 0; m < EXTENTS; m++)
    for (size_t k = 0; k < EXTENTS; k++) {
      picky_call call = matmul_call(&one, TM_FORMAT_F32, extents[m], extents[k], extents[(m + k) % EXTENTS]);
      compare_and_destroy(&one, &call);
      call = matmul_call(&one, TM_FORMAT_I8, extents[m], extents[k], extents[(m + 2 * k) % EXTENTS]);
      compare_and_destroy(&one, &call);
    }
  picky_case_close(&one);
}

static void figures_along_an_axis_are_padded_with_what_changes_nothing(void **state) {
  (void)state;
  static const uint32_t ops[] = { TM_OP_MIN, TM_OP_MAX, TM_OP_ARGMAX, TM_OP_SUM };
  static const uint32_t formats[] = { TM_FORMAT_F32, TM_FORMAT_F16, TM_FORMAT_BF16, TM_FORMAT_I8,
                                      TM_FORMAT_U8,  TM_FORMAT_I64, TM_FORMAT_U64 };
  picky_case one = { .control = { .rules = { { .kind = TM_CHANGE_PAD, .operand = 0, .axis_from_last = 0, .value = 16 },
                                             { .kind = TM_CHANGE_PAD, .operand = 0, .axis_from_last = 1, .value = 8 } } } };
  picky_case_open(&one);
  for (size_t op = 0; op < 4; op++)
    for (size_t format = 0; format < 7; format++)
      for (uint32_t axis = 0; axis < 2; axis++)
        for (uint32_t keep = 0; keep < 2; keep++) {
          const uint64_t dims[] = { 5, 13 };
          const tm_reduce_attributes attributes = { .axes = 1u << axis, .keep_dims = keep };
          picky_call call = { .op = ops[op],
                              .attributes = &attributes,
                              .attribute_bytes = sizeof attributes,
                              .input_count = 1,
                              .worst_numerics = TM_NUMERICS_N2,
                              .inputs = { picky_tensor(&one, formats[format], 2, dims, op + format) } };
          compare_and_destroy(&one, &call);
        }
  const tm_axis_attributes softmax = { .axis = 1 };
  const uint64_t dims[] = { 3, 7 };
  picky_call call = { .op = TM_OP_SOFTMAX,
                      .attributes = &softmax,
                      .attribute_bytes = sizeof softmax,
                      .input_count = 1,
                      .worst_numerics = TM_NUMERICS_N2,
                      .inputs = { picky_tensor(&one, TM_FORMAT_F32, 2, dims, 1) } };
  compare_and_destroy(&one, &call);
  picky_case_close(&one);
}

/* A mean counts its terms, statistics count theirs, a norm divides by their number; a scaled product has zero points. */
static void what_has_no_neutral_value_is_not_padded(void **state) {
  (void)state;
  picky_case one = { .control = { .rules = { { .kind = TM_CHANGE_PAD, .operand = 0, .axis_from_last = 0, .value = 16 } } } };
  picky_case_open(&one);
  const uint64_t dims[] = { 3, 7 }, row[] = { 7 };
  const tm_reduce_attributes mean = { .axes = 2 };
  const tm_norm_attributes norm = { .epsilon = 1 };
  tm_tensor *x = picky_tensor(&one, TM_FORMAT_F32, 2, dims, 1), *scale = picky_tensor(&one, TM_FORMAT_F32, 1, row, 2);
  const picky_call calls[] = {
    { .op = TM_OP_MEAN,
      .attributes = &mean,
      .attribute_bytes = sizeof mean,
      .input_count = 1,
      .inputs = { x },
      .worst_numerics = TM_NUMERICS_N4 },
    { .op = TM_OP_STATS, .input_count = 1, .inputs = { x }, .worst_numerics = TM_NUMERICS_N4 },
    { .op = TM_OP_RMS_NORM,
      .attributes = &norm,
      .attribute_bytes = sizeof norm,
      .input_count = 2,
      .inputs = { x, scale },
      .worst_numerics = TM_NUMERICS_N4 },
  };
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    tm_tensor *y = picky_output(&one, &calls[i]);
    assert_int_equal(picky_try(&one, &calls[i], one.device + 1, y), TM_ERROR_NO_DEVICE);
    assert_int_equal(picky_try(&one, &calls[i], 0, y), TM_OK);
    tm_tensor_destroy(y);
  }
  assert_int_equal(atomic_load(&one.control.launches), 0);
  tm_tensor_destroy(x);
  tm_tensor_destroy(scale);
  picky_case_close(&one);
}

/* The order of a float sum goes by its elements' places, so bits may differ: the promise says so. */
static void a_padded_sum_promises_less(void **state) {
  (void)state;
  picky_case one = { .control = { .rules = { { .kind = TM_CHANGE_PAD, .operand = 0, .axis_from_last = 0, .value = 16 } } } };
  picky_case_open(&one);
  const uint64_t dims[] = { 3, 7 };
  const tm_reduce_attributes attributes = { .axes = 3 };
  picky_call call = { .op = TM_OP_SUM, .attributes = &attributes, .attribute_bytes = sizeof attributes, .input_count = 1,
                      .worst_numerics = TM_NUMERICS_N2, .inputs = { picky_tensor(&one, TM_FORMAT_F32, 2, dims, 1) } };
  tm_explanation *explanation = picky_explain(&one, &call);
  const tm_candidate candidate = picky_candidate(explanation, 1);
  assert_int_equal(candidate.numerics, TM_NUMERICS_N2);
  assert_int_equal(candidate.accumulator, TM_FORMAT_F64);
  assert_string_equal(candidate.lowering, "pad(a, [3,16])");
  tm_explanation_destroy(explanation);
  tm_tensor *y = picky_output(&one, &call);
  call.worst_numerics = TM_NUMERICS_N0;
  assert_int_equal(picky_try(&one, &call, one.device + 1, y), TM_ERROR_NO_DEVICE);
  tm_tensor_destroy(y);
  destroy_inputs(&call);
  picky_case_close(&one);
}

/* Broadcast and strided operands are padded, and only the caller's elements of y are written. */
static void elementwise_padding_crops_the_output(void **state) {
  (void)state;
  picky_case one = { .control = { .rules = { { .kind = TM_CHANGE_PAD, .operand = 0, .axis_from_last = 0, .value = 8 },
                                             { .kind = TM_CHANGE_CONTIGUOUS, .operand = 1 } } } };
  picky_case_open(&one);
  const uint64_t dims[] = { 5, 6 }, column[] = { 5, 1 };
  picky_call call = { .op = TM_OP_DIV,
                      .input_count = 2,
                      .inputs = { picky_tensor(&one, TM_FORMAT_F32, 2, dims, 1),
                                  picky_tensor(&one, TM_FORMAT_F32, 2, column, 2) } };
  float wide[5 * 9];
  for (int i = 0; i < 45; i++) wide[i] = 77;
  const tm_operand layout = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 5, 6 }, .strides_bytes = { 36, 4 } };
  tm_tensor *y = NULL, *plain = picky_output(&one, &call);
  assert_int_equal(tm_tensor_wrap(one.context, &layout, wide, sizeof wide, &y, NULL), TM_OK);
  assert_int_equal(picky_try(&one, &call, one.reference + 1, plain), TM_OK);
  assert_int_equal(picky_try(&one, &call, one.device + 1, y), TM_OK);
  for (int row = 0; row < 5; row++)
    for (int i = 0; i < 9; i++)
      if (i < 6) assert_memory_equal(&wide[row * 9 + i], &((float *)tm_tensor_data(plain))[row * 6 + i], sizeof(float));
      else assert_true(wide[row * 9 + i] == 77);
  tm_tensor_destroy(y);
  tm_tensor_destroy(plain);
  destroy_inputs(&call);
  picky_case_close(&one);
}

/* ---- parts ---- */

static void every_axis_of_a_product_splits(void **state) {
  (void)state;
  for (uint32_t operand = 0; operand < 2; operand++)
    for (uint32_t axis = 0; axis < 2; axis++)
      for (uint64_t part = 1; part <= 8; part = part * 2 + 1) {
        picky_case one = { .control = { .rules = { { .op = TM_OP_MATMUL,
                                                     .kind = TM_CHANGE_SPLIT_ABOVE,
                                                     .operand = operand,
                                                     .axis_from_last = axis,
                                                     .value = part } } } };
        picky_case_open(&one);
        for (uint32_t format = 0; format < 4; format++) {
          static const uint32_t formats[] = { TM_FORMAT_F32, TM_FORMAT_I8, TM_FORMAT_F16, TM_FORMAT_F64 };
          picky_call call = matmul_call(&one, formats[format], 13, 17, 11);
          compare_and_destroy(&one, &call);
        }
        picky_case_close(&one);
      }
}

static void a_split_sum_says_what_it_costs(void **state) {
  (void)state;
  picky_case one = {
    .control = { .rules = { { .op = TM_OP_MATMUL, .kind = TM_CHANGE_SPLIT_ABOVE, .operand = 0, .axis_from_last = 0, .value = 4 } } }
  };
  picky_case_open(&one);
  picky_call call = matmul_call(&one, TM_FORMAT_F32, 3, 11, 5);
  tm_explanation *explanation = picky_explain(&one, &call);
  const tm_candidate candidate = picky_candidate(explanation, 1);
  assert_string_equal(candidate.lowering, "split(a, axis 1, 3 parts)");
  assert_int_equal(candidate.numerics, TM_NUMERICS_N2);
  assert_true(candidate.numerics_bound == 3);
  assert_int_equal(candidate.growth, TM_GROWTH_ONE);
  assert_int_equal(candidate.accumulator, TM_FORMAT_F32);
  assert_int_equal(candidate.declared_ns, 2);   /* two parts of 4; the tail is part of the lowering */
  assert_int_equal(candidate.total_ns,
                   candidate.lowering_ns + candidate.copy_ns + (uint64_t)((double)candidate.declared_ns * candidate.correction));
  tm_explanation_destroy(explanation);
  call.worst_numerics = TM_NUMERICS_N0;
  tm_tensor *y = picky_output(&one, &call);
  assert_int_equal(picky_try(&one, &call, one.device + 1, y), TM_ERROR_NO_DEVICE);
  tm_tensor_destroy(y);
  destroy_inputs(&call);
  call = matmul_call(&one, TM_FORMAT_I8, 3, 11, 5);     /* integers add exactly */
  call.worst_numerics = TM_NUMERICS_N0;
  compare_and_destroy(&one, &call);
  picky_case_close(&one);
}

static void parts_of_other_operations(void **state) {
  (void)state;
  picky_case one = { .control = { .rules = { { .kind = TM_CHANGE_SPLIT_ABOVE, .operand = 0, .axis_from_last = 0, .value = 40 },
                                             { .kind = TM_CHANGE_SPLIT_ABOVE, .operand = 0, .axis_from_last = 1, .value = 3 } } } };
  picky_case_open(&one);
  const uint64_t dims[] = { 7, 96 }, row[] = { 1, 96 };
  const tm_reduce_attributes sum = { .axes = 2 }, largest = { .axes = 1 };
  const tm_transpose_attributes turn = { .permutation = { 1, 0 } };
  picky_call calls[] = {
    { .op = TM_OP_ADD,
      .input_count = 2,
      .inputs = { picky_tensor(&one, TM_FORMAT_F32, 2, dims, 1), picky_tensor(&one, TM_FORMAT_F32, 2, row, 2) } },
    { .op = TM_OP_SUM,
      .attributes = &sum,
      .attribute_bytes = sizeof sum,
      .input_count = 1,
      .worst_numerics = TM_NUMERICS_N2,
      .inputs = { picky_tensor(&one, TM_FORMAT_F32, 2, dims, 3) } },
    { .op = TM_OP_SUM,
      .attributes = &sum,
      .attribute_bytes = sizeof sum,
      .input_count = 1,
      .inputs = { picky_tensor(&one, TM_FORMAT_I16, 2, dims, 4) } },
    { .op = TM_OP_TRANSPOSE,
      .attributes = &turn,
      .attribute_bytes = sizeof turn,
      .input_count = 1,
      .inputs = { picky_tensor(&one, TM_FORMAT_F16, 2, dims, 5) } },
  };
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) compare_and_destroy(&one, &calls[i]);
  /* the largest of a column cannot be put together from those of parts */
  picky_call call = { .op = TM_OP_MAX,
                      .attributes = &largest,
                      .attribute_bytes = sizeof largest,
                      .input_count = 1,
                      .inputs = { picky_tensor(&one, TM_FORMAT_F32, 2, dims, 6) } };
  tm_tensor *y = picky_output(&one, &call);
  assert_int_equal(picky_try(&one, &call, one.device + 1, y), TM_ERROR_NO_DEVICE);
  tm_tensor_destroy(y);
  destroy_inputs(&call);
  picky_case_close(&one);
}

/* Blocks of a quantized tensor stay whole. */
static void blocks_are_not_cut(void **state) {
  (void)state;
  picky_case one = { .control = {
                         .only_op = TM_OP_MATMUL,
                         .rules = { { .kind = TM_CHANGE_SPLIT_ABOVE, .operand = 1, .axis_from_last = 0, .value = 50 } } } };
  picky_case_open(&one);
  const uint64_t a[] = { 3, 160 }, b[] = { 5, 160 };
  const tm_matmul_attributes turned = { .transpose_b = 1 };
  picky_call call = { .op = TM_OP_MATMUL,
                      .attributes = &turned,
                      .attribute_bytes = sizeof turned,
                      .input_count = 2,
                      .worst_numerics = TM_NUMERICS_N2,
                      .inputs = { picky_tensor(&one, TM_FORMAT_F32, 2, a, 1), picky_tensor(&one, TM_FORMAT_Q8_0, 2, b, 2) } };
  tm_tensor *expected = picky_output(&one, &call), *found = picky_output(&one, &call);
  assert_int_equal(picky_try(&one, &call, one.reference + 1, expected), TM_OK);
  if (picky_try(&one, &call, one.device + 1, found) != TM_OK) fail_msg("%s", one.error.text);
  assert_int_equal(atomic_load(&one.control.launches), 5);
  for (int i = 0; i < 15; i++) {
    const float e = ((float *)tm_tensor_data(expected))[i], f = ((float *)tm_tensor_data(found))[i];
    assert_true(e - f < 1e-3f && f - e < 1e-3f);
  }
  tm_tensor_destroy(expected);
  tm_tensor_destroy(found);
  destroy_inputs(&call);
  picky_case_close(&one);
}

static void compare_figures(const picky_rule *rule, uint64_t rows, uint64_t columns) {
  picky_case one = { .control = { .rules = { *rule } } };
  picky_case_open(&one);
  const uint64_t dims[] = { rows, columns };
  picky_call call = { .op = TM_OP_STATS, .input_count = 1, .inputs = { picky_tensor(&one, TM_FORMAT_BF16, 2, dims, rows) } };
  compare_and_destroy(&one, &call);
  call = (picky_call){ .op = TM_OP_COMPARE_TENSORS,
                       .input_count = 2,
                       .inputs = { picky_tensor(&one, TM_FORMAT_F32, 2, dims, 1), picky_tensor(&one, TM_FORMAT_F16, 2, dims, 2) } };
  compare_and_destroy(&one, &call);
  const tm_magnitudes_attributes upper = { 0, 0 };
  call = (picky_call){ .op = TM_OP_MAGNITUDES,
                       .attributes = &upper,
                       .attribute_bytes = sizeof upper,
                       .input_count = 2,
                       .inputs = { picky_tensor(&one, TM_FORMAT_F32, 2, dims, 3),
                                   picky_tensor(&one, TM_FORMAT_BF16, 2, dims, 4) } };
  compare_and_destroy(&one, &call);
  assert_true(atomic_load(&one.control.launches) > 3);
  picky_case_close(&one);
}

static void figures_of_parts_combine_exactly(void **state) {
  (void)state;
  const picky_rule few_columns = { .kind = TM_CHANGE_SPLIT_ABOVE, .axis_from_last = 0, .value = 40000 };
  const picky_rule few_rows = { .kind = TM_CHANGE_SPLIT_ABOVE, .axis_from_last = 1, .value = 60 };
  compare_figures(&few_columns, 1, 150000);
  compare_figures(&few_columns, 3, 60001);
  compare_figures(&few_rows, 200, 777);
  compare_figures(&few_rows, 64, 4096);
}

/* The settings of a merge go with every part; what numbers its elements is one part or none. */
static void merges_are_split_where_they_may_be(void **state) {
  (void)state;
  picky_case one = { .control = { .rules = { { .kind = TM_CHANGE_SPLIT_ABOVE, .axis_from_last = 0, .value = 40 } } } };
  picky_case_open(&one);
  const uint64_t dims[] = { 100 }, weights[] = { 2 }, settings[] = { 1 + TM_DARE_WORDS };
  picky_call call = { .op = TM_OP_WEIGHTED_SUM,
                      .input_count = 3,
                      .inputs = { picky_tensor(&one, TM_FORMAT_F32, 1, dims, 1), picky_tensor(&one, TM_FORMAT_F64, 1, weights, 2),
                                  picky_tensor(&one, TM_FORMAT_BF16, 1, dims, 3) } };
  compare_and_destroy(&one, &call);
  assert_int_equal(atomic_load(&one.control.launches), 3);
  call = (picky_call){ .op = TM_OP_DARE_SUM,
                       .input_count = 3,
                       .inputs = { picky_tensor(&one, TM_FORMAT_F32, 1, dims, 1), picky_tensor(&one, TM_FORMAT_U64, 1, settings, 2),
                                   picky_tensor(&one, TM_FORMAT_F32, 1, dims, 3) } };
  tm_tensor *y = picky_output(&one, &call);
  assert_int_equal(picky_try(&one, &call, one.device + 1, y), TM_ERROR_NO_DEVICE);
  tm_tensor_destroy(y);
  destroy_inputs(&call);
  picky_case_close(&one);
}

/* Parts that do not end where partial figures combine would change them. */
static void figures_of_odd_parts_are_not_combined(void **state) {
  (void)state;
  picky_case one = { .control = { .rules = { { .kind = TM_CHANGE_SPLIT_ABOVE, .axis_from_last = 0, .value = 100 } } } };
  picky_case_open(&one);
  const uint64_t dims[] = { 20000 };
  picky_call call = { .op = TM_OP_STATS, .input_count = 1, .inputs = { picky_tensor(&one, TM_FORMAT_F32, 1, dims, 1) } };
  tm_tensor *y = picky_output(&one, &call);
  assert_int_equal(picky_try(&one, &call, one.device + 1, y), TM_ERROR_NO_DEVICE);
  tm_tensor_destroy(y);
  destroy_inputs(&call);
  picky_case_close(&one);
}

/* ---- fewer axes ---- */

static void batches_become_rows_or_a_loop(void **state) {
  (void)state;
  picky_case one = { .control = { .rules = { { .op = TM_OP_MATMUL, .kind = TM_CHANGE_REDUCE_RANK, .operand = 0, .value = 2 },
                                             { .op = TM_OP_MATMUL, .kind = TM_CHANGE_REDUCE_RANK, .operand = 1, .value = 2 } } } };
  picky_case_open(&one);
  const uint64_t a[] = { 2, 3, 4, 5 }, shared[] = { 5, 6 }, own[] = { 2, 3, 5, 6 }, half[] = { 1, 3, 5, 6 },
                 turned[] = { 2, 3, 5, 4 };
  const tm_matmul_attributes plain = { 0 }, transposed = { .transpose_a = 1 };
  const struct { const uint64_t *a, *b; uint32_t b_rank; const tm_matmul_attributes *attributes; uint64_t launches; } cases[] = {
    { a, shared, 2, &plain, 1 }, { a, own, 4, &plain, 6 }, { a, half, 4, &plain, 6 }, { turned, shared, 2, &transposed, 6 } };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const uint64_t before = atomic_load(&one.control.launches);
    picky_call call = { .op = TM_OP_MATMUL,
                        .attributes = cases[i].attributes,
                        .attribute_bytes = sizeof plain,
                        .input_count = 2,
                        .worst_numerics = TM_NUMERICS_N2,
                        .inputs = { picky_tensor(&one, TM_FORMAT_F32, 4, cases[i].a, i),
                                    picky_tensor(&one, TM_FORMAT_F32, cases[i].b_rank, cases[i].b, i + 7) } };
    compare_and_destroy(&one, &call);
    assert_int_equal(atomic_load(&one.control.launches) - before, cases[i].launches);
  }
  picky_case_close(&one);
}

static void neighbouring_axes_merge(void **state) {
  (void)state;
  picky_case one = { .control = { .rules = { { .kind = TM_CHANGE_REDUCE_RANK, .operand = 0, .value = 3 } } } };
  picky_case_open(&one);
  const uint64_t dims[] = { 2, 3, 4, 5, 6 };
  const tm_reduce_attributes middle = { .axes = 0x0c, .keep_dims = 1 }, outer = { .axes = 0x03 };
  const tm_axis_attributes axis = { .axis = 2 };
  const tm_norm_attributes norm = { .epsilon = 1 };
  const tm_transpose_attributes turn = { .permutation = { 3, 4, 0, 1, 2 } };
  const uint64_t last[] = { 6 };
  picky_call calls[] = {
    { .op = TM_OP_SUM,
      .attributes = &middle,
      .attribute_bytes = sizeof middle,
      .input_count = 1,
      .worst_numerics = TM_NUMERICS_N2,
      .inputs = { picky_tensor(&one, TM_FORMAT_F32, 5, dims, 1) } },
    { .op = TM_OP_MAX,
      .attributes = &outer,
      .attribute_bytes = sizeof outer,
      .input_count = 1,
      .inputs = { picky_tensor(&one, TM_FORMAT_I32, 5, dims, 2) } },
    { .op = TM_OP_SOFTMAX,
      .attributes = &axis,
      .attribute_bytes = sizeof axis,
      .input_count = 1,
      .worst_numerics = TM_NUMERICS_N2,
      .inputs = { picky_tensor(&one, TM_FORMAT_F32, 5, dims, 3) } },
    { .op = TM_OP_RMS_NORM,
      .attributes = &norm,
      .attribute_bytes = sizeof norm,
      .input_count = 2,
      .worst_numerics = TM_NUMERICS_N2,
      .inputs = { picky_tensor(&one, TM_FORMAT_F32, 5, dims, 4), picky_tensor(&one, TM_FORMAT_F32, 1, last, 5) } },
    { .op = TM_OP_TRANSPOSE,
      .attributes = &turn,
      .attribute_bytes = sizeof turn,
      .input_count = 1,
      .inputs = { picky_tensor(&one, TM_FORMAT_F32, 5, dims, 6) } },
    { .op = TM_OP_STATS, .input_count = 1, .inputs = { picky_tensor(&one, TM_FORMAT_F32, 5, dims, 7) } },
  };
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) compare_and_destroy(&one, &calls[i]);
  picky_case_close(&one);
}

/* Strides that do not merge are copied away. */
static void strided_axes_merge_after_a_copy(void **state) {
  (void)state;
  picky_case one = { .control = { .rules = { { .kind = TM_CHANGE_REDUCE_RANK, .operand = 0, .value = 1 } } } };
  picky_case_open(&one);
  const uint64_t dims[] = { 4, 5 }, row[] = { 5 };
  tm_tensor *wide = picky_tensor(&one, TM_FORMAT_F32, 2, (const uint64_t[]){ 4, 8 }, 1), *view = NULL;
  const tm_operand layout = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 4, 5 }, .strides_bytes = { 32, 4 } };
  assert_int_equal(tm_tensor_view(wide, &layout, 8, &view, NULL), TM_OK);
  picky_call call = { .op = TM_OP_MUL, .input_count = 2, .inputs = { view, picky_tensor(&one, TM_FORMAT_F32, 1, row, 2) } };
  picky_compare(&one, &call);
  (void)dims;
  tm_tensor_destroy(view);
  tm_tensor_destroy(call.inputs[1]);
  tm_tensor_destroy(wide);
  picky_case_close(&one);
}

/* ---- together ---- */

static void changes_of_all_kinds_go_together(void **state) {
  (void)state;
  for (uint32_t one_at_a_time = 0; one_at_a_time < 2; one_at_a_time++) {
    picky_case one = {
      .control = { .one_at_a_time = 0,
                   .rules = { { .op = TM_OP_MATMUL, .kind = TM_CHANGE_REDUCE_RANK, .operand = 0, .value = 2 },
                              { .op = TM_OP_MATMUL, .kind = TM_CHANGE_REDUCE_RANK, .operand = 1, .value = 2 },
                              { .op = TM_OP_MATMUL, .kind = TM_CHANGE_SPLIT_ABOVE, .operand = 0, .axis_from_last = 0, .value = 64 },
                              { .op = TM_OP_MATMUL, .kind = TM_CHANGE_SPLIT_ABOVE, .operand = 1, .axis_from_last = 0, .value = 32 },
                              { .op = TM_OP_MATMUL, .kind = TM_CHANGE_PAD, .operand = 0, .axis_from_last = 0, .value = 32 },
                              { .op = TM_OP_MATMUL, .kind = TM_CHANGE_PAD, .operand = 1, .axis_from_last = 0, .value = 16 },
                              { .op = TM_OP_MATMUL, .kind = TM_CHANGE_CONTIGUOUS, .operand = 0 } } }
    };
    one.control.one_at_a_time = one_at_a_time;
    picky_case_open(&one);
    const uint64_t a[] = { 3, 5, 150 }, b[] = { 150, 50 };
    static const tm_matmul_attributes plain;
    picky_call call = { .op = TM_OP_MATMUL,
                        .attributes = &plain,
                        .attribute_bytes = sizeof plain,
                        .input_count = 2,
                        .worst_numerics = TM_NUMERICS_N2,
                        .inputs = { picky_tensor(&one, TM_FORMAT_F32, 3, a, 1), picky_tensor(&one, TM_FORMAT_F32, 2, b, 2) } };
    if (one_at_a_time == 0) {
      compare_and_destroy(&one, &call);
    } else {                            /* at most two rounds after splits: pad, pad, and no third */
      tm_tensor *y = picky_output(&one, &call);
      const tm_status status = picky_try(&one, &call, one.device + 1, y);
      assert_true(status == TM_OK || status == TM_ERROR_NO_DEVICE);
      tm_tensor_destroy(y);
      destroy_inputs(&call);
    }
    picky_case_close(&one);
  }
}

/* Axes merge where they can, so that a batch with one b is cut into few parts and not looped over. */
static void a_split_does_not_keep_axes_from_merging(void **state) {
  (void)state;
  picky_case one = { .control = { .only_op = TM_OP_MATMUL, .rules = { { .kind = TM_CHANGE_REDUCE_RANK, .operand = 0, .value = 2 },
                                             { .kind = TM_CHANGE_SPLIT_ABOVE, .operand = 1, .axis_from_last = 0, .value = 10 } } } };
  picky_case_open(&one);
  const uint64_t a[] = { 9, 2, 8 }, b[] = { 8, 20 };
  static const tm_matmul_attributes plain;
  picky_call call = { .op = TM_OP_MATMUL, .attributes = &plain, .attribute_bytes = sizeof plain, .input_count = 2, .worst_numerics = TM_NUMERICS_N2,
                      .inputs = { picky_tensor(&one, TM_FORMAT_F32, 3, a, 1), picky_tensor(&one, TM_FORMAT_F32, 2, b, 2) } };
  compare_and_destroy(&one, &call);
  assert_int_equal(atomic_load(&one.control.launches), 2);
  picky_case_close(&one);
}

static void the_same_bits_every_time_where_that_is_asked(void **state) {
  (void)state;
  picky_case one = { .control = { .setup_ns = 500, .rules = { { .op = TM_OP_MATMUL, .kind = TM_CHANGE_PAD, .value = 16 } } } };
  picky_case_open(&one);
  picky_call call = matmul_call(&one, TM_FORMAT_F32, 40, 33, 40);
  tm_tensor *y = picky_output(&one, &call);
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N2, .run_to_run = 1, .report = &one.report };
  one.report = (tm_run_report){ .struct_size = sizeof one.report };
  assert_int_equal(tm_run(one.context, TM_OP_MATMUL, call.attributes, call.attribute_bytes, call.inputs, 2, &y, 1, &options, NULL), TM_OK);
  const uint32_t first = one.report.device;
  for (int run = 0; run < 100; run++) {
    assert_int_equal(tm_run(one.context, TM_OP_MATMUL, call.attributes, call.attribute_bytes, call.inputs, 2, &y, 1, &options, NULL), TM_OK);
    assert_int_equal(one.report.device, first);
  }
  tm_tensor_destroy(y);
  destroy_inputs(&call);
  picky_case_close(&one);
}

static void empty_operands_run(void **state) {
  (void)state;
  picky_case one = {
    .control = { .rules = { { .op = TM_OP_MATMUL, .kind = TM_CHANGE_PAD, .operand = 0, .axis_from_last = 0, .value = 32 },
                            { .op = TM_OP_MATMUL, .kind = TM_CHANGE_PAD, .operand = 1, .axis_from_last = 0, .value = 16 },
                            { .op = TM_OP_MATMUL, .kind = TM_CHANGE_SPLIT_ABOVE, .operand = 0, .axis_from_last = 1, .value = 2 } } }
  };
  picky_case_open(&one);
  const uint64_t shapes[][3] = { { 0, 3, 4 }, { 3, 0, 4 }, { 3, 4, 0 }, { 0, 0, 0 }, { 5, 0, 3 } };
  for (size_t i = 0; i < 5; i++) {
    picky_call call = matmul_call(&one, TM_FORMAT_F32, shapes[i][0], shapes[i][1], shapes[i][2]);
    compare_and_destroy(&one, &call);
  }
  picky_case_close(&one);
}

/* Whatever a device proposes, planning ends, and what it says no to runs elsewhere. */
static void absurd_proposals_end(void **state) {
  (void)state;
  static const picky_rule absurd[] = { { .kind = TM_CHANGE_SPLIT_ABOVE, .value = 0 },
                                       { .kind = TM_CHANGE_PAD, .value = UINT64_C(1) << 40 },
                                       { .kind = TM_CHANGE_REDUCE_RANK, .value = 0 },
                                       { .kind = TM_CHANGE_ALIGN, .value = UINT64_C(1) << 40 },
                                       { .kind = TM_CHANGE_CAST, .format = TM_FORMAT_PRIVATE + 1 },
                                       { .kind = TM_CHANGE_CONVERT },
                                       { .kind = TM_CHANGE_QUANTIZE, .format = TM_FORMAT_I16 },
                                       { .kind = TM_CHANGE_SPLIT_ABOVE, .operand = 1, .axis_from_last = 1, .value = 1 } };
  static const uint32_t ops[] = { TM_OP_NEG, TM_OP_STATS, TM_OP_SILU, TM_OP_SQRT };
  for (size_t rule = 0; rule < sizeof absurd / sizeof absurd[0]; rule++) {
    picky_case one = { .control = { .rules = { absurd[rule], { .kind = TM_CHANGE_CAST, .format = TM_FORMAT_F64 } } } };
    picky_case_open(&one);
    for (size_t op = 0; op < 4; op++) {
      const uint64_t dims[] = { 4, 300 };
      picky_call call = { .op = ops[op],
                          .input_count = 1,
                          .worst_numerics = TM_NUMERICS_N4,
                          .inputs = { picky_tensor(&one, TM_FORMAT_F32, 2, dims, 1) } };
      tm_tensor *y = picky_output(&one, &call);
      if (picky_try(&one, &call, 0, y) != TM_OK) fail_msg("%s", one.error.text);
      tm_tensor_destroy(y);
      destroy_inputs(&call);
    }
    picky_case_close(&one);
  }
}

/* ---- changes after which there is no such operation ---- */

static tm_status run_add(picky_case *one, picky_call *call) {
  tm_tensor *output = picky_output(one, call);
  const tm_status status = picky_try(one, call, one->device + 1, output);
  tm_tensor_destroy(output);
  return status;
}

/* Of two operands that must have one format, or one shape, only one is to be changed: what would come of it is asked about by
   nobody, so that a device which says yes to anything is not led to compute nonsense. */
static void one_sided_changes_are_no_way(void **state) {
  (void)state;
  static const picky_rule one_sided[] = {
    { .op = TM_OP_ADD, .kind = TM_CHANGE_CAST, .operand = 0, .format = TM_FORMAT_F32 },
    { .op = TM_OP_ADD, .kind = TM_CHANGE_CAST, .operand = 1, .format = TM_FORMAT_F64 },
    { .op = TM_OP_ADD, .kind = TM_CHANGE_CAST, .operand = 2, .format = TM_FORMAT_F32 },
    { .op = TM_OP_SUB, .kind = TM_CHANGE_CAST, .operand = 1, .format = TM_FORMAT_BF16 },
  };
  const uint64_t dims[] = { 8, 8 };
  for (size_t i = 0; i < sizeof one_sided / sizeof one_sided[0]; i++) {
    picky_case one = { .control = { .rules = { one_sided[i] } } };
    picky_case_open(&one);
    picky_call call = { .op = one_sided[i].op,
                        .input_count = 2,
                        .worst_numerics = TM_NUMERICS_N2,
                        .inputs = { picky_tensor(&one, TM_FORMAT_F16, 2, dims, 1), picky_tensor(&one, TM_FORMAT_F16, 2, dims, 2) } };
    if (run_add(&one, &call) == TM_OK) fail_msg("rule %zu leads to a run", i);
    assert_int_equal(atomic_load(&one.control.prepares), 0);
    assert_int_equal(atomic_load(&one.control.launches), 0);
    for (uint32_t k = 0; k < 2; k++) tm_tensor_destroy(call.inputs[k]);
    picky_case_close(&one);
  }
}

/* The same changes of all operands are one. */
static void changes_of_both_sides_are_a_way(void **state) {
  (void)state;
  picky_case one = { .control = { .rules = { { .op = TM_OP_ADD, .kind = TM_CHANGE_CAST, .operand = 0, .format = TM_FORMAT_F32 },
                                             { .op = TM_OP_ADD, .kind = TM_CHANGE_CAST, .operand = 1, .format = TM_FORMAT_F32 },
                                             { .op = TM_OP_ADD, .kind = TM_CHANGE_CAST, .operand = 2, .format = TM_FORMAT_F32 } } } };
  const uint64_t dims[] = { 8, 8 };
  picky_case_open(&one);
  picky_call call = { .op = TM_OP_ADD,
                      .input_count = 2,
                      .worst_numerics = TM_NUMERICS_N2,
                      .inputs = { picky_tensor(&one, TM_FORMAT_F16, 2, dims, 1), picky_tensor(&one, TM_FORMAT_F16, 2, dims, 2) } };
  assert_int_equal(run_add(&one, &call), TM_OK);
  assert_true(atomic_load(&one.control.launches) > 0);
  for (uint32_t k = 0; k < 2; k++) tm_tensor_destroy(call.inputs[k]);
  picky_case_close(&one);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_sided_changes_are_no_way),
    cmocka_unit_test(changes_of_both_sides_are_a_way),
    cmocka_unit_test(alignment_is_given_up_to_2_mib),
    cmocka_unit_test(products_are_padded_along_each_axis),
    cmocka_unit_test(figures_along_an_axis_are_padded_with_what_changes_nothing),
    cmocka_unit_test(what_has_no_neutral_value_is_not_padded),
    cmocka_unit_test(a_padded_sum_promises_less),
    cmocka_unit_test(elementwise_padding_crops_the_output),
    cmocka_unit_test(every_axis_of_a_product_splits),
    cmocka_unit_test(a_split_sum_says_what_it_costs),
    cmocka_unit_test(parts_of_other_operations),
    cmocka_unit_test(blocks_are_not_cut),
    cmocka_unit_test(figures_of_parts_combine_exactly),
    cmocka_unit_test(figures_of_odd_parts_are_not_combined),
    cmocka_unit_test(merges_are_split_where_they_may_be),
    cmocka_unit_test(batches_become_rows_or_a_loop),
    cmocka_unit_test(neighbouring_axes_merge),
    cmocka_unit_test(strided_axes_merge_after_a_copy),
    cmocka_unit_test(changes_of_all_kinds_go_together),
    cmocka_unit_test(a_split_does_not_keep_axes_from_merging),
    cmocka_unit_test(the_same_bits_every_time_where_that_is_asked),
    cmocka_unit_test(empty_operands_run),
    cmocka_unit_test(absurd_proposals_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
