/* SPDX-License-Identifier: Apache-2.0 */
/* merge_order.h - an order of checkpoints that depends on what they hold, not on where they lie or how they are named. */
#ifndef TM_JOBS_MERGE_ORDER_H
#define TM_JOBS_MERGE_ORDER_H

#include "base/memory.h"
#include "jobs/merge_settings.h"

/*
 * Gives each source its rank: by the tensors' names, formats and shapes in the order of the files, then by samples of their bytes,
 * then by all of their bytes.  Those that hold the same share one.  So of checkpoints that differ little is read, and copies are
 * read whole; sources that are the same checkpoint are not read at all.   As tm_archive_read, TM_ERROR_CANCELLED,
 * TM_ERROR_NO_MEMORY
 */
tm_status tm_merge_order_find(const tm_merge_settings *settings, tm_memory *memory, uint32_t *out_ranks, tm_error *error);

#endif
