/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h - do the tensors of a file claim its bytes sensibly: each byte at most once, and in some formats exactly once? */
#ifndef TM_FORMATS_LAYOUT_H
#define TM_FORMATS_LAYOUT_H

#include "base/memory.h"
#include "formats/archive.h"

typedef struct tm_layout {
  const char *label;            /* of the file, for messages */
  uint64_t    data_begin;
  uint64_t    file_bytes;
  bool        has_gaps;         /* bytes that no tensor claims are allowed */
} tm_layout;

/* Tensors in any order; linear when they are sorted by offset.  offset + bytes of each must fit in 64 bits.  A file that
   ends too early is not this function's business.   TM_ERROR_CORRUPT, TM_ERROR_NO_MEMORY */
tm_status tm_layout_check(tm_memory *memory, const tm_layout *layout, const tm_archive_tensor *tensors, uint64_t count,
                          tm_error *error);

#endif
