/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_file.h - small files that are kept from one run to the next, in a folder shared by any number of processes: a file
 * appears whole or not at all, and one that is damaged is one that is not there.
 */
#ifndef TM_BASE_KEPT_FILE_H
#define TM_BASE_KEPT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "tensormorph/types.h"

/* Creates the folder and those above it, for its owner only.  false when it cannot be used: not there, or anybody may write
   to it. */
bool tm_kept_folder_prepare(const char *path);

/* The content of folder/name; false when there is none, or it is larger than `most_bytes` or damaged.  Free *out_data with
   *out_bytes. */
bool tm_kept_file_read(tm_memory *memory, const char *folder, const char *name, uint64_t most_bytes, void **out_data,
                        uint64_t *out_bytes);
/* Writes it whole; false when that fails, and then nothing has changed. */
bool tm_kept_file_write(const char *folder, const char *name, const void *data, uint64_t bytes);
void tm_kept_file_remove(const char *folder, const char *name);

/* Keeps at most `most_count` files in the folder, the youngest. */
void tm_kept_folder_trim(tm_memory *memory, const char *folder, uint64_t most_count);

#endif
