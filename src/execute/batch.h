/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.h - many small runs in one go.  A device with memory of its own, or one that takes work without waiting for it, spends
 * most of a small run on moving a few bytes and on being waited for.  Here the operands of many lie side by side in memory of the
 * library's own: one upload, a launch each, one download, and two waits for all.  The kernels are those that single runs use, so
 * the results are the same bits.
 *
 * Only what needs no care joins: proven work whose kernel is prepared, in the form that the device takes.  Whatever does not
 * join, or was in a batch that failed, is run by itself (runner.h), which knows how to make good.  [one thread at a time]
 */
#ifndef TM_EXECUTE_BATCH_H
#define TM_EXECUTE_BATCH_H

#include "execute/runner.h"

#define TM_BATCH_MOST 64u
#define TM_BATCH_BYTES (UINT64_C(1) << 20)      /* of all inputs, and of all outputs */

/* Where operands of one use lie. */
typedef struct tm_batch_area {
  uint64_t         bytes;               /* in use */
  tm_scratch_block block;               /* its host memory */
  char            *host;
  tm_buffer       *buffer;              /* while it runs: the device's, or the host memory */
} tm_batch_area;

#define TM_BATCH_INPUTS    0
#define TM_BATCH_OUTPUTS   1
#define TM_BATCH_WORKSPACE 2
#define TM_BATCH_AREAS     3

typedef struct tm_batch_item {
  tm_placement      *placement;
  tm_plan_candidate *candidate;
  uint64_t           offsets[TM_MAX_OPERANDS + 1];      /* in the areas; the last is the workspace */
} tm_batch_item;

typedef struct tm_batch {
  const tm_runner *runner;
  tm_device_slot  *device;              /* that of all items */
  uint32_t         count;
  uint64_t         taken_ns;            /* by the last run */
  tm_batch_area    areas[TM_BATCH_AREAS];
  tm_batch_item    items[TM_BATCH_MOST];
} tm_batch;

void tm_batch_init(tm_batch *batch, const tm_runner *runner);
void tm_batch_deinit(tm_batch *batch);

/* Whether an inventory has a device at all that a batch is for. */
bool tm_batch_is_wanted(const tm_inventory *inventory);

/* Adds a run, if it may join those that are in it. */
bool tm_batch_add(tm_batch *batch, const tm_request *request);
/* Copies the inputs of the item at `index` into it. */
void tm_batch_put(tm_batch *batch, uint32_t index, void *const *pointers);
/* Runs all.  If that takes longer than they would one by one, as far as is known, their prices learn of it.  After a failure
   nothing is to be used of it; it was told of (tm_runner_note_failure).
   TM_ERROR_CANCELLED, TM_ERROR_NO_MEMORY, what the device fails with */
tm_status tm_batch_run(tm_batch *batch, tm_error *error);
/* Of an item that ran: its outputs, and what is to be said of it. */
const void *tm_batch_result(const tm_batch *batch, uint32_t index, uint32_t output);
void        tm_batch_outcome(const tm_batch *batch, uint32_t index, tm_run_outcome *out_outcome);
/* Forgets the items. */
void tm_batch_clear(tm_batch *batch);

#endif
