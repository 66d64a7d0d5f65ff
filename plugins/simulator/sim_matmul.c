/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_matmul.h"

#include <string.h>

#include "sim_number.h"

#define MAGIC UINT64_C(0x64656b6361706d73)      /* "smpacked" */

typedef struct packed_head {
  uint64_t magic;
  uint64_t rows;
  uint64_t columns;
  uint64_t element_bytes;
  uint64_t reserved[4];
} packed_head;

uint64_t sim_packed_bytes(uint64_t rows, uint64_t columns, uint64_t element_bytes) {
  uint64_t elements, bytes;
  if (__builtin_mul_overflow(rows, columns, &elements) || __builtin_mul_overflow(elements, element_bytes, &bytes)) return 0;
  return __builtin_add_overflow(bytes, sizeof(packed_head), &bytes) ? 0 : bytes;
}

static uint64_t packed_index(uint64_t columns, uint64_t row, uint64_t column) {
  const uint64_t tile = row / SIM_TILE * (columns / SIM_TILE) + column / SIM_TILE;
  return tile * SIM_TILE * SIM_TILE + row % SIM_TILE * SIM_TILE + column % SIM_TILE;
}

void sim_pack_run(const sim_task *task) {
  const tm_operand *x = &task->operands[0];
  const uint64_t rows = x->dims[0], columns = x->dims[1], bytes = sim_format_find(x->format)->bytes;
  const packed_head head = { .magic = MAGIC, .rows = rows, .columns = columns, .element_bytes = bytes };
  const char *from = task->data[0];
  char *to = (char *)task->data[1] + sizeof head;
  memcpy(task->data[1], &head, sizeof head);
  for (uint64_t row = 0; row < rows; row++)
    for (uint64_t column = 0; column < columns; column++)
      memcpy(to + packed_index(columns, row, column) * bytes, from + (row * columns + column) * bytes, bytes);
}

/* ---- the product ---- */

/* One matrix of a factor.  step: elements from one index to the next, where it is dense. */
typedef struct factor {
  const void *data;
  uint32_t    format;
  uint32_t    is_packed;
  uint32_t    is_transposed;
  uint64_t    columns;                  /* as it lies */
} factor;

static uint64_t index_of(const factor *f, uint64_t row, uint64_t column) {
  const uint64_t r = f->is_transposed ? column : row, c = f->is_transposed ? row : column;
  return f->is_packed ? packed_index(f->columns, r, c) : r * f->columns + c;
}

/* Elements between batches of an operand on the batch axis that is `from_end` before its matrix; what is not there, or has
   one extent, repeats. */
static uint64_t batch_offset(const tm_operand *operand, const tm_operand *y, uint64_t batch) {
  uint64_t offset = 0, step = operand->dims[operand->rank - 1] * operand->dims[operand->rank - 2];
  for (uint32_t from_end = 3; from_end <= y->rank; from_end++) {
    const uint64_t extent = y->dims[y->rank - from_end], index = batch % extent;
    batch /= extent;
    if (operand->rank < from_end) continue;
    const uint64_t own = operand->dims[operand->rank - from_end];
    offset += own == 1 ? 0 : index * step;
    step *= own;
  }
  return offset;
}

static factor factor_of(const sim_task *task, uint32_t index, uint64_t batch) {
  const tm_operand *x = &task->operands[index];
  tm_matmul_attributes attributes;
  memcpy(&attributes, task->attributes, sizeof attributes);
  factor f = { .data = task->data[index], .format = x->format & ~TM_FORMAT_PRIVATE, .is_packed = x->format >= TM_FORMAT_PRIVATE,
               .is_transposed = index == 0 ? attributes.transpose_a : attributes.transpose_b, .columns = x->dims[x->rank - 1] };
  if (f.is_packed) f.data = (const char *)f.data + sizeof(packed_head);
  else f.data = (const char *)f.data + batch_offset(x, &task->operands[2], batch) * sim_format_find(x->format)->bytes;
  return f;
}

/* Integers wrap in 32 bits. */
static uint32_t integer_sum(const factor *a, const factor *b, uint64_t row, uint64_t column, uint64_t k_count) {
  const int8_t *x = a->data, *z = b->data;
  uint32_t sum = 0;
  for (uint64_t k = 0; k < k_count; k++)
    sum += (uint32_t)((int32_t)x[index_of(a, row, k)] * (int32_t)z[index_of(b, k, column)]);
  return sum;
}

static double float_sum(const factor *a, const factor *b, uint64_t row, uint64_t column, uint64_t k_count) {
  double sum = 0;
  for (uint64_t k = 0; k < k_count; k++)
    sum += sim_load(a->format, a->data, index_of(a, row, k)) * sim_load(b->format, b->data, index_of(b, k, column));
  return sum;
}

void sim_matmul_run(const sim_task *task) {
  const tm_operand *y = &task->operands[2], *a_shape = &task->operands[0];
  const uint64_t rows = y->dims[y->rank - 2], columns = y->dims[y->rank - 1], each = rows * columns;
  for (uint64_t i = 0; i < y->element_count; i++) {
    const factor a = factor_of(task, 0, i / each), b = factor_of(task, 1, i / each);
    const uint64_t k_count = a_shape->dims[a_shape->rank - (a.is_transposed ? 2 : 1)];
    const uint64_t row = i % each / columns, column = i % columns;
    if (a.format == TM_FORMAT_I8) ((uint32_t *)task->data[2])[i] = integer_sum(&a, &b, row, column, k_count);
    else sim_store(y->format, task->data[2], i, float_sum(&a, &b, row, column, k_count));
  }
}
