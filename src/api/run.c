/* SPDX-License-Identifier: Apache-2.0 */
/* One operation through the scheduler: tensors become a request, the request runs; or is only explained. */
#include <string.h>

#include "api/tensor.h"
#include "base/error.h"
#include "base/memory_limit.h"
#include "tensor/format.h"
#include "tensor/shape.h"

/* Everything about a call that is not an operand. */
typedef struct call {
  uint32_t    op;
  uint32_t    attribute_bytes;
  const void *attributes;
  tm_run_options options;
} call;

static tm_status read_options(const tm_run_options *given, tm_run_options *out_options, tm_error *error) {
  *out_options = (tm_run_options){ .struct_size = sizeof *out_options, .worst_numerics = TM_NUMERICS_DEFAULT };
  if (given == NULL) return TM_OK;
  TM_TRY(tm_copy_in(given, "run options", out_options, sizeof *out_options, error));
  if (out_options->on_failure > TM_ON_FAILURE_STRICT)
    return tm_fail(error, TM_ERROR_ARGUMENT, "run options: unknown policy %u for failures", out_options->on_failure);
  if (out_options->worst_numerics <= TM_NUMERICS_N4 || out_options->worst_numerics == TM_NUMERICS_DEFAULT) return TM_OK;
  return tm_fail(error, TM_ERROR_ARGUMENT, "run options: unknown numerics class %u; set it to TM_NUMERICS_DEFAULT",
                 out_options->worst_numerics);
}

/* Shorter attributes than the row's are completed with zeros, the usual choice; longer ones are the row's check to judge. */
static tm_status take_attributes(tm_request *request, const tm_op_row *row, const call *what, tm_error *error) {
  if (what->attribute_bytes != 0 && what->attributes == NULL)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %u bytes of attributes are said to be there, but their pointer is NULL", row->name,
                   what->attribute_bytes);
  if (what->attribute_bytes > TM_LARGEST_ATTRIBUTES)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %u bytes of attributes, expected %u", row->name, what->attribute_bytes,
                   row->attribute_bytes);
  if (what->attribute_bytes != 0) memcpy(request->attributes, what->attributes, what->attribute_bytes);
  request->attribute_bytes = what->attribute_bytes > row->attribute_bytes ? what->attribute_bytes : row->attribute_bytes;
  return TM_OK;
}

/* Before any operand is looked at: the caller's arrays are as long as it says, and no longer. */
static tm_status check_counts(const tm_op_row *row, uint32_t input_count, uint32_t output_count, tm_error *error) {
  if (input_count < row->input_min || input_count > row->input_max)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %u inputs, expected %u to %u", row->name, input_count, row->input_min, row->input_max);
  if (output_count != row->output_count)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: %u outputs, expected %u", row->name, output_count, row->output_count);
  return TM_OK;
}

/* All of the request but the operands. */
static tm_status begin_request(const tm_context *context, const call *what, uint32_t input_count, uint32_t output_count,
                               tm_request *request, tm_error *error) {
  const tm_op_row *row = tm_op_find(what->op);
  if (row == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "unknown operation number %u", what->op);
  TM_TRY(check_counts(row, input_count, output_count, error));
  const tm_run_options *options = &what->options;
  memset(request, 0, offsetof(tm_request, operands));
  request->op = what->op;
  request->version = row->version;
  request->worst_numerics = tm_context_accepts(context, row, options->worst_numerics);
  request->flags = options->run_to_run != 0 ? TM_REQUEST_RUN_TO_RUN : 0;
  request->only_device = options->device_plus_one == 0 ? TM_ANY_DEVICE : options->device_plus_one - 1;
  if (options->device_plus_one > context->inventory->device_count)
    return tm_fail(error, TM_ERROR_ARGUMENT, "run options: there is no device %u", options->device_plus_one - 1);
  request->input_count = input_count;
  request->output_count = output_count;
  return take_attributes(request, row, what, error);
}

static void take_tensor(tm_request *request, uint32_t index, const tm_tensor *tensor, void **pointers, uint64_t *origins) {
  origins[index] = tensor->origin;
  request->operands[index] = tensor->operand;
  request->operands[index].alignment = tm_alignment_of(tensor->data);
  pointers[index] = tensor->data;
}

tm_status tm_tensors_check(tm_tensor *const *tensors, uint32_t count, const char *what, tm_error *error) {
  for (uint32_t i = 0; i < count; i++)
    if (tensors == NULL || tensors[i] == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "%s %u is no tensor", what, i);
  return TM_OK;
}

