/* SPDX-License-Identifier: Apache-2.0 */
/* time_order.h - numbers put in the order of times that belong to them; those of one time stay as they come. */
#ifndef TM_SOLVER_TIME_ORDER_H
#define TM_SOLVER_TIME_ORDER_H

#include <stdint.h>

/* `numbers` and `room` have place for `count`; times_ns[number]. */
void tm_time_order_sort(uint32_t *numbers, uint32_t *room, uint32_t count, const uint64_t *times_ns);

#endif
