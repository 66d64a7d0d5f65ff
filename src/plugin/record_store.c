/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/record_store.h"

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "base/kept_file.h"
#include "base/system_stamp.h"
#include "plugin/enumeration.h"

#define FOLDER "backends"
#define FORM 4u                 /* of names and records; another one finds none of the old */
#define MOST_FILES 512u
#define VARIABLES_BYTES 65536u
#define LONGEST_VARIABLE 256u
#define LONGEST_FILE_NAME 64u
#define LONGEST_PATH 4096u
#define SUBJECT_DIGITS 16u      /* of a name */

#define TEXT_(value) #value
#define TEXT(value) TEXT_(value)
#define LIBRARY_VERSION TEXT(TM_VERSION_MAJOR) "." TEXT(TM_VERSION_MINOR) "." TEXT(TM_VERSION_PATCH)

const char *tm_record_store_open(tm_inventory *inventory, const char *state_folder) {
  if (state_folder == NULL || state_folder[0] == '\0') return NULL;
  char path[LONGEST_PATH];
  tm_error error = TM_ERROR_INIT;
  const int length = snprintf(path, sizeof path, "%s/%s", state_folder, FOLDER);
  tm_status status = tm_kept_folder_make(state_folder, &error);
  if (status == TM_OK && (size_t)length < sizeof path) status = tm_kept_folder_make(path, &error);
  if (status == TM_OK && (size_t)length < sizeof path) return tm_arena_string(&inventory->arena, path, (uint64_t)length);
  tm_log_write(&inventory->log, TM_LOG_WARNING, "the state folder %s cannot be used; nothing is kept: %s", state_folder, error.text);
  return NULL;
}

/* ---- names ---- */

static uint64_t mix_text(uint64_t hash, const char *text) {
  return XXH3_64bits_withSeed(text == NULL ? "" : text, text == NULL ? 0 : strlen(text), hash);
}

static uint64_t mix_number(uint64_t hash, uint64_t number) { return XXH3_64bits_withSeed(&number, sizeof number, hash); }

/* All settings, also those of others: whose they are is known only once the backend has told its name. */
static uint64_t mix_settings(uint64_t hash, const tm_context_options *options) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < options->setting_count; i++) {
    const tm_setting *setting = &options->settings[i];
    sum += mix_text(mix_text(mix_text(i, setting->backend), setting->name), setting->value);
  }
  return mix_number(hash, sum);
}

/* All that is kept about it has this in common, whatever its settings, its file's state and its surroundings were. */
static uint64_t subject_hash(const tm_record_subject *subject) { return mix_text(mix_text(0, subject->build_id), subject->path); }

static uint64_t mix_subject(uint64_t hash, const tm_record_subject *subject) {
  hash = mix_number(hash, subject->identity.device);
  hash = mix_number(hash, subject->identity.inode);
  hash = mix_number(hash, subject->identity.size_bytes);
  hash = mix_number(hash, subject->identity.modified_ns);
  hash = mix_number(hash, subject->identity.changed_ns);
  return mix_text(hash, subject->settings_name);
}

void tm_record_store_name(const tm_record_subject *subject, const tm_context_options *options,
                          char out_name[TM_RECORD_NAME_BYTES]) {
  uint64_t stamp = tm_system_stamp();
  if (subject->manifest != NULL) stamp = XXH3_64bits_withSeed(subject->manifest, sizeof *subject->manifest, stamp);
  for (uint32_t i = 0; subject->manifest != NULL && i < subject->manifest->watch_count; i++)
    stamp = tm_system_stamp_file(stamp, subject->manifest->watches[i]);
  const uint64_t about = subject_hash(subject);
  const uint64_t form = mix_number(mix_number(mix_text(about, LIBRARY_VERSION), FORM), TM_LAYOUT_FINGERPRINT);
  const uint64_t all = mix_number(mix_settings(mix_subject(form, subject), options), stamp);
  snprintf(out_name, TM_RECORD_NAME_BYTES, "%016llx%016llx", (unsigned long long)about, (unsigned long long)all);
}

/* ---- files ---- */

static bool path_of(const tm_inventory *inventory, const char *name, char path[LONGEST_PATH]) {
  return (size_t)snprintf(path, LONGEST_PATH, "%s/%s", inventory->records, name) < LONGEST_PATH;
}

static bool read(tm_inventory *inventory, const char *name, uint64_t most_bytes, char **out_bytes, uint64_t *out_length) {
  char path[LONGEST_PATH];
  return path_of(inventory, name, path) && tm_kept_file_read(inventory->memory, path, most_bytes, out_bytes, out_length, NULL) == TM_OK;
}

static bool write(const tm_inventory *inventory, const char *name, const char *bytes, uint64_t length, tm_error *error) {
  char path[LONGEST_PATH];
  return path_of(inventory, name, path) && tm_kept_file_replace(path, bytes, length, error) == TM_OK;
}

