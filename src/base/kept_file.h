/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_file.h - small files that are kept from one run to the next, in a folder shared by any number of processes: a file
 * appears whole or not at all, also when the machine stops meanwhile, and one that is damaged is told from one that is not.
 * A line with a checksum stands in front of the content.
 */
#ifndef TM_BASE_KEPT_FILE_H
#define TM_BASE_KEPT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "tensormorph/types.h"

/* Makes the folder and those above it that are missing, for their owner only.   TM_ERROR_IO: it cannot be made, it belongs to
   somebody else (but the superuser), or anybody may write to it */
tm_status tm_kept_folder_make(const char *folder, tm_error *error);

/* The content; free *out_data with *out_bytes.  TM_ERROR_NOT_FOUND, TM_ERROR_CORRUPT (damaged), TM_ERROR_LIMIT (more than
   `most_bytes`), TM_ERROR_IO, TM_ERROR_NO_MEMORY */
tm_status tm_kept_file_read(tm_memory *memory, const char *path, uint64_t most_bytes, char **out_data, uint64_t *out_bytes,
                            tm_error *error);
/* Writes it whole; when that fails nothing has changed.   TM_ERROR_IO */
tm_status tm_kept_file_replace(const char *path, const void *data, uint64_t bytes, tm_error *error);
void      tm_kept_file_remove(const char *path);

/* The same without a checksum in front, for content that can tell by itself what of it is damaged. */
tm_status tm_plain_file_read(tm_memory *memory, const char *path, uint64_t most_bytes, char **out_data, uint64_t *out_bytes,
                             tm_error *error);
tm_status tm_plain_file_replace(const char *path, const void *data, uint64_t bytes, tm_error *error);
/* Adds to the end of the file, which is made if it is not there.   TM_ERROR_IO: then nothing of it is, if that can be undone */
tm_status tm_plain_file_append(const char *path, const void *data, uint64_t bytes, tm_error *error);

/* Removes the files of the folder whose names begin so; returns their number. */
uint32_t tm_kept_folder_remove(const char *folder, const char *beginning);
/* Keeps at most `most_count` files in the folder, the youngest. */
void tm_kept_folder_trim(tm_memory *memory, const char *folder, uint64_t most_count);

#endif
