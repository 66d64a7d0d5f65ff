/* SPDX-License-Identifier: Apache-2.0 */
/* lowered_candidate.h - what makes candidates, for candidate.c and lowered_candidate.c, which call each other: a lowering
   may leave an operation that is lowered again. */
#ifndef TM_SCHEDULE_LOWERED_CANDIDATE_H
#define TM_SCHEDULE_LOWERED_CANDIDATE_H

#include "schedule/candidate.h"

/* What the device makes of a request with normalized operands, as it is and after its own proposal: fills one or two. */
uint32_t tm_candidates_evaluate_device(const tm_market *market, const tm_request *whole, tm_device_slot *device,
                                       tm_plan_candidate *candidates);

/* Fills `candidate` (zeroed, with its device) with what the device makes of the request after its proposal; false when that leads
 * nowhere. */
bool tm_candidate_lower(const tm_market *market, const tm_request *whole, const tm_answer *proposal, tm_plan_candidate *candidate);

void tm_candidate_bind(tm_plan_candidate *candidate, const tm_operation *operation);
/* Devices that are not asked at all say why. */
bool tm_candidate_is_out(const tm_market *market, uint32_t only_device, tm_plan_candidate *candidate);
void tm_candidate_ask(const tm_market *market, tm_plan_candidate *candidate);

/* What an operation costs on the device by its own word, however high.  Without one the core's count of work stands in, at a
   rate that any device reaches.  `moved` is the operation as far as it is copied to the device: operands that are there already are empty. */
tm_price_basis tm_candidate_basis(const tm_market *market, const tm_device_slot *device, const tm_operation *operation,
                                  const tm_operation *moved, uint64_t declared_ns);

/* Of an answer of the candidate's device about its operation. */
void tm_candidate_note_setups(const tm_market *market, tm_plan_candidate *candidate, const tm_answer *answer);
void tm_candidate_add_setup(tm_plan_candidate *candidate, const tm_setup_item *item);
/* Once basis, times, lowering and set-ups are known. */
void tm_candidate_take_price(const tm_market *market, tm_plan_candidate *candidate);

#endif
