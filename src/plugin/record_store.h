/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_store.h - records of backends (enumeration.h) in the state folder: one file each, named by a hash of everything that
 * it may depend on, so that a change makes another name and an old record is simply not found any more.  Beside them, one
 * file a subject tells which variables of the environment it asked for; their values are part of a record's name, too.
 */
#ifndef TM_PLUGIN_RECORD_STORE_H
#define TM_PLUGIN_RECORD_STORE_H

#include "base/fields.h"
#include "plugin/inventory.h"
#include "plugin/manifest.h"

#define TM_RECORD_BYTES (UINT64_C(4) << 20)     /* a longer one is none */

/* The folder for them below the state folder, in the inventory's arena; NULL when nothing can be kept. */
const char *tm_record_store_open(tm_inventory *inventory, const char *state_folder);

/* What a record is about. */
typedef struct tm_record_subject {
  const char *build_id;                 /* of a built-in; NULL: a file */
  const char *path;                     /* of the file */
  tm_file_identity identity;
  const tm_manifest *manifest;          /* what it watches; NULL: none */
  const char *settings_name;            /* by which the user's settings mean it; NULL: its own name */
} tm_record_subject;

/* What the subject's files are called by. */
void tm_record_store_name(const tm_record_subject *subject, const tm_context_options *options,
                          char out_name[TM_RECORD_NAME_BYTES]);

/* The record that holds now, sound; free its *out_length bytes.  false when there is none. */
bool tm_record_store_find(tm_inventory *inventory, const char *name, char **out_bytes, uint64_t *out_length);
/* `variables`: names as fields. */
void tm_record_store_keep(tm_inventory *inventory, const char *name, const tm_field_writer *variables, const char *bytes,
                          uint64_t length);
void tm_record_store_drop(tm_inventory *inventory, const char *name);
/* Removes all that is kept about the subject, whatever its settings were; false if that is nothing. */
bool tm_record_store_forget(tm_inventory *inventory, const char *name);

#endif
