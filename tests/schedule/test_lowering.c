/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to operands so that a device can take them: priced, promised no more than it keeps, explained as it runs. */
#include "api/context.h"
#include "fakes/fake_case.h"
#include "tensor/shape.h"


static tm_explanation *explain(fake_case *one, uint32_t op, const tm_operand *inputs, uint32_t input_count, uint32_t output_format,
                               uint32_t worst_numerics) {
  const tm_operand output = { .format = output_format };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = worst_numerics };
  tm_explanation *explanation = NULL;
  tm_error error = { .struct_size = sizeof error };
  if (tm_explain(one->context, op, NULL, 0, inputs, input_count, &output, 1, &options, &explanation, &error) != TM_OK)
    fail_msg("%s", error.text);
  return explanation;
}

/* The candidate of a device with the given lowering; false if there is none. */
static bool find_candidate(const tm_explanation *explanation, const char *device, const char *lowering, tm_candidate *out_candidate) {
  *out_candidate = (tm_candidate){ .struct_size = sizeof *out_candidate };
  for (uint32_t i = 0; tm_explanation_candidate(explanation, i, out_candidate) == TM_OK; i++)
    if (strcmp(out_candidate->device_name, device) == 0 && strcmp(out_candidate->lowering, lowering) == 0) return true;
  return false;
}

static tm_operand dense(uint32_t format) {
  const uint64_t dims[] = { 16, 64 };
  tm_operand operand;
  assert_int_equal(tm_operand_contiguous(format, 2, dims, &operand, NULL), TM_OK);
  return operand;
}

static void open_proposing(fake_case *one, const char *excluded) {
  one->controls[0].cost_ns = 10;
  one->controls[0].proposes = 1;
  one->controls[0].numerics_flags = TM_NUMERICS_RUN_TO_RUN;
  fake_case_open(one, "a", excluded);
}

/* ---- layouts ---- */

/* A matrix seen by columns, into a matrix seen by columns. */
static void strided_operands_are_made_dense_and_put_back(void **state) {
  (void)state;
  fake_case one = { 0 };
  open_proposing(&one, NULL);
  float x[6] = { 1, 2, 3, 4, 5, 6 }, y[12] = { 0 };
  const tm_operand in = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 3, 2 }, .strides_bytes = { 4, 12 } };
  const tm_operand out = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 3, 2 }, .strides_bytes = { 16, 8 } };
  tm_tensor *tx = NULL, *ty = NULL;
  assert_int_equal(tm_tensor_wrap(one.context, &in, x, sizeof x, &tx, NULL), TM_OK);
  assert_int_equal(tm_tensor_wrap(one.context, &out, y, sizeof y, &ty, NULL), TM_OK);
  tm_run_report report = { .struct_size = sizeof report };
  const uint32_t fake = fake_device_index(&one, "fake_a:0");
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0, .device_plus_one = fake + 1, .report = &report };
  assert_int_equal(tm_run(one.context, TM_OP_NEG, NULL, 0, &tx, 1, &ty, 1, &options, NULL), TM_OK);
  const float expected[12] = { -1, 0, -4, 0, -2, 0, -5, 0, -3, 0, -6, 0 };
  assert_memory_equal(y, expected, sizeof y);
  assert_int_equal(report.device, fake);
  assert_int_equal(report.level, TM_LEVEL_EMULATED);
  assert_int_equal(report.numerics, TM_NUMERICS_N0);
  assert_int_equal(atomic_load(&one.controls[0].launches), 1);
  tm_tensor_destroy(tx);
  tm_tensor_destroy(ty);
  fake_case_close(&one);
}

static void negative_strides_are_lowered_too(void **state) {
  (void)state;
  fake_case one = { 0 };
  open_proposing(&one, NULL);
  float x[4] = { 1, 2, 3, 4 }, y[4];
  const tm_operand backwards = { .format = TM_FORMAT_F32, .rank = 1, .dims = { 4 }, .strides_bytes = { -4 } };
  const tm_operand forwards = { .format = TM_FORMAT_F32, .rank = 1, .dims = { 4 } };
  tm_tensor *tx = NULL, *ty = NULL;
  assert_int_equal(tm_tensor_wrap(one.context, &backwards, x + 3, sizeof(float), &tx, NULL), TM_OK);
  assert_int_equal(tm_tensor_wrap(one.context, &forwards, y, sizeof y, &ty, NULL), TM_OK);
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0,
                                   .device_plus_one = fake_device_index(&one, "fake_a:0") + 1 };
  assert_int_equal(tm_run(one.context, TM_OP_NEG, NULL, 0, &tx, 1, &ty, 1, &options, NULL), TM_OK);
  const float expected[4] = { -4, -3, -2, -1 };
  assert_memory_equal(y, expected, sizeof y);
  tm_tensor_destroy(tx);
  tm_tensor_destroy(ty);
  fake_case_close(&one);
}

