/* SPDX-License-Identifier: Apache-2.0 */
/* webgpu_one_pass.h - what stats and compare_tensors share: dense operands, superblocks, values as bits of f32. */
#ifndef WEBGPU_ONE_PASS_H
#define WEBGPU_ONE_PASS_H

#include "webgpu_kernel.h"

/* At least 1, so that a result is written for a tensor of no elements, too. */
uint64_t webgpu_superblocks_of(const tm_operand *x);

uint32_t webgpu_refuses_one_pass(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand);

/* The outermost axis, into parts of whole superblocks. */
int webgpu_split_one_pass(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change);

/* Appends `fn x_value(e: u32) -> u32` of input 0 (z_value of input 1): element e as bits of an f32; and block_word for blocks. */
void webgpu_say_values(webgpu_plan *plan, uint32_t input, uint32_t format);

#endif
