/* SPDX-License-Identifier: Apache-2.0 */
/* webgpu_query.h - judging an operation by the rows. */
#ifndef WEBGPU_QUERY_H
#define WEBGPU_QUERY_H

#include "webgpu_kernel.h"
#include "webgpu_standing.h"

/* The row that runs the operation, or NULL.  The same question to the same offer always finds the same row. */
const webgpu_row *webgpu_row_find(const webgpu_offer *offer, const tm_operation *operation);

/* Whole words; 0 for none. */
uint64_t webgpu_workspace_bytes(const webgpu_offer *offer, const webgpu_row *row, const tm_operation *operation);

/* Bytes of the binding that an operand needs: what lies below element 0, rounded up, and all that lies above. */
uint64_t webgpu_binding_bytes(const webgpu_limits *limits, const tm_operand *operand);

/* Fills *out_answer, whose struct_size the caller has set, as far as that reaches. */
void webgpu_query_answer(const webgpu_offer *offer, const tm_operation *operation, tm_answer *out_answer);

#endif
