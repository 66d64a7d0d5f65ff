/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setup_shares.h - what a graph's nodes have to pay once (opening a device, a set-up that operations share), and how many of
 * them share it: it is paid once, whoever has a use for it.  First all nodes that could have one share; then only those that
 * took it at that price, until nobody leaves because of the others.  Where nobody stays, it was not worth it.
 */
#ifndef TM_SCHEDULE_SETUP_SHARES_H
#define TM_SCHEDULE_SETUP_SHARES_H

#include "schedule/candidate.h"

typedef struct tm_setup_share {
  uint64_t key;                 /* of tm_setup_item; 0: free */
  uint32_t sharer_count;        /* nodes */
  uint32_t taker_count;         /* of these, as placed */
  uint32_t last_placement;      /* + 1: that was counted, so that two candidates of a device count once */
  uint32_t reserved;
} tm_setup_share;

typedef struct tm_setup_shares {
  tm_setup_share *slots;        /* open addressing */
  uint64_t        slot_count;   /* a power of two; 0: nothing is due */
} tm_setup_shares;

/* Room for the items of so many candidates.   TM_ERROR_NO_MEMORY */
tm_status tm_setup_shares_init(tm_setup_shares *shares, tm_arena *arena, uint64_t candidate_count, tm_error *error);
/* So many nodes could run with this candidate of their placement. */
void      tm_setup_shares_add(tm_setup_shares *shares, const tm_market *market, const tm_plan_candidate *candidate, uint32_t placement,
                              uint32_t node_count);
/* One node does.  After the last: true if fewer take something than shared it, who then share it alone. */
void      tm_setup_shares_take(tm_setup_shares *shares, const tm_market *market, const tm_plan_candidate *candidate);
bool      tm_setup_shares_narrow(tm_setup_shares *shares);

/* A run's part of what the candidate has to pay once, but for constants, where the graph runs `repeats` times. */
uint64_t  tm_setup_shares_ns(const tm_setup_shares *shares, const tm_market *market, const tm_plan_candidate *candidate,
                             uint64_t repeats);

#endif
