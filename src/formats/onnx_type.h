/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_type.h - the types of ONNX tensors: one row a type. */
#ifndef TM_FORMATS_ONNX_TYPE_H
#define TM_FORMATS_ONNX_TYPE_H

#include <stdint.h>

typedef struct tm_onnx_type {
  const char *name;
  uint32_t    format;           /* TM_FORMAT_NONE: listed only */
  uint32_t    bits;             /* of an element; 0: they vary */
  uint32_t    field;            /* TM_ONNX_*_DATA that may hold it, besides raw_data */
  uint32_t    number_bytes;     /* what each number of that field stands for */
} tm_onnx_type;

/* NULL: the number is unknown. */
const tm_onnx_type *tm_onnx_type_find(uint64_t data_type);

#endif
