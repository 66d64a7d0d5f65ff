/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_scan.h - a tensor's bytes looked at by the threads of the pool, each byte read once: values that are not finite, whether
 * any is not zero, and if wanted the hash of all.  For formats that no operation computes with, and where positions are asked for.
 */
#ifndef TM_JOBS_HOST_SCAN_H
#define TM_JOBS_HOST_SCAN_H

#include "base/content_hash.h"
#include "base/pool.h"
#include "execute/scratch.h"
#include "formats/archive.h"
#include "tensor/value_scan.h"

typedef struct tm_host_part tm_host_part;

/* What scans share: belongs to one thread. */
typedef struct tm_host_scanner {
  tm_memory       *memory;
  tm_pool         *pool;
  tm_scratch      *scratch;
  tm_scratch_block room;                /* for bytes of files that are not mapped */
  tm_host_part    *parts;               /* one a lane of the pool */
  uint32_t         step_pieces;         /* that a step takes at the most */
  uint32_t         room_pieces;         /* that the room has, or will have, place for */
} tm_host_scanner;

/* TM_ERROR_NO_MEMORY.  Whatever comes back, it must be deinitialised. */
tm_status tm_host_scanner_init(tm_host_scanner *scanner, tm_memory *memory, tm_pool *pool, tm_scratch *scratch, tm_error *error);
void      tm_host_scanner_deinit(tm_host_scanner *scanner);

/* A range of a tensor, scanned step by step. */
typedef struct tm_host_scan {
  const tm_archive     *archive;
  uint64_t              tensor;
  const tm_format_info *info;
  uint64_t              next;           /* units of value_scan.h */
  uint64_t              end;
  bool                  is_hashed;      /* then from the tensor's beginning on */
  tm_value_scan         values;
  tm_content_hash       hash;
} tm_host_scan;

/* All of a tensor whose format is known. */
void tm_host_scan_init(tm_host_scan *scan, const tm_archive *archive, uint64_t tensor, bool is_hashed);
static inline bool tm_host_scan_is_done(const tm_host_scan *scan) { return scan->next == scan->end; }
/* Some megabytes more; out_bytes: how many.   TM_ERROR_NO_MEMORY, as tm_archive_read */
tm_status tm_host_scan_step(tm_host_scanner *scanner, tm_host_scan *scan, uint64_t *out_bytes, tm_error *error);

#endif
