/* SPDX-License-Identifier: Apache-2.0 */
/* philox.h - Philox4x32-10: random words from a counter and a key, so that any element's word can be had on its own. */
#ifndef TM_OPS_PHILOX_H
#define TM_OPS_PHILOX_H

#include <stdint.h>

#define TM_PHILOX_WORDS 4u

/* The four words of the 128-bit counter whose upper half is 0. */
static inline void tm_philox(uint64_t counter, uint64_t key, uint32_t *out_words) {
  uint32_t x[TM_PHILOX_WORDS] = { (uint32_t)counter, (uint32_t)(counter >> 32), 0, 0 };
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int round = 0; round < 10; round++) {
    const uint64_t a = (uint64_t)x[0] * UINT32_C(0xd2511f53), b = (uint64_t)x[2] * UINT32_C(0xcd9e8d57);
    x[0] = (uint32_t)(b >> 32) ^ x[1] ^ k0;
    x[2] = (uint32_t)(a >> 32) ^ x[3] ^ k1;
    x[1] = (uint32_t)b;
    x[3] = (uint32_t)a;
    k0 += UINT32_C(0x9e3779b9);
    k1 += UINT32_C(0xbb67ae85);
  }
  for (uint32_t i = 0; i < TM_PHILOX_WORDS; i++) out_words[i] = x[i];
}

#endif
