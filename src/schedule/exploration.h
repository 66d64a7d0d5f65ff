/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exploration.h - trying what may be cheaper than is known.  A device that was never seen to run something cannot be
 * corrected, so one that declares too high a cost would never be used.  One hundredth of the measured time goes into runs of
 * candidates whose cost may well be lower than that of the best: on repeated requests only, never where it could take long,
 * never where the snapshot is frozen or the caller wants the same bits every time.  Which, and when, depends on measured times
 * alone.  A price far above the core's own count of the work is doubted until the device was measured, and one try counts as
 * what the work comes to: as a price it stands all the same.
 *
 * A device of which nothing is known at all may also have declared too little.  Before real work is placed on it, a tile of
 * that work is computed there twice (execute/tile_trial.h).  [any thread]
 */
#ifndef TM_SCHEDULE_EXPLORATION_H
#define TM_SCHEDULE_EXPLORATION_H

#include "schedule/placement.h"

/* After a measurement: sees to it that the next run tries something, if that is worth it and there is time for it. */
void tm_exploration_consider(tm_placement_table *table, tm_placement *placement);
/* Runs of a tile: two, and those by which a device proves itself, of which nothing is learned. */
#define TM_TILE_RUNS (2 + TM_TRIAL_RUNS + 1)

/* What was set aside for a try becomes what it took. */
void tm_exploration_settle(tm_placement_table *table, tm_plan_candidate *candidate, uint64_t measured_ns);

/* Whether a tile is to be computed before the candidate gets the whole; then also into how many tiles it is to be cut. */
bool tm_exploration_wants_tile(tm_placement_table *table, tm_placement *placement, uint32_t candidate, uint64_t *out_tiles);

#endif
