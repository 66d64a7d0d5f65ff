/* SPDX-License-Identifier: Apache-2.0 */
/* mapping.h - a whole file as read-only memory that never raises a signal: pages that can no longer be read become zeros. */
#ifndef TM_BASE_MAPPING_H
#define TM_BASE_MAPPING_H

#include <stdint.h>

#include "base/fault_guard.h"
#include "base/pool.h"
#include "tensormorph/types.h"

typedef struct tm_mapping {
  const void     *bytes;
  uint64_t        byte_count;           /* of the file; the pages reach further */
  tm_fault_range *range;
} tm_mapping;

/* Maps `byte_count` bytes (> 0) of an open file.  TM_UNSUPPORTED when the system or the guard refuses: read instead. */
tm_status tm_mapping_init(tm_mapping *mapping, int descriptor, uint64_t byte_count);
/* A mapping with `bytes` NULL is accepted. */
void tm_mapping_deinit(tm_mapping *mapping);

/* Gives back what its pages take in the process's tables, with all cores of the pool; unmapping does that with one, which takes long
   where much was read.  Who reads them again has the file's bytes again. */
void tm_mapping_forget_pages(const tm_mapping *mapping, tm_pool *pool);

/* The lowest offset at which the file could not be read, or TM_NO_FAULT.  Any thread. */
uint64_t tm_mapping_fault_offset(const tm_mapping *mapping);

#endif
