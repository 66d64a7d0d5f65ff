/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a device answers for an operation and a format: an example of ordinary size is made and the device is asked.  The
 * examples are data: for each operation the shape and the role of every operand.
 */
#include <string.h>

#include "api/context.h"
#include "base/error.h"
#include "plugin/device.h"
#include "tensor/format.h"
#include "tensor/shape.h"

#define MOST_INPUTS 4

/* What an operand's format is: the one that is asked about, or fixed. */
#define ASKED UINT32_MAX

typedef struct example_operand {
  uint32_t format;              /* ASKED or TM_FORMAT_* */
  uint32_t rank;
  uint64_t dims[3];
} example_operand;

typedef struct example {
  uint32_t op;
  uint32_t output;              /* TM_FORMAT_NONE: the default; ASKED; or a format */
  uint32_t input_count;
  example_operand inputs[MOST_INPUTS];
  union {
    uint64_t words[3];
    tm_transpose_attributes transpose;
    tm_axis_attributes axis;
    tm_reduce_attributes reduce;
    tm_matmul_attributes matmul;
    tm_matmul_scaled_attributes scaled;
    tm_norm_attributes norm;
    tm_rope_attributes rope;
    tm_attention_attributes attention;
  } attributes;
} example;

#define X { ASKED, 2, { 256, 1024 } }
#define POINT { ASKED, 0, { 0 } }
#define UNARY(name) { TM_OP_##name, TM_FORMAT_NONE, 1, { X }, { { 0 } } }
#define BINARY(name) { TM_OP_##name, TM_FORMAT_NONE, 2, { X, X }, { { 0 } } }
#define REDUCE(name) { TM_OP_##name, TM_FORMAT_NONE, 1, { X }, { .reduce = { 2, 0 } } }
#define ROW { ASKED, 1, { 1024 } }
#define SCALE { TM_FORMAT_F32, 0, { 0 } }
#define HEADS { ASKED, 3, { 64, 8, 64 } }
#define SETTINGS(format, count) { TM_FORMAT_##format, 1, { count } }
#define CACHE { ASKED, 3, { 512, 8, 64 } }

/* In the order of preference: the first example that the operation accepts with the format is asked about. */
static const example examples[] = {
  UNARY(COPY),
  { TM_OP_TRANSPOSE, TM_FORMAT_NONE, 1, { X }, { .transpose = { { 1, 0 } } } },
  { TM_OP_GATHER, TM_FORMAT_NONE, 2, { X, { TM_FORMAT_I64, 1, { 64 } } }, { .axis = { 0, 0 } } },
  { TM_OP_FILL, TM_FORMAT_NONE, 1, { POINT }, { { 0 } } },
  { TM_OP_CAST, TM_FORMAT_F32, 1, { X }, { { 0 } } },
  { TM_OP_CAST, TM_FORMAT_F16, 1, { X }, { { 0 } } },
  { TM_OP_QUANTIZE, ASKED, 1, { { TM_FORMAT_F32, 2, { 256, 1024 } } }, { { 0 } } },
  { TM_OP_DEQUANTIZE, TM_FORMAT_F32, 1, { X }, { { 0 } } },
  BINARY(ADD), BINARY(SUB), BINARY(MUL), BINARY(DIV), BINARY(COMPARE),
  UNARY(NEG), UNARY(ABS), UNARY(SQRT), UNARY(EXP), UNARY(LOG), UNARY(TANH), UNARY(SIGMOID), UNARY(ERF), UNARY(GELU),
  UNARY(SILU), UNARY(RELU),
  { TM_OP_CLAMP, TM_FORMAT_NONE, 3, { X, POINT, POINT }, { { 0 } } },
  { TM_OP_WHERE, TM_FORMAT_NONE, 3, { { TM_FORMAT_BOOL, 2, { 256, 1024 } }, X, X }, { { 0 } } },
  { TM_OP_LERP, TM_FORMAT_NONE, 3, { X, X, POINT }, { { 0 } } },
  { TM_OP_WEIGHTED_SUM, TM_FORMAT_NONE, 3, { X, SETTINGS(F64, 2), X }, { { 0 } } },
  { TM_OP_DARE_SUM, TM_FORMAT_NONE, 3, { X, SETTINGS(U64, 1 + TM_DARE_WORDS), X }, { { 0 } } },
  { TM_OP_TIES_SUM, TM_FORMAT_NONE, 3, { X, SETTINGS(F64, 3), X }, { { 0 } } },
  REDUCE(SUM), REDUCE(MEAN), REDUCE(MIN), REDUCE(MAX), REDUCE(ARGMAX),
  UNARY(STATS), BINARY(COMPARE_TENSORS), BINARY(MAGNITUDES),
  { TM_OP_MATMUL, TM_FORMAT_NONE, 2, { { ASKED, 2, { 256, 512 } }, { ASKED, 2, { 512, 256 } } }, { { 0 } } },
  { TM_OP_MATMUL, TM_FORMAT_NONE, 2, { { TM_FORMAT_F32, 2, { 256, 512 } }, { ASKED, 2, { 256, 512 } } }, { .matmul = { 0, 1 } } },
  { TM_OP_MATMUL_SCALED, TM_FORMAT_NONE, 4, { { ASKED, 2, { 256, 512 } }, { ASKED, 2, { 512, 256 } }, SCALE, SCALE }, { { 0 } } },
  { TM_OP_SOFTMAX, TM_FORMAT_NONE, 1, { X }, { .axis = { 1, 0 } } },
  { TM_OP_LAYER_NORM, TM_FORMAT_NONE, 3, { X, ROW, ROW }, { .norm = { 1e-5 } } },
  { TM_OP_RMS_NORM, TM_FORMAT_NONE, 2, { X, ROW }, { .norm = { 1e-5 } } },
  { TM_OP_ROPE, TM_FORMAT_NONE, 2, { HEADS, { TM_FORMAT_I64, 1, { 64 } } }, { { 0 } } },
  { TM_OP_UPDATE, TM_FORMAT_NONE, 3, { X, { ASKED, 2, { 8, 1024 } }, { TM_FORMAT_I64, 0, { 0 } } }, { { 0 } } },
  { TM_OP_ATTENTION, TM_FORMAT_NONE, 4, { HEADS, CACHE, CACHE, { TM_FORMAT_I64, 0, { 0 } } }, { .attention = { 0, 1, 0 } } },
};

