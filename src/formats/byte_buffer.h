/* SPDX-License-Identifier: Apache-2.0 */
/* byte_buffer.h - bytes that are put together one after another: headers.  A buffer that ran out of memory stays failed. */
#ifndef TM_FORMATS_BYTE_BUFFER_H
#define TM_FORMATS_BYTE_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "tensormorph/types.h"

typedef struct tm_byte_buffer {
  tm_memory     *memory;
  unsigned char *bytes;         /* NULL: nothing yet */
  uint64_t       length;
  uint64_t       capacity;
  bool           failed;        /* there was no memory: `bytes` is incomplete */
} tm_byte_buffer;

void tm_byte_buffer_init(tm_byte_buffer *buffer, tm_memory *memory);
void tm_byte_buffer_deinit(tm_byte_buffer *buffer);

void tm_byte_buffer_add(tm_byte_buffer *buffer, const void *bytes, uint64_t count);
void tm_byte_buffer_add_text(tm_byte_buffer *buffer, const char *text);
/* Little-endian, the lowest `count` bytes. */
void tm_byte_buffer_add_number(tm_byte_buffer *buffer, uint64_t number, uint32_t count);
void tm_byte_buffer_add_decimal(tm_byte_buffer *buffer, uint64_t number);
/* Between quotes, escaped as JSON wants it.  Well-formed UTF-8 stays what it is; a byte that belongs to none becomes U+FFFD. */
void tm_byte_buffer_add_json(tm_byte_buffer *buffer, tm_string text);
/* Until its length is a multiple of `granule`. */
void tm_byte_buffer_pad(tm_byte_buffer *buffer, uint64_t granule, unsigned char byte);

#endif
