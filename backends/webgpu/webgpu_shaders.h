/* SPDX-License-Identifier: Apache-2.0 */
/* webgpu_shaders.h - the .wgsl files of this folder as text, one array a file, made at build (embed_wgsl.cmake). */
#ifndef WEBGPU_SHADERS_H
#define WEBGPU_SHADERS_H

/* NUL-terminated; webgpu_<name>.wgsl is webgpu_wgsl_<name>. */
extern const char webgpu_wgsl_attention[];
extern const char webgpu_wgsl_bits[];
extern const char webgpu_wgsl_elementwise[];
extern const char webgpu_wgsl_exact[];
extern const char webgpu_wgsl_lerp[];
extern const char webgpu_wgsl_move[];
extern const char webgpu_wgsl_transcendental[];

/* ---- reductions, products, norms, blocks ---- */
extern const char webgpu_wgsl_block[];
extern const char webgpu_wgsl_compare_tensors[];
extern const char webgpu_wgsl_dequantize[];
extern const char webgpu_wgsl_digits[];
extern const char webgpu_wgsl_double[];
extern const char webgpu_wgsl_line[];
extern const char webgpu_wgsl_matmul[];
extern const char webgpu_wgsl_matmul_float[];
extern const char webgpu_wgsl_matmul_float_tile[];
extern const char webgpu_wgsl_matmul_float_vector[];
extern const char webgpu_wgsl_matmul_integer[];
extern const char webgpu_wgsl_no_block[];
extern const char webgpu_wgsl_norm[];
extern const char webgpu_wgsl_quantize[];
extern const char webgpu_wgsl_reduce[];
extern const char webgpu_wgsl_reduce_extreme[];
extern const char webgpu_wgsl_reduce_integer[];
extern const char webgpu_wgsl_reduce_sum[];
extern const char webgpu_wgsl_rope[];
extern const char webgpu_wgsl_softmax[];
extern const char webgpu_wgsl_stats[];
extern const char webgpu_wgsl_update[];
extern const char webgpu_wgsl_weighted_sum[];
extern const char webgpu_wgsl_wide[];

#endif
