/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/request.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

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
