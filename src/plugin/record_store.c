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
#define MOST_RECORDS 256u

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

bool tm_record_store_find(tm_inventory *inventory, const char *name, char **out_bytes, uint64_t *out_length) {
  void *bytes = NULL;
  tm_enumeration_head head;
  if (inventory->records == NULL) return false;
  if (!tm_kept_file_read(inventory->memory, inventory->records, name, TM_RECORD_BYTES, &bytes, out_length)) return false;
  if (tm_enumeration_look(bytes, *out_length, &head)) {
    *out_bytes = bytes;
    return true;
  }
  tm_memory_free(inventory->memory, bytes, *out_length);
  return false;
}

void tm_record_store_keep(tm_inventory *inventory, const char *name, const char *bytes, uint64_t length) {
  if (inventory->records == NULL || length > TM_RECORD_BYTES) return;
  if (!tm_kept_file_write(inventory->records, name, bytes, length))
    tm_log_write(&inventory->log, TM_LOG_WARNING, "%s: what was found out about a backend cannot be kept", inventory->records);
  tm_kept_folder_trim(inventory->memory, inventory->records, MOST_RECORDS);
}

void tm_record_store_drop(tm_inventory *inventory, const char *name) {
  if (inventory->records != NULL && name[0] != '\0') tm_kept_file_remove(inventory->records, name);
}
