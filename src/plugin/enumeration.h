/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enumeration.h - what a backend was seen to offer, as a record: header, options, devices, memories, and what its trial
 * found.  Written by whoever loaded it, read by those that list it without loading it.
 */
#ifndef TM_PLUGIN_ENUMERATION_H
#define TM_PLUGIN_ENUMERATION_H

#include "base/fields.h"
#include "plugin/inventory.h"

#define TM_MOST_FAULTS 1024u

/* Writes the slot and its devices.  No words of a person's settings are in it. */
void tm_enumeration_write(const tm_backend_slot *slot, tm_field_writer *writer);
/* The same without what may differ between two starts of one build on one machine: epochs, times, notes, faults, state. */
void tm_enumeration_write_identity(const tm_backend_slot *slot, tm_field_writer *writer);
/* The record of a file that did harm, with what it had told by then (slot->told_name: NULL if that is nothing). */
void tm_enumeration_write_refusal(const tm_backend_slot *slot, const char *reason, tm_field_writer *writer);

/* What a record says in short. */
typedef struct tm_enumeration_head {
  uint32_t  state;              /* TM_BACKEND_* */
  tm_string own_name;           /* empty: it has told none */
  tm_string version;
  tm_string reason;
} tm_enumeration_head;

/* Whether the bytes are a record, whole and sound; then its head, which points into them. */
bool tm_enumeration_look(const char *bytes, uint64_t length, tm_enumeration_head *out_head);

/* Takes over header, options, note and faults of a record that was looked at; the state and the slot's name are left alone.
   TM_ERROR_NO_MEMORY */
tm_status tm_enumeration_take_header(tm_backend_slot *slot, const char *bytes, uint64_t length, tm_error *error);
/* Appends its devices to the inventory.   TM_ERROR_CORRUPT (nothing that a backend may say), TM_ERROR_NO_MEMORY */
tm_status tm_enumeration_take_devices(tm_backend_slot *slot, const tm_context_options *options, const char *bytes,
                                      uint64_t length, tm_error *error);

#endif
