/* SPDX-License-Identifier: Apache-2.0 */
/* window.h - reads a file mostly from front to back in large pieces, so that a header of a million small fields costs few reads. */
#ifndef TM_FORMATS_WINDOW_H
#define TM_FORMATS_WINDOW_H

#include <stdint.h>

#include "base/file.h"
#include "base/memory.h"

/* The most that tm_window_take gives at once. */
#define TM_WINDOW_BYTES (UINT64_C(256) << 10)

typedef struct tm_window {
  tm_memory      *memory;
  const tm_file  *file;
  unsigned char  *buffer;
  uint64_t        capacity;
  uint64_t        begin;        /* offset in the file of buffer[0] */
  uint64_t        filled;       /* bytes in the buffer */
  uint64_t        position;     /* of the next byte, in the buffer */
  uint64_t        piece;        /* read last */
} tm_window;

/* TM_ERROR_NO_MEMORY */
tm_status tm_window_init(tm_window *window, tm_memory *memory, const tm_file *file, tm_error *error);
void      tm_window_deinit(tm_window *window);

/* Offset in the file of the next byte, and bytes from there to the end of the file. */
uint64_t tm_window_offset(const tm_window *window);
uint64_t tm_window_remaining(const tm_window *window);

/* The next `bytes` bytes (<= TM_WINDOW_BYTES and <= remaining), valid until the next call. */
tm_status tm_window_take(tm_window *window, uint64_t bytes, const unsigned char **out_bytes, tm_error *error);
/* Passes over any number of bytes (<= remaining). */
void tm_window_skip(tm_window *window, uint64_t bytes);
/* The next byte is the one at `offset` (<= the size of the file), which may lie before what has been read. */
void tm_window_seek(tm_window *window, uint64_t offset);

#endif
