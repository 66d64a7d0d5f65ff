/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - long work in the background: a thread of its own, progress, typed rows that can be read while it runs, notes,
 * and how much each device did.  What a job does is a tm_job_work; what all jobs share is here.
 */
#ifndef TM_JOBS_JOB_H
#define TM_JOBS_JOB_H

#include "base/arena.h"
#include "base/thread.h"
#include "execute/runner.h"

/* The kind of work: what its rows are and how they come about. */
typedef struct tm_job_work {
  const tm_column *columns;
  uint32_t         column_count;
  /* On the job's thread.  Looks at tm_job_is_cancelled often enough to end within 100 ms. */
  tm_status (*run)(tm_job *job, void *state, tm_error *error);
  /* NULL, or [any thread, also in a signal handler]: more to tell of a cancel than the flag.  Before `run` and after it, too. */
  void (*cancel)(void *state);
  /* After the thread has ended. */
  void (*destroy)(tm_memory *memory, void *state);
} tm_job_work;

/* Everything that a new job needs; copied.  `state` goes to the work's functions and is destroyed with the job. */
typedef struct tm_job_plan {
  const tm_job_work *work;
  void              *state;
  tm_job_complete_fn complete;
  void              *complete_context;
} tm_job_plan;

/* Starts the thread.  On failure the state is destroyed, too.   TM_ERROR_NO_MEMORY */
tm_status tm_job_start(tm_memory *memory, tm_inventory *inventory, const tm_job_plan *plan, tm_job **out_job, tm_error *error);

/* ---- for the work, on the job's thread ---- */

/* That a row takes for each of its cells, beside texts and shapes. */
#define TM_JOB_CELL_BYTES 16u

bool tm_job_is_cancelled(const tm_job *job);
/* What is not 0 once it is: for a runner, which then does not wait for a device any longer than it must. */
const _Atomic uint32_t *tm_job_cancel_flag(const tm_job *job);
/* Room for so many rows, which is there then however much else is taken later.  Their texts are no part of it.   TM_ERROR_NO_MEMORY,
   TM_ERROR_CANCELLED */
tm_status tm_job_reserve_rows(tm_job *job, uint64_t count, tm_error *error);
/* Appends a row of column_count cells; texts and shapes are copied.  A count of UINT64_MAX is shown as undefined.
   TM_ERROR_NO_MEMORY */
tm_status tm_job_add_row(tm_job *job, const tm_cell *cells, tm_error *error);
/* Appends a sentence; one that is there already is not repeated. */
void tm_job_add_note(tm_job *job, const char *text);
/* Counts an operation on a device. */
void tm_job_count_use(tm_job *job, const tm_run_outcome *outcome, uint64_t bytes);
/* A device computed a piece of the row of that name: for the end, when it may have turned out to be wrong. */
void tm_job_count_piece(tm_job *job, const tm_run_outcome *outcome, tm_string name);
/* How much there is to do, as soon as that is known; until then progress shows totals of 0. */
void tm_job_set_totals(tm_job *job, uint64_t bytes, uint64_t items);
void tm_job_advance(tm_job *job, uint64_t bytes, uint64_t items);

#endif
