/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.h - the next token: the likeliest, or one drawn by its probability; the same seed gives the same tokens. */
#ifndef LLAMA_SAMPLER_H
#define LLAMA_SAMPLER_H

#include <stdint.h>

typedef struct llama_sampler {
  double   temperature;         /* 0: always the likeliest, of equals the first */
  uint64_t seed;
} llama_sampler;

uint32_t llama_sampler_pick(llama_sampler *sampler, const float *logits, uint32_t count);

#endif
