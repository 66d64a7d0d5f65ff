/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - the user's words about backends and devices: which to use, and values for their options. */
#ifndef TM_PLUGIN_SETTINGS_H
#define TM_PLUGIN_SETTINGS_H

#include "plugin/inventory.h"

/* Why the backend of this name is not to be used; NULL if it is.  A static text. */
const char *tm_settings_exclude_backend(const tm_context_options *options, const char *name);
/* Whether the user named exactly this backend as excluded. */
bool tm_settings_excludes_by_name(const tm_context_options *options, const char *name);
/* Likewise for one device of a backend that is used. */
const char *tm_settings_exclude_device(const tm_context_options *options, const char *backend, const char *device);

/* Takes down the options that a complete table declares, with their defaults in force.   TM_ERROR_NO_MEMORY */
tm_status tm_settings_declare(tm_backend_slot *slot, const tm_accelerator_backend_plugin *table, tm_error *error);
/* Puts the user's values for `name` into slot->options, and the application's pointers for it into slot->pointers.
   TM_ERROR_ARGUMENT: unknown option or a value of the wrong type */
tm_status tm_settings_apply(const tm_context_options *options, tm_backend_slot *slot, const char *name, tm_error *error);

/* Whether anything was given for the backend of that name. */
bool tm_settings_has_values(const tm_context_options *options, const char *backend);
bool tm_settings_has_pointers(const tm_context_options *options, const char *backend);

/* Every backend and device that the user named must exist.   TM_ERROR_ARGUMENT with a suggestion */
tm_status tm_settings_check_names(const tm_context_options *options, const tm_inventory *inventory, tm_error *error);

#endif