/* ---- what must not overlap ---- */

static uint64_t magnitude(int64_t stride) { return stride < 0 ? UINT64_C(0) - (uint64_t)stride : (uint64_t)stride; }

/* Whether no two elements share a byte.  Axes are taken from the shortest stride on, and each must step over all that the
   ones before it reach; the few interleaved layouts that fail this without sharing bytes are refused as well. */
static bool lies_apart(const tm_operand *operand) {
  if ((operand->flags & TM_OPERAND_CONTIGUOUS) != 0 || operand->element_count == 0) return true;
  const tm_format_info *info = tm_format_find(operand->format);
  uint64_t reach = info->block_bytes;
  uint32_t taken = 0;
  for (uint32_t round = 0; round < operand->rank; round++) {
    uint32_t next = operand->rank;
    for (uint32_t axis = 0; axis < operand->rank; axis++) {
      if ((taken >> axis & 1u) != 0) continue;
      if (next == operand->rank || magnitude(operand->strides_bytes[axis]) < magnitude(operand->strides_bytes[next])) next = axis;
    }
    taken |= 1u << next;
    const bool is_last = next + 1 == operand->rank;
    const uint64_t steps = is_last ? operand->dims[next] / info->block_elements : operand->dims[next];
    if (steps > 1 && magnitude(operand->strides_bytes[next]) < reach) return false;
    reach += (steps - 1) * magnitude(operand->strides_bytes[next]);
  }
  return true;
}

static bool overlap(const tm_tensor *a, const tm_tensor *b) {
  if (a->operand.byte_count == 0 || b->operand.byte_count == 0) return false;
  const char *a_begin = a->data - tm_operand_bytes_below(&a->operand);
  const char *b_begin = b->data - tm_operand_bytes_below(&b->operand);
  return a_begin < b_begin + b->operand.byte_count && b_begin < a_begin + a->operand.byte_count;
}

tm_status tm_outputs_check(tm_tensor *const *inputs, uint32_t input_count, tm_tensor *const *outputs, uint32_t output_count,
                           tm_error *error) {
  for (uint32_t o = 0; o < output_count; o++) {
    if (outputs[o]->read_only) return tm_fail(error, TM_ERROR_ARGUMENT, "output %u lies in a file and cannot be written", o);
    if (outputs[o]->origin != 0) return tm_fail(error, TM_ERROR_ARGUMENT, "output %u is a constant and cannot be written", o);
    if (!lies_apart(&outputs[o]->operand)) return tm_fail(error, TM_ERROR_ARGUMENT, "output %u overlaps itself", o);
    for (uint32_t i = 0; i < input_count; i++)
      if (overlap(inputs[i], outputs[o])) return tm_fail(error, TM_ERROR_ARGUMENT, "output %u overlaps input %u", o, i);
    for (uint32_t other = 0; other < o; other++)
      if (overlap(outputs[other], outputs[o])) return tm_fail(error, TM_ERROR_ARGUMENT, "output %u overlaps output %u", o, other);
  }
  return TM_OK;
}

static bool is_in_file(const tm_tensor *tensor) { return tensor->checkpoint != NULL && tensor->owned == NULL; }

static bool any_in_file(tm_tensor *const *inputs, uint32_t input_count) {
  bool found = false;
  for (uint32_t i = 0; i < input_count; i++) found |= is_in_file(inputs[i]);
  return found;
}

/* A mapped file that was truncated meanwhile read as zeros: the result is worthless and must not look like one. */
tm_status tm_files_check(tm_tensor *const *inputs, uint32_t input_count, tm_error *error) {
  for (uint32_t i = 0; i < input_count; i++)
    if (is_in_file(inputs[i])) TM_TRY(tm_checkpoint_verify(inputs[i]->checkpoint, error));
  return TM_OK;
}

static void write_report(tm_run_report *report, const tm_run_outcome *outcome) {
  const tm_run_report filled = {
    .struct_size = report->struct_size,
    .device = outcome->device,
    .level = outcome->level,
    .numerics = outcome->numerics,
    .expected_ns = outcome->expected_ns,
    .measured_ns = outcome->measured_ns,
    .retries = outcome->retries,
    .fell_back = outcome->fell_back,
    .watched = outcome->watched,
  };
  tm_copy_out(report, &filled, sizeof filled);
}

