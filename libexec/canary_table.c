/* SPDX-License-Identifier: Apache-2.0 */
#include "canary_table.h"

#include <string.h>

#include "base/memory.h"
#include "tensor/shape.h"

#define MOST_INPUTS 4u
#define MOST_AXES 3
/* The format that is asked about. */
#define ASKED UINT32_MAX

typedef enum extent { NONE, ROWS, COLUMNS, DEPTH, ONE_HEAD, TWO, THREE, FIVE } extent;

typedef struct input {
  uint32_t format;              /* ASKED or TM_FORMAT_* */
  extent   extents[MOST_AXES];
} input;

typedef struct canary_row {
  uint32_t op;
  uint32_t output;              /* TM_FORMAT_NONE: the default; ASKED; or a format */
  input    inputs[MOST_INPUTS];
  uint32_t input_count;
  union {
    uint64_t words[3];
    tm_transpose_attributes transpose;
    tm_axis_attributes axis;
    tm_reduce_attributes reduce;
    tm_matmul_attributes matmul;
    tm_norm_attributes norm;
    tm_rope_attributes rope;
    tm_attention_attributes attention;
  } attributes;
} canary_row;

#define X { ASKED, { ROWS, COLUMNS } }
#define ROW { ASKED, { COLUMNS, NONE } }
#define POINT { ASKED, { NONE, NONE } }
#define ONE(name) { TM_OP_##name, TM_FORMAT_NONE, { X }, 1, { { 0 } } }
#define PAIR(name) { TM_OP_##name, TM_FORMAT_NONE, { X, X }, 2, { { 0 } } }
#define REDUCE(name) { TM_OP_##name, TM_FORMAT_NONE, { X }, 1, { .reduce = { 2, 0 } } }
#define HEADS(extent) { ASKED, { extent, ONE_HEAD, COLUMNS } }
#define INDEX { TM_FORMAT_I64, { NONE, NONE } }
#define FLOATS { TM_FORMAT_F32, { ROWS, COLUMNS } }

static const canary_row rows[] = {
  ONE(COPY),
  { TM_OP_TRANSPOSE, TM_FORMAT_NONE, { X }, 1, { .transpose = { { 1, 0 } } } },
  { TM_OP_GATHER, TM_FORMAT_NONE, { X, { TM_FORMAT_I64, { DEPTH, NONE } } }, 2, { .axis = { 0, 0 } } },
  { TM_OP_FILL, TM_FORMAT_NONE, { POINT }, 1, { { 0 } } },
  { TM_OP_CAST, TM_FORMAT_F32, { X }, 1, { { 0 } } },
  { TM_OP_CAST, TM_FORMAT_F16, { X }, 1, { { 0 } } },
  { TM_OP_QUANTIZE, ASKED, { FLOATS }, 1, { { 0 } } },
  { TM_OP_DEQUANTIZE, TM_FORMAT_F32, { X }, 1, { { 0 } } },
  PAIR(ADD), PAIR(SUB), PAIR(MUL), PAIR(DIV), PAIR(COMPARE),
  ONE(NEG), ONE(ABS), ONE(SQRT), ONE(EXP), ONE(LOG), ONE(TANH), ONE(SIGMOID), ONE(ERF), ONE(GELU), ONE(SILU), ONE(RELU),
  { TM_OP_CLAMP, TM_FORMAT_NONE, { X, POINT, POINT }, 3, { { 0 } } },
  { TM_OP_WHERE, TM_FORMAT_NONE, { { TM_FORMAT_BOOL, { ROWS, COLUMNS } }, X, X }, 3, { { 0 } } },
  { TM_OP_LERP, TM_FORMAT_NONE, { X, X, POINT }, 3, { { 0 } } },
  { TM_OP_WEIGHTED_SUM, TM_FORMAT_NONE, { X, { TM_FORMAT_F64, { TWO } }, X }, 3, { { 0 } } },
  { TM_OP_DARE_SUM, TM_FORMAT_NONE, { X, { TM_FORMAT_U64, { FIVE } }, X }, 3, { { 0 } } },
  { TM_OP_TIES_SUM, TM_FORMAT_NONE, { X, { TM_FORMAT_F64, { THREE } }, X }, 3, { { 0 } } },
  REDUCE(SUM), REDUCE(MEAN), REDUCE(MIN), REDUCE(MAX), REDUCE(ARGMAX),
  ONE(STATS), PAIR(COMPARE_TENSORS), PAIR(MAGNITUDES),
  { TM_OP_MATMUL, TM_FORMAT_NONE, { { ASKED, { ROWS, DEPTH } }, { ASKED, { DEPTH, COLUMNS } } }, 2, { { 0 } } },
  { TM_OP_MATMUL, TM_FORMAT_NONE, { { TM_FORMAT_F32, { ROWS, DEPTH } }, { ASKED, { COLUMNS, DEPTH } } }, 2, { .matmul = { 0, 1 } } },
  { TM_OP_MATMUL_SCALED, TM_FORMAT_NONE,
    { { ASKED, { ROWS, DEPTH } }, { ASKED, { DEPTH, COLUMNS } }, { TM_FORMAT_F32, { NONE, NONE } }, { TM_FORMAT_F32, { NONE, NONE } } }, 4,
    { { 0 } } },
  { TM_OP_SOFTMAX, TM_FORMAT_NONE, { X }, 1, { .axis = { 1, 0 } } },
  { TM_OP_LAYER_NORM, TM_FORMAT_NONE, { X, ROW, ROW }, 3, { .norm = { 1e-5 } } },
  { TM_OP_RMS_NORM, TM_FORMAT_NONE, { X, ROW }, 2, { .norm = { 1e-5 } } },
  { TM_OP_ROPE, TM_FORMAT_NONE, { HEADS(ROWS), { TM_FORMAT_I64, { ROWS } } }, 2, { .rope = { .layout = TM_ROPE_HALVES } } },
  { TM_OP_UPDATE, TM_FORMAT_NONE, { X, X, INDEX }, 3, { .axis = { 0, 0 } } },
  { TM_OP_ATTENTION, TM_FORMAT_NONE, { HEADS(ROWS), HEADS(DEPTH), HEADS(DEPTH), { TM_FORMAT_I64, { NONE } } }, 4,
    { .attention = { 0, 0, 0 } } },
};

