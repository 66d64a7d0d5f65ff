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

#define TM_CANDIDATE_TEXT_BYTES 256

/* What something costs on a device: as declared, and what the correction is looked up by. */
typedef struct tm_price_basis {
  const tm_device_slot *device;
  tm_correction_key     key;
  uint64_t              declared_ns;
  uint64_t              copied_bytes;   /* into and out of the device's own memory */
} tm_price_basis;

typedef struct tm_plan_candidate {
  tm_device_slot   *device;
  uint32_t          verdict;            /* TM_VERDICT_*; SLOWER until one is chosen */
  uint32_t          padding;
  tm_operation      operation;          /* as the device sees it; operands points below */
  tm_operand        operands[TM_MAX_OPERANDS];
  tm_trial         *trial;              /* of this kind of work on the device; NULL: it need not prove itself */
  tm_answer         promise;            /* what the device answered: prepare gets it back as it was */
  tm_answer         answer;             /* the same, with a cost where none was given and composed with the lowering */
  tm_lowering       lowering;
  tm_price_basis    basis;
  tm_price_basis    step_bases[TM_MAX_CHANGES]; /* of the cheapest way to carry out each step of the lowering */
  tm_correction_estimate estimate;
  uint64_t          lowering_ns;
  uint64_t          copy_ns;
  uint64_t          total_ns;
  _Atomic(tm_kernel *) kernel;          /* prepared when first needed; NULL may be a valid handle */
  _Atomic bool      is_prepared;
  _Atomic bool      holds_operands;     /* a run never came back and may still use what it was given */
  _Atomic uint64_t  runs;
  _Atomic uint32_t  lacks;              /* times in a row that it lacked memory */
  _Atomic bool      is_starved;         /* it lacked memory more than once: others come first for a while */
  char              reason[TM_CANDIDATE_TEXT_BYTES];
} tm_plan_candidate;

/* What candidates are made from and priced with. */
typedef struct tm_market {
  tm_inventory  *inventory;
  tm_correction *correction;
  tm_health     *health;
} tm_market;

/* Largest number of candidates that a request can have on an inventory: each device as it is, and with a lowering. */
uint32_t tm_candidate_most(const tm_inventory *inventory);

/* Asks every device once, and where it proposes changes once more with them, and prices all that can.  Fills `candidates`
   (room for tm_candidate_most).  `normal` is the request's operation after tm_op_normalize; its attributes must outlive the
   candidates.  Returns their number. */
uint32_t tm_candidates_evaluate(const tm_market *market, const tm_operation *normal, uint32_t only_device, bool with_lowerings,
                                tm_plan_candidate *candidates);

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
