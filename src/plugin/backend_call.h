/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend_call.h - the calls into a backend as a whole, made on a thread that can be spared: one that does not come back is
 * given up, with its backend.  The last resort is called directly: nobody could stand in for it.
 */
#ifndef TM_PLUGIN_BACKEND_CALL_H
#define TM_PLUGIN_BACKEND_CALL_H

#include "plugin/inventory.h"

/* Sets slot->handle.   As init returns, TM_ERROR_INTERNAL (it did not come back), TM_ERROR_NO_MEMORY */
tm_status tm_backend_init(tm_backend_slot *slot, tm_error *error);
/* *out_info as the backend left it.   As device_info returns, TM_ERROR_INTERNAL (it did not come back), TM_ERROR_NO_MEMORY */
tm_status tm_backend_device_info(tm_backend_slot *slot, uint32_t index, tm_device_info *out_info, tm_error *error);
/* If it was initialized; a backend that is stuck, or to be kept up, stays as it is. */
void      tm_backend_shutdown(tm_backend_slot *slot);

/* Whether the backend is watched, and its devices too; in a trial the whole process is. */
bool tm_backend_is_watched(const tm_backend_slot *slot);

#endif