static bool make_inputs(const example *one, uint32_t format, tm_request *request) {
  for (uint32_t i = 0; i < one->input_count; i++) {
    const example_operand *operand = &one->inputs[i];
    const uint32_t chosen = operand->format == ASKED ? format : operand->format;
    if (tm_operand_contiguous(chosen, operand->rank, operand->dims, &request->operands[i], NULL) != TM_OK) return false;
    request->operands[i].alignment = 64;
  }
  return true;
}

/* False when the operation does not take the format in this form. */
static bool make_request(const tm_context *context, const example *one, uint32_t format, tm_request *request) {
  const tm_op_row *row = tm_op_find(one->op);
  memset(request, 0, sizeof *request);
  request->op = one->op;
  request->version = row->version;
  request->worst_numerics = tm_context_accepts(context, row, TM_NUMERICS_DEFAULT);
  request->only_device = TM_ANY_DEVICE;
  request->input_count = one->input_count;
  request->output_count = 1;
  request->attribute_bytes = row->attribute_bytes;
  memcpy(request->attributes, &one->attributes, sizeof one->attributes);
  if (!make_inputs(one, format, request)) return false;
  tm_operand *result = &request->operands[one->input_count];
  result->format = one->output == ASKED ? format : one->output;
  tm_operation operation = tm_request_operation(request);
  if (tm_op_infer_outputs(&operation, result, NULL) != TM_OK) return false;
  result->alignment = 64;
  return tm_op_check(&operation, NULL) == TM_OK;
}

static bool find_request(const tm_context *context, uint32_t op, uint32_t format, tm_request *out_request) {
  for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
    if (examples[i].op != op) continue;
    if (op == TM_OP_CAST && examples[i].output == format) continue;     /* no cast at all */
    if (make_request(context, &examples[i], format, out_request)) return true;
  }
  return false;
}

tm_status tm_support_query(tm_context *context, uint32_t device, uint32_t op, uint32_t format, tm_support *out_support) {
  if (device >= context->inventory->device_count) return TM_END;
  const tm_format_info *info = tm_format_find(format);
  tm_request request;
  if (info == NULL || !info->has_values || !find_request(context, op, format, &request)) return TM_UNSUPPORTED;
  tm_answer answer = { .level = TM_LEVEL_REFUSED };
  tm_device_slot *slot = context->inventory->devices[device];
  if (tm_device_is_usable(slot)) {
    tm_operation operation = tm_request_operation(&request);
    tm_op_normalize(&operation, request.operands);
    const tm_operation *pointer = &operation;
    tm_device_query(slot, &pointer, 1, NULL, &answer);
  }
  const tm_support support = {
    .struct_size = out_support->struct_size,
    .level = answer.level,
    .numerics = answer.numerics,
    .reasons = answer.reasons,
    .numerics_bound = answer.numerics_bound,
  };
  tm_copy_out(out_support, &support, sizeof support);
  return TM_OK;
}
