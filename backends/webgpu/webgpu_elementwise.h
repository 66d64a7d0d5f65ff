/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webgpu_elementwise.h - what elementwise families share.  A family says the WGSL of
 *     fn body(a: u32, b: u32, c: u32) -> u32
 * from the bits of one element of each input (zero for those that the operation lacks) to those of the output.  It may use
 * webgpu_bits.wgsl and, by the formats of the last input and the output:
 *     fn wide(v: u32) -> u32            the bits of the f32 with that value; an integer's 32 bits, its sign extended;
 *                                       0 or 1 of a bool
 *     fn narrow(v: u32) -> u32          from the bits of an f32, one rounding; an integer's low bits
 *     fn less(a: u32, b: u32) -> bool   of wide values; false for a NaN
 *     const SIGN: u32                   the input's uppermost bit
 */
#ifndef WEBGPU_ELEMENTWISE_H
#define WEBGPU_ELEMENTWISE_H

#include "webgpu_kernel.h"

typedef enum webgpu_kind { WEBGPU_NO_NUMBER, WEBGPU_FLOAT, WEBGPU_SIGNED, WEBGPU_UNSIGNED } webgpu_kind;

/* Of the formats of 1, 2 and 4 bytes that can be computed with; bool counts as unsigned. */
webgpu_kind webgpu_kind_of(uint32_t format);

/* WGSL's name of a float format in webgpu_bits.wgsl ("f16"); NULL for others. */
const char *webgpu_float_name(uint32_t format);

/* Predicates.  Inputs of any strides that are multiples of the element, a dense output; elements that can be computed with
   (numbers), or of 1, 2, 4 and 8 bytes whatever they are (moves). */
uint32_t webgpu_refuses_numbers(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand);
uint32_t webgpu_refuses_moves(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand);

uint64_t webgpu_cost_elementwise(const webgpu_limits *limits, const tm_operation *operation);

/* Appends wide, narrow, less and SIGN. */
void webgpu_say_conversions(webgpu_plan *plan, const tm_operation *operation);

/* Appends how elements are loaded and stored, and adds the pass; `body` must be said as well.  With an output of 8 bytes
   an element, body gets and gives its words one by one. */
void webgpu_plan_elements(const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan);

/* All of it for a body that is one statement or more. */
void webgpu_plan_body(const webgpu_limits *limits, const tm_operation *operation, const char *body, webgpu_plan *out_plan);

/* A row's `plan` where its body serves every format. */
void webgpu_plan_row(const webgpu_row *row, const webgpu_limits *limits, const tm_operation *operation, webgpu_plan *out_plan);

/* webgpu_bits and webgpu_elementwise; the same with webgpu_exact between them. */
extern const char *const webgpu_elementwise_shaders[];
extern const char *const webgpu_exact_shaders[];

/* Of a row that works on bits: equal everywhere. */
#define WEBGPU_EXACT                                                                                                    \
  .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N0,                                                                 \
  .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE, .cost_ns = webgpu_cost_elementwise

#endif
