/* SPDX-License-Identifier: Apache-2.0 */
#include "micro_suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_inputs.h"
#include "complain.h"
#include "terminal.h"

/* A device's first runs prove that it can; what comes after teaches. */
#define FEWEST_RUNS 8
#define MOST_RUNS 200

typedef struct suite_row {
  uint32_t op;
  uint32_t format;
  uint32_t rank;
  uint32_t input_count;
  uint64_t dims[2];
} suite_row;

#define FORMATS_OF(op, rank, inputs, ...) \
  { op, TM_FORMAT_F32, rank, inputs, __VA_ARGS__ }, { op, TM_FORMAT_F16, rank, inputs, __VA_ARGS__ }, { op, TM_FORMAT_BF16, rank, inputs, __VA_ARGS__ }

/* The smallest first, so that a device that is slow beyond all measure shows it where that costs little. */
static const suite_row suite[] = {
  { TM_OP_COPY, TM_FORMAT_F32, 1, 1, { 1024, 0 } },
  { TM_OP_COPY, TM_FORMAT_F32, 1, 1, { 65536, 0 } },
  { TM_OP_COPY, TM_FORMAT_F32, 1, 1, { 4194304, 0 } },
  FORMATS_OF(TM_OP_ADD, 1, 2, { 1048576, 0 }),
  FORMATS_OF(TM_OP_SUM, 2, 1, { 1024, 1024 }),
  FORMATS_OF(TM_OP_MATMUL, 2, 2, { 256, 256 }),
};
#define SUITE (sizeof suite / sizeof suite[0])

static const tm_reduce_attributes last_axis = { .axes = 2 };

uint32_t tm_micro_suite_count(void) { return (uint32_t)SUITE; }

static bool find_op(uint32_t op, tm_op_description *out_op) {
  *out_op = (tm_op_description){ .struct_size = sizeof *out_op };
  for (uint32_t i = 0; tm_op_describe(i, out_op) == TM_OK; i++)
    if (out_op->op == op) return true;
  return false;
}

bool tm_micro_suite_request(uint32_t index, tm_op_request *out_request) {
  if (index >= SUITE) return false;
  const suite_row *row = &suite[index];
  memset(out_request, 0, sizeof *out_request);
  if (!find_op(row->op, &out_request->op)) return false;
  out_request->input_count = row->input_count;
  for (uint32_t i = 0; i < row->input_count; i++) {
    tm_operand *input = &out_request->inputs[i];
    input->format = row->format;
    input->rank = row->rank;
    memcpy(input->dims, row->dims, row->rank * sizeof row->dims[0]);
  }
  tm_op_attributes_init(&out_request->attributes, row->op, row->rank);
  if (row->op == TM_OP_SUM) memcpy(out_request->attributes.value.bytes, &last_axis, sizeof last_axis);
  return tm_op_infer(row->op, &out_request->attributes.value, out_request->op.attribute_bytes, out_request->inputs, row->input_count,
                     out_request->outputs, out_request->op.output_count, NULL) == TM_OK;
}

void tm_micro_suite_describe(const tm_op_request *request, char *out, size_t capacity) {
  char   operand[80];
  size_t used = (size_t)snprintf(out, capacity, "%s", request->op.name);
  for (uint32_t i = 0; i < request->input_count && used < capacity; i++) {
    tm_operand_describe(&request->inputs[i], operand, sizeof operand);
    used += (size_t)snprintf(out + used, capacity - used, "%s %s", i == 0 ? "" : ",", operand);
  }
}

/* ---- running ---- */

/* What is known of it now. */
static void look(tm_context *context, const tm_op_request *request, uint32_t device, tm_micro_result *result) {
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N3, .device_plus_one = device + 1 };
  tm_explanation      *explanation = NULL;
  tm_error             error = TM_CLI_ERROR_INIT;
  tm_candidate         candidate = { .struct_size = sizeof candidate };
  if (tm_explain(context, request->op.op, &request->attributes.value, request->op.attribute_bytes, request->inputs, request->input_count,
                 request->outputs, request->op.output_count, &options, &explanation, &error) != TM_OK) {
    snprintf(result->reason, sizeof result->reason, "%.*s", (int)sizeof result->reason - 1, error.text);
    return;
  }
  result->can_run = false;
  for (uint32_t i = 0; tm_explanation_candidate(explanation, i, &candidate) == TM_OK; i++) {
    if (candidate.device != device) continue;
    result->can_run = candidate.verdict <= TM_VERDICT_SLOWER;
    result->declared_ns = candidate.declared_ns;
    result->copy_ns = candidate.copy_ns;
    result->correction = candidate.correction;
    result->sample_count = candidate.sample_count;
    if (!result->can_run) snprintf(result->reason, sizeof result->reason, "%.*s", (int)sizeof result->reason - 1, candidate.reason);
    break;
  }
  tm_explanation_destroy(explanation);
}

static int by_time(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static tm_status run_once(tm_context *context, const tm_op_request *request, const tm_bench_inputs *tensors, uint32_t device,
                          uint64_t *out_ns, tm_error *error) {
  tm_run_report        report = { .struct_size = sizeof report };
  const tm_run_options options = { .struct_size = sizeof options, .worst_numerics = TM_NUMERICS_N3, .device_plus_one = device + 1,
                                   .report = &report };
  const tm_status status = tm_run(context, request->op.op, &request->attributes.value, request->op.attribute_bytes, tensors->inputs,
                                  request->input_count, tensors->outputs, request->op.output_count, &options, error);
  *out_ns = report.measured_ns;
  return status;
}

static void run_all(tm_context *context, const tm_op_request *request, const tm_bench_inputs *tensors, uint32_t device,
                    uint64_t budget_ns, tm_micro_result *result) {
  uint64_t       times[MOST_RUNS];
  tm_error       error = TM_CLI_ERROR_INIT;
  tm_status      status = TM_OK;
  uint32_t       count = 0;
  const uint64_t begin = tm_terminal_now_ns();
  while (status == TM_OK && count < MOST_RUNS) {
    const uint64_t passed = tm_terminal_now_ns() - begin;
    if (passed > 2 * budget_ns || (count >= FEWEST_RUNS && passed > budget_ns)) break;
    status = run_once(context, request, tensors, device, &times[count], &error);
    count += status == TM_OK;
  }
  if (status != TM_OK) snprintf(result->reason, sizeof result->reason, "%.*s", (int)sizeof result->reason - 1, error.text);
  qsort(times, count, sizeof times[0], by_time);
  result->run_count = count;
  if (count != 0) result->measured_ns = times[count / 2];
}

void tm_micro_suite_run(tm_context *context, const tm_op_request *request, uint32_t device, uint64_t budget_ns, tm_micro_result *out_result) {
  tm_bench_inputs tensors;
  tm_error        error = TM_CLI_ERROR_INIT;
  memset(out_result, 0, sizeof *out_result);
  look(context, request, device, out_result);
  if (!out_result->can_run) return;
  if (tm_bench_inputs_create(context, request, &tensors, &error) == TM_OK) {
    run_all(context, request, &tensors, device, budget_ns, out_result);
    tm_micro_result after = *out_result;
    look(context, request, device, &after);
    out_result->copy_ns = after.copy_ns;
    out_result->correction = after.correction;
    out_result->sample_count = after.sample_count;
  } else {
    snprintf(out_result->reason, sizeof out_result->reason, "%.*s", (int)sizeof out_result->reason - 1, error.text);
  }
  tm_bench_inputs_destroy(&tensors);
}
