/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOUND_BYTES 80u

/* ---- complaints ---- */

static void describe(const json_t *found, char text[FOUND_BYTES]) {
  if (found == NULL) snprintf(text, FOUND_BYTES, "nothing");
  else if (json_is_object(found)) snprintf(text, FOUND_BYTES, "an object");
  else if (json_is_array(found)) snprintf(text, FOUND_BYTES, "a list of %zu", json_array_size(found));
  else if (json_dumpb(found, text, FOUND_BYTES - 1, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) >= FOUND_BYTES)
    memcpy(text + FOUND_BYTES - 5, "...", 4);
}

int sim_complain(sim_reader *reader, const char *key, const char *expected, const json_t *found) {
  char what[FOUND_BYTES] = { 0 };
  const int has_place = reader->place[0] != '\0', has_key = key[0] != '\0';
  describe(found, what);
  snprintf(reader->text, sizeof reader->text, "%.300s: %s%s%.64s: expected %.200s, found %s", reader->file,
           has_place || has_key ? reader->place : "description", has_place && has_key ? "." : "", key, expected, what);
  return 0;
}

int sim_complain_of(sim_reader *reader, const json_t *object, const char *key, const char *expected) {
  return sim_complain(reader, key, expected, json_object_get(object, key));
}

/* Keys come from the file: anything may stand in them. */
static int complain_of_key(sim_reader *reader, const char *key, const sim_field *fields, uint32_t count) {
  char known[400] = { 0 };
  for (uint32_t i = 0; i < count; i++) {
    const size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", i == 0 ? "" : ", ", fields[i].key);
  }
  char found[FOUND_BYTES] = { 0 };
  json_t *word = json_string(key);
  describe(word, found);
  json_decref(word);
  snprintf(reader->text, sizeof reader->text, "%.160s: %s: expected one of the keys %.399s, found %s", reader->file,
           reader->place[0] == '\0' ? "description" : reader->place, known, found);
  return 0;
}

/* ---- values ---- */

static int read_count(sim_reader *reader, const sim_field *field, const json_t *value, uint64_t *out_count) {
  char expected[96];
  const json_int_t number = json_integer_value(value);
  snprintf(expected, sizeof expected, "a whole number from %.0f to %.0f", field->least, field->most);
  if (!json_is_integer(value) || (double)number < field->least || (double)number > field->most)
    return sim_complain(reader, field->key, expected, value);
  *out_count = (uint64_t)number;
  return 1;
}

static int read_rate(sim_reader *reader, const sim_field *field, const json_t *value, double *out_rate) {
  char expected[96];
  const double number = json_number_value(value);
  snprintf(expected, sizeof expected, "a number from %g to %g", field->least, field->most);
  if (!json_is_number(value) || !(number >= field->least && number <= field->most))
    return sim_complain(reader, field->key, expected, value);
  *out_rate = number;
  return 1;
}

static int read_word(sim_reader *reader, const sim_field *field, const json_t *value, char *out_word) {
  const char *word = json_string_value(value);
  const size_t length = word == NULL ? 0 : strlen(word);
  int is_good = length >= 1 && length < SIM_NAME_BYTES;
  for (size_t i = 0; is_good && i < length; i++) is_good = word[i] >= ' ' && word[i] <= '~';
  if (!is_good) return sim_complain(reader, field->key, "a text of 1 to 63 printable ASCII characters", value);
  memcpy(out_word, word, length + 1);
  return 1;
}

static int read_value(sim_reader *reader, const sim_field *field, const json_t *value, void *out) {
  switch (field->kind) {
    case SIM_COUNT: return read_count(reader, field, value, out);
    case SIM_RATE: return read_rate(reader, field, value, out);
    case SIM_WORD: return read_word(reader, field, value, out);
    case SIM_FLAG:
      if (!json_is_boolean(value)) return sim_complain(reader, field->key, "true or false", value);
      *(uint32_t *)out = json_is_true(value);
      return 1;
    default: return 1;
  }
}

static int is_known(const char *key, const sim_field *fields, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(fields[i].key, key) == 0) return 1;
  return 0;
}

int sim_read_object(sim_reader *reader, const json_t *object, const sim_field *fields, uint32_t field_count, void *out) {
  if (!json_is_object(object)) return sim_complain(reader, "", "an object", object);
  json_t *iterated = (json_t *)(uintptr_t)object;       /* jansson's iterators have no const */
  for (void *i = json_object_iter(iterated); i != NULL; i = json_object_iter_next(iterated, i)) {
    const char *key = json_object_iter_key(i);
    if (!is_known(key, fields, field_count)) return complain_of_key(reader, key, fields, field_count);
  }
  for (uint32_t i = 0; i < field_count; i++) {
    const json_t *value = json_object_get(object, fields[i].key);
    if (value == NULL && fields[i].is_required) return sim_complain(reader, fields[i].key, "it to be there", NULL);
    if (value != NULL && !read_value(reader, &fields[i], value, (char *)out + fields[i].offset)) return 0;
  }
  return 1;
}
