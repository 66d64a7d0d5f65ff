/* SPDX-License-Identifier: Apache-2.0 */
/* named_devices.h - devices as the user names them: a backend for all that it has, or one by its number. */
#ifndef TM_CLI_NAMED_DEVICES_H
#define TM_CLI_NAMED_DEVICES_H

#include "preferences.h"
#include "tensormorph/tensormorph.h"

bool tm_named_devices_is(const char *device, const char *name);
/* Complains about each name that no ready device has, with the reason of what has it, and returns how many those are.  The
   reference is always there. */
uint32_t tm_named_devices_complain(tm_context *context, const tm_name_list *names);

#endif