/* The only device wants dense operands even for the copy that would make them dense. */
static void a_step_that_nobody_can_do_ends_and_blames_nobody(void **state) {
  (void)state;
  fake_case one = { 0 };
  open_proposing(&one, "reference");
  float x[8] = { 0 }, y[4];
  const tm_operand strided = { .format = TM_FORMAT_F32, .rank = 1, .dims = { 4 }, .strides_bytes = { 8 } };
  const tm_operand plain = { .format = TM_FORMAT_F32, .rank = 1, .dims = { 4 } };
  tm_tensor *tx = NULL, *ty = NULL;
  assert_int_equal(tm_tensor_wrap(one.context, &strided, x, sizeof x, &tx, NULL), TM_OK);
  assert_int_equal(tm_tensor_wrap(one.context, &plain, y, sizeof y, &ty, NULL), TM_OK);
  assert_int_equal(tm_run(one.context, TM_OP_NEG, NULL, 0, &tx, 1, &ty, 1, NULL, NULL), TM_ERROR_NO_DEVICE);
  tm_device_description device = { .struct_size = sizeof device };
  (void)tm_device_describe(one.context, 0, &device);
  assert_int_equal(device.violation_count, 0);
  tm_tensor_destroy(tx);
  tm_tensor_destroy(ty);
  fake_case_close(&one);
}

/* ---- formats and what they cost the promise ---- */

static void a_second_rounding_is_one_class_weaker(void **state) {
  (void)state;
  fake_case one = { 0 };
  open_proposing(&one, NULL);
  const tm_operand x = dense(TM_FORMAT_F16);
  tm_candidate candidate;
  tm_explanation *accepted = explain(&one, TM_OP_NEG, &x, 1, TM_FORMAT_F16, TM_NUMERICS_N1);
  assert_true(find_candidate(accepted, "fake_a:0", "cast(a, f32), cast(y, f32)", &candidate));
  assert_int_equal(candidate.level, TM_LEVEL_EMULATED);
  assert_int_equal(candidate.numerics, TM_NUMERICS_N1);
  assert_true(candidate.numerics_bound == 1);
  assert_true(candidate.lowering_ns > 0);
  assert_true(candidate.total_ns >= candidate.lowering_ns);
  tm_explanation_destroy(accepted);
  tm_explanation *refused = explain(&one, TM_OP_NEG, &x, 1, TM_FORMAT_F16, TM_NUMERICS_N0);
  assert_false(find_candidate(refused, "fake_a:0", "cast(a, f32), cast(y, f32)", &candidate));
  assert_true(find_candidate(refused, "fake_a:0", "", &candidate));
  assert_int_equal(candidate.verdict, TM_VERDICT_REFUSED);
  tm_explanation_destroy(refused);
  fake_case_close(&one);
}

