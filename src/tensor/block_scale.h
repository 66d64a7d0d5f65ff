/* SPDX-License-Identifier: Apache-2.0 */
/* block_scale.h - what block formats share: scales kept as f16, and f32 values behind f64 ones. */
#ifndef TM_TENSOR_BLOCK_SCALE_H
#define TM_TENSOR_BLOCK_SCALE_H

#include "tensor/codec.h"

float tm_block_scale_load(const unsigned char *f16_bytes);
void  tm_block_scale_store(float scale, unsigned char *out_f16_bytes);

/* Rounds `count` values to f32 and returns the magnitude of the largest: +Inf or NaN if any is not finite. */
float tm_block_to_f32(const double *values, uint32_t count, float *out_values);

#endif
