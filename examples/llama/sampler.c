/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler.h"

#include <math.h>

/* In [0, 1).  SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static double uniform(uint64_t *seed) {
  uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

static uint32_t likeliest(const float *logits, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; i++)
    if (logits[i] > logits[best]) best = i;
  return best;
}

static double weight(const llama_sampler *sampler, const float *logits, uint32_t i, uint32_t best) {
  return exp(((double)logits[i] - (double)logits[best]) / sampler->temperature);
}

uint32_t llama_sampler_pick(llama_sampler *sampler, const float *logits, uint32_t count) {
  const uint32_t best = likeliest(logits, count);
  if (!(sampler->temperature > 0)) return best;
  double sum = 0;
  for (uint32_t i = 0; i < count; i++) sum += weight(sampler, logits, i, best);
  double left = uniform(&sampler->seed) * sum;
  for (uint32_t i = 0; i < count; i++) {
    left -= weight(sampler, logits, i, best);
    if (left < 0) return i;
  }
  return best;
}
