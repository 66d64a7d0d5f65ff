/* SPDX-License-Identifier: Apache-2.0 */
/* explanation.h - why a request goes where it goes: every candidate with its price and verdict, evaluated afresh. */
#ifndef TM_SCHEDULE_EXPLANATION_H
#define TM_SCHEDULE_EXPLANATION_H

#include "base/arena.h"
#include "schedule/candidate.h"

/* Whom another class of numerics would choose. */
typedef struct tm_class_winner {
  const tm_device_slot *device;         /* NULL: nobody else, or it is the accepted class */
  bool                  is_lowered;
  uint64_t              price_ns;
} tm_class_winner;

struct tm_explanation {
  tm_memory         *memory;
  tm_market          market;
  tm_request         request;
  tm_work            work;
  uint64_t           repeats;           /* that the caller declared */
  tm_plan_candidate *candidates;
  uint32_t          *order;
  uint32_t           candidate_count;
  uint32_t           candidate_room;
  char               flip[TM_CANDIDATE_TEXT_BYTES];
  uint64_t           flip_price_ns;
  tm_class_winner    class_winners[TM_NUMERICS_N4 + 1];
};

/* TM_ERROR_ARGUMENT (see tm_op_check), TM_ERROR_NO_MEMORY */
tm_status tm_explanation_make(const tm_market *market, tm_memory *memory, const tm_request *request, uint64_t repeats,
                              struct tm_explanation **out_explanation, tm_error *error);

#endif
