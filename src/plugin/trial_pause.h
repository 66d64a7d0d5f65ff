/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trial_pause.h - trials that ran out of time.  One may have been slow for want of a processor, so that the next start tries the
 * plugin again; from the second in a row on it is left alone for a while, and longer each time.
 */
#ifndef TM_PLUGIN_TRIAL_PAUSE_H
#define TM_PLUGIN_TRIAL_PAUSE_H

#include "base/fields.h"
#include "plugin/inventory.h"

/* The refusal that still holds of the subject with that name (record_store.h), a record (enumeration.h); free its bytes.  false:
   there is none, and it is to be tried. */
bool tm_trial_pause_find(tm_inventory *inventory, const char *name, char **out_bytes, uint64_t *out_length);
/* A trial of the slot ran out of time, for this reason. */
void tm_trial_pause_keep(tm_backend_slot *slot, const char *reason);
/* One came to an end. */
void tm_trial_pause_end(tm_inventory *inventory, const char *name);

#endif
