/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/request.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/checked.h"

#define HEAD_WORDS 4u
#define OPERAND_WORDS (2u + 2u * TM_MAX_RANK)
#define MOST_WORDS (HEAD_WORDS + TM_LARGEST_ATTRIBUTES / 8 + TM_MAX_OPERANDS * OPERAND_WORDS)

static uint64_t pair(uint32_t low, uint32_t high) { return low | (uint64_t)high << 32; }

static uint32_t put_operand(const tm_operand *operand, uint64_t *words) {
  uint32_t count = 0;
  words[count++] = pair(operand->format, operand->rank);
  words[count++] = pair(operand->alignment, operand->flags);
  for (uint32_t axis = 0; axis < operand->rank; axis++) {
    words[count++] = operand->dims[axis];
    words[count++] = (uint64_t)operand->strides_bytes[axis];
  }
  return count;
}

uint64_t tm_request_hash(const tm_request *request) {
  uint64_t words[MOST_WORDS];           /* few of them are written */
  uint32_t count = 0;
  words[count++] = pair(request->op, request->version);
  words[count++] = pair(request->worst_numerics, request->flags);
  words[count++] = pair(request->only_device, request->attribute_bytes);
  words[count++] = pair(request->input_count, request->output_count);
  for (uint32_t i = 0; i < tm_divide_up(request->attribute_bytes, 8); i++) words[count++] = request->attributes[i];
  for (uint32_t i = 0; i < request->input_count + request->output_count; i++)
    count += put_operand(&request->operands[i], words + count);
  return XXH3_64bits(words, count * sizeof *words);
}

tm_operation tm_request_operation(const tm_request *request) {
  return (tm_operation){
    .struct_size = sizeof(tm_operation),
    .op = request->op,
    .version = request->version,
    .flags = (request->flags & TM_REQUEST_RUN_TO_RUN) != 0 ? TM_OPERATION_RUN_TO_RUN : 0,
    .worst_numerics = request->worst_numerics,
    .attribute_bytes = request->attribute_bytes,
    .input_count = request->input_count,
    .output_count = request->output_count,
    .operands = request->operands,
    .attributes = request->attribute_bytes != 0 ? request->attributes : NULL,
  };
}

void tm_request_set_apart(tm_request *request) {
  for (uint32_t i = request->input_count; i < request->input_count + request->output_count; i++)
    request->operands[i].flags &= ~TM_OPERAND_IN_PLACE;
}

uint64_t tm_request_constants_key(const tm_request *request, void *const *pointers, const uint64_t *origins) {
  uint64_t key = 0;
  for (uint32_t i = 0; i < request->input_count; i++) {
    const tm_operand *operand = &request->operands[i];
    if ((operand->flags & TM_OPERAND_CONSTANT) == 0) continue;
    if (origins == NULL || origins[i] == 0) return 0;
    const uint64_t what[5] = { key, i, origins[i], (uint64_t)(uintptr_t)pointers[i], XXH3_64bits(operand, sizeof *operand) };
    key = XXH3_64bits(what, sizeof what) | 1u;
  }
  return key;
}
