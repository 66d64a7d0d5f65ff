/* SPDX-License-Identifier: Apache-2.0 */
/* requirement_change.h - what the plan would be with one requirement changed: the graph is placed again for each. */
#ifndef TM_SCHEDULE_REQUIREMENT_CHANGE_H
#define TM_SCHEDULE_REQUIREMENT_CHANGE_H

#include "schedule/graph_explanation.h"

/* Fills the explanation's changes: other classes of numerics, other numbers of runs, no limit of memory, each device that is not
   allowed, bits that differ from run to run, more resources.  None for a graph of over 20,000 nodes.   TM_ERROR_NO_MEMORY */
tm_status tm_requirement_changes_make(tm_plan_explanation *explanation, tm_error *error);

/* The change that brings the node to the device at the least time, after `lowering`, or whatever is done first (NULL), unless it
   is there now; with no device: to any other place.  TM_NO_CHANGE: none does. */
uint32_t tm_requirement_change_find(const tm_plan_explanation *explanation, uint32_t node, const tm_device_slot *device,
                                    const char *lowering);

/* Whether the node would not be where it is now. */
bool tm_requirement_change_moves(const tm_plan_explanation *explanation, const tm_requirement_change *change, uint32_t node);
/* Whether another number of runs, nearer to the declared one, brings the node to the same place. */
bool tm_requirement_change_is_farther(const tm_plan_explanation *explanation, uint32_t index, uint32_t node);

#endif