static void lost_bits_cost_the_whole_promise(void **state) {
  (void)state;
  static const struct { uint32_t from, through; bool loses; } cases[] = {
    { TM_FORMAT_F64, TM_FORMAT_F32, true },          { TM_FORMAT_F32, TM_FORMAT_F16, true },  { TM_FORMAT_BF16, TM_FORMAT_F16, true },
    { TM_FORMAT_F16, TM_FORMAT_BF16, true },         { TM_FORMAT_F8_E5M2, TM_FORMAT_F8_E4M3FN, true },
    { TM_FORMAT_F8_E5M2, TM_FORMAT_F16, false },     { TM_FORMAT_BF16, TM_FORMAT_F32, false }, { TM_FORMAT_F32, TM_FORMAT_F64, false },
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (uint32_t operand = 0; operand < 2; operand++) {
      tm_operand operands[2] = { dense(cases[i].from), dense(cases[i].from) };
      tm_operation operation = { .struct_size = sizeof operation, .op = TM_OP_NEG, .version = 1, .input_count = 1,
                                 .output_count = 1, .operands = operands };
      const tm_answer answer = { .change_count = 1, .changes = { { .kind = TM_CHANGE_CAST, .operand = operand, .format = cases[i].through } } };
      tm_lowering lowering;
      assert_true(tm_lowering_change(&operation, operands, &answer, &lowering));
      assert_int_equal(lowering.loses_bits, cases[i].loses);
      assert_int_equal(lowering.rounds_output, operand == 1);
      assert_int_equal(operands[operand].format, cases[i].through);
    }
}

/* Which values are subnormal, and what a cast does with large ones, is said of the tensor's own format. */
static void figures_about_a_format_are_not_taken_from_another(void **state) {
  (void)state;
  tm_operand operands[3] = { dense(TM_FORMAT_F16), dense(TM_FORMAT_F16), dense(TM_FORMAT_F16) };
  tm_operation operation = { .struct_size = sizeof operation, .op = TM_OP_STATS, .version = 1, .input_count = 1, .output_count = 1,
                             .operands = operands };
  tm_answer answer = { .change_count = 1, .changes = { { .kind = TM_CHANGE_CAST, .operand = 0, .format = TM_FORMAT_F32 } } };
  tm_lowering lowering;
  assert_false(tm_lowering_change(&operation, operands, &answer, &lowering));
  operation.op = TM_OP_COMPARE_TENSORS;
  operation.version = TM_COMPARISON_VERSION;
  operation.input_count = 2;
  assert_false(tm_lowering_change(&operation, operands, &answer, &lowering));
  operation.op = TM_OP_CAST;
  operation.version = 1;
  operation.input_count = 1;
  answer.changes[0].operand = 1;
  assert_false(tm_lowering_change(&operation, operands, &answer, &lowering));
  answer.changes[0].operand = 0;
  assert_true(tm_lowering_change(&operation, operands, &answer, &lowering));
  operation.op = TM_OP_STATS;
  answer.changes[0].kind = TM_CHANGE_CONTIGUOUS;
  assert_true(tm_lowering_change(&operation, operands, &answer, &lowering));
}

static void changes_of_one_operand_become_one_step(void **state) {
  (void)state;
  static const uint32_t orders[2][2] = { { TM_CHANGE_CONTIGUOUS, TM_CHANGE_CAST }, { TM_CHANGE_CAST, TM_CHANGE_CONTIGUOUS } };
  for (int i = 0; i < 2; i++) {
    tm_operand operands[2] = { dense(TM_FORMAT_F16), dense(TM_FORMAT_F16) };
    tm_operation operation = { .struct_size = sizeof operation, .op = TM_OP_NEG, .version = 1, .input_count = 1,
                                     .output_count = 1, .operands = operands };
    const tm_answer answer = { .change_count = 2, .changes = { { .kind = orders[i][0], .format = TM_FORMAT_F32 },
                                                               { .kind = orders[i][1], .format = TM_FORMAT_F32 } } };
    tm_lowering lowering;
    assert_true(tm_lowering_change(&operation, operands, &answer, &lowering));
    assert_int_equal(lowering.way_count, 1);
    assert_int_equal(lowering.ways[0].op, TM_OP_CAST);
  }
  /* dequantized and then cast is dequantized to the last format */
  const uint64_t dims[] = { 4, 64 };
  tm_operand operands[2] = { { 0 }, dense(TM_FORMAT_F32) };
  assert_int_equal(tm_operand_contiguous(TM_FORMAT_Q8_0, 2, dims, &operands[0], NULL), TM_OK);
  tm_operation operation = { .struct_size = sizeof operation, .op = TM_OP_DEQUANTIZE, .version = 1, .input_count = 1,
                                   .output_count = 1, .operands = operands };
  const tm_answer answer = { .change_count = 2, .changes = { { .kind = TM_CHANGE_DEQUANTIZE, .format = TM_FORMAT_F16 },
                                                             { .kind = TM_CHANGE_CAST, .format = TM_FORMAT_F32 } } };
  tm_lowering lowering;
  assert_true(tm_lowering_change(&operation, operands, &answer, &lowering));
  assert_int_equal(lowering.way_count, 1);
  assert_int_equal(lowering.ways[0].op, TM_OP_DEQUANTIZE);
  assert_false(lowering.loses_bits);
}

static void changes_that_are_not_lowered_lead_nowhere(void **state) {
  (void)state;
  static const tm_change changes[] = {
    { .kind = TM_CHANGE_PAD, .value = 0 },
    { .kind = TM_CHANGE_PAD, .value = 64, .axis = 2 },
    { .kind = TM_CHANGE_PAD, .value = UINT64_MAX },
    { .kind = TM_CHANGE_SPLIT_ABOVE, .value = 64 },
    { .kind = TM_CHANGE_QUANTIZE, .format = TM_FORMAT_I8 },
    { .kind = TM_CHANGE_CONVERT, .format = TM_FORMAT_PRIVATE, .value = 64 },
    { .kind = TM_CHANGE_CAST, .format = TM_FORMAT_I8 },
    { .kind = TM_CHANGE_CAST, .format = 12345 },
    { .kind = TM_CHANGE_ALIGN, .value = 1u << 22 },
    { .kind = TM_CHANGE_ALIGN, .value = 48 },
    { .kind = TM_CHANGE_ALIGN },
    { .kind = TM_CHANGE_DEQUANTIZE, .operand = 1, .format = TM_FORMAT_Q8_0 },
  };
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    tm_operand operands[2] = { dense(TM_FORMAT_F16), dense(TM_FORMAT_F16) };
    tm_operation operation = { .struct_size = sizeof operation, .op = TM_OP_NEG, .version = 1, .input_count = 1,
                                     .output_count = 1, .operands = operands };
    const tm_answer answer = { .change_count = 1, .changes = { changes[i] } };
    tm_lowering lowering;
    assert_false(tm_lowering_change(&operation, operands, &answer, &lowering));
  }
}

