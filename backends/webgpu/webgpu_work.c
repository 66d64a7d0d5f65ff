/* SPDX-License-Identifier: Apache-2.0 */
#include "webgpu_work.h"

/* Units in a microsecond: of an ordinary card, a guess from its integer and f32 rates, and of two processor cores, as
   measured on lavapipe.  Emulated f64 gains more from a card than memory does, so a common share of one will not do. */
static const struct { double card, processor; } rates[] = {
  [WEBGPU_WORK_SUM]        = { 20000, 125 },   [WEBGPU_WORK_PART]            = { 60000, 130 },
  [WEBGPU_WORK_STATS]      = { 10000, 75 },    [WEBGPU_WORK_COMPARE]         = { 3000, 25 },
  [WEBGPU_WORK_SOFTMAX]    = { 6000, 50 },     [WEBGPU_WORK_NORM]            = { 3000, 25 },
  [WEBGPU_WORK_DEQUANTIZE] = { 40000, 400 },   [WEBGPU_WORK_QUANTIZE]        = { 4000, 80 },
  [WEBGPU_WORK_PRODUCT]    = { 300000, 2000 }, [WEBGPU_WORK_INTEGER_PRODUCT] = { 300000, 3000 },
};

uint64_t webgpu_work_ns(const webgpu_limits *limits, webgpu_work work, double units, double bytes) {
  const double rate = limits->is_processor ? rates[work].processor : rates[work].card, ns = units * 1000.0 / rate;
  const uint64_t memory_ns = webgpu_cost_ns(limits, 0, 1, bytes);
  return ns > (double)memory_ns ? ns < 1e15 ? (uint64_t)ns : UINT64_C(1000000000000000) : memory_ns;
}
