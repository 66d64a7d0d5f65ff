/* SPDX-License-Identifier: Apache-2.0 */
/*
 * candidate.h - one way to run a request: a device, what is done to operands first, its answer, and the price of it all.
 */
#ifndef TM_SCHEDULE_CANDIDATE_H
#define TM_SCHEDULE_CANDIDATE_H

#include "plugin/trial.h"
#include "schedule/correction.h"
#include "schedule/health.h"
#include "schedule/lowering.h"
#include "schedule/setup_ledger.h"

#define TM_CANDIDATE_SETUPS 6

typedef struct tm_plan_candidate {
  tm_device_slot   *device;
  uint32_t          verdict;            /* TM_VERDICT_*; SLOWER until one is chosen */
  uint32_t          setup_count;
  tm_operation      operation;          /* as the device sees it; operands points below */
  tm_operand        operands[TM_MAX_OPERANDS];
  tm_trial         *trial;              /* of this kind of work on the device; NULL: it need not prove itself */
  tm_answer         promise;            /* what the device answered: prepare gets it back as it was */
  tm_answer         answer;             /* the same, with a cost where none was given and composed with the lowering */
  tm_lowering      *lowering;           /* NULL: there is none; from the market's memory */
  tm_price_basis    basis;
  uint64_t          times;              /* that the operation runs: parts of a split */
  tm_correction_estimate estimate;
  uint64_t          lowering_ns;
  uint64_t          copy_ns;
  uint64_t          total_ns;
  tm_setup_item     setups[TM_CANDIDATE_SETUPS];        /* what is to be paid once */
  uint64_t          constant_ns;        /* the same, once for each set of constants */
  uint64_t          setup_key;          /* by which its kernel's own set-up is learned; the same in every process */
  bool              has_tried_tile;     /* see exploration.h; under the placement's lock */
  uint64_t          repeats;            /* that the caller declared: each bears its part of what is paid once; 0: unknown */
  tm_setup_due      due;                /* of both, when it was last looked at */
  _Atomic(tm_kernel *) kernel;          /* prepared when first needed; NULL may be a valid handle */
  _Atomic bool      is_prepared;
  bool              is_being_prepared;  /* under the placement's lock */
  _Atomic bool      holds_operands;     /* a run never came back and may still use what it was given */
  _Atomic bool      is_paid;            /* its set-ups, but for those of constants */
  _Atomic bool      is_device_known;    /* something was measured on the device: for those that hold no lock */
  _Atomic uint64_t  runs;
  _Atomic uint64_t  prepare_ns;         /* what preparing took, until that is learned */
  _Atomic uint64_t  first_ns;           /* what the first launch took */
  _Atomic uint64_t  alone_ns;           /* expected of a run by itself, when many at once took longer; 0: they did not */
  _Atomic uint64_t  check_count;        /* times that some of its results were looked at */
  _Atomic uint64_t  check_least_ns;     /* what the next look takes at least; 0: not known */
  _Atomic int32_t   surprises;          /* measured runs in a row that took much longer (> 0) or shorter (< 0) than was expected */
  _Atomic uint64_t  tried_ns;           /* set aside for a try that nothing was learned from yet */
  _Atomic uint32_t  lacks;              /* times in a row that it lacked memory, or that its data were no good for it */
  _Atomic bool      is_starved;         /* it did more than once: others come first for a while */
  char              reason[TM_CANDIDATE_TEXT_BYTES];
} tm_plan_candidate;

/* What candidates are made from and priced with. */
typedef struct tm_market {
  tm_inventory    *inventory;
  tm_correction   *correction;
  tm_health       *health;
  tm_setup_ledger *setups;
  tm_memory       *memory;
  const _Atomic uint32_t *cancelled;    /* not 0: whoever asks wants to go, and what it gets means nothing; NULL: never */
} tm_market;

/* What copies between the host's memory and the device's own are learned by (correction.h). */
uint32_t tm_candidate_link_in(const tm_market *market, const tm_device_slot *device);
uint32_t tm_candidate_link_out(const tm_market *market, const tm_device_slot *device);

/* Largest number of candidates that a request can have on an inventory: each device as it is, and with a lowering. */
uint32_t tm_candidate_most(const tm_inventory *inventory);

/* Asks every device once, and where it proposes changes again with them, and prices all that can.  Fills `candidates`
   (room for tm_candidate_most), to be cleared after use.  The request's attributes must outlive them.  Returns their number. */
uint32_t tm_candidates_evaluate(const tm_market *market, const tm_request *request, tm_plan_candidate *candidates);
/* Frees what hangs off them. */
void     tm_candidates_clear(const tm_market *market, tm_plan_candidate *candidates, uint32_t count);

/* What it has to pay once and did not earn so far, item by item, but for constants; at most TM_CANDIDATE_SETUPS. */
uint32_t tm_candidate_open_items(const tm_market *market, const tm_plan_candidate *candidate, tm_setup_item *out_items);
/* What the candidate still has to pay once; `constants_key` (see tm_request_constants_key) says for which constants, 0 if that is not
 * known. */
tm_setup_due tm_candidate_due(const tm_market *market, const tm_plan_candidate *candidate, uint64_t constants_key);
/* Time that went elsewhere because of that. */
void     tm_candidate_credit(const tm_market *market, const tm_plan_candidate *candidate, uint64_t constants_key, uint64_t ns);
/* It ran. */
void     tm_candidate_pay(const tm_market *market, const tm_plan_candidate *candidate, uint64_t constants_key);
/* Its time, and what it has to pay once: all that it did not earn yet, or a part by declared repeats.  What is compared. */
uint64_t tm_candidate_price_ns(const tm_plan_candidate *candidate);
/* Whether a goes before b, both of which can run, where so many runs are declared (0: it is not known how many). */
bool     tm_candidate_is_before(const tm_plan_candidate *a, const tm_plan_candidate *b, uint64_t repeats);
bool     tm_candidate_has_setup(const tm_plan_candidate *candidate);

/* The first launch that was measured took so long: what it and preparing took beyond what launches take from now on is set-up. */
void     tm_candidate_learn_setup(const tm_market *market, tm_plan_candidate *candidate, uint64_t launch_ns);

/* The least that the candidate may turn out to cost, given how much is known of it. */
uint64_t tm_candidate_hoped_ns(const tm_plan_candidate *candidate);

/* Prices again with what was learned since. */
void tm_candidates_reprice(const tm_market *market, tm_plan_candidate *candidates, uint32_t count);

/* Index of the cheapest that can run, on a device that is still usable, and is not one of the indices `tried`; `count` if there is none.  Ties go by what a
   device is, never by its name or place in the list. */
uint32_t tm_candidates_best(const tm_plan_candidate *candidates, uint32_t count, const uint32_t *tried, uint32_t tried_count);

/* Indices, those that can run first, cheapest first. */
void tm_candidates_sort(const tm_plan_candidate *candidates, uint32_t count, uint32_t *out_order);

bool tm_candidate_can_run(const tm_plan_candidate *candidate);

#endif