/* The variables that a subject asked for in any of its trials, in the order of their first time. */
static void read_variables(tm_inventory *inventory, const char *name, tm_field_writer *out_names) {
  char *bytes = NULL;
  uint64_t length = 0;
  if (!read(inventory, name, VARIABLES_BYTES, &bytes, &length)) return;
  tm_field_reader reader;
  tm_field_reader_init(&reader, bytes, length);
  while (!tm_field_at_end(&reader)) {
    const tm_string variable = tm_field_read(&reader);
    if (!reader.failed) tm_field_write(out_names, variable.data, variable.length);
  }
  tm_memory_free(inventory->memory, bytes, length);
}

static bool contains(const tm_field_writer *names, tm_string name) {
  tm_field_reader reader;
  tm_field_reader_init(&reader, names->bytes, names->length);
  while (!tm_field_at_end(&reader)) {
    const tm_string one = tm_field_read(&reader);
    if (one.length == name.length && memcmp(one.data, name.data, (size_t)name.length) == 0) return true;
  }
  return false;
}

static void merge(tm_field_writer *names, const tm_field_writer *more) {
  tm_field_reader reader;
  tm_field_reader_init(&reader, more->bytes, more->length);
  while (!tm_field_at_end(&reader)) {
    const tm_string one = tm_field_read(&reader);
    if (!reader.failed && !contains(names, one)) tm_field_write(names, one.data, one.length);
  }
}

static void record_name(const char *name, const tm_field_writer *names, char out_name[LONGEST_FILE_NAME]) {
  uint64_t stamp = 0;
  tm_field_reader reader;
  tm_field_reader_init(&reader, names->bytes, names->length);
  while (!tm_field_at_end(&reader)) {
    char variable[LONGEST_VARIABLE];
    const tm_string one = tm_field_read(&reader);
    snprintf(variable, sizeof variable, "%.*s", (int)(one.length < sizeof variable ? one.length : sizeof variable - 1), one.data);
    stamp = tm_system_stamp_variable(stamp, variable);
  }
  snprintf(out_name, LONGEST_FILE_NAME, "%s-%016llx", name, (unsigned long long)stamp);
}

bool tm_record_store_find(tm_inventory *inventory, const char *name, char **out_bytes, uint64_t *out_length) {
  char *bytes = NULL;
  char file[LONGEST_FILE_NAME];
  tm_enumeration_head head;
  tm_field_writer names;
  if (inventory->records == NULL) return false;
  tm_field_writer_init(&names, inventory->memory);
  read_variables(inventory, name, &names);
  record_name(name, &names, file);
  tm_field_writer_deinit(&names);
  if (!read(inventory, file, TM_RECORD_BYTES, &bytes, out_length)) return false;
  if (tm_enumeration_look(bytes, *out_length, &head)) {
    *out_bytes = bytes;
    return true;
  }
  tm_memory_free(inventory->memory, bytes, *out_length);
  return false;
}

void tm_record_store_keep(tm_inventory *inventory, const char *name, const tm_field_writer *variables, const char *bytes,
                          uint64_t length) {
  char file[LONGEST_FILE_NAME];
  tm_error error = TM_ERROR_INIT;
  tm_field_writer names;
  if (inventory->records == NULL || length > TM_RECORD_BYTES) return;
  tm_field_writer_init(&names, inventory->memory);
  read_variables(inventory, name, &names);
  const uint64_t known = names.length;
  merge(&names, variables);
  record_name(name, &names, file);
  const bool ok = !names.failed && names.length <= VARIABLES_BYTES &&
                  (names.length == known || write(inventory, name, names.bytes, names.length, &error)) &&
                  write(inventory, file, bytes, length, &error);
  if (!ok) tm_log_write(&inventory->log, TM_LOG_WARNING, "%s: what was found out about a backend cannot be kept: %s", inventory->records, error.text);
  tm_field_writer_deinit(&names);
  tm_kept_folder_trim(inventory->memory, inventory->records, MOST_FILES);
}

void tm_record_store_drop(tm_inventory *inventory, const char *name) {
  char file[LONGEST_FILE_NAME], path[LONGEST_PATH];
  tm_field_writer names;
  if (inventory->records == NULL || name[0] == '\0') return;
  tm_field_writer_init(&names, inventory->memory);
  read_variables(inventory, name, &names);
  record_name(name, &names, file);
  tm_field_writer_deinit(&names);
  if (path_of(inventory, file, path)) tm_kept_file_remove(path);
}

bool tm_record_store_forget(tm_inventory *inventory, const char *name) {
  char beginning[SUBJECT_DIGITS + 1];
  if (inventory->records == NULL || name[0] == '\0') return false;
  snprintf(beginning, sizeof beginning, "%s", name);
  return tm_kept_folder_remove(inventory->records, beginning) != 0;
}
