/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <string.h>

#define BLOCK_BYTES 64u
#define LENGTH_AT 56u

/* FIPS 180-4, 4.2.2: the fractions of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = {
  0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u,
  0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u,
  0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau,
  0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u,
  0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
  0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u,
  0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
  0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u,
};

void tm_sha256_init(tm_sha256 *hash) {
  static const uint32_t start[8] = { 0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                                     0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u };
  memset(hash, 0, sizeof *hash);
  memcpy(hash->state, start, sizeof start);
}

static uint32_t turn(uint32_t value, unsigned by) { return (value >> by) | (value << (32 - by)); }

static void expand(const uint8_t *block, uint32_t words[64]) {
  for (unsigned i = 0; i < 16; i++)
    words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  for (unsigned i = 16; i < 64; i++) {
    const uint32_t low = turn(words[i - 15], 7) ^ turn(words[i - 15], 18) ^ words[i - 15] >> 3;
    const uint32_t high = turn(words[i - 2], 17) ^ turn(words[i - 2], 19) ^ words[i - 2] >> 10;
    words[i] = words[i - 16] + low + words[i - 7] + high;
  }
}

static void take_block(tm_sha256 *hash, const uint8_t *block) {
  uint32_t words[64], v[8];
  expand(block, words);
  memcpy(v, hash->state, sizeof v);
  for (unsigned i = 0; i < 64; i++) {
    const uint32_t high = turn(v[4], 6) ^ turn(v[4], 11) ^ turn(v[4], 25);
    const uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
    const uint32_t first = v[7] + high + choice + round_constants[i] + words[i];
    const uint32_t low = turn(v[0], 2) ^ turn(v[0], 13) ^ turn(v[0], 22);
    const uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += first;
    v[0] = first + low + majority;
  }
  for (unsigned i = 0; i < 8; i++) hash->state[i] += v[i];
}

void tm_sha256_add(tm_sha256 *hash, const void *data, uint64_t bytes) {
  const uint8_t *from = data;
  while (bytes != 0) {
    const uint64_t used = hash->byte_count % BLOCK_BYTES;
    const uint64_t part = bytes < BLOCK_BYTES - used ? bytes : BLOCK_BYTES - used;
    memcpy(hash->block + used, from, (size_t)part);
    hash->byte_count += part;
    from += part;
    bytes -= part;
    if (used + part == BLOCK_BYTES) take_block(hash, hash->block);
  }
}

void tm_sha256_finish(tm_sha256 *hash, uint8_t out_digest[TM_SHA256_BYTES]) {
  const uint64_t bits = hash->byte_count * 8;
  uint8_t length[8];
  for (unsigned i = 0; i < 8; i++) length[i] = (uint8_t)(bits >> (56 - 8 * i));
  tm_sha256_add(hash, "\x80", 1);
  while (hash->byte_count % BLOCK_BYTES != LENGTH_AT) tm_sha256_add(hash, "", 1);
  tm_sha256_add(hash, length, sizeof length);
  for (unsigned i = 0; i < TM_SHA256_BYTES; i++) out_digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}
