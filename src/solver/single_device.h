/* SPDX-License-Identifier: Apache-2.0 */
/* single_device.h - everything on one device, and what that cannot do wherever it costs least then. */
#ifndef TM_SOLVER_SINGLE_DEVICE_H
#define TM_SOLVER_SINGLE_DEVICE_H

#include "solver/label_groups.h"

/* The devices worth a plan, those that can do the most first, then the cheapest: out_chosen[0 ... result) are groups, `most`
   at most.  `viable`: by label, TM_SOLVER_NEVER: not to be chosen. */
tm_status tm_single_device_list(const tm_problem_index *index, const tm_label_groups *groups, const uint64_t *viable,
                                uint32_t most, tm_arena *arena, uint32_t *out_chosen, uint32_t *out_count, tm_error *error);

/* Labels for a plan on the device `group`.  false: there is no such plan, step by step at least. */
bool tm_single_device_choose(const tm_problem_index *index, const tm_label_groups *groups, const uint64_t *viable,
                             uint32_t group, uint32_t *out_labels);

#endif
