/* SPDX-License-Identifier: Apache-2.0 */
/* tm_run, tm_op_infer and tm_explain: what they refuse, and that nothing is lost when memory ends. */
#define _GNU_SOURCE
#include "api_case.h"

#include <math.h>

typedef struct fixture {
  tm_context *context;
  tm_tensor  *a;                /* f32 [4,8]: 0, 1, 2, ... */
  tm_tensor  *y;                /* f32 [4,8] */
} fixture;

static fixture f;

static tm_tensor *create(tm_context *context, uint32_t format, uint32_t rank, uint64_t d0, uint64_t d1) {
  const uint64_t dims[] = { d0, d1 };
  tm_tensor *tensor = NULL;
  tm_error error = { .struct_size = sizeof error };
  if (tm_tensor_create(context, format, rank, dims, &tensor, &error) != TM_OK) fail_msg("%s", error.text);
  return tensor;
}

static int open_fixture(void **state) {
  (void)state;
  if (tm_context_create(NULL, &f.context, NULL) != TM_OK) return 1;
  f.a = create(f.context, TM_FORMAT_F32, 2, 4, 8);
  f.y = create(f.context, TM_FORMAT_F32, 2, 4, 8);
  for (int i = 0; i < 32; i++) ((float *)tm_tensor_data(f.a))[i] = (float)i;
  return 0;
}

static int close_fixture(void **state) {
  (void)state;
  tm_tensor_destroy(f.a);
  tm_tensor_destroy(f.y);
  tm_context_destroy(f.context);
  return 0;
}

static tm_status neg(tm_tensor *x, tm_tensor *y, const tm_run_options *options, tm_error *error) {
  return tm_run(f.context, TM_OP_NEG, NULL, 0, &x, 1, &y, 1, options, error);
}

static void it_runs_and_reports(void **state) {
  (void)state;
  tm_run_report report = { .struct_size = sizeof report };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_DEFAULT, .report = &report };
  assert_int_equal(neg(f.a, f.y, &options, NULL), TM_OK);
  for (int i = 0; i < 32; i++) assert_true(((const float *)tm_tensor_data(f.y))[i] == -(float)i);
  assert_true(report.measured_ns > 0);
  assert_true(report.expected_ns > 0);
  assert_true(report.level >= TM_LEVEL_EMULATED);
  assert_int_equal(report.retries, 0);
  tm_device_description device = { .struct_size = sizeof device };
  assert_int_equal(tm_device_describe(f.context, report.device, &device), TM_OK);
  assert_int_equal(device.opened, 1);
  assert_true(device.launch_count > 0);
}

static void refused(uint32_t op, const void *attributes, uint32_t attribute_bytes, tm_tensor *const *inputs, uint32_t input_count,
                    tm_tensor *const *outputs, uint32_t output_count, const char *text) {
  tm_error error = { .struct_size = sizeof error };
  assert_int_equal(tm_run(f.context, op, attributes, attribute_bytes, inputs, input_count, outputs, output_count, NULL, &error),
                   TM_ERROR_ARGUMENT);
  assert_int_equal(error.code, TM_ERROR_ARGUMENT);
  if (strstr(error.text, text) == NULL) fail_msg("'%s' does not say '%s'", error.text, text);
}

static void wrong_calls_are_refused(void **state) {
  (void)state;
  tm_tensor *const two[] = { f.a, f.a }, *const outputs[] = { f.y, f.y };
  tm_tensor *const missing[] = { f.a, NULL };
  tm_tensor *many[20];
  for (int i = 0; i < 20; i++) many[i] = f.a;
  const uint64_t attributes[16] = { 0 };
  refused(4242, NULL, 0, two, 1, outputs, 1, "4242");
  refused(TM_OP_NONE, NULL, 0, two, 1, outputs, 1, "0");
  refused(TM_OP_ADD, NULL, 0, two, 1, outputs, 1, "add");
  refused(TM_OP_NEG, NULL, 0, two, 2, outputs, 1, "neg");
  refused(TM_OP_NEG, NULL, 0, two, 1, outputs, 2, "2 outputs");
  refused(TM_OP_NEG, NULL, 0, many, 20, outputs, 1, "20 inputs");
  refused(TM_OP_NEG, NULL, 0, many, 1, outputs, UINT32_MAX, "outputs");
  refused(TM_OP_ADD, NULL, 0, missing, 2, outputs, 1, "input 1");
  refused(TM_OP_NEG, NULL, 0, NULL, 1, outputs, 1, "input 0");
  refused(TM_OP_NEG, NULL, 0, two, 1, missing + 1, 1, "output 0");
  refused(TM_OP_NEG, attributes, sizeof attributes, two, 1, outputs, 1, "attributes");
  refused(TM_OP_SOFTMAX, NULL, 8, two, 1, outputs, 1, "attributes");
  tm_tensor *small = create(f.context, TM_FORMAT_F32, 2, 2, 2), *half = create(f.context, TM_FORMAT_F16, 2, 4, 8);
  refused(TM_OP_NEG, NULL, 0, two, 1, &small, 1, "[2,2]");
  refused(TM_OP_NEG, NULL, 0, two, 1, &half, 1, "f16");
  tm_tensor_destroy(small);
  tm_tensor_destroy(half);
}