uint32_t canary_table_count(void) { return sizeof rows / sizeof rows[0]; }

static bool make_input(const input *from, uint32_t format, const canary_sizes *sizes, tm_operand *out_operand) {
  const uint64_t extents[] = { 0, sizes->rows, sizes->columns, sizes->depth, 1, 2, 3, 1 + TM_DARE_WORDS };
  uint64_t dims[MOST_AXES];
  uint32_t rank = 0;
  for (int i = 0; i < MOST_AXES; i++)
    if (from->extents[i] != NONE) dims[rank++] = extents[from->extents[i]];
  if (tm_operand_contiguous(from->format == ASKED ? format : from->format, rank, dims, out_operand, NULL) != TM_OK) return false;
  out_operand->alignment = TM_BEST_ALIGNMENT;
  return true;
}

bool canary_table_make(uint32_t index, uint32_t format, const canary_sizes *sizes, tm_request *out_request,
                       tm_operation *out_operation) {
  const canary_row *from = &rows[index];
  const tm_op_row *row = tm_op_find(from->op);
  memset(out_request, 0, sizeof *out_request);
  if (row == NULL || (from->op == TM_OP_CAST && from->output == format)) return false;
  out_request->op = row->op;
  out_request->version = row->version;
  out_request->worst_numerics = TM_NUMERICS_N4;
  out_request->input_count = from->input_count;
  out_request->output_count = 1;
  out_request->attribute_bytes = row->attribute_bytes;
  memcpy(out_request->attributes, &from->attributes, sizeof from->attributes);
  for (uint32_t i = 0; i < from->input_count; i++)
    if (!make_input(&from->inputs[i], format, sizes, &out_request->operands[i])) return false;
  tm_operand *result = &out_request->operands[from->input_count];
  result->format = from->output == ASKED ? format : from->output;
  *out_operation = tm_request_operation(out_request);
  if (tm_op_infer_outputs(out_operation, result, NULL) != TM_OK) return false;
  result->alignment = TM_BEST_ALIGNMENT;
  if (tm_op_check(out_operation, NULL) != TM_OK) return false;
  tm_op_normalize(out_operation, out_request->operands);
  return true;
}
