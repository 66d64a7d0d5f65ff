/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content_hash.h - a hash of much data by pieces, which may come in any order and from any thread: equal content cut in the same
 * way has equal hashes, and 128 bits leave no room for chance.  It is no proof against somebody who makes collisions.
 */
#ifndef TM_BASE_CONTENT_HASH_H
#define TM_BASE_CONTENT_HASH_H

#include <stdint.h>

/* Zero-initialised: of nothing. */
typedef struct tm_content_hash {
  uint64_t low;
  uint64_t high;
} tm_content_hash;

/* Adds piece `index`, which is counted from the beginning of the content.  Each piece is added once.  All but one
   are to have more than 16 bytes: tiny ones of two places can be exchanged for others. */
void tm_content_hash_add(tm_content_hash *hash, uint64_t index, const void *data, uint64_t bytes);
/* Adds what another one has of the same content. */
void tm_content_hash_merge(tm_content_hash *hash, const tm_content_hash *part);

/* A number that stands for some bytes and a seed: XXH3 of 64 bits. */
uint64_t tm_hash_number(const void *data, uint64_t bytes, uint64_t seed);

#endif
