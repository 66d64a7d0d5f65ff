/* SPDX-License-Identifier: Apache-2.0 */
/* webgpu_number.h - formats as families with webgpu_wide.wgsl see them. */
#ifndef WEBGPU_NUMBER_H
#define WEBGPU_NUMBER_H

#include "webgpu_kernel.h"

/* 1: a signed integer, -1: an unsigned one, 0: none; of 1 to 8 bytes, bool not included. */
int webgpu_number_sign(uint32_t format);

/* Appends Y_BYTES, and Y_FRACTION_BITS and Y_EXPONENTS, what wide_to_narrow asks for; of f64, f32, f16 and bf16. */
void webgpu_say_result(webgpu_plan *plan, uint32_t format);

/* Of a row that computes on integers what the operation's definition says: equal bits everywhere. */
#define WEBGPU_BIT_EQUAL                                                                                                \
  .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N0,                                                                 \
  .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE

#endif
