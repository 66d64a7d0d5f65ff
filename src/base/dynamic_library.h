/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dynamic_library.h - opening shared objects, with everything checked that can be checked before their code runs.
 * Libraries are never unloaded: threads and exit handlers of what they load would run into nothing.
 */
#ifndef TM_BASE_DYNAMIC_LIBRARY_H
#define TM_BASE_DYNAMIC_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include "tensormorph/types.h"

/* Which file it is, whatever name leads to it. */
typedef struct tm_file_identity {
  uint64_t device;
  uint64_t inode;
} tm_file_identity;

/* Is it a regular file of this machine's kind of shared object, whole, and writable by its owner only?  Runs no code of it.
   TM_ERROR_NOT_FOUND, TM_ERROR_IO, TM_ERROR_CORRUPT (what it is instead) */
tm_status tm_library_examine(const char *path, tm_file_identity *out_identity, tm_error *error);

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
