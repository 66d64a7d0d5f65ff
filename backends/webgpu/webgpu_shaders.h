/* SPDX-License-Identifier: Apache-2.0 */
/* webgpu_shaders.h - the .wgsl files of this folder as text, one array a file, made at build (embed_wgsl.cmake). */
#ifndef WEBGPU_SHADERS_H
#define WEBGPU_SHADERS_H

/* NUL-terminated; webgpu_<name>.wgsl is webgpu_wgsl_<name>. */
extern const char webgpu_wgsl_bits[];
extern const char webgpu_wgsl_elementwise[];
extern const char webgpu_wgsl_exact[];
extern const char webgpu_wgsl_move[];
extern const char webgpu_wgsl_transcendental[];

#endif
