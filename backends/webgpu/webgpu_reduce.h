/* SPDX-License-Identifier: Apache-2.0 */
/* webgpu_reduce.h - what the families of reductions share: axes, strides, parts, and the text in front of the shaders. */
#ifndef WEBGPU_REDUCE_H
#define WEBGPU_REDUCE_H

#include "kernel_shape.h"
#include "webgpu_kernel.h"

/* Appends kept or reduced axes to a pass, innermost first, `room` of them. */
void webgpu_put_axes(webgpu_pass *pass, const kernel_axes *axes, uint32_t room);

/* Strides that are multiples of the elements (of 4 bytes for larger ones), and counts that fit the shaders' words. */
uint32_t webgpu_refuses_reduction(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand);

/* Only kept axes: parts of one output's terms are no operation of their own. */
int webgpu_split_reduction(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change);

/* Bindings, the size of an element of x, and whether one axis is reduced. */
void webgpu_say_reduction(const tm_operation *operation, const kernel_reduction *reduction, webgpu_plan *plan);

/* A pass with the parameters of webgpu_reduce.wgsl; `items` is its number of invocations. */
void webgpu_add_reduction_pass(const webgpu_limits *limits, const tm_operation *operation,
                               const kernel_reduction *reduction, const char *entry, uint64_t items, uint64_t part_count,
                               webgpu_plan *plan);

/* Into how many parts an output's terms go so that all invocations of a large device have something to do; 1 where there are
   enough outputs. */
uint64_t webgpu_reduction_parts(const kernel_reduction *reduction);

#endif
