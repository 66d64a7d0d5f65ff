/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/element_reader.h"

#include <string.h>

#include "base/checked.h"

#define WIDEST_BLOCK_BYTES 8u   /* of the formats whose elements can stand apart: one element each */

void tm_element_reader_init(tm_element_reader *reader, const tm_operand *operand, const void *pointer) {
  *reader = (tm_element_reader){
    .operand = operand,
    .base = pointer,
    .info = tm_format_find(operand->format),
    .codec = tm_codec_find(operand->format),
  };
}

static const char *next_address(const tm_element_reader *reader) {
  const tm_operand *operand = reader->operand;
  const char *address = reader->base;
  for (uint32_t axis = 0; axis < operand->rank; ++axis) {
    const uint64_t steps = axis + 1 == operand->rank ? reader->index[axis] / reader->info->block_elements : reader->index[axis];
    address += (int64_t)steps * operand->strides_bytes[axis];
  }
  return address;
}

static void advance(tm_element_reader *reader, uint64_t count) {
  const tm_operand *operand = reader->operand;
  for (uint32_t axis = operand->rank; axis-- > 0 && count > 0;) {
    const uint64_t reached = reader->index[axis] + count;
    reader->index[axis] = reached % operand->dims[axis];
    count = reached / operand->dims[axis];
  }
}

static void decode(const tm_element_reader *reader, const void *source, uint64_t count, double *values, int64_t *integers) {
  reader->codec->decode(source, count, values);
  if (integers != NULL) reader->codec->decode_integer(source, count, integers);
}

/* Elements that stand apart are brought together first, so that codecs only know dense runs. */
static void decode_strided(const tm_element_reader *reader, const char *source, uint64_t count, double *values,
                           int64_t *integers) {
  char dense[TM_READER_ELEMENTS * WIDEST_BLOCK_BYTES];
  const uint32_t bytes = reader->info->block_bytes;
  const int64_t stride = reader->operand->strides_bytes[reader->operand->rank - 1];
  for (uint64_t i = 0; i < count; ++i) memcpy(dense + i * bytes, source + (int64_t)i * stride, bytes);
  decode(reader, dense, count, values, integers);
}

/* Elements from the next one on that lie in one dense or evenly strided run. */
static uint64_t run_length(const tm_element_reader *reader) {
  const tm_operand *operand = reader->operand;
  if (operand->flags & TM_OPERAND_CONTIGUOUS) return UINT64_MAX;
  return operand->rank == 0 ? 1 : operand->dims[operand->rank - 1] - reader->index[operand->rank - 1];
}

void tm_element_reader_next(tm_element_reader *reader, uint64_t count, double *values, int64_t *integers) {
  const tm_operand *operand = reader->operand;
  const int is_dense = operand->rank == 0 || (operand->flags & TM_OPERAND_CONTIGUOUS) != 0 ||
                       operand->strides_bytes[operand->rank - 1] == (int64_t)reader->info->block_bytes;
  while (count > 0) {
    const uint64_t run = tm_min_u64(count, run_length(reader));
    const char *source = next_address(reader);
    if (is_dense) {
      decode(reader, source, run, values, integers);
    } else {
      decode_strided(reader, source, run, values, integers);
    }
    advance(reader, run);
    count -= run;
    values += run;
    if (integers != NULL) integers += run;
  }
}
