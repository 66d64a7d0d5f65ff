/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_file.h - small files that the library keeps for itself, in a folder that any number of processes share: files that
 * belong to one process as long as it lives, and files that are replaced as a whole.
 */
#ifndef TM_BASE_STATE_FILE_H
#define TM_BASE_STATE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "tensormorph/types.h"

/* Makes the folder, and those above it that are missing.   TM_ERROR_IO */
tm_status tm_state_folder_make(const char *folder, tm_error *error);

/* An open file that no other process, nor another part of this one, has at the same time. */
typedef struct tm_state_file {
  int descriptor;               /* -1: none */
} tm_state_file;

/* A new file of that name, which must not exist.   TM_ERROR_IO */
tm_status tm_state_file_create(const char *path, tm_state_file *out_file, tm_error *error);
/* A file that exists (or is made, if `make`).  TM_BUSY: somebody has it.   TM_ERROR_IO */
tm_status tm_state_file_claim(const char *path, bool make, tm_state_file *out_file, tm_error *error);
void      tm_state_file_close(tm_state_file *file);

/* All or nothing as far as the caller can tell: false if not all bytes went there. */
bool     tm_state_file_write(const tm_state_file *file, uint64_t offset, const void *data, uint64_t bytes);
/* The number of bytes that were there. */
uint64_t tm_state_file_read(const tm_state_file *file, uint64_t offset, void *out_data, uint64_t bytes);

/* Writes the whole file anew; whoever reads it sees the old or the new content.   TM_ERROR_IO, TM_ERROR_NO_MEMORY */
tm_status tm_state_file_replace(tm_memory *memory, const char *path, const void *data, uint64_t bytes, tm_error *error);
/* The content in memory to be freed by the caller with *out_bytes.  TM_ERROR_NOT_FOUND, TM_ERROR_IO, TM_ERROR_LIMIT (larger
   than `most_bytes`), TM_ERROR_NO_MEMORY */
tm_status tm_state_file_load(tm_memory *memory, const char *path, uint64_t most_bytes, char **out_data, uint64_t *out_bytes,
                             tm_error *error);
void      tm_state_file_remove(const char *path);

/* A number that no other running process has. */
uint64_t tm_process_number(void);

#endif
