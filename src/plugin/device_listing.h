/* SPDX-License-Identifier: Apache-2.0 */
/* device_listing.h - asks a backend for its devices and takes down what it says, made sound. */
#ifndef TM_PLUGIN_DEVICE_LISTING_H
#define TM_PLUGIN_DEVICE_LISTING_H

#include "plugin/inventory.h"

#define TM_MOST_DEVICES 256u            /* of one backend; what comes after is cut */

/* Appends the devices of an initialized backend to the inventory.   TM_ERROR_CORRUPT (the backend is then refused),
   TM_ERROR_NO_MEMORY */
tm_status tm_device_listing_append(tm_backend_slot *slot, const tm_context_options *options, tm_error *error);

/* Appends one device as it describes itself.  own: see tm_device_identity_take.  is_clean: its texts are fit for people already, and are kept as they are.
   As above. */
tm_status tm_device_listing_add(tm_backend_slot *slot, const tm_context_options *options, const tm_device_info *info,
                                const tm_identity *own, bool is_clean, tm_error *error);

/* Frees what append allocated outside the arena. */
void tm_device_listing_free(tm_device_slot *device);

#endif
