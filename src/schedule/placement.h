/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placement.h - requests and where they go.  A placement is made once per distinct request and kept: a repeated request
 * costs one look-up, no question to any backend, no allocation.  It is made anew when an answer may have changed (the
 * inventory's generation), and looks at its prices again when something was learned (the correction's).
 *
 * A device that was never seen to run something cannot be corrected, so one that declares too high a cost would never be
 * used.  One hundredth of the measured time is therefore spent on candidates that may be cheaper than is known: on repeated
 * requests only, never where it could take long, never where the caller wants the same bits every time.  [any thread]
 */
#ifndef TM_SCHEDULE_PLACEMENT_H
#define TM_SCHEDULE_PLACEMENT_H

#include "schedule/candidate.h"

typedef struct tm_placement {
  struct tm_placement *next;            /* in its slot of the table */
  uint64_t             hash;
  uint64_t             generation;      /* of the inventory */
  _Atomic uint64_t     learned;         /* generation of the correction that the choice rests on */
  _Atomic uint32_t     patience;        /* choices until starved candidates are looked at again; 0: none is */
  _Atomic uint32_t     chosen;          /* candidate index; candidate_count: nobody can */
  _Atomic bool         has_setups;      /* a candidate has something to pay once: each choice looks at that */
  _Atomic uint32_t     explore;         /* candidate that the next run tries instead, or TM_EXPLORE_NONE */
  _Atomic uint64_t     settled;         /* generation of the correction at which nothing was left to be tried */
  _Atomic uint64_t     waiting;         /* the same, at which something is left, but not before so much was spent on all runs: */
  _Atomic uint64_t     enough_ns;
  uint32_t             candidate_count;
  uint32_t             references;      /* under the table's lock */
  tm_mutex             lock;            /* prices, and who prepares */
  tm_condition         prepared;        /* somebody is done with that */
  tm_request           request;
  tm_plan_candidate   *candidates;
} tm_placement;

#define TM_EXPLORE_NONE UINT32_MAX

typedef struct tm_placement_table {
  tm_market      market;
  tm_memory     *memory;
  tm_mutex       lock;
  tm_placement **slots;
  uint32_t       slot_count;            /* a power of two */
  uint32_t       count;
  _Atomic uint64_t query_count;         /* placements made: questions asked of all devices */
  _Atomic uint64_t spent_ns;            /* on all runs, as far as measured */
  _Atomic int64_t  explored_ns;         /* of that, what went into runs that only try something, or is set aside for them */
  _Atomic uint64_t placed_ns;           /* expected of all runs while a backend sleeps */
} tm_placement_table;

tm_status tm_placement_table_init(tm_placement_table *table, const tm_market *market, tm_memory *memory);
/* No placement is in use. */
void      tm_placement_table_deinit(tm_placement_table *table);

/* Finds or makes the placement of a request; release it after use.  Only a new request is checked: an equal one was.
   `cancelled`, here and below: not 0: the caller wants to go, and gets TM_ERROR_CANCELLED; NULL: it never does.
   TM_ERROR_ARGUMENT, TM_ERROR_NO_MEMORY, TM_ERROR_CANCELLED */
tm_status tm_placement_acquire(tm_placement_table *table, const tm_request *request, const _Atomic uint32_t *cancelled,
                               tm_placement **out_placement, tm_error *error);
void      tm_placement_release(tm_placement_table *table, tm_placement *placement);

/* Drops all placements that are not in use. */
void      tm_placement_table_drop(tm_placement_table *table);

/* One run that a candidate is chosen for. */
typedef struct tm_choice_site {
  void *const    *pointers;             /* both as for tm_runner_run_from */
  const uint64_t *origins;
  uint64_t        repeats;              /* that the caller declared; 0: unknown */
} tm_choice_site;

/* The candidate to run: the cheapest, what it has to pay once included (setup_ledger.h), or now and then one that may be
   cheaper than is known.  candidate_count: nobody can. */
uint32_t tm_placement_choose(tm_placement_table *table, tm_placement *placement, const tm_choice_site *site);
/* Looks at prices again if something was told since. */
void     tm_placement_refresh(tm_placement_table *table, tm_placement *placement);
/* The same in any case.  Under the placement's lock. */
void     tm_placement_reprice(tm_placement_table *table, tm_placement *placement);
/* It ran, so all that is paid once is paid. */
void     tm_placement_pay(tm_placement_table *table, tm_placement *placement, tm_plan_candidate *candidate, void *const *pointers,
                          const uint64_t *origins);

/* What a run would take now, without running anything. */
typedef struct tm_quote {
  uint64_t total_ns;                    /* UINT64_MAX: nobody can */
  uint64_t setup_ns;                    /* still to be paid before */
  uint32_t device;                      /* inventory index */
  bool     is_measured;                 /* work of the kind was measured on it */
} tm_quote;
/* Of the cheapest candidate.   As tm_placement_acquire */
tm_status tm_placement_quote(tm_placement_table *table, const tm_request *request, const _Atomic uint32_t *cancelled,
                             tm_quote *out_quote, tm_error *error);

/* The candidate's kernel, prepared now if it was not. */
tm_status tm_placement_kernel(tm_placement *placement, tm_plan_candidate *candidate, const _Atomic uint32_t *cancelled,
                              tm_kernel **out_kernel, tm_error *error);

/* A candidate that lacks memory twice in a row comes last for a number of choices, ever more of them if that was no help. */
void tm_placement_demote(tm_placement *placement, tm_plan_candidate *candidate);

/* The cheapest beside those in `tried`; candidate_count if none is left. */
uint32_t tm_placement_next(tm_placement *placement, const uint32_t *tried, uint32_t tried_count);
/* What the candidate is expected to cost as of now. */
uint64_t tm_placement_expect(tm_placement *placement, const tm_plan_candidate *candidate);

/* Tells what a run of the candidate took, without copies; `run_count` runs are judged by this one. */
void tm_placement_learn(tm_placement_table *table, tm_placement *placement, tm_plan_candidate *candidate, uint64_t measured_ns,
                        uint64_t run_count);

#endif
