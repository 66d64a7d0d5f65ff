/* SPDX-License-Identifier: Apache-2.0 */
/* merge_lane.h - what a lane does with a piece of a merge before and after it runs: inputs are read, results are looked at and
   written. */
#ifndef TM_JOBS_MERGE_LANE_H
#define TM_JOBS_MERGE_LANE_H

#include "base/content_hash.h"
#include "jobs/job.h"
#include "jobs/merge_open.h"

/* What all lanes share. */
typedef struct tm_merge_lanes {
  tm_merge_plan  *plan;
  tm_job         *job;
  tm_runner       runner;
  tm_mutex        lock;                 /* of what follows, and of the comparisons of open tensors */
  tm_content_hash hashes[TM_MERGE_MOST_SOURCES];
} tm_merge_lanes;

/* Inputs and settings of a piece: where they are, or in the room.   TM_ERROR_NO_MEMORY, as tm_archive_read, tm_runner_run */
tm_status tm_merge_lane_load(tm_merge_lanes *lanes, const tm_work_stream_piece *piece, tm_work_stream_room *room,
                             void **out_pointers, tm_error *error);
/* Of a computed piece: blocks are made, differences measured, inputs hashed, bytes written.   As tm_runner_run, and
   tm_checkpoint_writer_write */
tm_status tm_merge_lane_deliver(tm_merge_lanes *lanes, const tm_work_stream_piece *piece, tm_work_stream_room *room,
                                void *const *pointers, tm_error *error);

/* Adds what was read of a tensor of that name: bytes that begin with unit `unit`.  Each unit is a piece, so the hash of a tensor
   does not depend on what was done with it, or how it was cut. */
void tm_merge_hash_add(tm_string name, uint32_t format, uint64_t unit, const void *data, uint64_t bytes, tm_content_hash *hash);

/* Puts the tensor's name in front of what is wrong with it; returns the status. */
tm_status tm_merge_name_tensor(const tm_merge_item *item, tm_status status, tm_error *error);

#endif
