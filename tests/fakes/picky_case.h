/* SPDX-License-Identifier: Apache-2.0 */
/* picky_case.h - a context with the picky accelerator in it, operations to run there, and the reference to compare with. */
#ifndef TM_TESTS_PICKY_CASE_H
#define TM_TESTS_PICKY_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fakes/picky_control.h"
#include "tensor/codec.h"
#include "tensor/format.h"
#include "tensormorph/tensormorph.h"

typedef struct picky_case {
  tm_context   *context;
  picky_control control;
  uint32_t      device;
  uint32_t      reference;
  tm_run_report report;         /* of the last run */
  tm_error      error;
} picky_case;

/* `one` is zeroed but for the control. */
static inline void picky_case_open_with(picky_case *one, const tm_context_options *given) {
  static char path[512];
  snprintf(path, sizeof path, "%s/tests/fakes/picky.so", TM_BINARY_DIR);
  const char *paths[] = { path }, *excluded[] = { "cpu" };
  const tm_named_pointer pointer = { "picky", PICKY_CONTROL_KEY, &one->control };
  tm_context_options options = { .struct_size = sizeof options };
  if (given != NULL) options = *given;
  options.plugin_path_count = 1;
  options.plugin_paths = paths;
  options.excluded_device_count = 1;
  options.excluded_devices = excluded;
  options.pointer_count = 1;
  options.pointers = &pointer;
  one->error.struct_size = sizeof one->error;
  if (tm_context_create(&options, &one->context, &one->error) != TM_OK) fail_msg("%s", one->error.text);
  tm_device_description description = { .struct_size = sizeof description };
  one->device = one->reference = UINT32_MAX;
  for (uint32_t i = 0; tm_device_describe(one->context, i, &description) == TM_OK; i++) {
    if (strcmp(description.name, "picky:0") == 0) one->device = i;
    if (strcmp(description.name, "reference:0") == 0) one->reference = i;
  }
  assert_true(one->device != UINT32_MAX && one->reference != UINT32_MAX);
}

static inline void picky_case_open(picky_case *one) { picky_case_open_with(one, NULL); }

static inline void picky_case_close(picky_case *one) {
  assert_int_equal(atomic_load(&one->control.complaints), 0);
  tm_context_destroy(one->context);
  assert_int_equal(atomic_load(&one->control.used_bytes), 0);
}

static inline uint64_t picky_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 33;
}

/* Small values: multiples of 1/8 in [-4, 4), so that sums of many are exact in f32. */
static inline tm_tensor *picky_tensor(picky_case *one, uint32_t format, uint32_t rank, const uint64_t *dims, uint64_t seed) {
  tm_tensor *tensor = NULL;
  if (tm_tensor_create(one->context, format, rank, dims, &tensor, &one->error) != TM_OK) fail_msg("%s", one->error.text);
  const tm_codec *codec = tm_codec_find(format);
  const tm_format_info *info = tm_format_find(format);
  const tm_operand *operand = tm_tensor_operand(tensor);
  double values[256];
  for (uint64_t at = 0; at < operand->element_count; at += info->block_elements) {
    for (uint32_t i = 0; i < info->block_elements; i++)
      values[i] = ((double)(picky_random(&seed) % 64) - 32) / (info->kind == TM_KIND_FLOAT ? 8 : 1);
    codec->encode(values, info->block_elements, (char *)tm_tensor_data(tensor) + at / info->block_elements * info->block_bytes);
  }
  return tensor;
}

typedef struct picky_call {
  uint32_t    op;
  const void *attributes;
  uint32_t    attribute_bytes;
  tm_tensor  *inputs[4];
  uint32_t    input_count;
  uint32_t    output_format;
  uint32_t    worst_numerics;
} picky_call;

static inline tm_status picky_try(picky_case *one, const picky_call *call, uint32_t device_plus_one, tm_tensor *output) {
  one->report = (tm_run_report){ .struct_size = sizeof one->report };
  const tm_run_options options = { .struct_size = sizeof options,
                                   .worst_numerics = call->worst_numerics,
                                   .device_plus_one = device_plus_one,
                                   .report = &one->report };
  return tm_run(one->context, call->op, call->attributes, call->attribute_bytes, call->inputs, call->input_count, &output, 1,
                &options, &one->error);
}

static inline tm_tensor *picky_output(picky_case *one, const picky_call *call) {
  tm_operand inputs[4], output = { .format = call->output_format };
  tm_tensor *tensor = NULL;
  for (uint32_t i = 0; i < call->input_count; i++) inputs[i] = *tm_tensor_operand(call->inputs[i]);
  if (tm_op_infer(call->op, call->attributes, call->attribute_bytes, inputs, call->input_count, &output, 1, &one->error) != TM_OK ||
      tm_tensor_create(one->context, output.format, output.rank, output.dims, &tensor, &one->error) != TM_OK)
    fail_msg("%s", one->error.text);
  if (output.byte_count != 0) memset(tm_tensor_data(tensor), 0xa5, (size_t)output.byte_count);
  return tensor;
}

/* Runs it on the picky one and on the reference; the bytes must be equal. */
static inline void picky_compare_into(picky_case *one, const picky_call *call, tm_tensor *found) {
  tm_tensor *expected = picky_output(one, call);
  if (picky_try(one, call, one->reference + 1, expected) != TM_OK) fail_msg("reference: %s", one->error.text);
  if (picky_try(one, call, one->device + 1, found) != TM_OK) fail_msg("picky: %s", one->error.text);
  assert_int_equal(one->report.device, one->device);
  assert_int_equal(one->report.retries, 0);
  assert_int_equal(atomic_load(&one->control.complaints), 0);
  const uint64_t bytes = tm_tensor_operand(expected)->byte_count;
  if (bytes != 0) assert_memory_equal(tm_tensor_data(found), tm_tensor_data(expected), (size_t)bytes);
  tm_tensor_destroy(expected);
}

static inline void picky_compare(picky_case *one, const picky_call *call) {
  tm_tensor *found = picky_output(one, call);
  picky_compare_into(one, call, found);
  tm_tensor_destroy(found);
}

static inline tm_explanation *picky_explain(picky_case *one, const picky_call *call) {
  tm_operand inputs[4], output = { .format = call->output_format };
  for (uint32_t i = 0; i < call->input_count; i++) inputs[i] = *tm_tensor_operand(call->inputs[i]);
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = call->worst_numerics };
  tm_explanation *explanation = NULL;
  if (tm_explain(one->context, call->op, call->attributes, call->attribute_bytes, inputs, call->input_count, &output, 1, &options,
                 &explanation, &one->error) != TM_OK)
    fail_msg("%s", one->error.text);
  return explanation;
}

/* The picky one's candidate with a lowering, or (`lowered` 0) as it is; fails if there is none. */
static inline tm_candidate picky_candidate(const tm_explanation *explanation, int lowered) {
  tm_candidate candidate = { .struct_size = sizeof candidate };
  for (uint32_t i = 0; tm_explanation_candidate(explanation, i, &candidate) == TM_OK; i++)
    if (strcmp(candidate.device_name, "picky:0") == 0 && (candidate.lowering[0] != '\0') == (lowered != 0)) return candidate;
  fail_msg("no such candidate");
  return candidate;
}

#endif
