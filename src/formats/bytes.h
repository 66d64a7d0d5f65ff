/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.h - integers of either byte order at any address, on any machine. */
#ifndef TM_FORMATS_BYTES_H
#define TM_FORMATS_BYTES_H

#include <stdint.h>

static inline uint64_t tm_load_le(const unsigned char *bytes, uint32_t count) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < count; i++) value |= (uint64_t)bytes[i] << (8 * i);
  return value;
}

static inline uint64_t tm_load_be(const unsigned char *bytes, uint32_t count) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < count; i++) value = value << 8 | bytes[i];
  return value;
}

static inline void tm_store_le(unsigned char *bytes, uint64_t value, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) bytes[i] = (unsigned char)(value >> (8 * i));
}

static inline uint32_t tm_load_u32(const unsigned char *bytes) { return (uint32_t)tm_load_le(bytes, 4); }
static inline uint64_t tm_load_u64(const unsigned char *bytes) { return tm_load_le(bytes, 8); }

#endif
