/* SPDX-License-Identifier: Apache-2.0 */
/* varint.h - integers of varying length: 7 bits a byte, the lowest first, all bytes but the last with their high bit set. */
#ifndef TM_FORMATS_VARINT_H
#define TM_FORMATS_VARINT_H

#include <stdint.h>

#define TM_VARINT_MAX_BYTES 10u

typedef enum tm_varint_state { TM_VARINT_PART, TM_VARINT_WHOLE, TM_VARINT_TOO_LONG } tm_varint_state;

/* Begins as zero. */
typedef struct tm_varint {
  uint64_t value;
  uint32_t bytes;
} tm_varint;

/* Bits beyond the 64th are dropped, as the encoding's readers do. */
static inline tm_varint_state tm_varint_push(tm_varint *varint, unsigned char byte) {
  varint->value |= (uint64_t)(byte & 0x7f) << (7 * varint->bytes);
  varint->bytes++;
  if (byte < 0x80) return TM_VARINT_WHOLE;
  return varint->bytes == TM_VARINT_MAX_BYTES ? TM_VARINT_TOO_LONG : TM_VARINT_PART;
}

#endif
