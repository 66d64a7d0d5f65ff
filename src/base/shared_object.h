/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_object.h - what an ELF file says of itself, read as data: none of its code runs, and nothing in it is believed.
 * Every offset, count and size is checked against the file, so that a truncated or hostile file gives a reason and nothing
 * worse.
 */
#ifndef TM_BASE_SHARED_OBJECT_H
#define TM_BASE_SHARED_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "tensormorph/types.h"

/* Where the bytes come from.  read gives exactly [offset, offset + bytes), or false. */
typedef struct tm_byte_source {
  bool (*read)(void *context, uint64_t offset, void *out_data, uint64_t bytes);
  void    *context;
  uint64_t size_bytes;
} tm_byte_source;

#define TM_SHARED_OBJECT_ADDRESS_SANITIZER 0x1u
#define TM_SHARED_OBJECT_THREAD_SANITIZER  0x2u
#define TM_SHARED_OBJECT_MEMORY_SANITIZER  0x4u

typedef struct tm_shared_object {
  uint32_t entry_count;         /* definitions of the entry that others can link to */
  uint32_t export_count;        /* definitions of anything that others can link to */
  uint32_t sanitizers;          /* TM_SHARED_OBJECT_*: runtimes that it calls */
  bool     wants_executable_stack;
  char     needed[512];         /* libraries that it is linked to, "a, b"; cut where there are too many */
} tm_shared_object;

/* `path` is for messages, `entry` the symbol that is counted.
   TM_ERROR_CORRUPT: no shared object for this machine, truncated, or not what the dynamic loader could read */
tm_status tm_shared_object_read(const tm_byte_source *source, const char *path, const char *entry,
                                tm_shared_object *out_object, tm_error *error);

#endif
