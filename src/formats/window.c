/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/window.h"

#include <stdbool.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"

#define FIRST_PIECE_BYTES (UINT64_C(8) << 10)

tm_status tm_window_init(tm_window *window, tm_memory *memory, const tm_file *file, tm_error *error) {
  const uint64_t capacity = tm_min_u64(tm_file_size(file), TM_WINDOW_BYTES);
  unsigned char *buffer = tm_memory_alloc(memory, capacity, 0);
  if (buffer == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "%s: no memory to read the header", tm_file_label(file));
  *window = (tm_window){ .memory = memory, .file = file, .buffer = buffer, .capacity = capacity };
  return TM_OK;
}

void tm_window_deinit(tm_window *window) {
  tm_memory_free(window->memory, window->buffer, window->capacity);
  *window = (tm_window){ 0 };
}

uint64_t tm_window_offset(const tm_window *window) { return window->begin + window->position; }
uint64_t tm_window_remaining(const tm_window *window) { return tm_file_size(window->file) - tm_window_offset(window); }

/* Moves the buffer so that it begins at the next byte, and fills it.  After a leap little is read at first: between two leaps
   there may be only a few bytes to see. */
static tm_status refill(tm_window *window, uint64_t needed, tm_error *error) {
  const uint64_t offset = tm_window_offset(window);
  const bool is_leap = window->position > window->filled || window->filled == 0;
  window->piece = is_leap ? FIRST_PIECE_BYTES : tm_min_u64(4 * window->piece, window->capacity);
  const uint64_t bytes = tm_min_u64(tm_min_u64(tm_max_u64(needed, window->piece), window->capacity), tm_window_remaining(window));
  TM_TRY(tm_file_read(window->file, offset, window->buffer, bytes, error));
  window->begin = offset;
  window->filled = bytes;
  window->position = 0;
  return TM_OK;
}

tm_status tm_window_take(tm_window *window, uint64_t bytes, const unsigned char **out_bytes, tm_error *error) {
  if (window->position > window->filled || window->filled - window->position < bytes) TM_TRY(refill(window, bytes, error));
  *out_bytes = window->buffer + window->position;
  window->position += bytes;
  return TM_OK;
}

void tm_window_skip(tm_window *window, uint64_t bytes) { window->position += bytes; }

void tm_window_seek(tm_window *window, uint64_t offset) {
  if (offset >= window->begin) {
    window->position = offset - window->begin;
    return;
  }
  window->begin = offset;
  window->filled = 0;
  window->position = 0;
}