static void missing_layouts_are_refused(void **state) {
  (void)state;
  tm_error error = { .struct_size = sizeof error };
  const tm_operand input = *tm_tensor_operand(f.a);
  tm_operand output = { 0 };
  tm_explanation *explanation = NULL;
  tm_tensor *tensor = NULL;
  assert_int_equal(tm_op_infer(TM_OP_NEG, NULL, 0, NULL, 1, &output, 1, &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "inputs"));
  assert_int_equal(tm_op_infer(TM_OP_NEG, NULL, 0, &input, 1, NULL, 1, &error), TM_ERROR_ARGUMENT);
  assert_non_null(strstr(error.text, "outputs"));
  assert_int_equal(tm_explain(f.context, TM_OP_NEG, NULL, 0, NULL, 1, &output, 1, NULL, &explanation, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_explain(f.context, TM_OP_NEG, NULL, 0, &input, 1, NULL, 1, NULL, &explanation, &error), TM_ERROR_ARGUMENT);
  refused(TM_OP_NEG, NULL, 0, NULL, 1, &f.y, 1, "input 0");
  refused(TM_OP_NEG, NULL, 0, &f.a, 1, NULL, 1, "output 0");
  refused(TM_OP_MATMUL, NULL, 8, (tm_tensor *const[]){ f.a, f.a }, 2, &f.y, 1,
          "8 bytes of attributes are said to be there, but their pointer is NULL");
  assert_int_equal(tm_context_forgive(f.context, NULL, NULL, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_context_forgive(f.context, "", NULL, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_tensor_wrap(f.context, NULL, &output, sizeof output, &tensor, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_tensor_view(f.a, NULL, 0, &tensor, &error), TM_ERROR_ARGUMENT);
  assert_null(explanation);
  assert_null(tensor);
}

static void options_are_read_as_far_as_they_reach(void **state) {
  (void)state;
  tm_error error = { .struct_size = sizeof error };
  const uint32_t shortest[2] = { sizeof shortest, TM_NUMERICS_N0 };
  assert_int_equal(neg(f.a, f.y, (const tm_run_options *)(const void *)shortest, &error), TM_OK);
  struct { tm_run_options known; uint64_t newer; } longer = { { .struct_size = sizeof longer, .worst_numerics = TM_NUMERICS_DEFAULT }, 0 };
  assert_int_equal(neg(f.a, f.y, &longer.known, &error), TM_OK);
  longer.newer = 1;
  assert_int_equal(neg(f.a, f.y, &longer.known, &error), TM_ERROR_ARGUMENT);
  const tm_run_options wrong[] = {
    { .struct_size = 0, .worst_numerics = TM_NUMERICS_DEFAULT },
    { .struct_size = sizeof wrong[0], .worst_numerics = 9 },
    { .struct_size = sizeof wrong[0], .worst_numerics = TM_NUMERICS_DEFAULT, .device_plus_one = 1000 },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) assert_int_equal(neg(f.a, f.y, &wrong[i], &error), TM_ERROR_ARGUMENT);
}

static void outputs_must_not_overlap(void **state) {
  (void)state;
  refused(TM_OP_NEG, NULL, 0, &f.a, 1, &f.a, 1, "output 0 overlaps input 0");
  float memory[64] = { 0 };
  const tm_operand row = { .format = TM_FORMAT_F32, .rank = 1, .dims = { 16 } };
  const tm_operand tight = { .format = TM_FORMAT_F32, .rank = 1, .dims = { 16 }, .strides_bytes = { 2 } };
  const tm_operand crossing = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 4, 4 }, .strides_bytes = { 12, 4 } };
  const tm_operand apart = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 4, 4 }, .strides_bytes = { 4, -16 } };
  const tm_operand matrix = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 4, 4 } };
  tm_tensor *x = NULL, *x2 = NULL, *y = NULL;
  assert_int_equal(tm_tensor_wrap(f.context, &row, memory, 64, &x, NULL), TM_OK);
  assert_int_equal(tm_tensor_wrap(f.context, &matrix, memory, 64, &x2, NULL), TM_OK);
  assert_int_equal(tm_tensor_wrap(f.context, &row, memory + 15, 64, &y, NULL), TM_OK);
  refused(TM_OP_NEG, NULL, 0, &x, 1, &y, 1, "overlaps input 0");
  tm_tensor_destroy(y);
  assert_int_equal(tm_tensor_wrap(f.context, &row, memory + 16, 64, &y, NULL), TM_OK);
  assert_int_equal(neg(x, y, NULL, NULL), TM_OK);
  tm_tensor_destroy(y);
  assert_int_equal(tm_tensor_wrap(f.context, &tight, memory + 32, 64, &y, NULL), TM_OK);
  refused(TM_OP_NEG, NULL, 0, &x, 1, &y, 1, "overlaps itself");
  tm_tensor_destroy(y);
  assert_int_equal(tm_tensor_wrap(f.context, &crossing, memory + 32, 64, &y, NULL), TM_OK);
  refused(TM_OP_NEG, NULL, 0, &x2, 1, &y, 1, "overlaps itself");
  tm_tensor_destroy(y);
  assert_int_equal(tm_tensor_wrap(f.context, &apart, memory + 44, 16, &y, NULL), TM_OK);
  assert_int_equal(neg(x2, y, NULL, NULL), TM_OK);
  tm_tensor_destroy(y);
  tm_tensor_destroy(x);
  tm_tensor_destroy(x2);
}

