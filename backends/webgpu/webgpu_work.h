/* SPDX-License-Identifier: Apache-2.0 */
/* webgpu_work.h - what the families that compute on integers, and matrix products, cost: one table of rates. */
#ifndef WEBGPU_WORK_H
#define WEBGPU_WORK_H

#include "webgpu_kernel.h"

typedef enum webgpu_work {
  WEBGPU_WORK_SUM,              /* a term in f64, likewise below an element */
  WEBGPU_WORK_PART,             /* a key or an integer */
  WEBGPU_WORK_STATS,
  WEBGPU_WORK_COMPARE,
  WEBGPU_WORK_SOFTMAX,
  WEBGPU_WORK_NORM,
  WEBGPU_WORK_DEQUANTIZE,
  WEBGPU_WORK_QUANTIZE,
  WEBGPU_WORK_PRODUCT,          /* a multiplication with its addition in f32 */
  WEBGPU_WORK_INTEGER_PRODUCT,
} webgpu_work;

/* The usual body of cost_ns: `units` of work, and bytes at the memory's rate; the slower of the two. */
uint64_t webgpu_work_ns(const webgpu_limits *limits, webgpu_work work, double units, double bytes);

#endif
