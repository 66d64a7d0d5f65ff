/* SPDX-License-Identifier: Apache-2.0 */
/* element_reader.h - the decoded elements of an operand in row-major order of their index, whatever its strides. */
#ifndef TM_OPS_ELEMENT_READER_H
#define TM_OPS_ELEMENT_READER_H

#include <stdint.h>

#include "tensor/codec.h"
#include "tensor/format.h"

/* The most that one call reads. */
#define TM_READER_ELEMENTS 512u

typedef struct tm_element_reader {
  const tm_operand     *operand;
  const char           *base;           /* of the element with index 0 on every axis */
  const tm_format_info *info;
  const tm_codec       *codec;
  uint64_t              index[TM_MAX_RANK];     /* of the next element */
} tm_element_reader;

/* Starts at element 0.  The operand and the memory at `pointer` outlive the reader; the format has arithmetic. */
void tm_element_reader_init(tm_element_reader *reader, const tm_operand *operand, const void *pointer);

/* Decodes the next `count` elements, of which there are as many; of a block format whole blocks only.  `integers`, for
   integer formats only, gets what f64 cannot hold; NULL otherwise. */
void tm_element_reader_next(tm_element_reader *reader, uint64_t count, double *values, int64_t *integers);

#endif