/* ---- a lowering that fails ---- */

static void a_broken_lowering_is_not_tried_again(void **state) {
  (void)state;
  fake_case one = { 0 };
  open_proposing(&one, NULL);
  atomic_store(&one.controls[0].launch_status, TM_ERROR_INTERNAL);
  uint16_t half[64] = { 0 }, result[64];
  const tm_operand layout = { .format = TM_FORMAT_F16, .rank = 1, .dims = { 64 } };
  tm_tensor *x = NULL, *y = NULL;
  assert_int_equal(tm_tensor_wrap(one.context, &layout, half, sizeof half, &x, NULL), TM_OK);
  assert_int_equal(tm_tensor_wrap(one.context, &layout, result, sizeof result, &y, NULL), TM_OK);
  const uint32_t fake = fake_device_index(&one, "fake_a:0");
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N1, .device_plus_one = fake + 1 };
  for (int i = 0; i < 5; i++)
    assert_int_equal(tm_run(one.context, TM_OP_NEG, NULL, 0, &x, 1, &y, 1, &options, NULL), TM_ERROR_NO_DEVICE);
  assert_int_equal(atomic_load(&one.controls[0].launches), 1);
  const tm_operand operand = *tm_tensor_operand(x);
  tm_explanation *explanation = explain(&one, TM_OP_NEG, &operand, 1, TM_FORMAT_F16, TM_NUMERICS_N1);
  tm_candidate candidate;
  assert_true(find_candidate(explanation, "fake_a:0", "cast(a, f32), cast(y, f32)", &candidate));
  assert_int_equal(candidate.verdict, TM_VERDICT_QUARANTINED);
  assert_non_null(strstr(candidate.reason, "told to fail"));
  tm_explanation_destroy(explanation);
  tm_tensor_destroy(x);
  tm_tensor_destroy(y);
  fake_case_close(&one);
}

/* ---- a device with a memory of its own ---- */

