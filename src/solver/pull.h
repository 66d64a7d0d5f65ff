/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull.h - who takes the next piece of a stream of independent work.  Nothing is shared out beforehand: each lane (a thread
 * that keeps one device busy) takes a piece when it has nothing to do, so that an estimate that is wrong costs at most the
 * pieces in flight.  Two questions are answered here, from numbers alone:
 *
 *     which piece      that for which the lane has most advantage over the others: they are left what suits them
 *     whether at all   only if the lane is done with it before the others, without it, are done with all that is left
 *
 * The second keeps the end of a stream from waiting for the slowest lane, and what has yet to be set up from being set up
 * for too little work.  A lane that was never measured is believed less.
 */
#ifndef TM_SOLVER_PULL_H
#define TM_SOLVER_PULL_H

#include <stdbool.h>
#include <stdint.h>

#define TM_PULL_MOST_LANES 16u
#define TM_PULL_DISTRUST   10u  /* times as long as declared is what a lane may take that nobody measured */

typedef struct tm_pull_lane {
  uint64_t bytes_done;
  uint64_t busy_ns;             /* that they took */
  bool     is_gone;             /* it takes no more */
} tm_pull_lane;

typedef struct tm_pull_state {
  tm_pull_lane lanes[TM_PULL_MOST_LANES];
  uint32_t     lane_count;
  uint64_t     bytes_left;      /* that no lane has taken */
} tm_pull_state;

/* What a lane makes of one piece. */
typedef struct tm_pull_offer {
  uint64_t own_ns;              /* TM_PULL_NEVER: it cannot */
  uint64_t setup_ns;            /* that it has to pay first, once */
  bool     is_measured;
} tm_pull_offer;
#define TM_PULL_NEVER UINT64_MAX

/* How long the lanes other than `lane` take for `bytes`, at the rates that they showed; TM_PULL_NEVER: none has shown any. */
uint64_t tm_pull_others_ns(const tm_pull_state *state, uint32_t lane, uint64_t bytes);

/* Whether the lane is done with a piece of what is left before the others are done with all of that. */
bool tm_pull_is_worth(const tm_pull_state *state, uint32_t lane, const tm_pull_offer *offer);

/* How much better the lane is at a piece of `bytes` than the others are at their usual rate: larger is better. */
double tm_pull_advantage(const tm_pull_state *state, uint32_t lane, uint64_t bytes, const tm_pull_offer *offer);

/* The least time in which the lanes, at the rates that they showed, could have done what they did: a bound for any way of
 * sharing it out. */
uint64_t tm_pull_bound_ns(const tm_pull_state *state);

#endif
