/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claimed_file.h - a file that belongs to one process as long as it lives, in a folder that any number of processes share: no
 * other process, nor another part of this one, has it at the same time.
 */
#ifndef TM_BASE_CLAIMED_FILE_H
#define TM_BASE_CLAIMED_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "tensormorph/types.h"

typedef struct tm_claimed_file {
  int descriptor;               /* -1: none */
} tm_claimed_file;

/* A new file of that name, which must not exist.   TM_ERROR_IO */
tm_status tm_claimed_file_create(const char *path, tm_claimed_file *out_file, tm_error *error);
/* A file that exists (or is made, if `make`).  TM_BUSY: somebody has it.   TM_ERROR_IO */
tm_status tm_claimed_file_open(const char *path, bool make, tm_claimed_file *out_file, tm_error *error);
/* To read from, whoever has it.   TM_ERROR_IO */
tm_status tm_claimed_file_look(const char *path, tm_claimed_file *out_file, tm_error *error);
void      tm_claimed_file_close(tm_claimed_file *file);

/* All or nothing as far as the caller can tell: false if not all bytes went there. */
bool     tm_claimed_file_write(const tm_claimed_file *file, uint64_t offset, const void *data, uint64_t bytes);
/* The number of bytes that were there. */
uint64_t tm_claimed_file_read(const tm_claimed_file *file, uint64_t offset, void *out_data, uint64_t bytes);

/* The file from its start as memory to write to, `bytes` long (it grows to that): what is stored there is in the file at once,
   also for those who come after this process has ended in whatever way.  It never raises a signal: when the file is cut
   meanwhile, what is stored is lost.  `bytes` is a multiple of TM_CLAIMED_FILE_UNIT.   TM_UNSUPPORTED: it cannot be had */
#define TM_CLAIMED_FILE_UNIT 65536u
typedef struct tm_claimed_memory {
  void    *bytes;               /* NULL: none */
  uint64_t byte_count;
  struct tm_fault_range *range;
} tm_claimed_memory;
tm_status tm_claimed_file_map(const tm_claimed_file *file, uint64_t bytes, tm_claimed_memory *out_memory);
void      tm_claimed_memory_deinit(tm_claimed_memory *memory);

/* A number that no other running process has. */
uint64_t tm_process_number(void);

#endif