static void scalars_and_empty_tensors_run(void **state) {
  (void)state;
  tm_tensor *x = create(f.context, TM_FORMAT_F32, 0, 0, 0), *y = create(f.context, TM_FORMAT_F32, 0, 0, 0);
  *(float *)tm_tensor_data(x) = 3;
  assert_int_equal(neg(x, y, NULL, NULL), TM_OK);
  assert_true(*(const float *)tm_tensor_data(y) == -3);
  tm_tensor *none = create(f.context, TM_FORMAT_F32, 2, 4, 0), *result = create(f.context, TM_FORMAT_F32, 2, 4, 0);
  assert_int_equal(neg(none, result, NULL, NULL), TM_OK);
  tm_tensor *sums = create(f.context, TM_FORMAT_F32, 1, 4, 0);
  *(float *)tm_tensor_data(sums) = 77;
  const tm_reduce_attributes last_axis = { 2, 0 };
  assert_int_equal(tm_run(f.context, TM_OP_SUM, &last_axis, sizeof last_axis, &none, 1, &sums, 1, NULL, NULL), TM_OK);
  assert_true(*(const float *)tm_tensor_data(sums) == 0);
  tm_tensor *const all[] = { x, y, none, result, sums };
  for (size_t i = 0; i < 5; i++) tm_tensor_destroy(all[i]);
}

/* ---- shapes without running ---- */

