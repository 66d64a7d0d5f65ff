/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dynamic_library.h - opening shared objects, with everything checked that can be checked before their code runs.
 * Libraries are never unloaded: threads and exit handlers of what they load would run into nothing.
 */
#ifndef TM_BASE_DYNAMIC_LIBRARY_H
#define TM_BASE_DYNAMIC_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/shared_object.h"
#include "tensormorph/types.h"

/* Which file it is, whatever name leads to it, and in which state.  Never all zero. */
typedef struct tm_file_identity {
  uint64_t device;
  uint64_t inode;
  uint64_t size_bytes;
  uint64_t modified_ns;
  uint64_t changed_ns;          /* also by what puts the time of modification back */
} tm_file_identity;

/* Is it a regular file, not empty, and writable by its owner only?   TM_ERROR_NOT_FOUND, TM_ERROR_IO, TM_ERROR_CORRUPT */
tm_status tm_library_identify(const char *path, tm_file_identity *out_identity, tm_error *error);

/* The same, and what it says of itself as a shared object; `entry` is the symbol that is counted.  Runs no code of it. */
tm_status tm_library_examine(const char *path, const char *entry, tm_shared_object *out_object, tm_error *error);

/* Loads it for good, symbols resolved now and kept to itself.  Runs its constructors. */
tm_status tm_library_open(const char *path, void **out_library, tm_error *error);

/* The address of `symbol` if this very file defines it; TM_ERROR_NOT_FOUND otherwise.  The address is copied into the
   function pointer at *out_function, which C does not let a cast do. */
tm_status tm_library_symbol(void *library, const char *path, const char *symbol, void *out_function, tm_error *error);

/* Whether a code address lies in the file of that path. */
bool tm_library_contains(const char *path, const void *function_pointer);

/* The folder of the shared object or program that holds `address` (of code or of a constant); false if unknown or too long. */
bool tm_library_folder(const void *address, char *folder, uint64_t capacity);

#endif
