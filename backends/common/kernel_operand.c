/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_operand.h"

typedef struct block_size {
  uint16_t elements;
  uint16_t bytes;
} block_size;

static const block_size plain_sizes[] = {
  [TM_FORMAT_F64] = { 1, 8 },       [TM_FORMAT_F32] = { 1, 4 },     [TM_FORMAT_F16] = { 1, 2 },     [TM_FORMAT_BF16] = { 1, 2 },
  [TM_FORMAT_F8_E4M3FN] = { 1, 1 }, [TM_FORMAT_F8_E5M2] = { 1, 1 }, [TM_FORMAT_F8_E8M0] = { 1, 1 }, [TM_FORMAT_F6_E2M3] = { 4, 3 },
  [TM_FORMAT_F6_E3M2] = { 4, 3 },   [TM_FORMAT_F4_E2M1] = { 2, 1 }, [TM_FORMAT_I4] = { 2, 1 },      [TM_FORMAT_U4] = { 2, 1 },
  [TM_FORMAT_I8] = { 1, 1 },        [TM_FORMAT_U8] = { 1, 1 },      [TM_FORMAT_I16] = { 1, 2 },     [TM_FORMAT_U16] = { 1, 2 },
  [TM_FORMAT_I32] = { 1, 4 },       [TM_FORMAT_U32] = { 1, 4 },     [TM_FORMAT_I64] = { 1, 8 },     [TM_FORMAT_U64] = { 1, 8 },
  [TM_FORMAT_BOOL] = { 1, 1 },      [TM_FORMAT_C64] = { 1, 8 },
};

#define GGUF(name) [TM_FORMAT_##name - TM_FORMAT_GGUF]
static const block_size gguf_sizes[] = {
  GGUF(Q4_0) = { 32, 18 },  GGUF(Q4_1) = { 32, 20 },  GGUF(Q5_0) = { 32, 22 },  GGUF(Q5_1) = { 32, 24 },  GGUF(Q8_0) = { 32, 34 },
  GGUF(Q8_1) = { 32, 36 },  GGUF(Q2_K) = { 256, 84 }, GGUF(Q3_K) = { 256, 110 }, GGUF(Q4_K) = { 256, 144 },
  GGUF(Q5_K) = { 256, 176 }, GGUF(Q6_K) = { 256, 210 }, GGUF(Q8_K) = { 256, 292 }, GGUF(MXFP4) = { 32, 17 },
};

#define COUNT_OF(table) (sizeof table / sizeof table[0])

int kernel_block_size(uint32_t format, uint32_t *out_elements, uint32_t *out_bytes) {
  block_size size = { 0, 0 };
  if (format < COUNT_OF(plain_sizes)) size = plain_sizes[format];
  else if (format >= TM_FORMAT_GGUF && format - TM_FORMAT_GGUF < COUNT_OF(gguf_sizes)) size = gguf_sizes[format - TM_FORMAT_GGUF];
  if (size.elements == 0) return 0;
  *out_elements = size.elements;
  *out_bytes = size.bytes;
  return 1;
}

uint32_t kernel_element_bytes(uint32_t format) {
  uint32_t elements = 0, bytes = 0;
  return kernel_block_size(format, &elements, &bytes) && elements == 1 ? bytes : 0;
}

uint32_t kernel_block_bytes(uint32_t format) {
  uint32_t elements = 0, bytes = 0;
  return kernel_block_size(format, &elements, &bytes) && elements > 1 ? bytes : 0;
}

uint64_t kernel_bytes_below(const tm_operand *operand) {
  uint64_t below = 0;
  for (uint32_t i = 0; i < operand->rank; ++i) {
    if (operand->strides_bytes[i] < 0 && operand->dims[i] > 1)
      below += (operand->dims[i] - 1) * (0 - (uint64_t)operand->strides_bytes[i]);
  }
  return below;
}

double kernel_operand_bytes(const tm_operation *operation) {
  const uint32_t count = operation->input_count + operation->output_count;
  double bytes = 0;
  for (uint32_t i = 0; i < count; ++i) bytes += (double)operation->operands[i].byte_count;
  return bytes;
}

uint32_t kernel_refuses_strided(const tm_operation *operation, uint32_t *out_operand) {
  const uint32_t count = operation->input_count + operation->output_count;
  for (uint32_t i = 0; i < count; ++i) {
    if (operation->operands[i].flags & TM_OPERAND_CONTIGUOUS) continue;
    *out_operand = i;
    return TM_REASON_LAYOUT;
  }
  return 0;
}

int kernel_operand_densify(tm_operand *operand) {
  uint32_t elements = 0, bytes = 0;
  if (!kernel_block_size(operand->format, &elements, &bytes)) return 0;
  const uint64_t blocks = operand->element_count / elements;
  if (blocks > (uint64_t)INT64_MAX / bytes) return 0;
  int64_t stride = bytes;
  for (uint32_t axis = operand->rank; axis-- > 0;) {
    operand->strides_bytes[axis] = stride;
    const uint64_t steps = axis + 1 == operand->rank ? operand->dims[axis] / elements : operand->dims[axis];
    if (steps > 1) stride = (int64_t)((uint64_t)stride * steps);
  }
  operand->byte_count = blocks * bytes;
  operand->flags |= TM_OPERAND_CONTIGUOUS;
  return 1;
}

int kernel_rest_is_zero(const void *data, uint64_t known, uint64_t size) {
  const unsigned char *bytes = data;
  for (uint64_t i = known; i < size; ++i) {
    if (bytes[i] != 0) return 0;
  }
  return 1;
}
