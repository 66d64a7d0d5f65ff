/* SPDX-License-Identifier: Apache-2.0 */
/* webgpu_matmul.h - what the families of matrix products share: shapes, strides and the text in front of the shaders. */
#ifndef WEBGPU_MATMUL_H
#define WEBGPU_MATMUL_H

#include "kernel_shape.h"
#include "webgpu_kernel.h"

#define WEBGPU_MATMUL_B 1u
#define WEBGPU_MATMUL_BLOCKS 3u         /* the parameter that counts blocks */

typedef struct webgpu_matmul {
  kernel_product shape;
  uint32_t       tile_rows;
} webgpu_matmul;

/* 0 where ranks do not fit each other, or attributes them. */
int webgpu_matmul_make(const tm_operation *operation, webgpu_matmul *out_matmul);

/* Elements of 1, 2 or 4 bytes on whole strides, or b in blocks along k; counts that fit the shaders' words. */
uint32_t webgpu_refuses_matmul(const webgpu_limits *limits, const tm_operation *operation, uint32_t *out_operand);

/* Rows, columns or batches; never along k. */
int webgpu_split_matmul(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change);

/* Bindings, TILE_ROWS, a_quad and b_quad. */
void webgpu_say_matmul(const webgpu_limits *limits, const tm_operation *operation, const webgpu_matmul *matmul, webgpu_plan *plan);

/* Blocks of y, each made by one workgroup. */
uint64_t webgpu_matmul_blocks(const webgpu_limits *limits, const webgpu_matmul *matmul);

/* A pass with the parameters of webgpu_matmul.wgsl. */
webgpu_pass *webgpu_add_matmul_pass(const webgpu_limits *limits, const tm_operation *operation, const webgpu_matmul *matmul,
                                    const char *entry, uint64_t workgroups, uint64_t scan_count, webgpu_plan *plan);

#endif
