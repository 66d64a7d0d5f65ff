/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/profile_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/log2_fixed.h"
#include "base/text.h"

#define SUM_LENGTH 16u
#define MOST_FIELDS 12
#define LARGEST_MEAN (64 * TM_LOG2_ONE)
#define LARGEST_VARIANCE (UINT64_C(1) << 45)
#define LARGEST_SAMPLES (UINT64_C(1) << 48)

static const char *const kind_names[TM_PROFILE_RECORD_KINDS] = { "profile", "device", "link", "entry" };
static const int field_counts[TM_PROFILE_RECORD_KINDS] = { 3, 10, 4, 11 };

void tm_profile_device_set(char out_field[TM_PROFILE_NAME_BYTES], const char *text) {
  if (text == NULL) text = "";
  (void)tm_text_escape(text, strlen(text), out_field, TM_PROFILE_NAME_BYTES);
}

static uint64_t hash_text(const char *text, uint64_t seed) { return XXH3_64bits_withSeed(text, strlen(text), seed); }

uint64_t tm_profile_device_fingerprint(const tm_profile_device *device) {
  const uint64_t numbers[4] = { device->abi, device->cost_model_id, device->thread_count, device->memory_bytes };
  const char *const texts[4] = { device->backend, device->build_id, device->driver, device->uuid };
  uint64_t hash = XXH3_64bits(numbers, sizeof numbers);
  for (int i = 0; i < 4; i++) hash = hash_text(texts[i], hash);
  return hash;
}

uint64_t tm_profile_link_fingerprint(const tm_correction_link *link) { return XXH3_64bits(link, sizeof *link); }

/* ---- printing ---- */

static void print_identity(const tm_identity *identity, char text[33]) {
  for (int i = 0; i < 16; i++) snprintf(text + 2 * i, 3, "%02x", (unsigned)identity->bytes[i]);
}

static int print_link(const tm_profile_record *record, char *text, size_t room) {
  char from[33], to[33];
  print_identity(&record->link.from, from);
  print_identity(&record->link.to, to);
  return snprintf(text, room, "\t%016llx\t%s\t%s", (unsigned long long)record->fingerprint, from, to);
}

static int print_device(const tm_profile_record *record, char *text, size_t room) {
  const tm_profile_device *device = &record->device;
  return snprintf(text, room, "\t%016llx\t%s\t%s\t%x\t%s\t%llx\t%s\t%llx\t%llx", (unsigned long long)record->fingerprint,
                  device->backend, device->build_id, device->abi, device->uuid, (unsigned long long)device->cost_model_id,
                  device->driver, (unsigned long long)device->thread_count, (unsigned long long)device->memory_bytes);
}

static int print_entry(const tm_profile_record *record, char *text, size_t room) {
  const tm_correction_entry *entry = &record->entry;
  const tm_correction_state *state = &entry->node.fresh;
  char work[TM_WORK_KIND_BYTES];
  tm_work_kind_print(&entry->work, work);
  return snprintf(text, room, "\t%016llx\t%x\t%llx\t%x\t%llx\t%x\t%s%llx\t%llx\t%s", (unsigned long long)record->fingerprint,
                  entry->kind, (unsigned long long)entry->key, entry->node.is_reset ? 1u : 0u, (unsigned long long)state->samples,
                  state->weight, state->mean < 0 ? "-" : "",
                  (unsigned long long)(state->mean < 0 ? -state->mean : state->mean), (unsigned long long)state->variance, work);
}

static int print_header(const tm_profile_record *record, char *text, size_t room) {
  return snprintf(text, room, "\t%x\t%llx", record->version, (unsigned long long)record->generation);
}

