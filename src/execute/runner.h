/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner.h - carries out a request: takes its placement, runs the choice, and when a device fails goes on to the next
 * best.  While one candidate is left the caller gets its result; what failed is counted and reported, never silent.
 */
#ifndef TM_EXECUTE_RUNNER_H
#define TM_EXECUTE_RUNNER_H

#include "execute/kept_constants.h"
#include "execute/scratch.h"
#include "schedule/placement.h"

typedef struct tm_runner {
  tm_placement_table *table;
  tm_scratch         *scratch;
  tm_kept_constants  *kept;
  const _Atomic uint32_t *cancelled;    /* not 0: whoever waits wants to go; NULL: never */
  bool                is_strict;        /* what the chosen device fails at fails */
  const uint8_t      *denied;           /* by device: 1 if it must not be used; NULL: all may */
  uint64_t            repeats;          /* runs of this kind that the caller declared; 0: unknown */
  struct tm_last_word *last_word;       /* where a call says why it asked nobody else; NULL: nobody wants to know */
} tm_runner;

#define TM_RUN_NOTE_BYTES 256

typedef struct tm_last_word {
  bool is_held;                         /* the device may still use the operands */
  char note[TM_RUN_NOTE_BYTES];         /* what it failed with; "": others were asked */
} tm_last_word;

/* What happened; the text says what fell back and why ("" if nothing did). */
typedef struct tm_run_outcome {
  uint32_t device;
  uint32_t level;
  uint32_t numerics;
  uint32_t retries;
  uint32_t fell_back;           /* a promise was broken */
  uint32_t watched;             /* the run was one by which the device proves itself */
  uint64_t expected_ns;
  uint64_t measured_ns;
  const struct tm_trial *trial; /* stands for that kind and device; NULL: nobody keeps account of it */
  char     note[TM_RUN_NOTE_BYTES];
} tm_run_outcome;

/* pointers: addresses of the operands' first elements.  out_outcome may be NULL.
   TM_ERROR_ARGUMENT (see tm_op_check), TM_ERROR_NO_DEVICE (text names every candidate and its reason), TM_ERROR_NO_MEMORY,
   TM_ERROR_CANCELLED, TM_ERROR_INTERNAL (hung, and may still use the operands); if strict, what tm_runner_told_status makes of
   what a device fails with */
tm_status tm_runner_run(const tm_runner *runner, const tm_request *request, void *const *pointers, tm_run_outcome *out_outcome,
                        tm_error *error);

/* The same for operands of known origin: origins[i] stands for the bytes of a constant operand i (tm_kept_new_origin), for
   as long as they lie there unchanged; 0 where nobody promised that.  NULL: 0 for all. */
tm_status tm_runner_run_from(const tm_runner *runner, const tm_request *request, void *const *pointers, const uint64_t *origins,
                             tm_run_outcome *out_outcome, tm_error *error);

/* The same for a placement that the caller has acquired: first the candidate at `index`, then whoever is next best. */
tm_status tm_runner_run_candidate(const tm_runner *runner, tm_placement *placement, uint32_t index, void *const *pointers,
                                  const uint64_t *origins, tm_run_outcome *out_outcome, tm_error *error);

/* What a caller is told where nobody else makes good for a device's failure: what a device says of itself is passed on only where
   it says what the caller's own documents mean by it; anything else, numbers that no status has included, is TM_ERROR_INTERNAL. */
tm_status tm_runner_told_status(const tm_runner *runner, tm_status status);

/* What a failed run of the candidate means for its device: a lost one is retired, a broken promise is held against it.  The
   note is a sentence about it. */
void tm_runner_note_failure(const tm_runner *runner, tm_plan_candidate *candidate, tm_status status, const tm_error *error,
                            char out_note[TM_RUN_NOTE_BYTES]);
/* Likewise where nobody knows which work it was: only a lost device has consequences. */
void tm_runner_note_device(const tm_runner *runner, tm_device_slot *device, tm_status status, const tm_error *error,
                           char out_note[TM_RUN_NOTE_BYTES]);

#endif
