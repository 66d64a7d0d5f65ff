/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.h - little-endian integers at any address, on any machine. */
#ifndef TM_FORMATS_BYTES_H
#define TM_FORMATS_BYTES_H

#include <stdint.h>

static inline uint64_t tm_load_le(const unsigned char *bytes, uint32_t count) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < count; i++) value |= (uint64_t)bytes[i] << (8 * i);
  return value;
}

static inline uint32_t tm_load_u32(const unsigned char *bytes) { return (uint32_t)tm_load_le(bytes, 4); }
static inline uint64_t tm_load_u64(const unsigned char *bytes) { return tm_load_le(bytes, 8); }

#endif