uint64_t tm_profile_record_print(const tm_profile_record *record, char text[TM_PROFILE_LINE_BYTES]) {
  static int (*const printers[TM_PROFILE_RECORD_KINDS])(const tm_profile_record *, char *, size_t) = { print_header, print_device,
                                                                                                      print_link, print_entry };
  char body[TM_PROFILE_LINE_BYTES - SUM_LENGTH - 2];
  const int name_length = snprintf(body, sizeof body, "%s", kind_names[record->kind]);
  const int length = name_length + printers[record->kind](record, body + name_length, sizeof body - (size_t)name_length);
  return (uint64_t)snprintf(text, TM_PROFILE_LINE_BYTES, "%016llx\t%.*s\n", (unsigned long long)XXH3_64bits(body, (size_t)length),
                            length, body);
}

/* ---- parsing ---- */

/* Digits and nothing else: strtoull takes signs and spaces, too. */
static bool parse_number(const char *text, uint64_t most, uint64_t *out_number) {
  const size_t digits = strspn(text, "0123456789abcdef");
  if (digits == 0 || digits > 16 || text[digits] != '\0') return false;
  *out_number = strtoull(text, NULL, 16);
  return *out_number <= most;
}

static bool parse_small(const char *text, uint32_t *out_number) {
  uint64_t number;
  if (!parse_number(text, UINT32_MAX, &number)) return false;
  *out_number = (uint32_t)number;
  return true;
}

static bool parse_identity(const char *text, tm_identity *out_identity) {
  if (strlen(text) != 32 || strspn(text, "0123456789abcdef") != 32) return false;
  for (int i = 0; i < 16; i++) {
    const char digits[3] = { text[2 * i], text[2 * i + 1], '\0' };
    out_identity->bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
  }
  return true;
}

static bool parse_header(char *const *fields, tm_profile_record *record) {
  return parse_small(fields[1], &record->version) && record->version != 0 && parse_number(fields[2], UINT64_MAX, &record->generation);
}

static bool take_text(const char *field, char out_text[TM_PROFILE_NAME_BYTES]) {
  const size_t length = strlen(field);
  if (length >= TM_PROFILE_NAME_BYTES || !tm_text_is_clean(field, length)) return false;
  memcpy(out_text, field, length + 1);
  return true;
}

static bool parse_device(char *const *fields, tm_profile_record *record) {
  tm_profile_device *device = &record->device;
  tm_identity uuid;
  const bool is_sound = parse_number(fields[1], UINT64_MAX, &record->fingerprint) && take_text(fields[2], device->backend) &&
                        take_text(fields[3], device->build_id) && parse_small(fields[4], &device->abi) &&
                        parse_identity(fields[5], &uuid) && parse_number(fields[6], UINT64_MAX, &device->cost_model_id) &&
                        take_text(fields[7], device->driver) && parse_number(fields[8], UINT64_MAX, &device->thread_count) &&
                        parse_number(fields[9], UINT64_MAX, &device->memory_bytes);
  if (!is_sound) return false;
  memcpy(device->uuid, fields[5], sizeof device->uuid);
  return record->fingerprint == tm_profile_device_fingerprint(device);
}

static bool parse_link(char *const *fields, tm_profile_record *record) {
  return parse_number(fields[1], UINT64_MAX, &record->fingerprint) && parse_identity(fields[2], &record->link.from) &&
         parse_identity(fields[3], &record->link.to) && record->fingerprint == tm_profile_link_fingerprint(&record->link);
}

static bool parse_mean(const char *text, int64_t *out_mean) {
  uint64_t magnitude;
  if (!parse_number(text + (*text == '-'), (uint64_t)LARGEST_MEAN, &magnitude)) return false;
  *out_mean = *text == '-' ? -(int64_t)magnitude : (int64_t)magnitude;
  return true;
}

static bool is_sensible(const tm_correction_entry *entry) {
  if (entry->kind < TM_CORRECTION_DEVICE || entry->kind > TM_CORRECTION_WORK) return false;
  const bool has_class = entry->kind == TM_CORRECTION_CLASS || entry->kind == TM_CORRECTION_WORK;
  if (entry->kind == TM_CORRECTION_BUCKET && (entry->key & 0xff) > 63) return false;
  return !has_class || entry->key < TM_CLASS_COUNT;
}

