/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trial.h - which kinds of work a device has yet to prove itself with.  A kind is an operation with the formats of its
 * operands.  Its first runs are watched, the next one is the first to be made directly, and from then on nothing is looked
 * at but one counter.  [any thread]
 */
#ifndef TM_PLUGIN_TRIAL_H
#define TM_PLUGIN_TRIAL_H

#include "plugin/inventory.h"
#include "plugin/work_kind.h"

#define TM_TRIAL_RUNS 3u        /* watched runs that must end well */

typedef struct tm_trial {
  struct tm_trial *next;
  tm_work_kind     kind;
  _Atomic uint32_t clean_runs;
  _Atomic(struct tm_lasting_mark *) lasting;    /* NULL: not needed so far */
  /* Of the checks of its results (execute/sampled_check.h). */
  _Atomic uint64_t worked_ns;           /* that the device worked */
  _Atomic uint64_t checked_ns;          /* what was spent on checks, by the reference's price */
  _Atomic uint64_t check_count;
  _Atomic uint64_t run_count;           /* runs that were accounted for */
} tm_trial;

/* The device's trial of this kind of work; lives as long as the inventory.  NULL: it is not on trial. */
tm_trial *tm_trial_find(tm_device_slot *device, const tm_operation *operation);
/* Whether the device has proved itself with this kind of work; with TM_OP_NONE: with any. */
bool      tm_trial_is_passed(tm_device_slot *device, const tm_work_kind *kind);
void      tm_trial_free_all(tm_device_slot *device);

static inline uint32_t tm_trial_clean_runs(const tm_trial *trial) {
  return trial == NULL ? UINT32_MAX : atomic_load_explicit(&trial->clean_runs, memory_order_relaxed);
}
/* Its runs are watched. */
static inline bool tm_trial_is_watched(const tm_trial *trial) { return tm_trial_clean_runs(trial) < TM_TRIAL_RUNS; }
/* Nothing is to be taken care of any more. */
static inline bool tm_trial_is_over(const tm_trial *trial) { return tm_trial_clean_runs(trial) > TM_TRIAL_RUNS; }
/* A run ended well. */
static inline void tm_trial_pass(tm_trial *trial) { atomic_fetch_add_explicit(&trial->clean_runs, 1, memory_order_relaxed); }

#endif
