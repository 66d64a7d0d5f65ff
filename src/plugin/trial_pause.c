/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/trial_pause.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/kept_file.h"
#include "plugin/enumeration.h"
#include "plugin/record_store.h"

#define LONGEST_PATH 4096u
#define SHORTEST_S UINT64_C(600)
#define LONGEST_S UINT64_C(86400)
#define MOST_TRIES 1000u
#define LONGEST_REASON 1024u

static bool path_of(const tm_inventory *inventory, const char *name, char path[LONGEST_PATH]) {
  if (inventory->records == NULL || name[0] == '\0') return false;
  return (size_t)snprintf(path, LONGEST_PATH, "%s/%s.pause", inventory->records, name) < LONGEST_PATH;
}

static uint64_t now_s(void) {
  const time_t now = time(NULL);
  return now < 0 ? 0 : (uint64_t)now;
}

/* The first has none: it was slow once. */
static uint64_t length_of(uint32_t tries) {
  uint64_t seconds = SHORTEST_S;
  for (uint32_t i = 2; i < tries && seconds < LONGEST_S; i++) seconds *= 8;
  return tries < 2 ? 0 : tm_min_u64(seconds, LONGEST_S);
}

/* What is kept; *out_record is the rest of the bytes, which are to be freed.  0 tries: nothing is. */
static uint32_t read(tm_inventory *inventory, const char *name, uint64_t *out_until_s, char **out_bytes, uint64_t *out_length,
                     tm_string *out_record) {
  char path[LONGEST_PATH];
  tm_field_reader reader;
  *out_bytes = NULL;
  *out_length = 0;
  if (!path_of(inventory, name, path)) return 0;
  if (tm_kept_file_read(inventory->memory, path, TM_RECORD_BYTES, out_bytes, out_length, NULL) != TM_OK) return 0;
  tm_field_reader_init(&reader, *out_bytes, *out_length);
  const uint32_t tries = tm_field_read_count(&reader, MOST_TRIES);
  *out_until_s = tm_field_read_number(&reader);
  *out_record = tm_field_read(&reader);
  return reader.failed ? 0 : tries;
}

bool tm_trial_pause_find(tm_inventory *inventory, const char *name, char **out_bytes, uint64_t *out_length) {
  char *bytes = NULL;
  uint64_t length = 0, until_s = 0;
  tm_string record = { "", 0 };
  tm_enumeration_head head;
  const uint32_t tries = read(inventory, name, &until_s, &bytes, &length, &record);
  const uint64_t now = now_s();
  /* One that lies further off than any is of a clock that was put back. */
  bool holds = tries != 0 && now < until_s && until_s - now <= LONGEST_S && tm_enumeration_look(record.data, record.length, &head);
  *out_bytes = holds ? tm_memory_alloc(inventory->memory, record.length, 0) : NULL;
  holds = *out_bytes != NULL;
  if (holds) memcpy(*out_bytes, record.data, (size_t)record.length);
  *out_length = record.length;
  tm_memory_free(inventory->memory, bytes, length);
  return holds;
}

static void write(const tm_inventory *inventory, const char *name, uint32_t tries, const tm_field_writer *record) {
  char path[LONGEST_PATH];
  tm_field_writer writer;
  tm_field_writer_init(&writer, inventory->memory);
  tm_field_write_number(&writer, tries);
  tm_field_write_number(&writer, now_s() + length_of(tries));
  tm_field_write(&writer, record->bytes, record->length);
  if (!writer.failed && !record->failed && path_of(inventory, name, path))
    (void)tm_kept_file_replace(path, writer.bytes, writer.length, NULL);
  tm_field_writer_deinit(&writer);
}

void tm_trial_pause_keep(tm_backend_slot *slot, const char *reason) {
  tm_inventory *inventory = slot->inventory;
  char *bytes = NULL, text[LONGEST_REASON];
  uint64_t length = 0, until_s = 0;
  tm_string before = { "", 0 };
  tm_field_writer record;
  if (inventory->records == NULL) return;
  const uint32_t tries = (uint32_t)tm_min_u64(read(inventory, slot->record, &until_s, &bytes, &length, &before) + UINT64_C(1), MOST_TRIES);
  tm_memory_free(inventory->memory, bytes, length);
  snprintf(text, sizeof text, "%.800s; so it was %u times, and it is not tried again for %llu minutes, unless it is changed or forgiven",
           reason, tries, (unsigned long long)(length_of(tries) / 60));
  tm_field_writer_init(&record, inventory->memory);
  tm_enumeration_write_refusal(slot, text, &record);
  write(inventory, slot->record, tries, &record);
  tm_field_writer_deinit(&record);
}

void tm_trial_pause_end(tm_inventory *inventory, const char *name) {
  char path[LONGEST_PATH];
  if (path_of(inventory, name, path)) tm_kept_file_remove(path);
}
