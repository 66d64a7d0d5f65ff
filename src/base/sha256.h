/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.h - the hash by which a file's author says which bytes are meant (FIPS 180-4). */
#ifndef TM_BASE_SHA256_H
#define TM_BASE_SHA256_H

#include <stdint.h>

#define TM_SHA256_BYTES 32u

typedef struct tm_sha256 {
  uint32_t state[8];
  uint64_t byte_count;
  uint8_t  block[64];
} tm_sha256;

void tm_sha256_init(tm_sha256 *hash);
void tm_sha256_add(tm_sha256 *hash, const void *data, uint64_t bytes);
/* Nothing may be added afterwards. */
void tm_sha256_finish(tm_sha256 *hash, uint8_t out_digest[TM_SHA256_BYTES]);

#endif
