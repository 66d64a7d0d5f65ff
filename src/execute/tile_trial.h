/* SPDX-License-Identifier: Apache-2.0 */
/* tile_trial.h - the first tile of some work, computed twice on a device of which nothing is known, before it gets the whole. */
#ifndef TM_EXECUTE_TILE_TRIAL_H
#define TM_EXECUTE_TILE_TRIAL_H

#include "execute/runner.h"

/* What the first run takes beyond the second is set-up, the second is the device's rate; one that has yet to prove itself
   does so first, with the same tile.  TM_UNSUPPORTED: the work cannot be cut.   TM_ERROR_NO_DEVICE (the device failed at it, which
   is noted), TM_ERROR_NO_MEMORY, TM_ERROR_CANCELLED; nothing was learned then, and the whole will show it */
tm_status tm_tile_trial_run(const tm_runner *runner, const tm_request *request, const tm_device_slot *device, uint64_t tiles,
                            void *const *pointers, tm_error *error);

#endif