tm_status tm_run(tm_context *context, uint32_t op, const void *attributes, uint32_t attribute_bytes, tm_tensor *const *inputs,
                 uint32_t input_count, tm_tensor *const *outputs, uint32_t output_count, const tm_run_options *options, tm_error *error) {
  call what = { .op = op, .attribute_bytes = attribute_bytes, .attributes = attributes };
  TM_TRY(read_options(options, &what.options, error));
  tm_request request;
  TM_TRY(begin_request(context, &what, input_count, output_count, &request, error));
  TM_TRY(tm_tensors_check(inputs, input_count, "input", error));
  TM_TRY(tm_tensors_check(outputs, output_count, "output", error));
  TM_TRY(tm_outputs_check(inputs, input_count, outputs, output_count, error));
  void *pointers[TM_MAX_OPERANDS];
  uint64_t origins[TM_MAX_OPERANDS];
  for (uint32_t i = 0; i < input_count; i++) take_tensor(&request, i, inputs[i], pointers, origins);
  for (uint32_t i = 0; i < output_count; i++) take_tensor(&request, input_count + i, outputs[i], pointers, origins);
  if (any_in_file(inputs, input_count)) request.flags |= TM_REQUEST_UNMEASURED;
  tm_run_report *report = what.options.report;
  tm_run_outcome outcome;
  tm_runner runner = context->runner;
  if (what.options.on_failure == TM_ON_FAILURE_STRICT) runner.is_strict = true;
  runner.repeats = what.options.repeats;
  const tm_status status = tm_runner_run_from(&runner, &request, pointers, origins, report == NULL ? NULL : &outcome, error);
  TM_TRY(tm_memory_name_limit(&context->memory, status, error));
  tm_profile_save_if_due(&context->profile);
  TM_TRY(tm_files_check(inputs, input_count, error));
  if (report != NULL) write_report(report, &outcome);
  return TM_OK;
}

/* ---- without running ---- */

static tm_status take_layouts(tm_request *request, const tm_operand *inputs, const tm_operand *outputs, tm_error *error) {
  if ((inputs == NULL && request->input_count != 0) || (outputs == NULL && request->output_count != 0))
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s are counted but not given", inputs == NULL ? "inputs" : "outputs");
  for (uint32_t i = 0; i < request->input_count; i++) {
    const tm_status status = tm_layout_complete(&inputs[i], &request->operands[i], error);
    request->operands[i].alignment = TM_BEST_ALIGNMENT;
    if (status != TM_OK) {
      tm_error_prefix(error, "input %u", i);
      return status;
    }
  }
  return TM_OK;
}

tm_status tm_op_infer(uint32_t op, const void *attributes, uint32_t attribute_bytes, const tm_operand *inputs, uint32_t input_count,
                      tm_operand *out_outputs, uint32_t output_count, tm_error *error) {
  const tm_op_row *row = tm_op_find(op);
  if (row == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "unknown operation number %u", op);
  TM_TRY(check_counts(row, input_count, output_count, error));
  tm_request request;
  memset(&request, 0, sizeof request);
  request.op = op;
  request.version = row->version;
  request.input_count = input_count;
  request.output_count = output_count;
  const call what = { .op = op, .attribute_bytes = attribute_bytes, .attributes = attributes };
  TM_TRY(take_attributes(&request, row, &what, error));
  TM_TRY(take_layouts(&request, inputs, out_outputs, error));
  const tm_operation operation = tm_request_operation(&request);
  return tm_op_infer_outputs(&operation, out_outputs, error);
}

tm_status tm_explain(tm_context *context, uint32_t op, const void *attributes, uint32_t attribute_bytes, const tm_operand *inputs,
                     uint32_t input_count, const tm_operand *outputs, uint32_t output_count, const tm_run_options *options,
                     tm_explanation **out_explanation, tm_error *error) {
  call what = { .op = op, .attribute_bytes = attribute_bytes, .attributes = attributes };
  TM_TRY(read_options(options, &what.options, error));
  tm_request request;
  memset(&request, 0, sizeof request);
  TM_TRY(begin_request(context, &what, input_count, output_count, &request, error));
  TM_TRY(take_layouts(&request, inputs, outputs, error));
  tm_operand *results = request.operands + input_count;
  memcpy(results, outputs, output_count * sizeof *results);
  const tm_operation operation = tm_request_operation(&request);
  TM_TRY(tm_op_infer_outputs(&operation, results, error));
  for (uint32_t i = 0; i < output_count; i++) results[i].alignment = TM_BEST_ALIGNMENT;
  const tm_status status = tm_explanation_make(&context->placements.market, &context->memory, &request, what.options.repeats,
                                               out_explanation, error);
  return tm_memory_name_limit(&context->memory, status, error);
}