static bool parse_entry(char *const *fields, tm_profile_record *record) {
  tm_correction_entry *entry = &record->entry;
  tm_correction_state *state = &entry->node.fresh;
  uint64_t is_reset, weight;
  const bool is_sound = parse_number(fields[1], UINT64_MAX, &record->fingerprint) && parse_small(fields[2], &entry->kind) &&
                        parse_number(fields[3], UINT64_MAX, &entry->key) && parse_number(fields[4], 1, &is_reset) &&
                        parse_number(fields[5], LARGEST_SAMPLES, &state->samples) &&
                        parse_number(fields[6], TM_LARGEST_WEIGHT, &weight) && parse_mean(fields[7], &state->mean) &&
                        parse_number(fields[8], LARGEST_VARIANCE, &state->variance) &&
                        tm_work_kind_parse(fields[9], fields[10], &entry->work) && is_sensible(entry);
  if (!is_sound) return false;
  entry->node.is_reset = is_reset != 0;
  state->weight = (uint32_t)weight;
  entry->size_log2 = entry->kind == TM_CORRECTION_BUCKET ? (uint32_t)(entry->key & 0xff) : 0;
  return true;
}

/* Cuts the line at its tabs; the number of fields, MOST_FIELDS if there may be more. */
static int split(char *line, char *fields[MOST_FIELDS]) {
  int count = 0;
  for (char *field = line; count < MOST_FIELDS; field++) {
    fields[count++] = field;
    field += strcspn(field, "\t");
    if (*field == '\0') break;
    *field = '\0';
  }
  return count;
}

bool tm_profile_record_parse(const char *line, uint64_t length, tm_profile_record *out_record) {
  static bool (*const parsers[TM_PROFILE_RECORD_KINDS])(char *const *, tm_profile_record *) = { parse_header, parse_device, parse_link,
                                                                                               parse_entry };
  char text[TM_PROFILE_LINE_BYTES], *fields[MOST_FIELDS];
  uint64_t sum;
  if (length <= SUM_LENGTH + 1 || length >= sizeof text || memchr(line, '\0', (size_t)length) != NULL) return false;
  memcpy(text, line, (size_t)length);
  text[length] = '\0';
  if (text[SUM_LENGTH] != '\t') return false;
  text[SUM_LENGTH] = '\0';
  char *body = text + SUM_LENGTH + 1;
  if (!parse_number(text, UINT64_MAX, &sum) || sum != XXH3_64bits(body, (size_t)length - SUM_LENGTH - 1)) return false;
  const int count = split(body, fields);
  memset(out_record, 0, sizeof *out_record);
  for (uint32_t kind = 0; kind < TM_PROFILE_RECORD_KINDS; kind++) {
    if (strcmp(fields[0], kind_names[kind]) != 0 || count != field_counts[kind]) continue;
    out_record->kind = (tm_profile_record_kind)kind;
    return parsers[kind](fields, out_record);
  }
  return false;
}

tm_profile_flaws tm_profile_text_read(const char *text, uint64_t bytes, tm_profile_record_fn take, void *context) {
  tm_profile_flaws flaws = { false, 0, 0 };
  tm_profile_record record;
  bool is_first = true;
  for (uint64_t begin = 0; begin < bytes;) {
    const char *end = memchr(text + begin, '\n', (size_t)(bytes - begin));
    const uint64_t length = end == NULL ? bytes - begin : (uint64_t)(end - text) - begin;
    const bool is_sound = end != NULL && tm_profile_record_parse(text + begin, length, &record);
    if (is_first && (!is_sound || record.kind != TM_PROFILE_HEADER)) flaws.is_foreign = true;
    else if (is_first && record.version != TM_PROFILE_VERSION) flaws.version = record.version;
    if (flaws.is_foreign || flaws.version != 0) return flaws;
    if (!is_sound) flaws.damaged_count++;
    else if (is_first || record.kind != TM_PROFILE_HEADER) take(context, &record);
    is_first = false;
    begin += length + 1;
  }
  return flaws;
}
