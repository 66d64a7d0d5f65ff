/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loading.h - fills an inventory: named files, built-ins, the search path, the reference.  Each file goes through the same
 * steps, and what is found wrong at one of them becomes its state and reason, and nobody else's trouble:
 *
 *   identity -> known already? -> record of an earlier trial -+-> listed, asleep
 *                                    |                        |
 *                                    none: examined as data, its manifest, a trial in another process -> record
 */
#ifndef TM_PLUGIN_LOADING_H
#define TM_PLUGIN_LOADING_H

#include "plugin/inventory.h"

/* Only the user's own mistakes (unknown device, option) and lack of memory fail.   TM_ERROR_ARGUMENT, TM_ERROR_NO_MEMORY */
tm_status tm_loading_run(tm_inventory *inventory, const tm_inventory_request *request, tm_error *error);

#endif
