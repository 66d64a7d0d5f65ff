/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/record_store.h"

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/kept_file.h"
#include "base/system_stamp.h"
#include "plugin/enumeration.h"

#define FOLDER "backends"
#define FORM 1u                 /* of names and records; another one finds none of the old */
#define MOST_FILES 512u
#define VARIABLES_BYTES 65536u
#define LONGEST_VARIABLE 256u
#define LONGEST_FILE_NAME 64u

#define TEXT_(value) #value
#define TEXT(value) TEXT_(value)
#define LIBRARY_VERSION TEXT(TM_VERSION_MAJOR) "." TEXT(TM_VERSION_MINOR) "." TEXT(TM_VERSION_PATCH)

const char *tm_record_store_open(tm_inventory *inventory, const char *state_folder) {
  if (state_folder == NULL || state_folder[0] == '\0') return NULL;
  char path[4096];
  const int length = snprintf(path, sizeof path, "%s/%s", state_folder, FOLDER);
  if (length < 0 || (size_t)length >= sizeof path || !tm_kept_folder_prepare(path)) {
    tm_log_write(&inventory->log, TM_LOG_WARNING, "the state folder %s cannot be used; nothing is kept", state_folder);
    return NULL;
  }
  return tm_arena_string(&inventory->arena, path, (uint64_t)length);
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

static uint64_t mix_subject(uint64_t hash, const tm_record_subject *subject) {
  hash = mix_text(hash, subject->build_id);
  hash = mix_text(hash, subject->path);
  hash = mix_number(hash, subject->identity.device);
  hash = mix_number(hash, subject->identity.inode);
  hash = mix_number(hash, subject->identity.size_bytes);
  hash = mix_number(hash, subject->identity.modified_ns);
  return mix_text(hash, subject->settings_name);
}

void tm_record_store_name(const tm_record_subject *subject, const tm_context_options *options,
                          char out_name[TM_RECORD_NAME_BYTES]) {
  uint64_t stamp = tm_system_stamp();
  for (uint32_t i = 0; subject->manifest != NULL && i < subject->manifest->watch_count; i++)
    stamp = tm_system_stamp_file(stamp, subject->manifest->watches[i]);
  uint64_t halves[2];
  for (uint64_t h = 0; h < 2; h++) {
    uint64_t hash = mix_number(mix_number(mix_text(h, LIBRARY_VERSION), FORM), TM_LAYOUT_FINGERPRINT);
    hash = mix_number(mix_settings(mix_subject(hash, subject), options), stamp);
    halves[h] = hash;
  }
  snprintf(out_name, TM_RECORD_NAME_BYTES, "%016llx%016llx", (unsigned long long)halves[0], (unsigned long long)halves[1]);
}

/* ---- files ---- */

/* The variables that a subject asked for in any of its trials, in the order of their first time. */
static void read_variables(tm_inventory *inventory, const char *name, tm_field_writer *out_names) {
  void *bytes = NULL;
  uint64_t length = 0;
  if (!tm_kept_file_read(inventory->memory, inventory->records, name, VARIABLES_BYTES, &bytes, &length)) return;
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
  void *bytes = NULL;
  char file[LONGEST_FILE_NAME];
  tm_enumeration_head head;
  tm_field_writer names;
  if (inventory->records == NULL) return false;
  tm_field_writer_init(&names, inventory->memory);
  read_variables(inventory, name, &names);
  record_name(name, &names, file);
  tm_field_writer_deinit(&names);
  if (!tm_kept_file_read(inventory->memory, inventory->records, file, TM_RECORD_BYTES, &bytes, out_length)) return false;
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
  tm_field_writer names;
  if (inventory->records == NULL || length > TM_RECORD_BYTES) return;
  tm_field_writer_init(&names, inventory->memory);
  read_variables(inventory, name, &names);
  const uint64_t known = names.length;
  merge(&names, variables);
  record_name(name, &names, file);
  const bool ok = !names.failed && names.length <= VARIABLES_BYTES &&
                  (names.length == known || tm_kept_file_write(inventory->records, name, names.bytes, names.length)) &&
                  tm_kept_file_write(inventory->records, file, bytes, length);
  if (!ok) tm_log_write(&inventory->log, TM_LOG_WARNING, "%s: what was found out about a backend cannot be kept", inventory->records);
  tm_field_writer_deinit(&names);
  tm_kept_folder_trim(inventory->memory, inventory->records, MOST_FILES);
}

void tm_record_store_drop(tm_inventory *inventory, const char *name) {
  char file[LONGEST_FILE_NAME];
  tm_field_writer names;
  if (inventory->records == NULL || name[0] == '\0') return;
  tm_field_writer_init(&names, inventory->memory);
  read_variables(inventory, name, &names);
  record_name(name, &names, file);
  tm_field_writer_deinit(&names);
  tm_kept_file_remove(inventory->records, file);
}
