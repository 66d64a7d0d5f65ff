/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_identity.h - which device it is, and which of two comes first where nothing else decides: by what they are, never by
 * their names or places in a list.
 */
#ifndef TM_PLUGIN_DEVICE_IDENTITY_H
#define TM_PLUGIN_DEVICE_IDENTITY_H

#include "plugin/inventory.h"

/* Takes down what the device says of itself.  One that says nothing is identified by `own`, which an earlier process found, or
   (NULL, or all zero) by its file's bytes, its build and its number there: the same at each start under whatever path, and
   another one than that of any other build. */
void tm_device_identity_take(tm_device_slot *device, const tm_identity *own);

/* In hexadecimal digits. */
void tm_device_identity_print(const tm_identity *identity, char out_text[33]);

/* Once all are listed: those with one identity are kept apart, by where their files lie, and a backend whose device says that
   it is another one has that in its note.   TM_ERROR_NO_MEMORY */
tm_status tm_device_identity_part(tm_inventory *inventory, tm_error *error);

/* Below 0: `a` comes first.  What a device says that it is; its build and what it has there; then its identity. */
int tm_device_identity_compare(const tm_device_slot *a, const tm_device_slot *b);

#endif
