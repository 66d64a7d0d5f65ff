/* SPDX-License-Identifier: Apache-2.0 */
/* label_price.h - what a run of a node costs with one of its candidates, part by part; the parts add up to the label's cost. */
#ifndef TM_SCHEDULE_LABEL_PRICE_H
#define TM_SCHEDULE_LABEL_PRICE_H

#include "schedule/candidate.h"

typedef struct tm_label_price {
  uint64_t run_ns;              /* declared * correction */
  uint64_t lowering_ns;
  uint64_t staging_ns;          /* from and to host memory, where it cannot be given operands where they lie */
  uint64_t setup_ns;            /* a run's share of what is paid once */
} tm_label_price;

/* Of a node that runs `repeats` times; `shared_ns` is a run's part of what it pays together with others (setup_shares.h). */
tm_label_price tm_label_price_of(const tm_plan_candidate *candidate, bool is_direct, uint64_t repeats, uint64_t shared_ns);
uint64_t       tm_label_price_sum(const tm_label_price *price);

#endif
