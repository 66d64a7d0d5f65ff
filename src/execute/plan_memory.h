/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_memory.h - a plan's memory while it can be replayed: blocks, buffers, kernels, what constants and states are in
 * memory of a device's own, and launches that name all of it.
 */
#ifndef TM_EXECUTE_PLAN_MEMORY_H
#define TM_EXECUTE_PLAN_MEMORY_H

#include "execute/plan.h"

/* All kernels are prepared.  Afterwards the program is bound, or nothing has changed.
   TM_ERROR_NO_MEMORY, and what a device says to an upload or a buffer */
tm_status tm_plan_bind(tm_plan *plan, tm_error *error);
/* States go to host memory before, unless their device is gone: then they are lost. */
void      tm_plan_unbind(tm_plan *plan);

/* Launches follow to where this run has inputs and outputs. */
void tm_plan_point(tm_plan *plan);

/* What no run changes stays in host memory as well, for the day when the device does not come back; unless memory is limited. */
bool tm_plan_keeps_mirror(const tm_plan *plan, uint32_t state_value);
/* States into host memory of their own, where a plan that is not bound has them.  Those that cannot be read are lost. */
void      tm_plan_states_take_in(tm_plan *plan);
/* The state, taken in, whole and fine, for somebody to write all of it.   TM_ERROR_NO_MEMORY */
tm_status tm_plan_state_ready(tm_plan *plan, tm_plan_state *state, tm_error *error);
/* States of host memory go to other memory, as who never came back may still write where they are.   TM_ERROR_NO_MEMORY */
tm_status tm_plan_states_renew(tm_plan *plan, tm_error *error);
/* ... and out again, to where the bound plan wants them. */
tm_status tm_plan_states_put_out(tm_plan *plan, tm_error *error);

/* Whether so much more host memory is within what the plan may take. */
bool tm_plan_memory_has_room(const tm_plan *plan, uint64_t bytes);

/* Host memory that devices of the plan may have been given. */
void tm_plan_memory_free(tm_plan *plan, void *memory, uint64_t bytes);

/* One transfer, done when it returns. */
tm_status tm_plan_upload(tm_device_slot *device, const tm_plan_location *to, uint64_t below, const char *first, uint64_t bytes,
                         tm_error *error);
tm_status tm_plan_download(tm_device_slot *device, const tm_plan_location *from, uint64_t below, char *first, uint64_t bytes,
                           tm_error *error);

#endif
