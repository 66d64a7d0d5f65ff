/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placement.h - requests and where they go.  A placement is made once per distinct request and kept: a repeated request
 * costs one look-up, no question to any backend, no allocation.  It is made anew when an answer may have changed (the
 * inventory's generation), and looks at its prices again when something was learned (the correction's).  [any thread]
 */
#ifndef TM_SCHEDULE_PLACEMENT_H
#define TM_SCHEDULE_PLACEMENT_H

#include "schedule/candidate.h"

typedef struct tm_placement {
  struct tm_placement *next;            /* in its slot of the table */
  uint64_t             hash;
  uint64_t             generation;      /* of the inventory */
  _Atomic uint64_t     learned;         /* generation of the correction that the choice rests on */
  _Atomic uint32_t     chosen;          /* candidate index; candidate_count: nobody can */
  uint32_t             candidate_count;
  uint32_t             candidate_room;
  uint32_t             references;      /* under the table's lock */
  tm_mutex             lock;            /* prices and preparation */
  tm_request           request;
  tm_plan_candidate   *candidates;
} tm_placement;

typedef struct tm_placement_table {
  tm_market      market;
  tm_memory     *memory;
  tm_mutex       lock;
  tm_placement **slots;
  uint32_t       slot_count;            /* a power of two */
  uint32_t       count;
  _Atomic uint64_t query_count;         /* placements made: questions asked of all devices */
} tm_placement_table;

tm_status tm_placement_table_init(tm_placement_table *table, const tm_market *market, tm_memory *memory);
/* No placement is in use. */
void      tm_placement_table_deinit(tm_placement_table *table);

/* Finds or makes the placement of a request; release it after use.  Only a new request is checked: an equal one was.
   TM_ERROR_ARGUMENT, TM_ERROR_NO_MEMORY */
tm_status tm_placement_acquire(tm_placement_table *table, const tm_request *request, tm_placement **out_placement, tm_error *error);
void      tm_placement_release(tm_placement_table *table, tm_placement *placement);

/* The candidate's kernel, prepared now if it was not. */
tm_status tm_placement_kernel(tm_placement *placement, tm_plan_candidate *candidate, tm_kernel **out_kernel, tm_error *error);

/* After the candidates marked in `tried`; candidate_count if none is left. */
uint32_t tm_placement_next(tm_placement *placement, const bool *tried);

/* Tells what a run of the candidate took. */
void tm_placement_learn(tm_placement_table *table, tm_plan_candidate *candidate, uint64_t measured_ns);

#endif
