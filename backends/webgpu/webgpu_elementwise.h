/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webgpu_elementwise.h - what elementwise families share.  A row's body is the WGSL of
 *     fn body(a: u32, b: u32, c: u32) -> u32
 * from the bits of one element of each input (zero for those that the operation lacks) to those of the output.  It may use
 * webgpu_bits.wgsl and, by the formats of input 0 and the output:
 *     fn wide(v: u32) -> u32        the bits of the f32 with that value; an integer's 32 bits, its sign extended
 *     fn real(v: u32) -> f32        the same as a number (floats only)
 *     fn narrow(v: u32) -> u32      from the bits of an f32, one rounding; an integer's low bits
 *     fn result(v: f32) -> u32      the same from a number (floats only)
 */
#ifndef WEBGPU_ELEMENTWISE_H
#define WEBGPU_ELEMENTWISE_H

#include "webgpu_kernel.h"

/* Inputs of any strides that are multiples of the element; a dense output; elements of 1, 2 or 4 bytes. */
uint32_t webgpu_refuses_elementwise(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand);

void webgpu_plan_elementwise(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation,
                             webgpu_plan *out_plan);

/* The same for a row that says its own `fn body` (or several functions) before. */
void webgpu_plan_elements(const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan);

/* WGSL's name of a float format in webgpu_bits.wgsl ("f16"); NULL for others. */
const char *webgpu_float_name(uint32_t format);

/* 1: signed, -1: unsigned (bool included), 0: no integer. */
int webgpu_integer_sign(uint32_t format);

uint64_t webgpu_cost_elementwise(const webgpu_limits *limits, const tm_operation *operation);

extern const char *const webgpu_elementwise_shaders[];

/* A row of a family of elementwise operations, its class still to be said. */
#define WEBGPU_ELEMENTWISE                                                                                              \
  .level = TM_LEVEL_NATIVE, .shaders = webgpu_elementwise_shaders, .refuses = webgpu_refuses_elementwise,               \
  .cost_ns = webgpu_cost_elementwise, .plan = webgpu_plan_elementwise

/* Computed on bits: equal everywhere. */
#define WEBGPU_EXACT                                                                                                    \
  .numerics = TM_NUMERICS_N0, .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE

#endif
