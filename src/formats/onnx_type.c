/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/onnx_type.h"

#include <stddef.h>

#include "formats/onnx.h"
#include "tensormorph/types.h"

#define FLOATS TM_ONNX_FLOAT_DATA
#define INT32S TM_ONNX_INT32_DATA

/* By their number.  Elements below a byte are packed from the low bits on, in the numbers of int32_data too. */
static const tm_onnx_type types[] = {
  [TM_ONNX_FLOAT] = { "FLOAT", TM_FORMAT_F32, 32, FLOATS, 4 },
  [2] = { "UINT8", TM_FORMAT_U8, 8, INT32S, 1 },
  [3] = { "INT8", TM_FORMAT_I8, 8, INT32S, 1 },
  [4] = { "UINT16", TM_FORMAT_U16, 16, INT32S, 2 },
  [5] = { "INT16", TM_FORMAT_I16, 16, INT32S, 2 },
  [6] = { "INT32", TM_FORMAT_I32, 32, INT32S, 4 },
  [TM_ONNX_INT64] = { "INT64", TM_FORMAT_I64, 64, TM_ONNX_INT64_DATA, 8 },
  [TM_ONNX_STRING] = { "STRING", TM_FORMAT_NONE, 0, 0, 0 },
  [9] = { "BOOL", TM_FORMAT_BOOL, 8, INT32S, 1 },
  [10] = { "FLOAT16", TM_FORMAT_F16, 16, INT32S, 2 },
  [11] = { "DOUBLE", TM_FORMAT_F64, 64, TM_ONNX_DOUBLE_DATA, 8 },
  [12] = { "UINT32", TM_FORMAT_U32, 32, TM_ONNX_UINT64_DATA, 4 },
  [13] = { "UINT64", TM_FORMAT_U64, 64, TM_ONNX_UINT64_DATA, 8 },
  [14] = { "COMPLEX64", TM_FORMAT_C64, 64, FLOATS, 4 },
  [15] = { "COMPLEX128", TM_FORMAT_NONE, 128, TM_ONNX_DOUBLE_DATA, 8 },
  [16] = { "BFLOAT16", TM_FORMAT_BF16, 16, INT32S, 2 },
  [17] = { "FLOAT8E4M3FN", TM_FORMAT_F8_E4M3FN, 8, INT32S, 1 },
  [18] = { "FLOAT8E4M3FNUZ", TM_FORMAT_NONE, 8, INT32S, 1 },
  [19] = { "FLOAT8E5M2", TM_FORMAT_F8_E5M2, 8, INT32S, 1 },
  [20] = { "FLOAT8E5M2FNUZ", TM_FORMAT_NONE, 8, INT32S, 1 },
  [21] = { "UINT4", TM_FORMAT_U4, 4, INT32S, 1 },
  [22] = { "INT4", TM_FORMAT_I4, 4, INT32S, 1 },
  [23] = { "FLOAT4E2M1", TM_FORMAT_F4_E2M1, 4, INT32S, 1 },
  [24] = { "FLOAT8E8M0", TM_FORMAT_F8_E8M0, 8, INT32S, 1 },
  [25] = { "UINT2", TM_FORMAT_NONE, 2, INT32S, 1 },
  [26] = { "INT2", TM_FORMAT_NONE, 2, INT32S, 1 },
};

const tm_onnx_type *tm_onnx_type_find(uint64_t data_type) {
  if (data_type >= sizeof types / sizeof types[0] || types[data_type].name == NULL) return NULL;
  return &types[data_type];
}
