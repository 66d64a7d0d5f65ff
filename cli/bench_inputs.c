/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_inputs.h"

#include <string.h>

#include "complain.h"

static bool is_integer(uint32_t format) { return format >= TM_FORMAT_I4 && format <= TM_FORMAT_U64; }

/* A small generator with a fixed seed: every run measures the same numbers. */
static uint32_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*state >> 32);
}

static void fill(float *values, uint64_t count, bool integers, uint64_t seed) {
  uint64_t state = seed;
  for (uint64_t i = 0; i < count; i++) {
    const uint32_t random = next_random(&state);
    values[i] = integers ? (float)(random % 100) : (float)(random >> 8) * (1.0f / 8388608.0f) - 1.0f;
  }
}

static tm_format_description describe(uint32_t format) {
  tm_format_description description = { .struct_size = sizeof description };
  for (uint32_t i = 0; tm_format_describe(i, &description) == TM_OK && description.format != format;) i++;
  return description;
}

/* Of block formats that nothing can write: whatever is read of such bytes as a number, f16 or f32, is one of ordinary size. */
static void fill_blocks(unsigned char *bytes, uint64_t count) {
  uint64_t state = count;
  for (uint64_t i = 0; i < count; i++) bytes[i] = (unsigned char)(next_random(&state) & 0x3f);
}

static tm_status convert(tm_context *context, tm_tensor *from, tm_tensor *to, uint32_t format, tm_error *error) {
  const tm_cast_attributes    cast = { .saturate = 1 };
  const tm_format_description about = describe(format);
  const uint32_t              op = about.block_elements > 2 ? TM_OP_QUANTIZE : TM_OP_CAST;
  if (about.has_values != 0 && about.has_arithmetic == 0) {
    fill_blocks(tm_tensor_data(to), tm_tensor_operand(to)->byte_count);
    return TM_OK;
  }
  return tm_run(context, op, op == TM_OP_CAST ? &cast : NULL, op == TM_OP_CAST ? sizeof cast : 0, &from, 1, &to, 1,
                NULL, error);
}

static tm_status create_input(tm_context *context, const tm_operand *operand, uint64_t seed, tm_tensor **out_tensor,
                              tm_error *error) {
  tm_tensor *values = NULL, *tensor = NULL;
  tm_status  status = tm_tensor_create(context, TM_FORMAT_F32, operand->rank, operand->dims, &values, error);
  if (status != TM_OK) return status;
  fill(tm_tensor_data(values), tm_tensor_operand(values)->element_count, is_integer(operand->format), seed);
  if (operand->format == TM_FORMAT_F32) {
    *out_tensor = values;
    return TM_OK;
  }
  status = tm_tensor_create(context, operand->format, operand->rank, operand->dims, &tensor, error);
  if (status == TM_OK) status = convert(context, values, tensor, operand->format, error);
  tm_tensor_destroy(values);
  if (status == TM_OK)
    *out_tensor = tensor;
  else
    tm_tensor_destroy(tensor);
  return status;
}

/* Constant is what a tensor is said to be when its memory is wrapped. */
static tm_status make_constant(tm_context *context, tm_tensor **inout_input, tm_tensor **out_owner, tm_error *error) {
  tm_operand layout = *tm_tensor_operand(*inout_input);
  tm_tensor *constant = NULL;
  layout.flags |= TM_OPERAND_CONSTANT;
  const tm_status status = tm_tensor_wrap(context, &layout, tm_tensor_data(*inout_input), layout.byte_count, &constant, error);
  if (status != TM_OK) return status;
  *out_owner = *inout_input;
  *inout_input = constant;
  return TM_OK;
}

/* A length below the capacity would measure less than is said. */
static void fill_cache(const tm_op_request *request, tm_bench_inputs *inputs) {
  const tm_operand *keys = &request->inputs[1], *length = &request->inputs[3];
  if (request->op.op != TM_OP_ATTENTION || inputs->inputs[3] == NULL) return;
  const uint64_t capacity = keys->dims[keys->rank - 3];
  memcpy(tm_tensor_data(inputs->inputs[3]), &capacity, length->format == TM_FORMAT_I64 ? sizeof capacity : sizeof(uint32_t));
}

tm_status tm_bench_inputs_create(tm_context *context, const tm_op_request *request, tm_bench_inputs *out_inputs,
                                 tm_error *error) {
  tm_status status = TM_OK;
  memset(out_inputs, 0, sizeof *out_inputs);
  for (uint32_t i = 0; i < request->input_count && status == TM_OK; i++) {
    status = create_input(context, &request->inputs[i], i + 1, &out_inputs->inputs[i], error);
    if (status == TM_OK && (request->inputs[i].flags & TM_OPERAND_CONSTANT) != 0)
      status = make_constant(context, &out_inputs->inputs[i], &out_inputs->owners[i], error);
  }
  fill_cache(request, out_inputs);
  for (uint32_t i = 0; i < request->op.output_count && status == TM_OK; i++)
    status = tm_tensor_create(context, request->outputs[i].format, request->outputs[i].rank, request->outputs[i].dims,
                              &out_inputs->outputs[i], error);
  if (status != TM_OK) tm_bench_inputs_destroy(out_inputs);
  return status;
}

void tm_bench_inputs_destroy(tm_bench_inputs *inputs) {
  for (uint32_t i = 0; i < TM_MAX_OPERANDS; i++) {
    tm_tensor_destroy(inputs->inputs[i]);
    tm_tensor_destroy(inputs->owners[i]);
    tm_tensor_destroy(inputs->outputs[i]);
  }
  memset(inputs, 0, sizeof *inputs);
}
