/* SPDX-License-Identifier: Apache-2.0 */
/* campaign_worker.h - runs one phase of a campaign from some item on, usually in a process of its own. */
#ifndef CONFORMANCE_CAMPAIGN_WORKER_H
#define CONFORMANCE_CAMPAIGN_WORKER_H

#include "conformance/campaign.h"
#include "conformance/worker_journal.h"

typedef enum phase {
  PHASE_SURVEY,                 /* an item is a combination: is it claimed? */
  PHASE_MANNERS,                /* a check */
  PHASE_SERIAL,                 /* a round of a combination's cases, ranges one after the other */
  PHASE_THREADED,               /* likewise, ranges spread over threads */
  PHASE_COUNT
} phase;

typedef struct worker {
  const campaign         *campaign;
  const combination_list *list;
  const uint32_t         *order;        /* of the claims phases: indices into the list; of walks that of the operation's first
                                           combination plus the count of the list */
  uint32_t                order_count;
  uint32_t                round_count;
  journal                *journal;
  phase                   phase;
  uint64_t                end_ns;       /* 0: none */
  /* Takes what became of an item; false if it cannot. */
  bool                  (*deliver)(void *context, const report *r);
  void                   *context;
} worker;

uint32_t worker_item_count(const worker *w);
/* The combination of an item of any phase but manners. */
uint32_t worker_combination(const worker *w, uint32_t item);
/* The number-th question about the combination at `index`; not all numbers make one. */
bool worker_question(const worker *w, uint32_t index, uint32_t number, question *out_question);
/* Behind the last combination of the operation whose first one is at `begin`. */
uint32_t worker_walk_end(const combination_list *list, uint32_t begin);
/* Whether `more_ns` from now the time of the phase is over. */
bool worker_is_over(const worker *w, uint64_t more_ns);
/* Items from `from` on.  When the device does not open the journal says why.  Stops early when time is over. */
journal_ending worker_run(const worker *w, uint32_t from);
/* Opens the device, counts its neighbours and closes it: all into the journal. */
journal_ending worker_try_open(const campaign *c, journal *j);

#endif
