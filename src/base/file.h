/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - regular files, opened for reading only.  A file is what it was when it was opened: reading past a truncation
 * or finding another file under its name is TM_ERROR_CHANGED, never fewer bytes and never a signal.  A buffer in memory
 * can stand in for a file.  After opening, all functions but close and park may be called from any thread at once.
 */
#ifndef TM_BASE_FILE_H
#define TM_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/pool.h"
#include "tensormorph/types.h"

typedef struct tm_file tm_file;

#define TM_FILE_MAP 0x1u        /* map it if the system lets us; else it is read */

/* TM_ERROR_ARGUMENT (empty path), TM_ERROR_NOT_FOUND, TM_ERROR_IO (unreadable, a directory, a pipe ...), TM_ERROR_NO_MEMORY */
tm_status tm_file_open(tm_memory *memory, const char *path, uint32_t flags, tm_file **out_file, tm_error *error);

/* A file that is `size_bytes` at `bytes`, which must stay until close.  `name` is used in messages.   TM_ERROR_NO_MEMORY */
tm_status tm_file_wrap(tm_memory *memory, const char *name, const void *bytes, uint64_t size_bytes, tm_file **out_file,
                       tm_error *error);
void tm_file_close(tm_file *file);

/* How many handles the process may have at once. */
uint64_t tm_file_handle_limit(void);

/* Gives the system's handle back.  From now on each read opens the file anew and makes sure that it is the same one. */
void tm_file_park(tm_file *file);

const char *tm_file_path(const tm_file *file);
/* The path fit for messages: escaped, and its beginning left out if it is long. */
const char *tm_file_label(const tm_file *file);
uint64_t    tm_file_size(const tm_file *file);
bool        tm_file_is_in_memory(const tm_file *file);          /* made by tm_file_wrap */
/* All bytes of a mapped or wrapped file, else NULL.  They live until close. */
const void *tm_file_bytes(const tm_file *file);

/* Of a mapped file: as tm_mapping_forget_pages. */
void tm_file_forget_pages(const tm_file *file, tm_pool *pool);

/* Exactly the bytes [offset, offset + bytes).   TM_ERROR_ARGUMENT (beyond the size), TM_ERROR_IO, TM_ERROR_CHANGED */
tm_status tm_file_read(const tm_file *file, uint64_t offset, void *out_data, uint64_t bytes, tm_error *error);

/* TM_ERROR_CHANGED when size, time of change or identity moved since opening, or when a mapped page could not be read. */
tm_status tm_file_check_unchanged(const tm_file *file, tm_error *error);

#endif
