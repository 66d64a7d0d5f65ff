/* SPDX-License-Identifier: Apache-2.0 */
/* bring_up.h - from a header to a backend that is initialized and listed: built-ins and files go the same way. */
#ifndef TM_PLUGIN_BRING_UP_H
#define TM_PLUGIN_BRING_UP_H

#include "plugin/inventory.h"

/* Checks the header, fills slot->table and takes down names and options.  The slot's own name is known then.
   TM_ERROR_CORRUPT (no plugin that can be used), TM_ERROR_NO_MEMORY */
tm_status tm_bring_up_accept(tm_backend_slot *slot, const tm_plugin_header *header, tm_error *error);

/* Whether one of the library's own backends is called that. */
bool tm_bring_up_is_builtin(const char *name);
/* Gives the slot its name: its own, or with a number if a built-in or others before it have that.   TM_ERROR_NO_MEMORY */
tm_status tm_bring_up_name(tm_backend_slot *slot, tm_error *error);

/* Calls init and lists the devices.  What it cannot do becomes the slot's state and reason.
   TM_ERROR_ARGUMENT: a value that the user gave one of its options means nothing to it */
tm_status tm_bring_up_start(tm_backend_slot *slot, const tm_context_options *options, tm_error *error);

/* Only init: slot->handle and slot->initialized.   As init returns it, with the backend's words in `error` */
tm_status tm_bring_up_init(tm_backend_slot *slot, tm_error *error);

#endif