static void copies_to_another_memory_are_priced(void **state) {
  (void)state;
  fake_case one = { 0 };
  one.controls[0].cost_ns = 10;
  one.controls[0].memory.bytes[0] = 77;
  fake_case_open(&one, "a", NULL);
  tm_operand x = dense(TM_FORMAT_F32);
  tm_explanation *explanation = explain(&one, TM_OP_NEG, &x, 1, TM_FORMAT_F32, TM_NUMERICS_N0);
  tm_candidate candidate;
  assert_true(find_candidate(explanation, "fake_a:0", "", &candidate));
  assert_true(candidate.copy_ns > 0);
  assert_int_equal(candidate.total_ns, 10 + candidate.copy_ns);
  assert_true(find_candidate(explanation, "reference:0", "", &candidate));
  assert_int_equal(candidate.copy_ns, 0);
  tm_explanation_destroy(explanation);
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N0,
                                   .device_plus_one = fake_device_index(&one, "fake_a:0") + 1 };
  (void)fake_case_run(&one, &options);
  fake_case_close(&one);
}

/* ---- what is explained is what happens ---- */

static void the_explained_choice_is_the_one_that_runs(void **state) {
  (void)state;
  fake_case one = { 0 };
  for (int i = 0; i < 2; i++) one.controls[i].uuid.bytes[0] = (uint8_t)(i + 1);
  one.controls[0].cost_ns = 2000;
  one.controls[0].real_ns = 400000;
  one.controls[1].cost_ns = 20000;
  one.controls[1].real_ns = 20000;
  fake_case_open(&one, "ab", NULL);
  int agreed = 0;
  const int rounds = 40;
  for (int i = 0; i < rounds; i++) {
    const tm_operand x = *tm_tensor_operand(one.x);
    tm_explanation *explanation = explain(&one, TM_OP_NEG, &x, 1, TM_FORMAT_F32, TM_NUMERICS_DEFAULT);
    tm_explanation_summary summary = { .struct_size = sizeof summary };
    tm_explanation_summarize(explanation, &summary);
    tm_candidate first = { .struct_size = sizeof first };
    assert_int_equal(tm_explanation_candidate(explanation, 0, &first), TM_OK);
    assert_int_equal(summary.chosen, 0);
    assert_int_equal(first.verdict, TM_VERDICT_CHOSEN);
    assert_true(first.total_ns == first.lowering_ns + first.copy_ns + (uint64_t)((double)first.declared_ns * first.correction));
    agreed += fake_case_run(&one, NULL).device == first.device;
    tm_explanation_destroy(explanation);
  }
  assert_in_range(agreed, rounds - 5, rounds);  /* a try of another device is no choice */
  fake_case_close(&one);
}

static void the_explanation_says_what_would_change_it(void **state) {
  (void)state;
  fake_case one = { 0 };
  one.controls[0].cost_ns = 1;
  one.controls[0].numerics = TM_NUMERICS_N2;
  one.controls[0].numerics_bound = 1;
  fake_case_open(&one, "a", NULL);
  const tm_operand x = *tm_tensor_operand(one.x);
  tm_explanation *explanation = explain(&one, TM_OP_NEG, &x, 1, TM_FORMAT_F32, TM_NUMERICS_N0);
  tm_explanation_summary summary = { .struct_size = sizeof summary };
  tm_explanation_summarize(explanation, &summary);
  assert_non_null(strstr(summary.flip, "N2"));
  assert_non_null(strstr(summary.flip, "fake_a:0"));
  tm_candidate candidate;
  assert_true(find_candidate(explanation, "fake_a:0", "", &candidate));
  assert_int_equal(candidate.verdict, TM_VERDICT_INEXACT);
  tm_explanation_destroy(explanation);
  fake_case_close(&one);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(strided_operands_are_made_dense_and_put_back),
    cmocka_unit_test(negative_strides_are_lowered_too),
    cmocka_unit_test(a_step_that_nobody_can_do_ends_and_blames_nobody),
    cmocka_unit_test(a_second_rounding_is_one_class_weaker),
    cmocka_unit_test(lost_bits_cost_the_whole_promise),
    cmocka_unit_test(figures_about_a_format_are_not_taken_from_another),
    cmocka_unit_test(changes_of_one_operand_become_one_step),
    cmocka_unit_test(changes_that_are_not_lowered_lead_nowhere),
    cmocka_unit_test(a_broken_lowering_is_not_tried_again),
    cmocka_unit_test(copies_to_another_memory_are_priced),
    cmocka_unit_test(the_explained_choice_is_the_one_that_runs),
    cmocka_unit_test(the_explanation_says_what_would_change_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
