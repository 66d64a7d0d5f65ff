/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_stream.h - pairs of tensors compared, as a stream of TM_OP_COMPARE_TENSORS over tiles of both; the rows come in the order of
 * the pairs, each as soon as it and all before it are known.
 */
#ifndef TM_JOBS_DIFF_STREAM_H
#define TM_JOBS_DIFF_STREAM_H

#include "jobs/byte_comparison.h"
#include "jobs/diff_row.h"
#include "jobs/selection.h"

/* What all streams of a job share.  Of its thread. */
typedef struct tm_diff_setting {
  tm_job              *job;
  const tm_runner     *runner;
  tm_memory           *memory;
  const tm_job_source *sources;         /* a and b */
  bool                 are_same_files;  /* what cannot be read is equal there, too */
  uint32_t             worst_numerics;
  tm_byte_comparer     comparer;
  uint64_t             byte_compared_bytes;
  uint64_t             hidden_count;    /* of pairs */
  uint64_t             tile_bytes;      /* these two of both sides together */
  uint64_t             read_tile_bytes;
  tm_error             incomplete;      /* about the first tensor that its file ends before; code TM_OK: there was none */
} tm_diff_setting;

/* Compares all pairs, writes the rows of those that are no longer tentative, and says in each pair whether it has one.
   TM_ERROR_CHANGED, TM_ERROR_IO, TM_ERROR_CORRUPT (with the name of the tensor), TM_ERROR_NO_MEMORY, TM_ERROR_CANCELLED, as
   tm_work_stream_run */
tm_status tm_diff_stream_run(tm_diff_setting *setting, tm_diff_pair *pairs, uint64_t pair_count, tm_error *error);

#endif
