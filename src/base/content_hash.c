/* SPDX-License-Identifier: Apache-2.0 */
#include "base/content_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Sums do not depend on the order; that the index is the seed keeps exchanged pieces apart. */
void tm_content_hash_add(tm_content_hash *hash, uint64_t index, const void *data, uint64_t bytes) {
  const XXH128_hash_t piece = XXH3_128bits_withSeed(data, (size_t)bytes, index);
  hash->low += piece.low64;
  hash->high += piece.high64;
}

void tm_content_hash_merge(tm_content_hash *hash, const tm_content_hash *part) {
  hash->low += part->low;
  hash->high += part->high;
}

uint64_t tm_hash_number(const void *data, uint64_t bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(data, (size_t)bytes, seed);
}
