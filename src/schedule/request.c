/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/request.h"

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