static void shapes_are_inferred(void **state) {
  (void)state;
  const tm_operand inputs[2] = { { .format = TM_FORMAT_F32, .rank = 2, .dims = { 4, 8 } }, { .format = TM_FORMAT_F32, .rank = 2, .dims = { 8, 3 } } };
  tm_operand output = { .format = TM_FORMAT_NONE };
  assert_int_equal(tm_op_infer(TM_OP_MATMUL, NULL, 0, inputs, 2, &output, 1, NULL), TM_OK);
  assert_int_equal(output.format, TM_FORMAT_F32);
  assert_int_equal(output.rank, 2);
  assert_int_equal(output.dims[0], 4);
  assert_int_equal(output.dims[1], 3);
  assert_int_equal(output.byte_count, 48);
  output = (tm_operand){ .format = 99 };
  tm_error error = { .struct_size = sizeof error };
  const tm_operand wrong[2] = { inputs[0], inputs[0] };
  assert_int_equal(tm_op_infer(TM_OP_MATMUL, NULL, 0, wrong, 2, &output, 1, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(output.format, 99);
  assert_int_equal(output.rank, 0);
  assert_int_equal(tm_op_infer(4242, NULL, 0, inputs, 2, &output, 1, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_op_infer(TM_OP_MATMUL, NULL, 0, inputs, 2, &output, 2, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_op_infer(TM_OP_MATMUL, NULL, 0, inputs, 1, &output, 1, &error), TM_ERROR_ARGUMENT);
  assert_int_equal(tm_op_infer(TM_OP_MATMUL, NULL, 0, inputs, 100, &output, 1, &error), TM_ERROR_ARGUMENT);
}

static void explanations_cover_every_device(void **state) {
  (void)state;
  const tm_operand input = *tm_tensor_operand(f.a);
  const tm_operand output = { .format = TM_FORMAT_NONE };
  tm_explanation *explanation = NULL;
  assert_int_equal(tm_explain(f.context, TM_OP_EXP, NULL, 0, &input, 1, &output, 1, NULL, &explanation, NULL), TM_OK);
  tm_explanation_summary summary = { .struct_size = sizeof summary };
  tm_explanation_summarize(explanation, &summary);
  assert_int_equal(summary.op, TM_OP_EXP);
  assert_true(summary.candidate_count >= 2);
  assert_int_equal(summary.read_bytes, 128);
  assert_int_equal(summary.written_bytes, 128);
  assert_non_null(summary.flip);
  tm_candidate candidate = { .struct_size = sizeof candidate };
  uint64_t last = 0;
  for (uint32_t i = 0; i < summary.candidate_count; i++) {
    assert_int_equal(tm_explanation_candidate(explanation, i, &candidate), TM_OK);
    assert_true(candidate.device_name != NULL && candidate.reason != NULL && candidate.lowering != NULL);
    if (candidate.verdict > TM_VERDICT_SLOWER) continue;
    assert_true(candidate.total_ns >= last);
    last = candidate.total_ns;
  }
  assert_int_equal(tm_explanation_candidate(explanation, summary.candidate_count, &candidate), TM_END);
  tm_explanation_destroy(explanation);
  tm_explanation_destroy(NULL);
  explanation = NULL;
  assert_int_equal(tm_explain(f.context, TM_OP_EXP, NULL, 0, &input, 2, &output, 1, NULL, &explanation, NULL), TM_ERROR_ARGUMENT);
  assert_null(explanation);
}

/* ---- when memory ends ---- */

/* x -> cast to f16 -> transposed (strided) -> softmax, and an explanation: most of what allocates. */
static tm_status work(tm_context *context, tm_error *error) {
  const uint64_t dims[] = { 16, 32 };
  const tm_axis_attributes last_axis = { 1, 0 };
  const tm_cast_attributes saturating = { 1, 0 };
  tm_tensor *x = NULL, *half = NULL, *turned = NULL, *y = NULL;
  tm_explanation *explanation = NULL;
  tm_status status = tm_tensor_create(context, TM_FORMAT_F32, 2, dims, &x, error);
  if (status == TM_OK) status = tm_tensor_create(context, TM_FORMAT_F16, 2, dims, &half, error);
  if (status == TM_OK) status = tm_run(context, TM_OP_CAST, &saturating, sizeof saturating, &x, 1, &half, 1, NULL, error);
  const tm_operand columns = { .format = TM_FORMAT_F32, .rank = 2, .dims = { 32, 16 }, .strides_bytes = { 4, 128 } };
  if (status == TM_OK) status = tm_tensor_view(x, &columns, 0, &turned, error);
  const uint64_t turned_dims[] = { 32, 16 };
  if (status == TM_OK) status = tm_tensor_create(context, TM_FORMAT_F32, 2, turned_dims, &y, error);
  if (status == TM_OK) status = tm_run(context, TM_OP_SOFTMAX, &last_axis, sizeof last_axis, &turned, 1, &y, 1, NULL, error);
  if (status == TM_OK) {
    const tm_operand input = *tm_tensor_operand(x), output = { .format = TM_FORMAT_NONE };
    status = tm_explain(context, TM_OP_NEG, NULL, 0, &input, 1, &output, 1, NULL, &explanation, error);
  }
  tm_explanation_destroy(explanation);
  tm_tensor_destroy(y);
  tm_tensor_destroy(turned);
  tm_tensor_destroy(half);
  tm_tensor_destroy(x);
  return status;
}

/* The last allocations only serve to watch a plugin; without them it goes unwatched. */
#define WATCHING 8u

static void every_allocation_may_fail(void **state) {
  (void)state;
  counting_heap heap = { 0 };
  const tm_context_options options = options_with(&heap);
  tm_context *context = NULL;
  assert_int_equal(tm_context_create(&options, &context, NULL), TM_OK);
  const uint64_t first = atomic_load(&heap.calls);
  assert_int_equal(work(context, NULL), TM_OK);
  const uint64_t last = atomic_load(&heap.calls);
  tm_context_destroy(context);
  heap_is_empty(&heap);
  assert_true(last - first > 8);
  for (uint64_t n = first + 1; n <= last; n++) {
    for (int for_ever = 0; for_ever < 2; for_ever++) {
      counting_heap failing = { 0 };
      if (for_ever) failing.fail_from = n;
      else failing.fail_at = n;
      const tm_context_options again = options_with(&failing);
      tm_error error = { .struct_size = sizeof error };
      assert_int_equal(tm_context_create(&again, &context, NULL), TM_OK);
      const tm_status status = work(context, &error);
      if (status != TM_OK && status != TM_ERROR_NO_MEMORY) fail_msg("allocation %llu: %d %s", (unsigned long long)n, status, error.text);
      if (for_ever && status == TM_OK && n + WATCHING <= last) fail_msg("allocation %llu was not needed", (unsigned long long)n);
      failing.fail_at = failing.fail_from = 0;
      assert_int_equal(work(context, &error), TM_OK);   /* nothing is broken for good */
      tm_context_destroy(context);
      heap_is_empty(&failing);
    }
  }
}

static void a_reached_limit_is_an_error_and_passes(void **state) {
  (void)state;
  counting_heap heap = { 0 };
  tm_context_options options = options_with(&heap);
  options.max_memory_bytes = 2 << 20;
  tm_context *context = NULL;
  assert_int_equal(tm_context_create(&options, &context, NULL), TM_OK);
  const uint64_t dims[] = { 1 << 20 };
  tm_tensor *tensor = NULL;
  tm_error error = { .struct_size = sizeof error };
  assert_int_equal(tm_tensor_create(context, TM_FORMAT_F32, 1, dims, &tensor, &error), TM_ERROR_NO_MEMORY);
  assert_null(tensor);
  tm_memory_usage usage = { .struct_size = sizeof usage };
  tm_context_memory_usage(context, &usage);
  assert_int_equal(usage.limit_bytes, 2 << 20);
  assert_true(usage.peak_bytes <= usage.limit_bytes);
  assert_int_equal(work(context, &error), TM_OK);
  tm_context_destroy(context);
  heap_is_empty(&heap);
}

/* Signatures, kernels and scratch memory are kept for speed only: they make room for what is asked for. */
static void what_is_kept_makes_room(void **state) {
  (void)state;
  tm_context_options options = { .struct_size = sizeof options, .thread_count = 1 };
  options.max_memory_bytes = 6 << 20;
  tm_context *context = NULL;
  assert_int_equal(tm_context_create(&options, &context, NULL), TM_OK);
  for (uint64_t count = 1; count <= 600; count++) {
    tm_tensor *x = create(context, TM_FORMAT_F32, 1, count, 0), *y = create(context, TM_FORMAT_F32, 1, count, 0);
    assert_int_equal(tm_run(context, TM_OP_NEG, NULL, 0, &x, 1, &y, 1, NULL, NULL), TM_OK);
    tm_tensor_destroy(x);
    tm_tensor_destroy(y);
  }
  tm_tensor *large = create(context, TM_FORMAT_U8, 1, 5 << 20, 0);
  tm_tensor_destroy(large);
  tm_context_destroy(context);
}

/* ---- whole contexts that accept exact results only ---- */

static void a_reproducible_context_accepts_exact_results_only(void **state) {
  (void)state;
  const tm_context_options options = { .struct_size = sizeof options, .flags = TM_CONTEXT_REPRODUCIBLE };
  tm_context *context = NULL;
  assert_int_equal(tm_context_create(&options, &context, NULL), TM_OK);
  tm_tensor *x = create(context, TM_FORMAT_F32, 2, 64, 64), *y = create(context, TM_FORMAT_F32, 2, 64, 64);
  tm_tensor *const both[] = { x, x };
  tm_run_report report = { .struct_size = sizeof report };
  const tm_run_options run = { .struct_size = sizeof run, .worst_numerics = TM_NUMERICS_DEFAULT, .report = &report };
  assert_int_equal(tm_run(context, TM_OP_MATMUL, NULL, 0, both, 2, &y, 1, &run, NULL), TM_OK);
  assert_int_equal(report.numerics, TM_NUMERICS_N0);
  tm_tensor_destroy(x);
  tm_tensor_destroy(y);
  tm_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_runs_and_reports),
    cmocka_unit_test(wrong_calls_are_refused),
    cmocka_unit_test(missing_layouts_are_refused),
    cmocka_unit_test(options_are_read_as_far_as_they_reach),
    cmocka_unit_test(outputs_must_not_overlap),
    cmocka_unit_test(scalars_and_empty_tensors_run),
    cmocka_unit_test(shapes_are_inferred),
    cmocka_unit_test(explanations_cover_every_device),
    cmocka_unit_test(every_allocation_may_fail),
    cmocka_unit_test(a_reached_limit_is_an_error_and_passes),
    cmocka_unit_test(what_is_kept_makes_room),
    cmocka_unit_test(a_reproducible_context_accepts_exact_results_only),
  };
  return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
